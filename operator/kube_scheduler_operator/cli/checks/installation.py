"""Checks of what an installation meets: rights, kinds, the namespace, admission, other programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from ...base import names
from ...base.images import repository
from ...base.objects import Object, label, mapping
from ...base.platform import PLATFORMS, Platform
from ...config.language.schema import DEFAULT_SCHEDULER
from .check import CheckProblem, CheckState, ClusterFacts, DryRun
from .surroundings import listed

ENFORCE: Final = "pod-security.kubernetes.io/enforce"
HELM_RELEASE: Final = "meta.helm.sh/release-name"
SCHEDULER_PORT: Final = 10259
"""The port of kube-scheduler, which its static Pod opens on the node."""

SHOWN: Final = 5
"""Objects of a namespace that a check names; its users may create thousands."""

_OPERATOR_NAMESPACES: Final = {platform.operator_namespace for platform in PLATFORMS.values()}
_POLICY: Final = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)'")
_WEBHOOK: Final = re.compile(r'admission webhook "([^"]+)"')
_MISSING_FIELDS: Final = 3


def your_rights(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether the user may do what an installation does."""
    missing = facts.missing_rights.get()
    if missing:
        yield CheckProblem(
            f"you may not {listed(missing)}, which the installation needs",
            "install as a user with the ClusterRole cluster-admin: "
            "kubectl scheduler check --pre --as USER checks for another user",
        )
    for run in facts.rbac.get():
        if run.unanswered:
            yield CheckProblem(run.unanswered, "", CheckState.NOT_CHECKED)
        elif run.error:
            yield CheckProblem(
                f"the API server refuses {run.what}: {run.error}",
                "install as a user who has all rights that the roles grant, or the verbs escalate "
                "and bind on them: the ClusterRole cluster-admin has",
            )
    yield "you may create everything that the installation has"


def crds(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether CustomResourceDefinitions of these names are absent, or ours and current."""
    installed = facts.crds.get()
    replace = f"kubectl apply --server-side --force-conflicts -k {facts.platform.definitions}"
    present = 0
    for own in facts.own_crds:
        name = own["metadata"]["name"]
        other = installed.get(name)
        if other is None:
            continue
        present += 1
        if facts.platform.cluster_config and not name.endswith(names.PREFIX):
            continue  # OpenShift's own
        owner = _owner(other)
        if missing := _missing_versions(own, other):
            versions = ", ".join(missing)
            yield CheckProblem(
                f"CustomResourceDefinition {name}{owner} does not serve {versions}",
                f"if no other program uses its objects, replace it: {replace}",
            )
        elif fields := missing_fields(own, other):
            yield CheckProblem(
                f"CustomResourceDefinition {name}{owner} lacks {_listed_fields(fields)}, which "
                "this version has: the API server drops them",
                replace,
                CheckState.FAILED if facts.kubescheduler.value else CheckState.WARNING,
            )
        elif owner:
            yield CheckProblem(
                f"CustomResourceDefinition {name} exists{owner}",
                f"{replace}, if that program may lose it (Helm: "
                "helm install --take-ownership); otherwise uninstall the other program first",
                CheckState.WARNING,
            )
    yield f"{present} of {len(facts.own_crds)} exist, and none is another program's"


def installed_crds(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether all kinds are installed, in the version that this program knows."""
    installed = facts.crds.get()
    own_names = [own["metadata"]["name"] for own in facts.own_crds]
    missing = [name for name in own_names if name not in installed]
    if missing:
        ours = all(name.endswith(names.PREFIX) for name in missing)
        folder = facts.platform.definitions if ours else "crds"
        yield CheckProblem(
            f"CustomResourceDefinition {listed(missing)} does not exist",
            f"kubectl apply --server-side -k {folder}",
        )
    for problem in crds(facts):
        if isinstance(problem, CheckProblem):
            yield problem
    yield f"{len(facts.own_crds)} kinds, with all fields of this version"


def _owner(crd: Object) -> str:
    """Who else owns a CustomResourceDefinition, as the end of a clause; empty: it is ours."""
    metadata = crd["metadata"]
    if label(crd, names.PART_OF_LABEL) == names.PROGRAM:
        return ""
    if release := (metadata.get("annotations") or {}).get(HELM_RELEASE):
        return f' of the Helm release "{release}"'
    if part := label(crd, names.PART_OF_LABEL):
        return f' of "{part}"'
    managers = [str(entry.get("manager")) for entry in metadata.get("managedFields") or ()]
    written = f' (written by "{managers[0]}")' if managers else ""
    return f" of another program{written}"


def _missing_versions(own: Object, other: Object) -> list[str]:
    served = {version["name"] for version in other["spec"]["versions"] if version.get("served")}
    return sorted({version["name"] for version in own["spec"]["versions"]} - served)


def missing_fields(own: Object, other: Object) -> list[str]:
    """The fields of our schema that the installed one does not have, by path."""
    theirs = {version["name"]: version for version in other["spec"]["versions"]}
    missing: list[str] = []
    for version in own["spec"]["versions"]:
        if version["name"] in theirs:
            missing += _missing(_schema(version), _schema(theirs[version["name"]]), "")
    return missing


def _schema(version: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(version.get("schema")).get("openAPIV3Schema"))


def _missing(own: Mapping[str, Any], other: Mapping[str, Any], path: str) -> Iterator[str]:
    if other.get("x-kubernetes-preserve-unknown-fields"):
        return
    theirs = mapping(other.get("properties"))
    for name, schema in mapping(own.get("properties")).items():
        here = f"{path}.{name}".lstrip(".")
        if name not in theirs:
            yield here
        else:
            yield from _missing(schema, theirs[name], here)
    for key in ("items", "additionalProperties"):
        if isinstance(own.get(key), Mapping) and isinstance(other.get(key), Mapping):
            yield from _missing(own[key], other[key], f"{path}[]")


def _listed_fields(fields: list[str]) -> str:
    more = f" and {len(fields) - _MISSING_FIELDS} more" if len(fields) > _MISSING_FIELDS else ""
    noun = "the field" if len(fields) == 1 else "the fields"
    return f"{noun} {', '.join(fields[:_MISSING_FIELDS])}{more}"


def namespace(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether the operator's namespace is usable, or free."""
    name, existing = facts.platform.target_namespace, facts.namespace.get()
    if existing is None:
        yield f"{name} does not exist yet; the manifests create it"
        return
    if mapping(existing.get("status")).get("phase") == "Terminating":
        reasons = "; ".join(
            str(condition.get("message"))
            for condition in mapping(existing.get("status")).get("conditions") or ()
            if condition.get("status") == "True" and condition.get("message")
        )
        yield CheckProblem(
            f"namespace {name} is being deleted{f' ({reasons})' if reasons else ''}: nothing can "
            "be created in it",
            "wait until it is gone; if it does not end, delete what the message names, or remove "
            "the finalizers of the objects that are left in it",
        )
    enforced = label(existing, ENFORCE)
    if facts.platform.owns_static_pods and enforced not in ("", "privileged"):
        yield CheckProblem(
            f"namespace {name} enforces the Pod Security level {enforced}, which forbids the "
            "installer Pods: they write the static Pod's manifest on the node",
            f"kubectl label --overwrite namespace {name} {ENFORCE}=privileged",
        )
    yield f"{name} exists and may run the operator's Pods"


def admission(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether the API server accepts the installation's Pods; a server-side dry run decides."""
    runs = facts.admission.get()
    for run in runs:
        if run.unanswered:
            yield CheckProblem(
                f"{run.what}: {run.unanswered}",
                "apply the Namespace of the manifests, then run the check again",
                CheckState.NOT_CHECKED,
            )
        elif run.error:
            yield _refusal(run)
    yield f"the API server accepts {len(runs)} Pods of the installation (server-side dry run)"


def _refusal(run: DryRun) -> CheckProblem:
    cause = f"the API server refuses {run.what}: {run.error}"
    if policy := _POLICY.search(run.error):
        hint = (
            f"exclude the operator's namespace in the matchResources of "
            f"ValidatingAdmissionPolicyBinding {policy[2]}"
        )
    elif webhook := _WEBHOOK.search(run.error):
        hint = (
            f"exclude the operator's namespace in the policies of the webhook {webhook[1]}, or in "
            "the namespaceSelector of its configuration"
        )
    elif "PodSecurity" in run.error:
        hint = f"label the namespace {ENFORCE}=privileged, as the manifests do"
    elif "exceeded quota" in run.error or "must specify" in run.error:
        hint = "raise the ResourceQuota of the namespace, or remove it"
    else:
        hint = "change what the message names, or exclude the operator's namespace from it"
    return CheckProblem(cause, hint)


def webhooks(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether every webhook that must answer for new Pods has its Service."""
    for name, service in facts.webhooks.get():
        yield CheckProblem(
            f'webhook "{name}" must answer before a Pod is created, and its Service {service} '
            "does not exist: the API server refuses every new Pod that it selects",
            f"restore the program behind it, or delete the configuration that has {name}",
        )
    yield "no webhook for new Pods lacks its Service"


def other_programs(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether another operator or scheduler is in the way."""
    for namespace, deployments in _by_namespace(facts.deployments.get()).items():
        problems = filter(None, (_other_program(each, facts.platform) for each in deployments))
        yield from islice(problems, SHOWN)
        if more := sum(1 for _ in problems):
            yield CheckProblem(
                f"{more} more Deployments of namespace {namespace} run a kube-scheduler or this "
                "operator's image",
                f"list them: kubectl -n {namespace} get deployments -o wide",
                CheckState.WARNING,
            )
    yield "no other operator and no unmanaged scheduler in a Deployment"


def _by_namespace(objects: Iterable[Object]) -> dict[str, list[Object]]:
    grouped: dict[str, list[Object]] = {}
    for obj in objects:
        grouped.setdefault(str(obj["metadata"].get("namespace") or ""), []).append(obj)
    return grouped


def _other_program(deployment: Object, platform: Platform) -> CheckProblem | None:
    own = (platform.operator_namespace, platform.operator.deployment)
    key = (deployment["metadata"]["namespace"], deployment["metadata"]["name"])
    where = f"{key[0]}/{key[1]}"
    if label(deployment, names.SECONDARY_LABEL):
        return None
    if key == own:
        release = mapping(deployment["metadata"].get("annotations")).get(HELM_RELEASE)
        if not release:
            return None
        return CheckProblem(
            f'the operator is installed already, by the Helm release "{release}"',
            "upgrade it with helm upgrade; kubectl apply would take its fields over",
            CheckState.WARNING,
        )
    if is_operator(deployment) and key[0] not in _OPERATOR_NAMESPACES:
        return CheckProblem(
            f"Deployment {where} runs this operator's image; every user of that namespace can "
            "create one, and the rights of its account are not checked",
            "if it is an installation of the operator, uninstall it: two of them would undo "
            "each other's writes",
            CheckState.WARNING,
        )
    if is_operator(deployment):
        return CheckProblem(
            f"another installation of this operator runs as Deployment {where}: two of them "
            "would undo each other's writes",
            f"uninstall it first, or keep it and install nothing: kubectl -n {key[0]} get "
            f"deployment {key[1]} -o yaml shows where it is from",
        )
    if is_scheduler(deployment):
        return CheckProblem(
            f"Deployment {where} runs a kube-scheduler that the operator does not manage",
            f"make sure that none of its profiles has the schedulerName {DEFAULT_SCHEDULER} "
            "and that it has a Lease of its own, or replace it by a SecondaryScheduler",
            CheckState.WARNING,
            "secondary-schedulers.md",
        )
    return None


def is_operator(deployment: Object) -> bool:
    """Whether a Deployment runs this operator; its image has other programs as well."""
    return any(
        list(container.get("command") or ())[:2] in ([], [names.PROGRAM, "operator"])
        and repository(str(container.get("image") or "")).endswith(f"/{names.PROGRAM}")
        and (container.get("command") or (container.get("args") or ["operator"])[0] == "operator")
        for container in _containers(deployment)
    )


def is_scheduler(deployment: Object) -> bool:
    return any(
        repository(str(container.get("image") or "")).rpartition("/")[2] == names.OPERAND
        or str((container.get("command") or ("",))[0]).rpartition("/")[2] == names.OPERAND
        for container in _containers(deployment)
    )


def _containers(deployment: Object) -> list[Mapping[str, Any]]:
    template = mapping(mapping(deployment.get("spec")).get("template"))
    return list(mapping(template.get("spec")).get("containers") or ())


def static_pods(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether the schedulers that run can be adopted without a loss."""
    if not facts.platform.owns_static_pods:
        yield "the provider runs the scheduler; nothing is adopted"
        return
    if not facts.platform.adopts_pods:
        yield "the platform's own manifests have no settings of users; nothing is adopted"
        return
    preview = facts.adoption.get()
    if preview is None:
        yield CheckProblem(
            f"no Pod in {facts.platform.operand_namespace} has the labels of the scheduler "
            f"({','.join('='.join(one) for one in facts.platform.static_pod_labels)})",
            "check --platform; where the provider runs the control plane, use managed",
            link="adoption.md",
        )
        return
    for finding in preview.findings:
        yield CheckProblem(
            f"adoption would stop: {finding.text}",
            "see kubectl scheduler adopt --dry-run, which shows every setting",
            link="adoption.md#before-adoption",
        )
    for node, path in sorted(preview.unseen.items()):
        yield CheckProblem(
            f'the scheduler of node "{node}" has a configuration file, {path}, which is not in the '
            "API (SchedulerHasConfigFile); the operator reads it by a Pod on that node",
            f"copy the file and see what becomes of it: kubectl scheduler adopt --dry-run -f "
            f"{node}=FILE",
            CheckState.WARNING,
            "adoption.md#before-adoption",
        )
    if preview.nodes:
        count = len(preview.nodes)
        schedulers = "1 scheduler" if count == 1 else f"{count} schedulers"
        yield f"{schedulers} can be adopted with all settings"
    else:
        yield "the schedulers run revisions of the operator already"


def ports(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether another Pod declares the scheduler's port on a control-plane node."""
    if not facts.platform.owns_static_pods:
        yield "the operator's Pods use no port of a node"
        return
    for namespace, pods in _by_namespace(facts.host_pods.get()).items():
        using = [
            pod
            for pod in pods
            if SCHEDULER_PORT in host_ports(pod) and not _is_own(pod, facts.platform)
        ]
        for pod in using[:SHOWN]:
            yield CheckProblem(
                f"Pod {namespace}/{pod['metadata']['name']} uses port {SCHEDULER_PORT} of "
                f"node {pod['spec'].get('nodeName')}, which kube-scheduler needs",
                "give that Pod another port; a process outside of Pods is not visible in the API, "
                "and the preflight of a rollout reports it",
            )
        if more := len(using[SHOWN:]):
            yield CheckProblem(
                f"{more} more Pods of namespace {namespace} use port {SCHEDULER_PORT} of "
                "control-plane nodes",
                f"list them: kubectl -n {namespace} get pods -o wide",
            )
    yield f"no Pod of a control-plane node declares port {SCHEDULER_PORT}"


def _is_own(pod: Object, platform: Platform) -> bool:
    """Whether a Pod is a scheduler or the operator's; labels count in their namespaces only."""
    metadata = pod["metadata"]
    labels, namespace = mapping(metadata.get("labels")), metadata.get("namespace")
    scheduler = dict(platform.static_pod_labels).items() <= labels.items()
    return (scheduler and namespace == platform.operand_namespace) or (
        namespace == platform.target_namespace and label(pod, names.PART_OF_LABEL) == names.PROGRAM
    )


def host_ports(pod: Object) -> set[int]:
    spec = pod["spec"]
    key = "containerPort" if spec.get("hostNetwork") else "hostPort"
    return {
        int(port[key])
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        for port in container.get("ports") or ()
        if port.get(key)
    }


def image_pull(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Never checked: only a Pod that has run shows whether a pull succeeds."""
    images = sorted(image for image in facts.images if image)
    yield CheckProblem(
        f"whether nodes can pull {', '.join(images) or 'the images'} shows when a Pod runs there",
        "on a node: crictl pull IMAGE; or kubectl run pull --rm --attach --restart=Never --image "
        "IMAGE --command -- true",
        CheckState.NOT_CHECKED,
    )

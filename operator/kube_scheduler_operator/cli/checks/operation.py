"""Checks of an installed operator: itself, its conditions, its schedulers and objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ... import __version__
from ...base import names
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME, FOREIGN_REASON
from ...base.management import MANAGED, REMOVED, UNMANAGED, management_state
from ...base.objects import Object, mapping
from ...kube import resource as kinds
from ...operator.controlplane.rollout.node_statuses import (
    describe,
    read_node_status,
    reported_failures,
)
from ...operator.model import operand_pods
from ...operator.model.pod_status import (
    PULL,
    containers,
    init_containers,
    is_ready,
    message_of,
    reason_of,
)
from ...operator.model.snapshot import AssignmentWay
from ...operator.status.conditions import condition_in
from ...operator.status.lease_reading import lease_problem
from ...operator.status.observation import why_unobserved
from ...operator.status.readiness import UNSEEN
from .check import CheckProblem, CheckState, ClusterFacts, SecondaryFacts
from .condition_hints import advice
from .surroundings import listed

INFORMATIONAL: Final = (
    names.CONFIGURATION_WARNINGS,
    names.ETCD_RESTORED,
    names.HAND_EDITS,
    names.INEFFECTIVE_SETTINGS,
    names.KUBEADM_UPGRADE,
    names.PLATFORM_CHANGED,
    names.PODS_WITHOUT_SCHEDULER,
    names.UNKNOWN_LEASE_HOLDER,
    names.UNKNOWN_SCHEDULER,
    names.VERSION_SKEW,
)
"""Conditions without the suffix Degraded that are warnings if True, also in `status`."""

_ASSIGNMENT_PAGE: Final = "assignment.md"
_ASSIGNMENT_INSTALLED: Final = "assignment.md#installing-it"
_INSTALL: Final = "run kubectl scheduler check --pre, then install the operator"
NO_KUBESCHEDULER: Final = CheckProblem(
    f'KubeScheduler "{names.CLUSTER}" does not exist',
    f"{_INSTALL}; if it was deleted, create it: the manifests have it",
)


def operator(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether the operator runs and leads."""
    space, name = facts.platform.operator_namespace, facts.platform.operator.deployment
    deployment = facts.deployment.get()
    if deployment is None:
        yield CheckProblem(
            f"Deployment {space}/{name} does not exist: the operator is not installed", _INSTALL
        )
        return
    spec, status = mapping(deployment.get("spec")), mapping(deployment.get("status"))
    wanted, ready = int(spec.get("replicas", 1)), int(status.get("readyReplicas") or 0)
    if wanted == 0:
        yield CheckProblem(
            f"Deployment {space}/{name} is scaled to 0: no edit takes effect",
            f"kubectl -n {space} scale deployment {name} --replicas 2",
        )
    elif ready == 0:
        available = condition_in(status, "Available")
        why = str(available.get("message") or "no Pod is Ready")
        yield CheckProblem(
            f"no Pod of Deployment {space}/{name} is Ready: {why}",
            f"kubectl -n {space} describe pods -l app={name}, and kubectl -n {space} logs "
            f"deployment/{name}",
        )
    elif ready < wanted:
        yield CheckProblem(
            f"{ready} of {wanted} Pods of Deployment {space}/{name} are Ready",
            f"kubectl -n {space} describe pods -l app={name}",
            CheckState.WARNING,
        )
    if wanted:
        yield from lease_problems(
            facts,
            facts.operator_lease.get(),
            f"{space}/{facts.platform.operator.lease}",
            "operator",
            f"kubectl -n {space} logs deployment/{name}: it ends if it cannot renew its Lease",
        )
    version = str(mapping(mapping(facts.kubescheduler.value).get("status")).get("version") or "")
    # On OpenShift it is the version of the release.
    if version and version != __version__ and not facts.platform.cluster_config:
        yield CheckProblem(
            f"the operator is version {version}, and this program is version {__version__}: its "
            "checks are those of another version",
            f"use the program of version {version}: kubectl -n {space} exec deploy/{name} -- "
            "kubectl-scheduler check",
            CheckState.WARNING,
        )
    yield f"{ready} of {wanted} Pods are Ready, and the leader renews its Lease"


def lease_problems(
    facts: ClusterFacts, lease: Object | None, place: str, who: str, hint: str
) -> Iterator[CheckProblem]:
    """A problem if no process holds or renews a Lease."""
    if problem := lease_problem(lease, place, who, facts.now):
        yield CheckProblem(problem, hint)


def silence(facts: ClusterFacts) -> str:
    """Why the operator observes nothing now; empty if it does, or if that is not known."""
    lease = facts.operator_lease
    place = f"{facts.platform.operator_namespace}/{facts.platform.operator.lease}"
    return "" if lease.error else lease_problem(lease.value, place, "operator", facts.now)


def _outdated(facts: ClusterFacts, what: str) -> Iterator[CheckProblem]:
    """A problem if the operator reported this earlier and observes it no more."""
    if why := silence(facts):
        yield CheckProblem(
            f"{what} is what the operator observed before it stopped: {why}",
            "see the check operator; its report is renewed as soon as it runs",
            CheckState.WARNING,
        )


def account_rights(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether the operator's ServiceAccount has the rights of the manifests."""
    missing = facts.missing_account_rights.get()
    account = f"{facts.platform.operator_namespace}/{facts.platform.operator.account}"
    if missing:
        yield CheckProblem(
            f"ServiceAccount {account} may not {listed(missing)}",
            "apply the manifests of the installed version again: kubectl apply --server-side -k "
            f"deploy/{facts.platform.name}",
            link="rights.md",
        )
    for unlimited in facts.unlimited_accounts.get():
        by = f" by ClusterRoleBinding {listed(unlimited.bindings)}" if unlimited.bindings else ""
        remove = " ".join(unlimited.bindings) or "NAME"
        # OpenShift's operator has an account of the same name for its installers.
        is_shared = facts.platform.brings_definitions and unlimited.account.endswith(
            f"/{names.INSTALLER_SERVICE_ACCOUNT}"
        )
        again = "; OpenShift's own operator makes it again while it runs" if is_shared else ""
        yield CheckProblem(
            f"ServiceAccount {unlimited.account} may do everything{by}, and the manifests grant "
            "it no such right: who may create Pods in its namespace is an administrator",
            "if no other program needs it, remove it: kubectl delete clusterrolebinding "
            f"{remove}{again}",
            link="operations.md#on-openshift" if is_shared else "rights.md",
        )
    yield f"ServiceAccount {account} has all rights of the manifests, and not every right"


def conditions(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """The conditions of KubeScheduler and ClusterOperator, each with what to do."""
    kubescheduler = facts.kubescheduler.get()
    if kubescheduler is None:
        yield NO_KUBESCHEDULER
        return
    status = mapping(kubescheduler.get("status"))
    raw = list(status.get("conditions") or ())
    if not raw:
        yield CheckProblem(
            f'KubeScheduler "{names.CLUSTER}" has no status: the operator has not seen it yet',
            "see the check operator; the status appears seconds after the operator starts",
        )
    cluster_operator = facts.cluster_operator.get()
    for condition in raw:
        if state := severity(condition, cluster_operator):
            yield condition_problem(condition, state)
    management = management_state(kubescheduler)
    if management.state != MANAGED:
        yield CheckProblem(
            f"{management}: no edit takes effect, and conditions that are Unknown are not observed",
            "edits take effect, and conditions are observed, when it is Managed again",
            CheckState.WARNING,
            "operations.md#pause-the-operator",
        )
    if not mapping(cluster_operator).get("status"):
        lacks = "does not exist" if cluster_operator is None else "has no status"
        yield CheckProblem(
            f'ClusterOperator "{names.CLUSTEROPERATOR}" {lacks}',
            "see the check operator: it writes this status with every change",
            CheckState.WARNING,
        )
    if raw:
        yield from _outdated(facts, "each condition")
    yield f"{len(raw)} conditions of KubeScheduler are as they should be"


def severity(
    condition: Mapping[str, Any], cluster_operator: Object | None = None
) -> CheckState | None:
    """FAILED or WARNING if a condition of KubeScheduler is not as it should be; else None.

    A scheduler that is replaced is unavailable for seconds, which is a failure once
    `cluster_operator` counts it.
    """
    type_, value = str(condition.get("type")), condition.get("status")
    if type_.endswith("Degraded") and value == "True":
        return CheckState.FAILED
    if type_.endswith("Available") and value == "False":
        overall = condition_in(mapping(mapping(cluster_operator).get("status")), names.AVAILABLE)
        return CheckState.WARNING if overall.get("status") == "True" else CheckState.FAILED
    checks = (names.PLACEMENT_CHECK_PROGRESSING, names.SECONDARY_CHECK_PROGRESSING)
    held = type_ in checks and condition.get("reason") == names.REASON_HELD
    if (held or type_ in INFORMATIONAL) and value == "True":
        return CheckState.WARNING
    restricts = type_.endswith("Upgradeable") or type_ == names.UPGRADE_CHECK_PASSED
    restricted = restricts and value == "False"
    return CheckState.WARNING if restricted else None


def condition_problem(
    condition: Mapping[str, Any], state: CheckState, owner: str = ""
) -> CheckProblem:
    type_, reason = str(condition.get("type")), str(condition.get("reason") or "")
    remedy = advice(type_, reason)
    message = " ".join(str(condition.get("message") or "no message").split())
    name = f"{owner}: {type_}" if owner else type_
    return CheckProblem(f"{name} ({reason}): {message}", remedy.hint, state, remedy.link)


def revisions(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether every node runs the latest revision."""
    if not facts.platform.owns_static_pods:
        yield "the provider runs the control plane's scheduler; there are no revisions"
        return
    kubescheduler = mapping(facts.kubescheduler.get())
    management = management_state(kubescheduler)
    if management.state == REMOVED:
        yield f"{management}: nodes return to their previous scheduler"
        return
    status = mapping(kubescheduler.get("status"))
    latest = int(status.get("latestAvailableRevision") or 0)
    node_statuses = tuple(map(read_node_status, status.get("nodeStatuses") or ()))
    progressing = condition_in(status, names.NODE_INSTALLER_PROGRESSING).get("status") == "True"
    failed = reported_failures(node_statuses, condition_in(status, names.NODE_INSTALLER_DEGRADED))
    for node_status in node_statuses:
        if node_status in failed:
            yield CheckProblem(
                node_status.failure,
                "correct the setting and try again, or revert it: kubectl scheduler rollout undo; "
                "kubectl scheduler history shows what it changed",
                link="operations.md#failures",
            )
        elif progressing and node_status.current < latest:
            yield CheckProblem(
                f"node {node_status.node} runs revision {node_status.current}, and {latest} is on "
                "its way",
                "kubectl scheduler rollout watch",
                CheckState.WARNING,
            )
    if not node_statuses:
        yield CheckProblem(
            "no node runs a revision of the operator yet",
            "see the check conditions for what blocks the first revision",
        )
    yield f"{describe(node_statuses, 0)}; the newest revision is {latest}"


def operands(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether a scheduler runs on every control-plane node, and one of them schedules."""
    platform = facts.platform
    if not platform.owns_static_pods:
        yield "the provider runs the control plane's scheduler"
        return
    pods = facts.operand_pods.get()
    status = mapping(mapping(facts.kubescheduler.value).get("status"))
    targets = {
        entry.get("nodeName"): entry.get("targetRevision")
        for entry in status.get("nodeStatuses") or ()
    }
    for node in facts.control_plane_nodes():
        name = node["metadata"]["name"]
        raw = pods.get(name)
        pod = operand_pods.read(raw) if raw is not None else None
        if targets.get(name) and not (pod and pod.ready):
            yield CheckProblem(
                f"the scheduler of node {name} is replaced by revision {targets[name]}",
                "kubectl scheduler rollout watch",
                CheckState.WARNING,
            )
            continue
        if pod is None:
            yield CheckProblem(
                f"node {name} has no scheduler Pod in {platform.operand_namespace}",
                f"check on the node that {platform.manifest_path} exists and that its kubelet runs",
            )
            continue
        if not pod.ready:
            yield CheckProblem(
                _why_not_ready(node, pod),
                "kubectl scheduler status --verbose shows its command line; kubectl scheduler "
                "rollout undo reverts the last edit",
                link="alerts.md#kubeschedulernoactivescheduler",
            )
    place = f"{platform.operand_lease_namespace}/{platform.operand_lease_name}"
    yield from lease_problems(
        facts,
        facts.operand_lease.get(),
        place,
        "scheduler",
        "new Pods stay Pending until a scheduler leads: see kubectl scheduler status --verbose",
    )
    ready = "1 scheduler is" if len(pods) == 1 else f"{len(pods)} schedulers are"
    yield f"{ready} Ready, and the Lease {place} is renewed"


def _why_not_ready(node: Object, pod: operand_pods.OperandPod) -> str:
    whose = f"the scheduler of node {node['metadata']['name']}"
    if condition_in(mapping(node.get("status")), "Ready").get("status") == "Unknown":
        return f"whether {whose} runs is not known: the node's kubelet does not report"
    if pod.started is not None:
        end = f"; its run before ended with: {pod.last_error}" if pod.last_error else ""
        return f"{whose} runs and is not Ready{end}"
    end = f"; its last run ended with: {pod.last_error}" if pod.last_error else ""
    return f"{whose} does not run: {pod.trouble or 'it is not Ready'}{end}"


_OBJECTS: Final = (
    (kinds.SCHEDULER_PROFILES.kind, "profiles.md"),
    (kinds.SCHEDULER_EXTENDERS.kind, "extenders-faults.md"),
    (kinds.OPERATOR_SETTINGS.kind, "operator-settings.md"),
    (kinds.SECONDARY_SCHEDULERS.kind, "secondary-schedulers.md"),
    (kinds.LOAD_POLICIES.kind, "load-aware.md"),
)


def objects(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """SchedulerProfiles, extenders with their agents, SecondarySchedulers and the rest."""
    count = observed = 0
    for kind, page in _OBJECTS:
        for name, obj in sorted(facts.kinds[kind].get().items()):
            count += 1
            observed += bool(mapping(obj.get("status")).get("conditions"))
            yield from _object_problems(kind, name, obj, page, _why_unobserved(facts, kind, obj))
    yield from unobserved_objects(facts)
    if observed:
        yield from _outdated(facts, "each object's status")
    yield f"{count} objects are accepted and available" if count else "no object exists"


def unobserved_objects(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Objects that the operator does not observe, because of the state of KubeScheduler."""
    owners: dict[str, list[str]] = {}
    for kind, _ in _OBJECTS:
        for name, obj in facts.kinds[kind].get().items():
            why = _why_unobserved(facts, kind, obj)
            reported = _reported(obj)
            if why and (not reported or _not_observed(obj) or any(map(_is_paused, reported))):
                owners.setdefault(why, []).append(f"{kind} {name}")
    for why, names_ in owners.items():
        yield CheckProblem(
            f"the operator does not observe {listed(names_)}, because {why}",
            "it observes and uses them when KubeScheduler is Managed",
            CheckState.WARNING,
            "operations.md#pause-the-operator",
        )


def _why_unobserved(facts: ClusterFacts, kind: str, obj: Object) -> str:
    """Why the operator does not observe an object; empty if it does, or if that is not known."""
    schedulers = facts.kinds[kinds.SECONDARY_SCHEDULERS.kind]
    if facts.kubescheduler.error or schedulers.error:
        return ""
    return why_unobserved(kind, obj, facts.kubescheduler.value, schedulers.get())


def _reported(obj: Object) -> list[Mapping[str, Any]]:
    return list(mapping(obj.get("status")).get("conditions") or ())


def _is_paused(condition: Mapping[str, Any]) -> bool:
    """Whether it is Unknown because of the management state."""
    return condition.get("status") == "Unknown" and condition.get("reason") in (UNMANAGED, REMOVED)


def _object_problems(
    kind: str, name: str, obj: Object, page: str, unobserved: str
) -> Iterator[CheckProblem]:
    """The problems of an object; `unobserved` is why the operator does not observe it."""
    owner = f"{kind} {name}"
    reported = _reported(obj)
    if not reported and not unobserved:
        yield CheckProblem(
            f"{owner} has no status: the operator has not seen it yet",
            "see the check operator",
            CheckState.WARNING,
            page,
        )
    for condition in reported:
        type_, value = condition.get("type"), condition.get("status")
        good = type_ in (names.ACCEPTED, names.AVAILABLE)
        if (good and value == "False") or (type_ == names.DEGRADED and value == "True"):
            problem = condition_problem(condition, CheckState.FAILED, owner)
            hint = f"kubectl describe {kind.lower()} {name}; correct what the message names"
            state = CheckState.FAILED
            if condition.get("reason") == names.REASON_STARTING:
                hint, state = "wait until it has started", CheckState.WARNING
            yield CheckProblem(problem.cause, hint, state, page)
        # Only kube-scheduler knows whether an extender that the operator does not run answers.
        elif (type_ == names.WARNINGS and value == "True") or (
            good
            and value != "True"
            and not (unobserved and _is_paused(condition))
            and condition.get("reason") != names.REASON_NOT_MANAGED
        ):
            yield condition_problem(condition, CheckState.WARNING, owner)
    if not unobserved and (stale := _not_observed(obj)):
        yield CheckProblem(f"{owner}: {stale}", "see the check operator", CheckState.WARNING, page)


def _not_observed(obj: Object) -> str:
    """That the status is about an earlier generation; empty if it is about this one."""
    generation = int(obj["metadata"].get("generation") or 0)
    observed = mapping(obj.get("status")).get("observedGeneration")
    if observed is None or int(observed) in (generation, UNSEEN):
        return ""
    return f"the operator has observed generation {observed}, and it has generation {generation}"


def secondary_schedulers(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether the Pods of every SecondaryScheduler run, and one of them schedules."""
    schedulers = facts.kinds[kinds.SECONDARY_SCHEDULERS.kind].get()
    for name, obj in sorted(schedulers.items()):
        yield from _secondary_problems(facts, name, obj, facts.secondaries[name].get())
    count = len(schedulers)
    every = (
        "it has its Pods and renews its Lease"
        if count == 1
        else f"all {count} have their Pods and renew their Leases"
    )
    yield every if count else "no object exists"


def _secondary_problems(
    facts: ClusterFacts, name: str, obj: Object, secondary: SecondaryFacts
) -> Iterator[CheckProblem]:
    owner, page = f"{kinds.SECONDARY_SCHEDULERS.kind} {name}", "secondary-schedulers.md"
    spec = mapping(obj.get("spec"))
    space, desired = str(spec.get("namespace")), int(spec.get("replicas", 1))
    describe = f"kubectl describe secondaryscheduler {name}, and kubectl -n {space} get pods"
    ready = sum(map(is_ready, secondary.pods))
    if secondary.deployment is None:
        cause = f"{owner} has no Deployment {space}/{name}"
        yield CheckProblem(cause, f"{describe}; the operator creates it if it runs", link=page)
    elif not secondary.pods and desired:
        yield CheckProblem(f"{owner} has no Pod in {space}", describe, link=page)
    elif not ready and desired:
        yield CheckProblem(f"no Pod of {owner} is Ready", describe, link=page)
    elif ready < desired:
        cause = f"{ready} of {desired} Pods of {owner} are Ready"
        yield CheckProblem(cause, describe, CheckState.WARNING, page)
    if secondary.lost_config_map:
        yield CheckProblem(
            f"{owner} has no ConfigMap {space}/{secondary.lost_config_map} with the configuration "
            "that its status names: its next Pod does not start",
            f"{describe}; the operator creates it if it runs",
            link=page,
        )
    if desired:
        yield from lease_problems(
            facts,
            secondary.lease,
            f"{space}/{name}",
            f"Pod of {owner}",
            f"Pods with its schedulerNames stay Pending until one does; {describe}",
        )


def assignment(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether spec.assign of SecondarySchedulers reaches new Pods."""
    schedulers = facts.kinds[kinds.SECONDARY_SCHEDULERS.kind].get()
    assigning = [
        name for name, obj in sorted(schedulers.items()) if mapping(obj.get("spec")).get("assign")
        is not None
    ]  # fmt: skip
    if not assigning:
        yield "no SecondaryScheduler has spec.assign"
        return
    way = facts.assignment_way.get()
    missing = {AssignmentWay.NONE_POLICY: "policy", AssignmentWay.NONE_WEBHOOK: "webhook"}
    if way in missing:
        cause = (
            f"nothing applies spec.assign of SecondaryScheduler {listed(assigning)} to new Pods: "
            f"neither MutatingAdmissionPolicy {names.ASSIGNMENT} with its binding nor "
            f"MutatingWebhookConfiguration {names.ASSIGNMENT} exists"
        )
        yield _without_way(cause, missing[way])
    elif way is AssignmentWay.WEBHOOK and (why := _why_unanswered(facts)):
        yield CheckProblem(
            f"{why}: the API server admits new Pods unchanged",
            "see the check operator: its Pods serve the webhook",
            link=_ASSIGNMENT_PAGE,
        )
    elif way is AssignmentWay.NO_SERVICE:
        cause = (
            f"MutatingWebhookConfiguration {names.ASSIGNMENT} has no Service {names.WEBHOOK}: the "
            "API server admits new Pods unchanged"
        )
        yield _without_way(cause, "webhook")
    for name in assigning:
        condition = condition_in(mapping(schedulers[name].get("status")), names.ASSIGNED)
        if condition.get("status") != "True":
            message = condition.get("message") or "the operator has not observed it yet"
            yield CheckProblem(
                f"SecondaryScheduler {name}: no Pod is assigned: {message}",
                f"kubectl describe secondaryscheduler {name}",
                CheckState.WARNING,
                _ASSIGNMENT_PAGE,
            )
    yield from _trials(facts, assigning)


def _trials(facts: ClusterFacts, assigning: list[str]) -> Iterator[CheckProblem | str]:
    """What new Pods get; `status` does not try it."""
    trials = facts.assignment_trials.value or {}
    for name, trial in trials.items():
        if trial.namespace and trial.scheduler != trial.expected:
            yield CheckProblem(
                f"SecondaryScheduler {name}: a new Pod in namespace {trial.namespace}, tried as a "
                f"dry run, gets schedulerName {foreign(trial.scheduler, FOREIGN_NAME)}, not "
                f"{trial.expected}",
                _why_not_applied(facts),
                link=_ASSIGNMENT_PAGE,
            )
    tried = sorted({trial.namespace for trial in trials.values() if trial.namespace})
    untried = [trial.unanswered for trial in trials.values() if trial.unanswered]
    seen = f"; a dry run in namespace {listed(tried)} got it" if tried else ""
    unseen = f"; not tried: {foreign(untried[0], FOREIGN_REASON)}" if untried else ""
    yield f"new Pods are assigned to {listed(assigning)}{seen}{unseen}"


def _why_not_applied(facts: ClusterFacts) -> str:
    if facts.assignment_way.value is not AssignmentWay.WEBHOOK:
        return (
            "look for another policy or webhook that sets schedulerName: kubectl get "
            "mutatingadmissionpolicies,mutatingwebhookconfigurations"
        )
    service = f"{facts.platform.operator_namespace}/{names.WEBHOOK}"
    return (
        f"let the API server reach Service {service} (firewalls and NetworkPolicies: port 10250 of "
        'the operator\'s Pods); its log has the reason beside "failing open"'
    )


def _without_way(cause: str, component: str) -> CheckProblem:
    apply = f"kubectl apply --server-side -k deploy/assignment/{component}"
    return CheckProblem(
        cause, f"{apply} (Helm: assignment.enabled=true)", link=_ASSIGNMENT_INSTALLED
    )


def _why_unanswered(facts: ClusterFacts) -> str:
    """Why nothing answers the assignment webhook; empty if a Pod of the operator does."""
    facts.webhook_service.get()  # it exists, or that is not known
    name = facts.platform.operator.deployment
    deployment = mapping(facts.deployment.get())
    if mapping(deployment.get("status")).get("readyReplicas"):
        return ""
    space = facts.platform.operator_namespace
    return f"no Pod of Deployment {space}/{name}, which serves webhook {names.ASSIGNMENT}, is Ready"


def images(facts: ClusterFacts) -> Iterator[CheckProblem | str]:
    """Whether a Pod of the operator or of a scheduler waits for its image."""
    pods = [*facts.operator_pods.get(), *facts.operand_pods.get().values()]
    for secondary in facts.secondaries.values():
        pods += secondary.get().pods
    unique = {(pod["metadata"].get("namespace"), pod["metadata"]["name"]): pod for pod in pods}
    for (namespace, name), pod in unique.items():
        for container in (*init_containers(pod), *containers(pod)):
            waiting = mapping(mapping(container.get("state")).get("waiting"))
            if waiting.get("reason") in PULL:
                node = mapping(pod.get("spec")).get("nodeName") or "(none)"
                yield CheckProblem(
                    f"Pod {namespace}/{name} on node {node} cannot have the image "
                    f"{foreign(str(container.get('image')), FOREIGN_REASON)}: "
                    f"{message_of(waiting) or reason_of(waiting)}",
                    "push the image, or correct its name in the manifests or in the object that "
                    "sets it; for a registry that needs credentials set --image-pull-secrets",
                )
    yield f"no Pod of {len(unique)} waits for an image"

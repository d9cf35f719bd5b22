"""deploy/helm installs the same objects as the kustomize overlays, and reports invalid values.

What differs, and nothing else: who manages an object, the chart's name on it, and that Helm keeps
the two objects that people edit.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator import __version__
from kube_scheduler_operator.__main__ import COMMANDS, _parser
from kube_scheduler_operator.base import assets, names
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED, PLATFORMS, RKE2

from .conftest import CHART, Helm
from .overlays import DEPLOY, Object, build

# The first test may build Helm.
pytestmark = pytest.mark.timeout(60, func_only=True)

HOOK = "helm.sh/hook"
ONLY_HELMS = {"app.kubernetes.io/managed-by", "helm.sh/chart"}
KINDS = (
    names.CLUSTEROPERATORS,
    names.KUBESCHEDULERS,
    names.LOADPOLICIES,
    names.OPERATORSETTINGS,
    names.SCHEDULEREXTENDERS,
    names.SCHEDULERPROFILES,
    names.SCHEDULERS,
    names.SECONDARYSCHEDULERS,
)

ROLES_OF_PEOPLE = tuple(f"{names.PROGRAM}-{role}" for role in ("view", "edit-profiles", "admin"))

EVERYTHING = (
    "image.repository=registry.example:5000/team/kso",
    f"image.digest=sha256:{'a1' * 32}",
    "image.pullPolicy=Always",
    "imagePullSecrets[0].name=one",
    "imagePullSecrets[1].name=two",
    "operandImage=registry.k8s.io/kube-scheduler:v1.35.4",
    "allowedImages={registry.k8s.io/scheduler-plugins/kube-scheduler,registry.example/team/*}",
    "replicas=1",
    "resources.limits.memory=200Mi",
    "nodeSelector.zone=a",
    "tolerations[0].key=dedicated",
    "tolerations[0].operator=Exists",
    "loggingFormat=json",
    "healthTimeout=90",
    "settlingTime=5",
    "networkPolicy.enabled=false",
    "secondarySchedulers.namespaces={kube-system,batch}",
    "serviceMonitor.enabled=true",
    "serviceMonitor.labels.release=prometheus",
    "prometheusRule.enabled=true",
    "prometheusRule.labels.release=prometheus",
    "prometheusRule.runbookURL=https://docs.example/alerts",
    "dashboards.enabled=true",
    "dashboards.annotations.grafana_folder=kube-scheduler",
    "uninstall.timeout=1000",
)


def template(helm: Helm, *values: str, namespace: str = "kube-system") -> list[Object]:
    """The objects and hooks that Helm would create."""
    done = helm("template", "kso", options=(f"--namespace={namespace}", *setting(values)))
    assert done.returncode == 0, done.stderr
    return [obj for obj in yaml.safe_load_all(done.stdout) if obj]


def setting(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"--set={value}" for value in values)


def installed(objects: list[Object]) -> list[Object]:
    return [o for o in objects if HOOK not in o["metadata"].get("annotations", {})]


def hooks(objects: list[Object]) -> list[Object]:
    return [o for o in objects if HOOK in o["metadata"].get("annotations", {})]


def key(obj: Object) -> tuple[str, str | None, str]:
    return obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]


def comparable(objects: list[Object]) -> dict[Any, Object]:
    """Objects by key, without the labels of Helm and kustomize."""
    found = {}
    for obj in objects:
        labels = {k: v for k, v in obj["metadata"]["labels"].items() if k not in ONLY_HELMS}
        annotations = dict(obj["metadata"].get("annotations", {}))
        annotations.pop("helm.sh/resource-policy", None)
        metadata = {**obj["metadata"], "labels": labels, "annotations": annotations}
        found[key(obj)] = {**obj, "metadata": metadata}
    assert len(found) == len(objects)
    return found


def one(objects: list[Object], kind: str) -> Object:
    (found,) = (obj for obj in objects if obj["kind"] == kind)
    return found


def pod(workload: Object) -> Object:
    spec: Object = workload["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("platform", [KUBEADM.name, RKE2.name, MANAGED.name])
def test_it_installs_the_objects_of_the_overlay(platform: str, helm: Helm) -> None:
    rendered = installed(template(helm, f"platform={platform}"))
    assert comparable(rendered) == comparable(build(DEPLOY / platform))


def test_only_scheduler_and_kubescheduler_are_kept(helm: Helm) -> None:
    """The hook deletes them; Helm would delete them before the operator has seen the change."""
    kept = [
        obj["kind"]
        for obj in template(helm)
        if obj["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    ]
    assert sorted(kept) == ["KubeScheduler", "Scheduler"]


@pytest.mark.parametrize("values", [(), EVERYTHING], ids=["defaults", "everything"])
def test_every_object_is_labelled_and_none_is_managed_by_the_operator(
    values: tuple[str, ...], helm: Helm
) -> None:
    """Removal deletes all objects managed by the operator, which would include its account."""
    for obj in template(helm, *values):
        metadata = [obj["metadata"]]
        if obj["kind"] in ("Deployment", "Job"):
            metadata.append(obj["spec"]["template"]["metadata"])
        for found in metadata:
            labels = found["labels"]
            assert labels[names.PART_OF_LABEL] == names.PROGRAM
            assert labels.get(names.MANAGED_BY_LABEL, "") != names.PROGRAM
            assert labels["app.kubernetes.io/name"]
        assert obj["metadata"]["labels"][names.MANAGED_BY_LABEL] == "Helm"


def test_every_value_takes_effect(helm: Helm) -> None:
    objects = template(helm, *EVERYTHING)
    image = f"registry.example:5000/team/kso@sha256:{'a1' * 32}"
    deployment, job = one(objects, "Deployment"), one(objects, "Job")
    for workload in (deployment, job):
        spec = pod(workload)
        (container,) = spec["containers"]
        assert (container["image"], container["imagePullPolicy"]) == (image, "Always")
        assert spec["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
        assert spec["nodeSelector"] == {"zone": "a"}
        assert spec["tolerations"][-1] == {"key": "dedicated", "operator": "Exists"}
        assert len(spec["tolerations"]) > 1
    assert deployment["spec"]["replicas"] == 1
    (container,) = pod(deployment)["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "10m", "memory": "80Mi"},
        "limits": {"memory": "200Mi"},
    }
    env = {e["name"]: e.get("value") for e in container["env"]}
    assert image not in env.values(), "the operator reads it from its Deployment"
    assert env["OPERAND_IMAGE"] == "registry.k8s.io/kube-scheduler:v1.35.4"
    assert env["IMAGE_PULL_SECRETS"] == "one,two"
    assert env["SECONDARY_NAMESPACES"] == "kube-system,batch"
    line = [*container["command"][1:], *container["args"]]
    args = _parser("x", "x", COMMANDS, line).parse_args(line)
    assert (args.logging_format, args.health_timeout, args.settling_time) == ("json", 90.0, 5.0)
    monitor, service = one(objects, "ServiceMonitor"), one(objects, "Service")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    chosen = monitor["spec"]["selector"]["matchLabels"].items()
    assert chosen <= service["metadata"]["labels"].items()
    selected = service["spec"]["selector"].items()
    assert selected <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert not selected <= job["spec"]["template"]["metadata"]["labels"].items()


def test_alerts_and_dashboards_are_those_of_kustomize(helm: Helm) -> None:
    values = ("prometheusRule.enabled=true", "dashboards.enabled=true")
    made = {key(obj): obj for obj in template(helm, *values)}
    rules = (obj for obj in build(DEPLOY / "monitoring") if obj["kind"] == "PrometheusRule")
    for obj in (*rules, *build(DEPLOY / "monitoring" / "dashboards")):
        found = made[key(obj)]
        assert (found.get("spec"), found.get("data")) == (obj.get("spec"), obj.get("data"))
        if obj["kind"] == "ConfigMap":
            assert obj["metadata"]["labels"].items() <= found["metadata"]["labels"].items()


def test_alerts_link_to_the_published_runbook(helm: Helm) -> None:
    rule = one(template(helm, *EVERYTHING), "PrometheusRule")
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    for alert in (alert for group in rule["spec"]["groups"] for alert in group["rules"]):
        anchor = f"https://docs.example/alerts#{alert['alert'].lower()}"
        assert alert["annotations"]["runbook_url"] == anchor


def test_the_managed_schedulers_name_is_in_the_settings_and_in_the_rights(helm: Helm) -> None:
    values = ("platform=managed", "managedScheduler=packer", "operandRepository=mirror.example/ks")
    objects = installed(template(helm, *values))
    (container,) = pod(one(objects, "Deployment"))["containers"]
    env = {e["name"]: e.get("value") for e in container["env"]}
    assert env["MANAGED_SCHEDULER"] == "packer"
    assert env["OPERAND_REPOSITORY"] == "mirror.example/ks"
    named = [
        rule["verbs"]
        for obj in objects
        if obj["kind"] == "ClusterRole" and obj["metadata"]["name"] == names.PROGRAM
        for rule in obj["rules"]
        if rule.get("resourceNames") == ["packer"]
    ]
    assert named == [["update", "delete"]]


@pytest.mark.parametrize("values", [(), EVERYTHING, ("platform=rke2",), ("platform=managed",)])
def test_helm_lint_reports_nothing(values: tuple[str, ...], helm: Helm) -> None:
    done = helm("lint", "--strict", options=setting(values))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("plattform=rke2",), "additional properties 'plattform' not allowed"),
        (("image.name=x",), "'/image': additional properties 'name' not allowed"),
        (("platform=k3s",), "'/platform': value must be one of 'kubeadm', 'rke2'"),
        (("platform=openshift",), "kubectl apply --server-side -k deploy/openshift"),
        (("image.tag=",), "'/image/tag': minLength: got 0, want 1"),
        (("image.repository=x:dev",), "'/image/repository': 'x:dev' does not match pattern"),
        (("image.digest=abc",), "'/image/digest': 'abc' does not match pattern"),
        (("image.pullPolicy=Sometimes",), "'/image/pullPolicy': value must be one of 'Always'"),
        (("imagePullSecrets[0]=x",), "'/imagePullSecrets/0': got string, want object"),
        (("replicas=0",), "'/replicas': minimum: got 0, want 1"),
        (("replicas=two",), "'/replicas': got string, want integer"),
        (("healthTimeout=1m",), "'/healthTimeout': got string, want integer"),
        (("loggingFormat=xml",), "'/loggingFormat': value must be one of 'text', 'json'"),
        (("resources.cpu=1",), "'/resources': additional properties 'cpu' not allowed"),
        (("tolerations[0].operators=x",), "'/tolerations/0': additional properties 'operators'"),
        (("serviceMonitor.interval=soon",), "'/serviceMonitor/interval': 'soon' does not match"),
        (("admissionPolicy.actions={Deny,Warn}",), "'/admissionPolicy/actions': 'not' failed"),
        (("admissionPolicy.actions={Refuse}",), "'/admissionPolicy/actions/0': value must be"),
        (("uninstall.timeout=0",), "'/uninstall/timeout': minimum: got 0, want 1"),
        (
            ("secondarySchedulers.namespaces={a,a}",),
            "'/secondarySchedulers/namespaces': items at 0 and 1 are equal",
        ),
        (("nodeSelector.a=1",), "'/nodeSelector/a': got number, want string"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_an_invalid_value_is_reported(values: tuple[str, ...], message: str, helm: Helm) -> None:
    done = helm("template", "kso", options=setting(values))
    assert done.returncode != 0
    assert message in done.stderr


def test_a_release_in_the_namespace_that_it_creates_is_rejected(helm: Helm) -> None:
    """Helm writes its record first, and the namespace would lack the labels or the ownership."""
    own = f"--namespace={KUBEADM.operator_namespace}"
    done = helm("template", "kso", options=(own,))
    assert done.returncode != 0
    assert "must be in another one" in done.stderr
    assert "namespace.create=false" in done.stderr
    rest = installed(template(helm, "namespace.create=false", namespace=KUBEADM.operator_namespace))
    everything = installed(template(helm))
    gone = {key(obj) for obj in everything} - {key(obj) for obj in rest}
    assert gone == {("Namespace", None, KUBEADM.operator_namespace)}


def test_secondary_schedulers_run_in_the_listed_namespaces_only(helm: Helm) -> None:
    """The same rights in every namespace as in the default one, and none without one."""

    def rights(*values: str) -> dict[str, Any]:
        return {
            obj["metadata"]["namespace"]: obj["rules"]
            for obj in installed(template(helm, *values))
            if obj["kind"] == "Role" and obj["metadata"]["name"].endswith("-secondary-schedulers")
        }

    default = rights()
    own = KUBEADM.operator_namespace
    assert default.keys() == {own}
    assert rights("secondarySchedulers.namespaces={kube-system,batch}") == {
        "kube-system": default[own],
        "batch": default[own],
    }
    without = installed(template(helm, "secondarySchedulers.namespaces=null"))
    accounts = [obj for obj in without if obj["metadata"]["name"] not in ROLES_OF_PEOPLE]
    rules = [rule for obj in accounts for rule in obj.get("rules", ())]
    assert not [rule for rule in rules if "bind" in rule["verbs"]]
    assert "secondaryschedulers" not in json.dumps(rules)
    (container,) = pod(one(without, "Deployment"))["containers"]
    env = {e["name"]: e.get("value") for e in container["env"]}
    assert env["SECONDARY_NAMESPACES"] == "-"


@pytest.mark.parametrize(
    ("values", "on_nodes", "assigns"),
    [
        (("platform=kubeadm",), True, False),
        (("platform=managed",), False, False),
        (("platform=managed", "assignment.enabled=true"), False, True),
    ],
)
def test_the_notes_describe_the_platform(
    values: tuple[str, ...], on_nodes: bool, assigns: bool, helm: Helm, tmp_path: Path
) -> None:
    """`helm template` shows no notes, so a copy of the chart has them as an object."""
    copy = tmp_path / "chart"
    shutil.copytree(CHART, copy)
    shutil.copy(copy / "templates" / "NOTES.txt", copy / "notes.txt")
    shown = '{"kind": "Notes", "text": {{ tpl (.Files.Get "notes.txt") . | toJson }}}'
    (copy / "templates" / "notes.yaml").write_text(shown)
    done = helm(
        "template", "kso", chart=copy, options=("--namespace=kube-system", *setting(values))
    )
    assert done.returncode == 0, done.stderr
    objects = [obj for obj in yaml.safe_load_all(done.stdout) if obj]
    (notes,) = (obj["text"] for obj in objects if obj["kind"] == "Notes")
    assert ("every node" in notes) == on_nodes
    assert ("spec.schedulerName: " in notes) == (not on_nodes)
    assert ('{"spec":{"assign":{}}}' in notes) == assigns


class TestUninstall:
    """The pre-delete hook."""

    def test_the_job_runs_last_and_is_deleted_with_its_rights(self, helm: Helm) -> None:
        found = hooks(template(helm))
        for obj in found:
            annotations = obj["metadata"]["annotations"]
            assert annotations[HOOK] == "pre-delete"
            policies = annotations["helm.sh/hook-delete-policy"].split(",")
            assert policies == ["before-hook-creation", "hook-succeeded"]
        weights = {
            obj["kind"]: int(obj["metadata"]["annotations"].get("helm.sh/hook-weight", 0))
            for obj in found
        }
        assert weights.pop("Job") > max(weights.values())

    @pytest.mark.parametrize("platform", [KUBEADM.name, RKE2.name, MANAGED.name])
    def test_it_runs_the_program_for_its_platform(self, platform: str, helm: Helm) -> None:
        job = one(template(helm, f"platform={platform}", "uninstall.timeout=99"), "Job")
        (container,) = pod(job)["containers"]
        line = [*container["command"][1:], *container["args"]]
        options = _parser("x", "x", COMMANDS, line).parse_args(line)
        assert PLATFORMS[options.platform].name == platform
        assert options.timeout == 99
        assert not options.keep_crds
        assert job["spec"]["activeDeadlineSeconds"] > 99, "the program can report why it gave up"
        assert job["spec"]["backoffLimit"] == 0

    @pytest.mark.parametrize("platform", [KUBEADM.name, RKE2.name, MANAGED.name])
    def test_it_runs_on_any_node(self, platform: str, helm: Helm) -> None:
        """A chart that was installed for another platform must be removable."""
        objects = template(helm, f"platform={platform}")
        spec = pod(one(hooks(objects), "Job"))
        assert "nodeSelector" not in spec
        affinity = spec.get("affinity", {}).get("nodeAffinity", {})
        assert "requiredDuringSchedulingIgnoredDuringExecution" not in affinity
        elsewhere = "nodeSelector" not in pod(one(installed(objects), "Deployment"))
        assert elsewhere == (platform == MANAGED.name)

    def test_the_hook_has_only_the_rights_that_it_uses(self, helm: Helm) -> None:
        found = hooks(template(helm))
        rights = {
            (
                obj["kind"],
                resource,
                name,
                " ".join(rule["verbs"]),
            )
            for obj in found
            for rule in obj.get("rules", ())
            for resource in rule["resources"]
            for name in rule.get("resourceNames", ("",))
        }
        everywhere, here = "ClusterRole", "Role"
        assert rights == {
            (everywhere, "kubeschedulers", "", "create"),
            (everywhere, "kubeschedulers", "", "list"),
            (everywhere, "schedulers", "", "list"),
            (everywhere, "clusteroperators", "", "list"),
            (everywhere, "schedulerprofiles", "", "list"),
            (everywhere, "schedulerextenders", "", "list"),
            (everywhere, "operatorsettings", "", "list"),
            (everywhere, "kubeschedulers", names.CLUSTER, "get patch delete"),
            (everywhere, "schedulers", names.CLUSTER, "get delete"),
            (everywhere, "clusteroperators", names.CLUSTEROPERATOR, "get delete"),
            (everywhere, "secondaryschedulers", "", "list delete"),
            (everywhere, "loadpolicies", "", "list delete"),
            (everywhere, "clusterrolebindings", "", "list"),
            (here, "rolebindings", "", "list"),
            (here, "deployments", "", "list"),
            *((everywhere, "customresourcedefinitions", kind, "get delete") for kind in KINDS),
            *((here, resource, "", "list")
              for resource in (
                  "configmaps", "pods", "serviceaccounts", "poddisruptionbudgets", "daemonsets"
              )),
            (here, "deployments", names.PROGRAM, "get delete"),
            (here, "leases", names.LEASE, "get delete"),
        }  # fmt: skip
        accounts = {key(obj)[1:] for obj in found if obj["kind"] == "ServiceAccount"}
        subjects = {(s["namespace"], s["name"]) for o in found for s in o.get("subjects", ())}
        assert subjects == accounts
        assert (
            pod(one(found, "Job"))["serviceAccountName"]
            == one(found, "ServiceAccount")["metadata"]["name"]
        )


def test_the_chart_has_the_crds_that_kustomize_applies(helm: Helm) -> None:
    """Those of `kubectl apply -k crds`, through a link instead of a copy that could be outdated."""
    done = helm("show", "crds")
    shown = {obj["metadata"]["name"]: obj for obj in yaml.safe_load_all(done.stdout) if obj}
    ours = {name: yaml.safe_load(assets.text("crds", f"{name}.yaml")) for name in KINDS}
    assert shown == ours
    for obj in ours.values():
        # `uninstall` deletes the definitions that have this label.
        assert obj["metadata"]["labels"][names.PART_OF_LABEL] == names.PROGRAM


def test_the_chart_has_the_programs_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


def test_every_value_is_in_the_schema_and_has_a_comment() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values.keys() == schema.keys() - {"global"}
    for name, value in values.items():
        known = schema[name].get("properties")
        if known and name != "resources":
            assert value.keys() == known.keys(), name
    assert list(uncommented(CHART / "values.yaml")) == []


def uncommented(path: Path) -> Iterable[str]:
    """Keys without a comment above them or above the first key of their group."""
    lines = path.read_text().splitlines()
    for above, line, below in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        found = re.match(r"( *)(\w+):", line)
        if found is None or len(found[1]) > 2 or found[2] == "requests":
            continue  # the last two are in the container's resources
        if not any(text.strip().startswith("#") for text in (above, below)):
            yield found[2]

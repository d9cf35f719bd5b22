"""Configurations and schedulers in documents of other forms: products, charts, lists of objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.reports.report import FileFinding, ValidationReport
from kube_scheduler_operator.config.lint.validate import validate

OPTIONS = CheckOptions(Gates(Version(1, 35)))
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MISSPELT = f"{HEAD}profiles: [{{plugins: {{score: {{enabled: [{{name: ImageLocalty}}]}}}}}}]\n"
OF_1_36 = (
    f"{HEAD}clientConnection: {{kubeconfig: /etc/kubernetes/scheduler.conf}}\n"
    "profiles: [{plugins: {placementScore: {}}}]\n"
)
CHART = "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.34.7"


def checked(*files: tuple[str, Any]) -> ValidationReport:
    texts = [(name, text if isinstance(text, str) else json.dumps(text)) for name, text in files]
    return validate(texts, OPTIONS)


def the_finding(*files: tuple[str, Any]) -> FileFinding:
    (finding,) = checked(*files).findings
    return finding


def config_map(text: str = MISSPELT) -> dict[str, Any]:
    metadata = {"name": "mine", "namespace": "batch"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"s.yaml": text}}


def deployment(**container: Any) -> dict[str, Any]:
    container = {
        "name": "scheduler",
        "image": "registry.k8s.io/kube-scheduler:v1.36.1",
        "command": ["kube-scheduler", "--config=/etc/mine/s.yaml"],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/mine"}],
        **container,
    }
    pod = {
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "mine"}}],
    }
    metadata = {"name": "mine", "namespace": "batch"}
    template = {"template": {"spec": pod}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": template}


# --- fields of a product's document besides those of its form ------------------------------------


def indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "document",
    [
        "machine:\n  files:\n  - path: /var/s.yaml\n    content: |\n"
        f"{indented(MISSPELT, 6)}cluster: {{scheduler: {{extraArgs: {{v: '2'}}}}}}\n",
        "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nspec:\n  kubeScheduler: {logLevel: 2}\n"
        f"  fileAssets:\n  - path: /srv/s.yaml\n    content: |\n{indented(MISSPELT, 6)}",
        "nodes: []\nservices: {scheduler: {extra_args: {v: '2'}}}\naddons: |\n"
        "  apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: s}\n  data:\n    s.yaml: |\n"
        f"{indented(MISSPELT, 6)}",
    ],
    ids=["Talos", "kops", "RKE1"],
)
def test_a_file_in_another_field_of_a_product_is_found(document: str) -> None:
    finding = the_finding(("cluster.yaml", document))
    assert finding.reason == "UnknownPlugin"
    assert "ImageLocalty" in document.splitlines()[finding.position.line - 1]


# --- objects in lists, maps and other documents --------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        [config_map(), {"apiVersion": "v1", "kind": "ServiceAccount"}],
        {"config-map.yaml": config_map()},
        [{"name": "a task", "kubernetes.core.k8s": {"definition": config_map()}}],
    ],
    ids=["a list of Jsonnet", "files of Jsonnet", "a task of Ansible"],
)
def test_objects_inside_other_documents_are_read(document: Any) -> None:
    finding = the_finding(("out.json", document))
    assert (finding.reason, finding.subject[:14]) == ("UnknownPlugin", "ConfigMap mine")


def test_schedulers_inside_other_documents_read_the_configurations_beside_them() -> None:
    profile = "{schedulerName: mine, plugins: {placementScore: {}}}"
    config = f"{HEAD}leaderElection: {{leaderElect: false}}\nprofiles: [{profile}]\n"
    report = checked(("out.json", [config_map(config), deployment()]))
    assert report.findings == ()
    assert "kube-scheduler 1.36, as in the image of Deployment mine" in report.notes[0]


def test_flags_of_an_object_inside_another_document_have_its_path() -> None:
    wrong = deployment(command=["kube-scheduler", "--address=0.0.0.0"], volumeMounts=[])
    finding = the_finding(("out.json", {"values": {"extraObjects": [wrong]}}))
    path = "values.extraObjects[0].spec.template.spec.containers[0].command[1]"
    assert (finding.path, finding.reason) == (path, "UnknownArgument")


def test_k0sctl_has_a_configuration_of_k0s_in_it() -> None:
    config = {
        "apiVersion": "k0s.k0sproject.io/v1beta1",
        "kind": "ClusterConfig",
        "spec": {"scheduler": {"extraArgs": {"address": "0.0.0.0"}}},
    }
    head = {"apiVersion": "k0sctl.k0sproject.io/v1beta1", "kind": "Cluster"}
    finding = the_finding(("k0sctl.yaml", {**head, "spec": {"k0s": {"config": config}}}))
    assert finding.path == "spec.k0s.config.spec.scheduler.extraArgs.address"


def test_other_objects_inside_a_document_are_not_ours() -> None:
    other = {**config_map("color: ${COLOR}\n"), "metadata": {"name": "other"}}
    assert checked(("out.json", [other])).is_empty


# --- values of the chart of scheduler-plugins ----------------------------------------------------

VALUES = {"scheduler": {"image": CHART}, "plugins": {"enabled": ["Coschedulin"]}}


def application(kind: str, helm: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"sources": [{"path": "a"}, {"chart": "b", "helm": helm}]}
    spec = spec if kind == "Application" else {"template": {"spec": spec}}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "spec": spec}


@pytest.mark.parametrize("kind", ["Application", "ApplicationSet"])
@pytest.mark.parametrize("helm", [{"valuesObject": VALUES}, {"values": json.dumps(VALUES)}])
def test_each_source_of_an_application_may_have_values(kind: str, helm: dict[str, Any]) -> None:
    finding = the_finding(("app.yaml", application(kind, helm)))
    assert finding.fix == 'did you mean "Coscheduling"?'


def test_a_helm_chart_of_k3s_has_values_as_a_text() -> None:
    spec = {"valuesContent": json.dumps(VALUES)}
    chart = {"apiVersion": "helm.cattle.io/v1", "kind": "HelmChart", "spec": spec}
    assert the_finding(("chart.yaml", chart)).reason == "UnknownPlugin"


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ({"enabled": ["Coscheduling"]}, ""),
        ({"disabled": ["ImageLocality"]}, "PrioritySort and Coscheduling are enabled"),
        ({"enabled": ["NodeResourcesAllocatable"]}, "no queueSort plugin is enabled"),
        ({"enabled": ["NodeResourcesAllocatable"], "disabled": []}, ""),
    ],
)
def test_lists_that_values_do_not_have_are_those_of_the_chart(
    plugins: dict[str, Any], message: str
) -> None:
    findings = checked(("v.yaml", {"scheduler": {"image": CHART}, "plugins": plugins})).findings
    errors = [finding.message for finding in findings if finding.severity == "error"]
    assert [text.partition(",")[0] for text in errors] == ([message] if message else [])


def test_a_document_with_its_configuration_counts_once() -> None:
    report = checked(("values.yaml", {**VALUES, "plugins": {"enabled": ["Coscheduling"]}}))
    assert len(report.documents) == 1


@pytest.mark.parametrize(
    "values",
    [
        {"plugins": {"filter": {"enabled": True}, "bind": {"enabled": ["a"]}}},
        {"plugins": {"lint": {"enabled": [{"name": "a"}]}}, "pluginConfig": {"a": 1}},
    ],
)
def test_plugins_of_other_programs_do_not_make_a_profile(values: dict[str, Any]) -> None:
    assert the_finding(("values.yaml", values)).reason == "NothingToCheck"


def test_values_of_yunikorn_are_named() -> None:
    finding = the_finding(("values.yaml", {"yunikornDefaults": {"queues.yaml": "partitions: []"}}))
    assert "values of YuniKorn's chart" in finding.message


# --- versions and files of products --------------------------------------------------------------

KIND = """\
apiVersion: kind.x-k8s.io/v1alpha4
kind: Cluster
nodes:
- role: control-plane
  image: kindest/node:v1.36.1
  extraMounts: [{hostPath: ./s.yaml, containerPath: /etc/kubernetes/s.yaml}]
  kubeadmConfigPatches:
  - |
    kind: ClusterConfiguration
    scheduler:
      extraArgs: {config: /etc/kubernetes/s.yaml}
      extraVolumes: [{name: s, hostPath: /etc/kubernetes/s.yaml, mountPath: /etc/kubernetes/s.yaml}]
"""


def test_a_file_beside_kinds_is_checked_for_the_version_of_its_node() -> None:
    report = checked(("kind.yaml", KIND), ("s.yaml", OF_1_36))
    assert report.findings == ()
    assert report.notes == ("s.yaml was checked for kube-scheduler 1.36",)


def test_the_kubeconfig_of_k3s_needs_no_volume_of_k3d() -> None:
    config = (
        f"{HEAD}clientConnection: {{kubeconfig: /var/lib/rancher/k3s/server/cred/s.kubeconfig}}"
    )
    argument = {"arg": "--kube-scheduler-arg=config=/c/s.yaml", "nodeFilters": ["server:*"]}
    cluster = {
        "apiVersion": "k3d.io/v1alpha5",
        "kind": "Simple",
        "options": {"k3s": {"extraArgs": [argument]}},
        "volumes": [{"volume": "./s.yaml:/c/s.yaml"}],
    }
    assert checked(("k3d.yaml", cluster), ("s.yaml", config)).findings == ()


def test_the_version_of_scheduler_plugins_is_none_of_kubernetes() -> None:
    image = f"kube-scheduler-image: {CHART}\nkube-scheduler-arg: [v=2]\n"
    assert checked(("config.yaml", image)).starts is True


def test_the_image_of_rke2_has_the_plugins_of_kubernetes() -> None:
    image = "index.docker.io/rancher/hardened-kubernetes:v1.34.1-rke2r1-build20250910"
    report = checked(("out.json", [config_map(), deployment(image=image)]))
    assert [finding.reason for finding in report.findings] == ["UnknownPlugin"]
    assert "kube-scheduler 1.34" in report.findings[0].message


# --- documents that do not fit together ----------------------------------------------------------


def test_a_flag_that_switches_leader_election_off_is_to_be_removed() -> None:
    config = f"{HEAD}leaderElection: {{leaderElect: true}}\nprofiles: [{{schedulerName: mine}}]\n"
    command = ["kube-scheduler", "--config=/etc/mine/s.yaml", "--leader-elect=false"]
    several = deployment(command=command)
    several["spec"]["replicas"] = 2
    finding = the_finding(("out.json", [config_map(config), several]))
    assert finding.reason == "SeveralActive"
    assert finding.fix.startswith("remove --leader-elect=false")


def test_the_name_of_a_workload_is_not_a_scheduler_name() -> None:
    config = f"{HEAD}leaderElection: {{leaderElect: false}}\nprofiles: [{{schedulerName: gpus}}]\n"
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
    pod = {**head, "spec": {"schedulerName": "mine", "containers": []}}
    files = [("c.json", config_map(config)), ("d.json", deployment()), ("p.json", pod)]
    finding = the_finding(*files)
    assert finding.reason == "UnknownSchedulerName"
    assert "Pod web stays Pending" in finding.message
    assert finding.fix.endswith("write gpus")

"""Configurations in ConfigMaps, as manifests of secondary schedulers have them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.reports.report import ValidationReport
from kube_scheduler_operator.config.lint.validate import validate

OPTIONS = CheckOptions(Gates(Version(1, 35)), KUBEADM)
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OWN = f"{HEAD}profiles: [{{schedulerName: mine}}]\nleaderElection: {{leaderElect: false}}\n"
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: mine}\n---\n"


def config_map(text: str, name: str = "mine") -> str:
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: kube-system}}\n"
    return f"{head}data:\n  config.yaml: |\n{lines}"


def workload(image: str, kind: str = "Deployment", namespace: str = "kube-system") -> str:
    pod: dict[str, Any] = {
        "containers": [
            {
                "name": "s",
                "image": image,
                "command": ["kube-scheduler", "--config=/etc/scheduler/config.yaml"],
                "volumeMounts": [{"name": "config", "mountPath": "/etc/scheduler"}],
            }
        ],
        "volumes": [{"name": "config", "configMap": {"name": "mine"}}],
    }
    return "---\n" + json.dumps(
        {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": "mine", "namespace": namespace},
            "spec": pod if kind == "Pod" else {"template": {"spec": pod}},
        }
    )


def checked(*texts: str) -> ValidationReport:
    return validate([(f"{index}.yaml", text) for index, text in enumerate(texts)], OPTIONS)


def reported(*texts: str) -> list[tuple[int, int, str, str]]:
    found = checked(*texts).findings
    return [(one.position.line, one.position.column, one.path, one.reason) for one in found]


def test_a_configuration_in_a_config_map_is_checked_and_its_neighbours_are_not() -> None:
    report = checked(ACCOUNT + config_map(OWN) + workload("registry.k8s.io/kube-scheduler:v1.35.4"))
    assert report.findings == ()
    assert sorted(kind for _, kind in report.documents) == [
        "Deployment",
        "KubeSchedulerConfiguration",
    ]
    assert [kind for _, kind in report.others] == ["ServiceAccount"]


@pytest.mark.parametrize(
    ("text", "line", "column", "path", "reason"),
    [
        (f"{OWN}paralelism: 5", 14, 5, "paralelism", "UnknownField"),
        (f"{OWN}parallelism: 0", 14, 5, "parallelism", "InvalidConfiguration"),
        (f"{OWN}\n\npercentageOfNodesToScore: 1", 16, 5, "percentageOfNodesToScore",
         "SampledTooFew"),
        (f"{OWN}\tparallelism: 1", 14, 5, "", "Syntax"),
        (f"{OWN}extenders: [", 15, 1, "", "Syntax"),
        (f"{OWN}---\n{OWN}", 15, 5, "", "NeverRead"),
        (f"# nothing\n---\n---\n{OWN}", 13, 5, "", "NeverRead"),
        (OWN.replace("/v1\n", "/v1beta3\n"), 10, 5, "apiVersion", "OldAPIVersion"),
        ("kind: Policy\napiVersion: v1\n", 11, 5, "apiVersion", "OldAPIVersion"),
    ],
)  # fmt: skip
def test_positions_are_those_in_the_manifest(
    text: str, line: int, column: int, path: str, reason: str
) -> None:
    assert reported(ACCOUNT + config_map(text)) == [(line, column, path, reason)]


def test_a_content_in_another_form_has_the_position_of_its_key() -> None:
    data = {"config.yaml": f"{OWN}paralelism: 5\n"}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": data}
    assert reported(json.dumps(manifest, indent=1)) == [(6, 3, "paralelism", "UnknownField")]


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "Pod"])
def test_the_version_is_that_of_the_image_that_mounts_it(kind: str) -> None:
    old = OWN.replace(
        "profiles: [{", "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}, "
    )
    map_ = config_map(old)
    assert [each[3] for each in reported(map_)] == ["UnknownPlugin"]
    image = "registry.example:5000/k8s/kube-scheduler:v1.30.4@sha256:" + 64 * "0"
    report = checked(map_ + workload(image, kind))
    assert report.starts
    assert report.notes == (
        f"ConfigMap mine was checked for kube-scheduler 1.30, as in the image of {kind} mine",
    )
    assert checked(workload(image, kind), map_).starts, "in any file"
    assert not checked(map_ + workload(image, kind, namespace="x")).starts
    assert checked(map_ + workload("example.com/mine:v1.30.4", kind)).starts, "a custom image"
    assert not checked(map_ + workload("registry.k8s.io/kube-scheduler", kind)).starts


def test_other_config_maps_and_odd_ones_are_left_alone() -> None:
    other = config_map("a: b").replace("name: mine", "name: other")
    report = checked(f"{other}---\n{config_map(OWN)}")
    assert (report.starts, [kind for _, kind in report.others]) == (True, ["ConfigMap"])
    for data in ("7", "[KubeSchedulerConfiguration]", "{a: [KubeSchedulerConfiguration]}", ""):
        assert not checked(f"apiVersion: v1\nkind: ConfigMap\ndata: {data}\n").starts


@pytest.mark.parametrize(
    "kind", ["[KubeSchedulerConfiguration]", "{KubeSchedulerConfiguration: 1}"]
)
def test_a_kind_that_is_not_a_string_is_not_a_configuration(kind: str) -> None:
    assert not checked(config_map(f"kind: {kind}\n")).starts


def test_messages_name_the_config_map_of_another_scheduler() -> None:
    first, second = config_map(OWN), config_map(OWN, "second")
    found = checked(f"{first}---\n{second}").findings
    assert {one.reason for one in found} == {"SameSchedulerName"}
    assert "ConfigMap mine in 0.yaml" in found[0].message


def test_a_kind_that_is_an_object_is_not_a_form() -> None:
    report = checked("apiVersion: v1\nkind: {name: ConfigMap}\ndata: {a: scheduler}\n")
    assert not report.starts


@pytest.mark.parametrize(
    ("data", "path", "fix"),
    [
        ("data:\n  c.yaml:\n    {0}\n    {1}\n", "data['c.yaml']", "c.yaml: |"),
        ("data:\n  c.yaml: >\n    {0}\n    {1}\n", "data['c.yaml']", "c.yaml: |"),
        ("data: |\n  {0}\n  {1}\n", "data", "write it below a key: config.yaml: |"),
    ],
)
def test_a_configuration_that_is_not_the_text_of_a_key_is_an_error(
    data: str, path: str, fix: str
) -> None:
    lines = "apiVersion: kubescheduler.config.k8s.io/v1", "kind: KubeSchedulerConfiguration"
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + data.format(*lines)
    found = validate([("f", config_map)], OPTIONS).findings
    assert [each.path for each in found if each.severity == "error"] == [path]
    assert found[0].fix.endswith(fix)


def test_a_config_map_of_another_namespace_is_not_that_of_the_pod() -> None:
    image = "registry.k8s.io/kube-scheduler:v1.35.4"
    report = checked(config_map(OWN) + workload(image, namespace="batch"))
    (one,) = report.findings
    assert (one.reason, one.severity) == ("OtherNamespace", "warning")
    assert "is in namespace kube-system, the Pod in batch" in one.message
    both = config_map(OWN) + "---\n" + config_map(OWN).replace("kube-system", "batch")
    found = reported(both + workload(image, namespace="batch"))
    assert "OtherNamespace" not in {reason for *_, reason in found}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("kind", "section", "content", "fix"),
    [
        ("Secret", "data", OWN, "move it to stringData"),
        ("Secret", "stringData", encoded(OWN), "move it to data"),
        ("Secret", "data", encoded(encoded(OWN)), "encode the configuration once"),
        ("ConfigMap", "binaryData", OWN, "move it to data"),
        ("ConfigMap", "data", encoded(OWN), "move it to binaryData"),
    ],
)
def test_a_configuration_in_the_wrong_encoding_is_an_error(
    kind: str, section: str, content: str, fix: str
) -> None:
    document = {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": "mine"},
        section: {"config.yaml": content},
    }
    found = [(one.path, one.severity, one.fix) for one in checked(json.dumps(document)).findings]
    assert found == [(f"{section}['config.yaml']", "error", fix)]


def test_base64_with_line_breaks_is_read_as_the_api_server_does() -> None:
    text = encoded(f"{OWN}paralelism: 5\n")
    broken = "\n".join(text[at : at + 60] for at in range(0, len(text), 60))
    secret = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"},
        "data": {"config.yaml": broken},
    }  # fmt: skip
    assert [one.path for one in checked(json.dumps(secret)).findings] == ["paralelism"]


def cloud_config(*files: tuple[str, str]) -> str:
    """A file of cloud-init that writes files, given by path and content."""
    return json.dumps({"write_files": [{"path": path, "content": text} for path, text in files]})


def static_pod(*flags: str) -> str:
    container = {
        "name": "kube-scheduler",
        "image": "registry.k8s.io/kube-scheduler:v1.34.1",
        "command": ["kube-scheduler", *flags],
        "volumeMounts": [{"name": "etc", "mountPath": "/etc/kubernetes"}],
    }
    volume = {"name": "etc", "hostPath": {"path": "/etc/kubernetes"}}
    spec = {"hostNetwork": True, "containers": [container], "volumes": [volume]}
    metadata = {"name": "kube-scheduler"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return json.dumps(pod, indent=1)


def test_a_static_pod_in_a_file_that_cloud_init_writes_reads_another_such_file() -> None:
    files = (
        ("/etc/kubernetes/manifests/s.yaml", static_pod("--config=/etc/kubernetes/s.yaml")),
        ("/etc/kubernetes/s.yaml", f"{OWN}paralelism: 5\n"),
        ("/etc/motd", "kind: Pod, not a manifest\n"),
    )
    report = checked(cloud_config(*files))
    assert [(one.path, one.reason) for one in report.findings] == [("paralelism", "UnknownField")]
    assert report.notes == (
        "/etc/kubernetes/s.yaml was checked for kube-scheduler 1.34, as in the image of "
        "Pod kube-scheduler",
    )


def test_the_flags_of_a_static_pod_in_a_file_that_cloud_init_writes_are_checked() -> None:
    pod = static_pod("--policy-config-file=/etc/kubernetes/policy.json")
    found = reported(cloud_config(("/etc/kubernetes/manifests/s.yaml", pod)))
    assert [reason for *_, reason in found] == ["UnknownArgument"]


def test_a_cluster_configuration_in_a_file_that_cloud_init_writes_is_that_of_kubeadm() -> None:
    text = (
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"
        "scheduler: {extraArgs: [{name: leader-elekt, value: 'true'}]}\n"
    )
    found = reported(cloud_config(("/etc/kubeadm.yaml", text)))
    assert [reason for *_, reason in found] == ["UnknownArgument"]


def test_an_own_image_that_reads_a_configuration_is_the_scheduler_of_it() -> None:
    """Its plugins are not known. With another file it is a program that has a flag --config."""
    enabled = "plugins: {permit: {enabled: [{name: Own}]}}"
    text = f"{HEAD}profiles: [{{schedulerName: mine, {enabled}}}]\n"
    own = workload("ghcr.io/own/herd:1.4.0").replace('"kube-scheduler", ', "")
    alone = checked(config_map(text))
    assert [finding.reason for finding in alone.findings] == ["UnknownPlugin"]
    report = checked(config_map(text), ACCOUNT + own)
    assert "UnknownPlugin" not in [finding.reason for finding in report.findings]
    assert ("1.yaml", "Deployment") in report.documents
    report = checked(config_map("kind: Other\n"), ACCOUNT + own)
    assert ("1.yaml", "Deployment") not in report.documents

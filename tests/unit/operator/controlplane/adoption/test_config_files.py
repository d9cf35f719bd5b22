"""The configuration files of schedulers before the operator: read once, converted, compared."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.times import rfc3339
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.node.config_reader.report import ConfigReport
from kube_scheduler_operator.operator.controlplane.adoption.adopted import (
    adopted,
    adoption_conditions,
)
from kube_scheduler_operator.operator.controlplane.adoption.config_files import (
    adoptable,
    config_path,
)
from kube_scheduler_operator.operator.controlplane.desired import desired_content
from kube_scheduler_operator.operator.model.plan import Create, Delete
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from .....builders import config_map, operand_pod
from .test_adopted import cluster, on

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FILE = "/etc/kubernetes/scheduler/config.yaml"
V1 = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
TARGET = Target(Gates(Version(1, 35, 4), {}))


def with_file(node: str, path: str = FILE, mount: tuple[str, str] | None = None) -> dict[str, Any]:
    """A scheduler that reads a file; `mount` is (path on the host, path in the container)."""
    pod = on(node)
    container = pod["spec"]["containers"][0]
    container["command"].append(f"--config={path}")
    host, at = mount or ("/etc/kubernetes/scheduler", "/etc/kubernetes/scheduler")
    pod["spec"]["volumes"].append({"name": "config", "hostPath": {"path": host}})
    container["volumeMounts"].append({"name": "config", "mountPath": at, "readOnly": True})
    return pod


def read(snapshot: Snapshot, **reports: ConfigReport) -> Snapshot:
    """The cluster after the Pods of these nodes have reported."""
    made = {a.obj["spec"]["nodeName"]: a.obj for a in adopted(snapshot).actions}
    pods = {}
    for node, report in reports.items():
        ended = {"exitCode": 0, "message": report.serialise()}
        statuses = [{"name": names.CONFIG_READER, "state": {"terminated": ended}}]
        metadata = {**made[node]["metadata"], "creationTimestamp": rfc3339(NOW)}
        status = {"phase": "Succeeded", "containerStatuses": statuses}
        pods[metadata["name"]] = {**made[node], "metadata": metadata, "status": status}
    return replace(snapshot, config_reader_pods=pods)


def test_one_pod_reads_the_file_of_each_node_and_nothing_else() -> None:
    found = adopted(cluster({"a": with_file("a"), "b": with_file("b")}))
    assert [type(action) for action in found.actions] == [Create, Create]
    pod = found.actions[0].obj
    assert pod["metadata"]["name"] == "config-reader-a"
    assert pod["spec"]["volumes"] == [
        {"name": "config", "hostPath": {"path": FILE, "type": "File"}}
    ]
    container = pod["spec"]["containers"][0]
    assert [mount["readOnly"] for mount in container["volumeMounts"]] == [True]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert "hostPID" not in pod["spec"]


@pytest.mark.parametrize(
    ("path", "mount", "host"),
    [
        (FILE, None, FILE),
        ("/config/a.yaml", ("/etc/kubernetes/x", "/config"), "/etc/kubernetes/x/a.yaml"),
        ("/config/a.yaml", ("/etc/x.yaml", "/config/a.yaml"), "/etc/x.yaml"),
        ("/elsewhere/a.yaml", None, "/elsewhere/a.yaml"),
    ],
)
def test_the_path_on_the_node_follows_from_the_mounts(path: str, mount: Any, host: str) -> None:
    (create,) = adopted(cluster({"a": with_file("a", path, mount)})).actions
    assert create.obj["spec"]["volumes"][0]["hostPath"]["path"] == host


def test_nothing_is_composed_before_the_file_is_read_and_that_is_not_an_error() -> None:
    snapshot = cluster({"a": with_file("a")})
    assert desired_content(snapshot)[0] is None
    found = adopted(snapshot)
    informed, degraded = adoption_conditions(KUBEADM, found, found.findings)
    assert informed.reason == "ReadingConfiguration"
    assert informed.message == f'reading {FILE} of node "a"'
    assert degraded.status == "False"


def test_what_the_file_has_is_in_the_first_revision_and_its_record() -> None:
    snapshot = read(cluster({"a": with_file("a")}), a=ConfigReport({**V1, "parallelism": 8}))
    content, findings = desired_content(snapshot)
    assert content is not None, findings
    assert json.loads(content.parts[names.CONFIG][names.CONFIG_KEY])["parallelism"] == 8
    assert json.loads(content.parts[names.POD][names.ADOPTED_KEY])["config"] == {"parallelism": 8}
    assert "config.yaml" not in str(content.parts[names.POD][names.POD_KEY]).replace(
        "configmaps/config/config.yaml", ""
    ), "the flag is the operator's"


def test_an_error_in_the_file_blocks_and_it_is_read_again_after_a_minute() -> None:
    snapshot = read(cluster({"a": with_file("a")}), a=ConfigReport(error="the file has a flaw; x"))
    found = adopted(snapshot)
    assert found.actions == ()
    assert found.requeue_after == 60
    (finding,) = found.findings
    assert finding.path.endswith(": flags.config")
    assert f"{FILE}: the file has a flaw; x" in finding.message
    later = adopted(replace(snapshot, now=NOW + timedelta(seconds=61)))
    assert [type(action) for action in later.actions] == [Delete]


def test_files_that_differ_are_named_by_field() -> None:
    pods = {"a": with_file("a"), "b": with_file("b")}
    reports = {
        "a": ConfigReport({**V1, "parallelism": 8}),
        "b": ConfigReport({**V1, "parallelism": 9, "percentageOfNodesToScore": 7}),
    }
    (finding,) = adopted(read(cluster(pods), **reports)).findings
    assert "differ in config.parallelism, config.percentageOfNodesToScore;" in finding.message


def test_a_pod_that_does_not_end_is_reported() -> None:
    snapshot = cluster({"a": with_file("a")})
    (create,) = adopted(snapshot).actions
    metadata = {**create.obj["metadata"], "creationTimestamp": rfc3339(NOW)}
    pods = {"config-reader-a": {**create.obj, "metadata": metadata}}
    waiting = replace(snapshot, config_reader_pods=pods)
    assert not [f for f in adopted(waiting).findings if f.condition == names.ADOPTION_DEGRADED]
    late = adopted(replace(waiting, now=NOW + timedelta(seconds=600)))
    (finding,) = (f for f in late.findings if f.condition == names.ADOPTION_DEGRADED)
    assert "Pod kube-scheduler-operator/config-reader-a does not end" in finding.message


@pytest.mark.parametrize("change", ["scheduler", "label"])
def test_a_pod_that_was_made_for_another_scheduler_does_not_count(change: str) -> None:
    snapshot = read(cluster({"a": with_file("a")}), a=ConfigReport({**V1, "parallelism": 8}))
    other = with_file("a")
    other["metadata"]["uid"] = "another"
    found = adopted(replace(snapshot, operand_pods={"a": other}))
    assert found.config == {}
    assert [type(action) for action in found.actions] == [Delete]


def test_pods_are_deleted_when_a_node_has_a_revision() -> None:
    snapshot = read(cluster({"a": with_file("a")}), a=ConfigReport(V1))
    begun = replace(
        snapshot, operand_pods={"a": operand_pod("a", 1)}, config_maps={"x": config_map("x")}
    )
    assert [type(action) for action in adopted(begun).actions] == [Delete]


def test_the_operators_own_configuration_is_not_read() -> None:
    assert (
        config_path(
            operand_pod(
                "a",
                1,
                args=(
                    "--config=/etc/kubernetes/static-pod-resources/configmaps/config/config.yaml",
                ),
            )
        )
        == ""
    )


@pytest.mark.parametrize(
    ("document", "kept", "lost"),
    [
        ({"clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"}}, {}, []),
        (
            {"clientConnection": {"kubeconfig": "/x", "qps": 9}},
            {"clientConnection": {"qps": 9}},
            ["config.clientConnection.kubeconfig"],
        ),
        ({"leaderElection": {"leaderElect": False}}, {}, []),
        (
            {"leaderElection": {"leaseDuration": "30s", "resourceLock": "leases"}},
            {"leaderElection": {"leaseDuration": "30s"}},
            [],
        ),
        (
            {"leaderElection": {"resourceNamespace": "x"}},
            {},
            ["config.leaderElection.resourceNamespace"],
        ),
        ({"profiles": [{"schedulerName": "a"}]}, {"profiles": [{"schedulerName": "a"}]}, []),
        ({"clientConnection": None, "leaderElection": 7}, {}, []),
    ],
)  # fmt: skip
def test_what_the_operator_sets_itself_is_left_out(
    document: dict[str, Any], kept: Any, lost: list[str]
) -> None:
    config, found = adoptable({**V1, **document}, FILE, KUBEADM, TARGET)
    assert config == kept
    assert [one.name for one in found] == lost


def test_an_older_version_is_converted() -> None:
    old = {**V1, "apiVersion": "kubescheduler.config.k8s.io/v1beta3", "parallelism": 8}
    config, lost = adoptable(old, FILE, KUBEADM, TARGET)
    assert lost == ()
    assert config["parallelism"] == 8
    assert "apiVersion" not in config


def test_a_field_that_v1_does_not_have_blocks_instead_of_being_lost() -> None:
    affinity = {"name": "ServiceAffinity", "args": {"affinityLabels": ["hunter2"]}}
    profile = {
        "plugins": {"filter": {"enabled": [{"name": "ServiceAffinity"}]}},
        "pluginConfig": [affinity],
    }
    version = "kubescheduler.config.k8s.io/v1beta1"
    old = {**V1, "apiVersion": version, "profiles": [profile], "parallelism": 8}
    config, (lost,) = adoptable(old, FILE, KUBEADM, TARGET)
    assert config["parallelism"] == 8
    assert "profiles[0].plugins.filter.enabled[0]" in lost.message
    assert "hunter2" not in lost.message


def test_another_kind_is_named_without_its_content() -> None:
    config, (lost,) = adoptable({"kind": "Secret", "data": "hunter2"}, FILE, KUBEADM, TARGET)
    assert config == {}
    assert "hunter2" not in lost.message

"""`convert --to second` of what other operators and charts install beside the scheduler's Pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import main

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: packing
"""
IMAGE = "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.34.7"
OPENSHIFT = "openshift-secondary-scheduler-operator"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def config_map(namespace: str) -> dict[str, Any]:
    metadata = {"name": "config", "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"config.yaml": CONFIG},
    }


def openshifts(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "SecondaryScheduler",
        "metadata": {"name": "cluster", "namespace": OPENSHIFT},
        "spec": {"schedulerConfig": "config", "schedulerImage": IMAGE, **spec},
    }


def converted(
    folder: Path, capsys: pytest.CaptureFixture[str], *documents: Any
) -> tuple[dict[str, Any], str]:
    """Return (kind -> object; the messages)."""
    file = folder / "old.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    assert main(["convert", "-f", str(file), "--to", "second"]) == 0
    printed = capsys.readouterr()
    return {obj["kind"]: obj for obj in yaml.safe_load_all(printed.out)}, printed.err


# --- secondary-scheduler-operator ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("topology", "replicas"),
    [
        (None, 1),
        ({}, 1),
        ({"mode": "SingleReplica", "highlyAvailableTopology": {"maxReplicas": 5}}, 1),
        ({"mode": "HighlyAvailable"}, 3),
        ({"mode": "HighlyAvailable", "highlyAvailableTopology": {"maxReplicas": 2}}, 2),
        ({"mode": "HighlyAvailable", "highlyAvailableTopology": {"maxReplicas": True}}, 3),
        ({"mode": "HighlyAvailable", "highlyAvailableTopology": {"maxReplicas": 99}}, 20),
    ],
)
def test_the_topology_of_openshifts_object_stays(
    tmp_path: Path, capsys: Any, topology: Any, replicas: int
) -> None:
    old = openshifts(**({} if topology is None else {"topology": topology}))
    objects, _ = converted(tmp_path, capsys, old, config_map(OPENSHIFT))
    assert objects["SecondaryScheduler"]["spec"]["replicas"] == replicas


def test_the_nodes_and_flags_of_openshifts_object_stay(tmp_path: Path, capsys: Any) -> None:
    tolerations = [{"key": CONTROL_PLANE, "operator": "Exists"}]
    placed = {"nodeSelector": {CONTROL_PLANE: ""}, "tolerations": tolerations}
    suite = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    serving = {"cipherSuites": [suite], "minTLSVersion": "VersionTLS12"}
    old = openshifts(
        logLevel="Trace",
        observedConfig={"servingInfo": serving},
        topology={"mode": "HighlyAvailable", "highlyAvailableTopology": placed},
    )
    objects, messages = converted(tmp_path, capsys, old, config_map(OPENSHIFT))
    spec = objects["SecondaryScheduler"]["spec"]
    assert {key: spec[key] for key in placed} == placed
    assert (spec["logLevel"], spec["command"]) == ("Trace", ["/bin/kube-scheduler"])
    assert spec["extraArguments"] == {
        "tls-cipher-suites": suite,
        "tls-min-version": "VersionTLS12",
    }
    assert (
        "note: stop SecondaryScheduler cluster, and keep its manifest for the way back, before"
        in messages
    )


def test_several_replicas_of_openshifts_object_have_one_leader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its operator sets the flags of the election, which precede the file."""
    file = tmp_path / "old.yaml"
    old = openshifts(topology={"mode": "HighlyAvailable"})
    file.write_text(yaml.safe_dump_all([old, config_map(OPENSHIFT)]))
    assert main(["validate", "-f", str(file)]) == 0
    printed = capsys.readouterr()
    assert "SeveralActive" not in printed.out + printed.err
    assert "SharedLease" not in printed.out + printed.err


# --- the rights of custom plugins ----------------------------------------------------------------

GANGS = {"apiGroups": ["", "scheduling.x-k8s.io"], "resources": ["podgroups"], "verbs": ["watch"]}
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["update"]}


def deployment(image: str = IMAGE) -> dict[str, Any]:
    container = {
        "name": "scheduler",
        "image": image,
        "command": ["/bin/kube-scheduler", "--config=/config/config.yaml"],
        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
    }
    pod = {
        "serviceAccountName": "gangs",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "config"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "gangs", "namespace": "batch"},
        "spec": {"template": {"spec": pod}},
    }


def role(*rules: Any) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "gangs"},
        "rules": list(rules),
    }


def binding(role_name: str = "gangs", account: str = "gangs") -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{role_name}-{account}"},
        "roleRef": {"kind": "ClusterRole", "name": role_name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "batch"}],
    }


def test_custom_plugins_keep_their_rights_to_their_own_kinds(tmp_path: Path, capsys: Any) -> None:
    old = [deployment(), config_map("batch"), role(PODS, GANGS), binding()]
    objects, messages = converted(tmp_path, capsys, *old)
    assert objects["ClusterRole"]["rules"] == [{**GANGS, "apiGroups": ["scheduling.x-k8s.io"]}]
    assert objects["ClusterRoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": "packing", "namespace": "kube-scheduler-operator"}
    ]
    assert objects["ClusterRoleBinding"]["roleRef"]["name"] == "packing-plugins"
    assert "its rules for podgroups.scheduling.x-k8s.io are kept" in messages


@pytest.mark.parametrize(
    "old",
    [
        [deployment(), role(GANGS), binding(account="other")],
        [deployment(), role(PODS), binding()],
        [deployment(), binding("system:kube-scheduler")],
        [deployment("registry.k8s.io/kube-scheduler:v1.35.4"), role(GANGS), binding()],
    ],
    ids=["of another account", "of kube-scheduler's kinds", "kube-scheduler's own", "stock image"],
)
def test_no_other_right_is_given(tmp_path: Path, capsys: Any, old: list[Any]) -> None:
    objects, messages = converted(tmp_path, capsys, *old, config_map("batch"))
    assert list(objects) == ["SecondaryScheduler"]
    assert "cannot be kept" not in messages


def test_rights_of_every_group_are_reported(tmp_path: Path, capsys: Any) -> None:
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    old = [deployment(), role(everything), binding(), binding("elsewhere"), config_map("batch")]
    objects, messages = converted(tmp_path, capsys, *old)
    assert "ClusterRole" not in objects
    assert "cannot be kept: rules[0] of ClusterRole gangs removed" in messages
    assert "ClusterRole elsewhere of Deployment gangs is not among the files" in messages


def test_config_maps_that_no_scheduler_reads_are_left_out(tmp_path: Path, capsys: Any) -> None:
    """As in a namespace in which other configurations were tried before, or wait to be."""
    earlier = config_map(OPENSHIFT)
    earlier["metadata"] = {**earlier["metadata"], "name": "earlier"}
    elsewhere = config_map("another")
    elsewhere["data"] = {"config.yaml": CONFIG.replace("packing", "spreading")}
    objects, messages = converted(
        tmp_path, capsys, earlier, openshifts(), config_map(OPENSHIFT), elsewhere
    )
    assert "skipped: ConfigMap earlier config.yaml, which no scheduler in these" in messages
    assert objects["SecondaryScheduler"]["metadata"]["name"] == "spreading"  # the last of two

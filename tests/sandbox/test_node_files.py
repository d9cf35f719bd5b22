"""What a node is given must be what kubeadm gives, because the operator is made for that."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from cluster import cgroups, controlplane, model, node_files, providers
from cluster.model import Sandbox
from kube_scheduler_operator.base.platform import MANAGED
from kube_scheduler_operator.base.recognition import NodeMarks, recognize

BOX = Sandbox("dev", 2, model.make_nodes("dev", 1, 1), kubernetes="v1.34.4")
CONTROL_PLANE, WORKER = BOX.nodes


def test_the_schedulers_static_pod_is_kubeadms() -> None:
    pod = yaml.safe_load(node_files.scheduler_manifest(BOX))
    (container,) = pod["spec"]["containers"]
    assert pod["metadata"] == {
        "name": "kube-scheduler",
        "namespace": "kube-system",
        "labels": {"component": "kube-scheduler", "tier": "control-plane"},
    }
    assert container["image"] == "registry.k8s.io/kube-scheduler:v1.34.4"
    assert container["command"] == [
        "kube-scheduler",
        "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--bind-address=127.0.0.1",
        "--kubeconfig=/etc/kubernetes/scheduler.conf",
        "--leader-elect=true",
    ]
    assert container["startupProbe"]["httpGet"]["port"] == container["ports"][0]["name"]
    assert pod["spec"]["hostNetwork"] is True
    assert pod["spec"]["priorityClassName"] == "system-node-critical"
    assert pod["spec"]["volumes"][0]["hostPath"]["type"] == "FileOrCreate"


def test_control_plane_nodes_are_labelled_and_tainted_and_workers_are_not() -> None:
    label = "node-role.kubernetes.io/control-plane"
    assert controlplane.marks(CONTROL_PLANE, model.KUBEADM)["metadata"]["labels"][label] == ""
    assert controlplane.taints(BOX, CONTROL_PLANE) == [{"key": label, "effect": "NoSchedule"}]
    assert controlplane.marks(WORKER, model.KUBEADM)["metadata"]["labels"] == {}
    assert controlplane.taints(BOX, WORKER) == []


def test_openshifts_control_plane_is_tainted_only_beside_workers() -> None:
    box = Sandbox("dev", 2, BOX.nodes, model.OPENSHIFT)
    taint = {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}
    assert controlplane.taints(box, CONTROL_PLANE) == [taint]
    assert controlplane.taints(box, WORKER) == []
    alone = Sandbox("dev", 2, (CONTROL_PLANE,), model.OPENSHIFT)
    assert controlplane.taints(alone, CONTROL_PLANE) == []


@pytest.mark.parametrize(
    ("like", "provider"), [("eks", "EKS"), ("gke", "GKE"), ("aks", "AKS"), ("k3s", "k3s")]
)
def test_nodes_of_a_provider_are_recognized_as_its_own(like: str, provider: str) -> None:
    assert like in providers.LIKE
    patch = providers.node_patch(WORKER, like)
    found = recognize(infrastructure=False, nodes=[NodeMarks.of(patch)])
    assert (found.platform, found.provider) == (MANAGED, provider)
    assert "://" in patch["spec"]["providerID"]


def test_a_kubelet_works_below_its_own_cgroup() -> None:
    config = yaml.safe_load(node_files.kubelet_config(BOX, WORKER))
    assert config["cgroupRoot"] == "/kso-sandbox/dev/dev-worker"
    assert config["staticPodPath"] == "/etc/kubernetes/manifests"
    assert config["failCgroupV1"] is False
    assert config["registerWithTaints"] == []


def test_containerds_configuration_and_the_cni_one_can_be_read() -> None:
    config = tomllib.loads(node_files.containerd_config("native"))
    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["containerd"]["snapshotter"] == "native"
    cni = json.loads(node_files.render("cni.json", pod_network=BOX.pod_network(WORKER)))
    assert cni["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.34.2.0/24"}]]


def test_a_command_enters_its_cgroups_first(tmp_path: Path) -> None:
    from cluster.console import run

    groups = [tmp_path / "cpu", tmp_path / "memory"]
    for group in groups:
        group.mkdir()
    assert run(*cgroups.enter(groups, ["echo", "--", "$HOME"])) == "-- $HOME\n"
    pids = {(group / "cgroup.procs").read_text() for group in groups}
    assert len(pids) == 1

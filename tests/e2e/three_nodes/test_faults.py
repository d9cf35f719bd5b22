"""Three real nodes: whatever is killed when, pods are scheduled and the end is right.

A few pairs of fault and stage run always, all of them in `make soak`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import pytest

from cluster import controlplane, lifecycle, nodes, processes
from cluster.model import Node, Sandbox
from cluster.observe import SCHEDULER, until

from ...seeds import SOAK
from ..conftest import Cluster
from ..faults import kill_an_operator, pids

DOWN_FOR = 5.0
RESOURCES = "/etc/kubernetes/static-pod-resources"
STRANGER = f"{RESOURCES}/filler"

pytestmark = pytest.mark.timeout(900, func_only=True)


# --- when -----------------------------------------------------------------------------------------
def moved(cluster: Cluster) -> int:
    """How many nodes have the latest revision."""
    entries = cluster.status.get("nodeStatuses") or []
    return sum(entry.get("currentRevision", 0) == cluster.latest for entry in entries)


def moving(cluster: Cluster) -> Node:
    """The node that is moving, or the first one."""
    for entry in cluster.status.get("nodeStatuses") or []:
        if entry.get("targetRevision"):
            return next(n for n in cluster.sandbox.nodes if n.name == entry["nodeName"])
    return cluster.node


def swaps(cluster: Cluster) -> bool:
    """Whether a node's scheduler is away or new right now."""
    return any(entry.get("targetRevision") for entry in cluster.status.get("nodeStatuses") or [])


STAGES: dict[str, Callable[[Cluster], bool]] = {
    "all prepare": lambda cluster: len(cluster.installers(cluster.latest)) == 3,
    "the first swaps": swaps,
    "the second swaps": lambda cluster: moved(cluster) == 1 and swaps(cluster),
    "the leader swaps": lambda cluster: moved(cluster) == 2 and swaps(cluster),
}


# --- what -----------------------------------------------------------------------------------------
@contextmanager
def without_operator(cluster: Cluster) -> Iterator[None]:
    """Both processes of the operator end; Kubernetes starts them again."""
    kill_an_operator(cluster)
    kill_an_operator(cluster)
    yield


@contextmanager
def without_installer(cluster: Cluster) -> Iterator[None]:
    """All installers end; the kubelets start them again."""
    for pid in pids("kube-scheduler-operator", "installer"):
        os.kill(pid, signal.SIGKILL)
    yield


def without_kubelet(cluster: Cluster) -> AbstractContextManager[None]:
    return _without_part(cluster, nodes.kill_kubelet)


def without_containerd(cluster: Cluster) -> AbstractContextManager[None]:
    def kill(sandbox: Sandbox, node: Node) -> None:
        processes.kill_one(sandbox, nodes.daemons(node)[1])

    return _without_part(cluster, kill)


def without_power(cluster: Cluster) -> AbstractContextManager[None]:
    return _without_part(cluster, nodes.power_off)


@contextmanager
def _without_part(cluster: Cluster, kill: Callable[[Sandbox, Node], object]) -> Iterator[None]:
    """The moving node loses a resource, and gets it back."""
    node = moving(cluster)
    kill(cluster.sandbox, node)
    yield
    lifecycle.start_node(cluster.sandbox, node)


@contextmanager
def without_api_server(cluster: Cluster) -> Iterator[None]:
    with _without_daemon(cluster.sandbox, "kube-apiserver"):
        yield


@contextmanager
def without_etcd(cluster: Cluster) -> Iterator[None]:
    with _without_daemon(cluster.sandbox, "etcd"):
        yield


@contextmanager
def _without_daemon(sandbox: Sandbox, name: str) -> Iterator[None]:
    processes.kill_one(sandbox, name)
    yield
    folder = sandbox.state / "bin"
    controlplane.start(sandbox, {path.name: path for path in folder.iterdir()})


@contextmanager
def tainted(cluster: Cluster) -> Iterator[None]:
    """Cordoned, and tainted with NoExecute until the rollout is done."""
    name = cluster.sandbox.nodes[1].name
    cluster.kubectl("cordon", name)
    cluster.kubectl("taint", "node", name, "e2e=away:NoExecute")
    yield
    try:
        until(lambda: moved(cluster) == 3, 400, "a tainted node is left out")
    finally:
        cluster.kubectl("taint", "node", name, "e2e=away:NoExecute-")
        cluster.kubectl("uncordon", name)


FAULTS = {
    "operator": without_operator,
    "installer": without_installer,
    "kubelet": without_kubelet,
    "containerd": without_containerd,
    "node": without_power,
    "kube-apiserver": without_api_server,
    "etcd": without_etcd,
    "taint": tainted,
}
ALWAYS = [
    ("kubelet", "the first swaps"),
    ("kube-apiserver", "the second swaps"),
]
MATRIX = [(fault, stage) for fault in FAULTS for stage in STAGES]


@pytest.mark.parametrize(("fault", "stage"), MATRIX if SOAK else ALWAYS)
def test_a_rollout_survives_a_fault_at_any_stage(
    three_nodes: Cluster, fault: str, stage: str
) -> None:
    latest = three_nodes.latest
    three_nodes.api.request(
        "PATCH", SCHEDULER, {"spec": {"profile": three_nodes.another_profile()}}
    )
    until(lambda: three_nodes.latest > latest, 30, "no revision")
    reached = STAGES[stage]
    until(lambda: reached(three_nodes), 300, f"the rollout was never where {stage}")
    with FAULTS[fault](three_nodes):
        if fault in ("kubelet", "containerd", "node", "operator", "installer"):
            three_nodes.schedules(timeout=60)
        time.sleep(DOWN_FOR)
    begun = time.monotonic()
    until(
        lambda: moved(three_nodes) == 3,
        400,
        lambda: f"the rollout did not end: {three_nodes.status}",
    )
    print(f"{fault} while {stage}: done {time.monotonic() - begun:.0f} s after it was back")
    assert three_nodes.latest == latest + 1
    three_nodes.rest(400)
    is_right(three_nodes)


def is_right(cluster: Cluster) -> None:
    """Every node runs its one scheduler, with its one manifest, and pods are scheduled."""
    assert all(cluster.schedulers.values()), cluster.schedulers
    for node in cluster.sandbox.nodes:
        found = cluster.on_node("ls", "-A", "/etc/kubernetes/manifests", node=node).split()
        assert found == ["kube-scheduler.yaml"]
    cluster.schedules()


@contextmanager
def full_disk(cluster: Cluster, node: Node) -> Iterator[None]:
    """Let what the operator keeps on a node be on a small file system that is full."""
    with ExitStack() as after:
        cluster.on_node(
            "sh", "-ec",
            f"cp -a {RESOURCES} {RESOURCES}.kept; mount -t tmpfs -o size=2m full {RESOURCES};"
            f"cp -a {RESOURCES}.kept/. {RESOURCES}; rm -r {RESOURCES}.kept;"
            f"dd if=/dev/zero of={STRANGER} bs=4k 2>/dev/null || true",
            node=node,
        )  # fmt: skip
        after.callback(cluster.on_node, "rm", "-f", STRANGER, node=node)
        yield


def test_a_full_disk_on_one_node_is_reported_changes_no_node_and_is_recovered_from(
    three_nodes: Cluster,
) -> None:
    before = three_nodes.schedulers
    victim = three_nodes.sandbox.nodes[2]
    latest = three_nodes.latest
    with full_disk(three_nodes, victim):
        three_nodes.api.request(
            "PATCH", SCHEDULER, {"spec": {"profile": three_nodes.another_profile()}}
        )
        kind = "NodeInstallerDegraded"
        until(lambda: three_nodes.condition(kind)[0] == "True", 120, "it is not complained about")
        message = three_nodes.condition(kind)[1]
        assert f'node "{victim.name}" cannot install revision {three_nodes.latest}' in message
        assert "No space left on device" in message
        assert three_nodes.schedulers == before
    until(lambda: moved(three_nodes) == 3, 400, "it does not go on by itself")
    assert three_nodes.latest == latest + 1
    three_nodes.rest(400)
    is_right(three_nodes)
    keep_on_the_disk(three_nodes, victim)


def keep_on_the_disk(cluster: Cluster, node: Node) -> None:
    """What is on the small file system goes back to the real one."""
    cluster.on_node(
        "sh", "-ec",
        f"cp -a {RESOURCES} {RESOURCES}.kept; umount -l {RESOURCES}; rm -rf {RESOURCES};"
        f"mv {RESOURCES}.kept {RESOURCES}",
        node=node,
    )  # fmt: skip

"""Three real nodes: drains that wait for the schedulers, and kubeconfigs that change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cluster.console import SandboxError
from cluster.model import Node
from cluster.observe import OPERATOR_NAMESPACE, until

from ...expect import is_ready
from ..conftest import PODS, Cluster

KUBECONFIG = "/etc/kubernetes/scheduler.conf"
BUDGET = (
    f"/apis/policy/v1/namespaces/{OPERATOR_NAMESPACE}/poddisruptionbudgets/kube-scheduler-guard-pdb"
)

pytestmark = pytest.mark.timeout(600, func_only=True)


def guards(cluster: Cluster) -> set[str]:
    """Nodes whose guard is Ready."""
    pods = cluster.api.request("GET", f"{PODS}?labelSelector=app%3Dguard")["items"]
    return {pod["spec"]["nodeName"] for pod in pods if _is_ready(pod)}


def _is_ready(pod: dict[str, Any]) -> bool:
    return is_ready(pod) and "deletionTimestamp" not in pod["metadata"]


@contextmanager
def cordoned(cluster: Cluster, node: Node) -> Iterator[None]:
    """No pod is placed on the node meanwhile."""
    cluster.kubectl("cordon", node.name)
    try:
        yield
    finally:
        cluster.kubectl("uncordon", node.name)


def drain(cluster: Cluster, node: Node, timeout: int = 30) -> None:
    """Evict the node's guard as `kubectl drain` does, and leave the other pods where they are."""
    cluster.kubectl(
        "drain", node.name, "--pod-selector=app=guard", f"--timeout={timeout}s", "--force=false"
    )


@pytest.mark.presubmit
def test_a_drain_waits_until_the_other_schedulers_are_guarded(three_nodes: Cluster) -> None:
    first, second, third = three_nodes.sandbox.nodes
    until(lambda: len(guards(three_nodes)) == 3, 120, "not every node has a guard")
    assert three_nodes.api.request("GET", BUDGET)["spec"]["minAvailable"] == 2
    before = three_nodes.schedulers
    with cordoned(three_nodes, first):
        drain(three_nodes, first)
        assert guards(three_nodes) == {second.name, third.name}
        with cordoned(three_nodes, second):
            with pytest.raises(SandboxError, match="disruption budget"):
                drain(three_nodes, second, timeout=8)
            assert guards(three_nodes) == {second.name, third.name}
    until(lambda: len(guards(three_nodes)) == 3, 120, "the guard did not come back")
    drain_when_allowed(three_nodes, second)
    three_nodes.kubectl("uncordon", second.name)
    until(lambda: len(guards(three_nodes)) == 3, 120, "the guard did not come back")
    assert three_nodes.schedulers == before, "no scheduler has noticed"


def drain_when_allowed(cluster: Cluster, node: Node) -> None:
    """The budget is updated a moment after the guard is back, and a drain waits for that."""
    drain(cluster, node, timeout=60)
    assert node.name not in guards(cluster)


def test_a_changed_kubeconfig_restarts_the_schedulers_one_after_the_other(
    three_nodes: Cluster,
) -> None:
    until(lambda: len(guards(three_nodes)) == 3, 120, "not every node has a guard")
    before, latest = three_nodes.schedulers, three_nodes.latest
    for node in three_nodes.sandbox.nodes:
        three_nodes.on_node("sh", "-c", f"echo '# renewed' >> {KUBECONFIG}", node=node)
    begun, fewest = time.monotonic(), 3

    def all_new() -> bool:
        nonlocal fewest
        now = three_nodes.schedulers
        fewest = min(fewest, sum(pid > 0 for pid in now.values()))
        return all(pid and pid != before[name] for name, pid in now.items())

    until(all_new, 300, "the schedulers were not started again")
    print(f"three schedulers have the new kubeconfig after {time.monotonic() - begun:.0f} s")
    assert fewest == 2, "never more than one of three is down"
    assert three_nodes.latest == latest
    three_nodes.rest(400)
    after = three_nodes.schedulers
    until(lambda: len(guards(three_nodes)) == 3, 120, "the guards do not know the new kubeconfig")
    time.sleep(20)
    assert three_nodes.schedulers == after, "once is enough"
    three_nodes.schedules()


def test_an_invalid_kubeconfig_affects_one_scheduler_only(
    three_nodes: Cluster,
) -> None:
    until(lambda: len(guards(three_nodes)) == 3, 120, "not every node has a guard")
    before = three_nodes.schedulers
    # `sed -i` and `mv` put another file into its place, which guards notice after a minute.
    keep, broken = f"{KUBECONFIG}.kept", "sed -i 's#server: .*#server: https://127.0.0.1:1#'"
    for node in three_nodes.sandbox.nodes:
        three_nodes.on_node(
            "sh", "-c", f"cp {KUBECONFIG} {keep} && {broken} {KUBECONFIG}", node=node
        )
    try:
        kind = "NodeInstallerDegraded"
        until(lambda: three_nodes.condition(kind)[0] == "True", 300, "it is not complained about")
        after = three_nodes.schedulers
        undisturbed = [name for name, pid in before.items() if after[name] == pid]
        assert len(undisturbed) == 2
        (tried,) = before.keys() - set(undisturbed)
        assert f'node "{tried}"' in three_nodes.condition(kind)[1]
        three_nodes.schedules()
    finally:
        for node in three_nodes.sandbox.nodes:
            three_nodes.on_node("mv", keep, KUBECONFIG, node=node)
    three_nodes.rest(400)
    assert all(three_nodes.schedulers.values())


def test_guards_use_little_memory(three_nodes: Cluster) -> None:
    until(lambda: len(guards(three_nodes)) == 3, 120, "not every node has a guard")

    def resident() -> list[float]:
        pods = three_nodes.api.request("GET", f"{PODS}?labelSelector=app%3Dguard")["items"]
        return [_resident(three_nodes, pod) for pod in pods]

    until(lambda: len(resident()) == 3 and all(resident()), 60, lambda: f"{resident()}")
    sizes = resident()
    print(f"resident: {', '.join(f'{size:.0f}' for size in sizes)} MiB")
    assert all(0 < size < 45 for size in sizes)


def _resident(cluster: Cluster, pod: dict[str, Any]) -> float:
    """MiB of a guard's process."""
    node = next(n for n in cluster.sandbox.nodes if n.name == pod["spec"]["nodeName"])
    uid = pod["metadata"]["uid"]
    script = (
        "for p in /proc/[0-9]*; do"
        f" tr - _ < $p/cgroup 2>/dev/null | grep -q {uid.replace('-', '_')}"
        " && tr '\\0' ' ' < $p/cmdline | grep -q ' guard ' && grep VmRSS $p/status; done; true"
    )
    lines = cluster.on_node("sh", "-c", script, node=node).split()
    return max((int(word) for word in lines if word.isdecimal()), default=0) / 1024

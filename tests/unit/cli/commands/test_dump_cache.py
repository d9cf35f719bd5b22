"""`kubectl scheduler dump-cache`: SIGUSR2 from a pod without rights, and the dump as tables."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import yaml
from aiohttp import web

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.cluster.cache_dump import (
    CachedNode,
    CachedPod,
    CacheDump,
    compared_fields,
    differences,
    parse,
    render,
)
from kube_scheduler_operator.cli.commands import dump_cache
from kube_scheduler_operator.cli.console.errors import CommandError
from kube_scheduler_operator.kube.resource import LEASES, NODES, PODS

from .... import builders
from ..conftest import NAMESPACE, Cluster, scheduler_pod

HASH = "kubernetes.io/config.hash"

# As k8s.io/kubernetes 1.35 prints it with klog's text format.
TEXT = """\
I0105 03:32:31.000001       1 schedule_one.go:1] "Attempting" pod="default/x"
I0105 03:32:31.936642       1 dumper.go:52] "Dump of cached NodeInfo" nodes=<
\tNode name: b
\tDeleted: true
\tRequested Resources: &{MilliCPU:0 Memory:0 EphemeralStorage:0 AllowedPodNumber:0 ScalarResources:map[]}
\tAllocatable Resources:&{MilliCPU:0 Memory:0 EphemeralStorage:0 AllowedPodNumber:0 ScalarResources:map[]}
\tScheduled Pods(number: 0):
\t
\t
\tNode name: a
\tDeleted: false
\tRequested Resources: &{MilliCPU:850 Memory:304087040 EphemeralStorage:0 AllowedPodNumber:0 ScalarResources:map[example.com/gpu:1 hugepages-2Mi:0]}
\tAllocatable Resources:&{MilliCPU:2000 Memory:4294967296 EphemeralStorage:100 AllowedPodNumber:110 ScalarResources:map[]}
\tScheduled Pods(number: 1):
\tname: web, namespace: default, uid: u1, phase: Running, nominated node: 
\tNominated Pods(number: 1):
\tname: soon, namespace: default, uid: u2, phase: Pending, nominated node: a
 >
I0105 03:32:31.936700       1 dumper.go:63] "Dump of scheduling queue" summary="activeQ:0; backoffQ:0; unschedulablePods:1" pods=<
\tname: soon, namespace: default, uid: u2, phase: Pending, nominated node: a
 >
"""  # noqa: E501, W291 - letter by letter
WEB = CachedPod("default", "web", "u1", "Running", "")
SOON = CachedPod("default", "soon", "u2", "Pending", "a")
REQUESTED = {"milliCPU": 850, "memory": 304087040, "example.com/gpu": 1}
ALLOCATABLE = {"milliCPU": 2000, "memory": 4294967296, "ephemeralStorage": 100, "pods": 110}
SUMMARY = "activeQ:0; backoffQ:0; unschedulablePods:1"
A = CachedNode("a", False, REQUESTED, ALLOCATABLE, (WEB,), (SOON,))
B = CachedNode("b", True, {}, {}, (), ())
DUMP = CacheDump((A, B), (SOON,), SUMMARY, ())

ROLE = dict.fromkeys(KUBEADM.node_selectors[:1], "")


def as_json(text: str) -> str:
    """The same entries with --logging-format=json."""
    blocks = [block.replace("\t", "") for block in text.split("<\n")[1:]]
    nodes, queue = (block.split(" >\n")[0] for block in blocks)
    first = {"ts": 1.5, "caller": "x", "msg": "Dump of cached NodeInfo", "v": 0, "nodes": nodes}
    second = {"msg": "Dump of scheduling queue", "summary": SUMMARY, "pods": queue}
    return f"{json.dumps(first)}\n{{not json, Dump of scheduling queue\n{json.dumps(second)}\n"


@pytest.mark.parametrize("log", [TEXT, as_json(TEXT)], ids=["text", "json"])
def test_a_dump_is_read(log: str) -> None:
    assert parse(log) == DUMP


def test_an_empty_queue() -> None:
    head = TEXT.partition('"Dump of scheduling queue"')[0]
    log = head + '"Dump of scheduling queue" summary="activeQ:0" pods=""\n'
    assert parse(log) == replace(DUMP, queue=(), summary="activeQ:0")


@pytest.mark.parametrize(
    "log",
    ["", "I0101 nothing", TEXT.partition(" >")[0], TEXT.partition('"Dump of scheduling')[0]],
    ids=["empty", "other", "cut-off", "half"],
)
def test_incomplete_dump_is_ignored(log: str) -> None:
    assert parse(log) is None


def test_the_last_of_several_dumps_counts_with_its_mismatches() -> None:
    mismatch = (
        'I0105 03:32:31.9       1 comparer.go:66] "Cache mismatch" missedNodes=["c"] '
        "redundantNodes=[]\n"
    )
    second = TEXT.replace("name: web", "name: later")
    found = parse(TEXT + mismatch + second)
    assert found is not None
    assert found.nodes[0].pods[0].name == "later"
    assert found.mismatches == ('missedNodes: ["c"], redundantNodes: []',)


def pod(
    uid: str, node: str = "", phase: str = "Running", scheduler: str = "default-scheduler"
) -> Any:
    uid_of_pod = {"uid": uid}
    return builders.pod(
        f"p-{uid}",
        node=node,
        metadata=uid_of_pod,
        status={"phase": phase},
        schedulerName=scheduler,
    )


RIGHT = (pod("u1", "a"), pod("u2", phase="Pending"))


@pytest.mark.parametrize(
    ("nodes", "pods", "output"),
    [
        ("a", RIGHT, []),
        ("ac", RIGHT, ["node c: not in the cache"]),
        ("", RIGHT, ["node a: in the cache, but it does not exist"]),
        ("a", RIGHT[1:], ["pod default/web: in the cache on a, but deleted or ended"]),
        ("a", (pod("u1", "a", "Failed"), RIGHT[1]),
         ["pod default/web: in the cache on a, but deleted or ended"]),
        ("a", (pod("u1", "c"), RIGHT[1]), ["pod default/p-u1: on c, but in the cache on a"]),
        ("a", (*RIGHT, pod("u3", "a")), ["pod default/p-u3: on a, but in the cache on no node"]),
        ("a", (*RIGHT, pod("u3", "a", "Succeeded")), []),
        ("a", (pod("u1"), RIGHT[1]), ["pod default/p-u1: assumed on a, not bound yet"]),
        ("a", (*RIGHT, pod("u3")),
         ["pod default/p-u3: pending, but not in the queue (it may be in a scheduling cycle)"]),
        ("a", (*RIGHT, pod("u3", scheduler="other")), []),
        ("a", RIGHT[:1], ["pod default/soon: in the queue, but deleted or ended"]),
    ],
)  # fmt: skip
def test_what_differs_from_the_api(nodes: str, pods: tuple[Any, ...], output: list[str]) -> None:
    assert differences(DUMP, nodes, pods, ["default-scheduler"]) == output
    reduced = map(compared_fields, pods)
    assert differences(DUMP, nodes, reduced, ["default-scheduler"]) == output


def test_of_a_pod_only_the_compared_fields_are_in_memory() -> None:
    large = builders.pod("a", metadata={"annotations": {"note": "x" * 10_000}})
    assert len(str(compared_fields(large))) < 500


def test_a_pod_that_runs_and_still_waits() -> None:
    both = replace(DUMP, nodes=(replace(A, pods=(WEB, SOON)), B))
    (output,) = differences(both, "a", (RIGHT[0], pod("u2", "a")), ["default-scheduler"])
    assert output == "pod default/p-u2: on a, but still in the queue"


def test_tables() -> None:
    rows = [line.split() for line in render("a", DUMP, ["x"]).splitlines()]
    assert rows[1] == ["a", "1", "850m", "2000m", "290Mi", "4096Mi", "example.com/gpu=1", "1"]
    assert rows[2] == ["b", "(deleted)", "0", "0m", "0m", "0Mi", "0Mi"]
    assert ["a", "default", "web", "Running"] in rows
    assert ["soon", "default", "Pending", "a"] in rows
    assert rows[-3:] == [["scheduler", "on", "a:", *SUMMARY.split()], *(
        line.split() for line in ("the cache and the API differ:", "- x")
    )]  # fmt: skip
    assert render("a", DUMP, []).endswith("the cache and the API agree")


def test_the_pod_that_signals_has_no_more_than_it_needs() -> None:
    scheduler = scheduler_pod("a", 1)
    scheduler["metadata"]["annotations"][HASH] = "0123"
    made = dump_cache.signal_pod(KUBEADM, scheduler, "image")
    spec = made["spec"]
    (container,) = spec["containers"]
    assert (spec["nodeName"], spec["hostPID"]) == ("a", True)
    assert spec["automountServiceAccountToken"] is False
    assert "volumes" not in spec
    assert "hostNetwork" not in spec
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "privileged" not in container["securityContext"]
    assert container["args"] == ["--pod-uid=0123"]
    assert names.MANAGED_BY_LABEL not in made["metadata"]["labels"]


def test_only_static_pods_are_signalled() -> None:
    with pytest.raises(CommandError, match="is not a static pod"):
        dump_cache.signal_pod(KUBEADM, scheduler_pod("a", 1), "image")


class World:
    """A node whose kubelet runs the pod, and a scheduler that dumps."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.state: dict[str, Any] = {
            "terminated": {"exitCode": 0, "startedAt": "2026-01-01T00:00:00Z"}
        }
        self.log = TEXT
        self.ran: list[Any] = []

    async def kubelet(self) -> None:
        while True:
            for (namespace, name), obj in list(self.cluster.api.objects.get(PODS, {}).items()):
                if name.startswith("kube-scheduler-signal-") and "status" not in obj:
                    self.ran.append(obj)
                    status = {"containerStatuses": [{"state": self.state}]}
                    self.cluster.api.put(PODS, name, namespace, status=status)
            await asyncio.sleep(0.005)

    async def read_log(self, request: web.Request) -> web.Response:
        assert request.query["sinceTime"] == "2026-01-01T00:00:00Z"
        metadata = self.ran[-1]["metadata"]
        name = f"name: {metadata['name']}, namespace: {metadata['namespace']}"
        line = f"\t{name}, uid: {metadata['uid']}, phase: Pending, nominated node: \n"
        return web.Response(text=self.log.replace("\tname: web", f"{line}\tname: web", 1))

    def left(self) -> list[str]:
        return [name for _, name in self.cluster.api.objects[PODS] if "signal" in name]


@pytest.fixture
async def world(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(dump_cache, "INTERVAL", 0.01)
    made = World(cluster)
    cluster.api.routes["/log"] = made.read_log
    cluster.kubescheduler({"a": 1})
    scheduler = scheduler_pod("a", 1)
    scheduler["metadata"]["annotations"][HASH] = "0123"
    cluster.put(PODS, {**scheduler, "metadata": {**scheduler["metadata"], "uid": "s"}})
    guard = {"name": "guard", "namespace": NAMESPACE, "labels": {"app": names.GUARD}, "uid": "g"}
    containers = [{"image": "operator:1"}]
    cluster.put(PODS, {"metadata": guard, "spec": {"nodeName": "a", "containers": containers}})
    cluster.put(NODES, {"metadata": {"name": "a", "labels": ROLE}})
    lease = {"name": KUBEADM.operand_lease_name, "namespace": KUBEADM.operand_lease_namespace}
    cluster.put(LEASES, {"metadata": lease, "spec": {"holderIdentity": "a_x"}})
    kubelet = asyncio.create_task(made.kubelet())
    yield made
    kubelet.cancel()


async def test_as_a_user_types_it(world: World) -> None:
    done = await world.cluster.run("dump-cache")
    assert (done.code, done.err) == (0, "")
    assert "example.com/gpu=1" in done.out
    assert "  - pod default/web: in the cache on a, but deleted or ended" in done.out.splitlines()
    assert world.ran[0]["spec"]["containers"][0]["image"] == "operator:1"
    assert world.left() == []


async def test_its_own_pod_is_not_a_difference(world: World) -> None:
    shown = json.loads((await world.cluster.run("dump-cache", "-o", "json")).out)
    own = world.ran[0]["metadata"]["name"]
    assert own not in json.dumps(shown)
    assert [pod["name"] for pod in shown["nodes"][0]["pods"]] == ["web"]


async def test_documents(world: World) -> None:
    shown = json.loads((await world.cluster.run("dump-cache", "--node", "a", "-o", "json")).out)
    assert yaml.safe_load((await world.cluster.run("dump-cache", "-o", "yaml")).out) == shown
    assert shown["nodes"][0]["requested"] == REQUESTED
    assert shown["queue"] == {"summary": SUMMARY, "pods": [
        {"namespace": "default", "name": "soon", "uid": "u2", "phase": "Pending", "nominated": "a"}
    ]}  # fmt: skip


async def test_error_of_the_signal_pod_is_reported_and_nothing_is_left(world: World) -> None:
    world.state = {"terminated": {"exitCode": 1, "message": "no process is a scheduler"}}
    done = await world.cluster.run("dump-cache")
    assert done.code == 1
    assert "cannot signal the scheduler on a: no process is a scheduler" in done.err
    assert world.left() == []


async def test_signal_pod_that_does_not_start_times_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump_cache, "POD_TIMEOUT", 0.05)
    world.state = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    done = await world.cluster.run("dump-cache")
    assert done.code == 1
    assert "ErrImagePull no such image" in done.err
    assert world.left() == []


async def test_log_without_a_dump_times_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_cache, "LOG_TIMEOUT", 0.05)
    world.log = "I0101 nothing\n"
    done = await world.cluster.run("dump-cache")
    assert done.code == 1
    assert "has no dump" in done.err


async def test_the_right_to_make_the_pod_is_named(world: World) -> None:
    output = 'pods is forbidden: User "u" cannot create resource "pods"'
    world.cluster.api.fail(403, method="POST", path="/pods", message=output)
    done = await world.cluster.run("dump-cache")
    assert done.code == 1
    assert 'resources: ["pods"], verbs: ["create"]' in done.err

"""`kubectl scheduler nodes`: the text, the flags, and what a user with few rights gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.base.decoding import FirstProblem, decode
from kube_scheduler_operator.base.field_types import document_of, type_of
from kube_scheduler_operator.cli.console.errors import UsageError
from kube_scheduler_operator.cli.simulation.nodes import shape_of
from kube_scheduler_operator.cli.simulation.nodes_text import measured_text, nodes_lines
from kube_scheduler_operator.kube.resource import NODES, PODS
from kube_scheduler_operator.scheduling.annotator.annotation import own
from kube_scheduler_operator.scheduling.annotator.measurement import KEYS, UNKNOWN, Load
from kube_scheduler_operator.simulate.node_answer import (
    NodeLoad,
    NodesAnswer,
    NodeUse,
    Partition,
)
from kube_scheduler_operator.simulate.node_room import nodes_answer
from kube_scheduler_operator.simulate.world import World

from ...simulate.test_node_room import node, pod, taint
from ..conftest import Cluster

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GPU = "example.com/gpu"
FITS = ("--fits", "cpu=500m,memory=1Gi")


def measured(now: datetime, **values: float) -> dict[str, str]:
    at = (now - timedelta(seconds=30)).timestamp()
    return own(Load(at, "NodeMetrics", tuple(values.get(key, UNKNOWN) for key in KEYS)))


def objects(now: datetime = NOW) -> list[dict[str, Any]]:
    load = measured(now, cpu_usage_avg_5m=0.42, mem_usage_avg_5m=0.615)
    labels = {"topology.kubernetes.io/zone": "a"}
    return [
        node(
            "worker-1",
            metadata={"annotations": load, "labels": labels},
            more={"hugepages-2Mi": "0"},
        ),
        node("worker-2", ready="False"),
        node("worker-3", more={GPU: "2"}, taints=[taint(GPU)]),
        pod("web", "worker-1", "1500m", "2Gi"),
        pod("train", "worker-3", "1", more={GPU: "1"}),
        pod("next", "", "500m", phase="Pending", nominatedNodeName="worker-1"),
    ]


def world() -> World:
    made = World(annotations=True)
    for obj in objects():
        made.add(obj)
    return made


# --- text -----------------------------------------------------------------------------------------

TEXT = """\
3 nodes: 1 not ready, 1 tainted, 1 open.
4 Pods with cpu=500m,memory=1Gi and without tolerations fit by their requests.

NODE      STATE      ZONE  CPU            CPU FREE  MEMORY            MEMORY FREE  PODS     FITS  \
LOAD                               OTHER                   TAINTS
worker-2  not ready  -     0 of 4 (0 %)   4         0 of 8Gi (0 %)    8Gi          0 of 10  0     \
not known                          -                       -
worker-1  open       a     2 of 4 (50 %)  2         3Gi of 8Gi (38 %)  5Gi         2 of 10  4     \
cpu 42 %, memory 62 % (30 s ago)   -                       -
… and 1 more (--nodes 0 shows all)

1 node that takes Pods without tolerations:
  free: 2 of cpu, 5Gi of memory, 8 of pods
  not free: 500m of cpu, 1Gi of memory, 1 of pods for waiting Pods that are nominated
  the biggest Pod that fits: cpu=2,memory=5Gi on worker-1
  Pods with cpu=500m,memory=1Gi that fit: 4
  fragmentation: Pods with these requests cannot use 0 % of the free cpu, 20 % of the free memory

1 node with example.com/gpu:NoSchedule:
  free: 3 of cpu, 7Gi of memory, 9 of pods, 1 of example.com/gpu
  the biggest Pod that fits: cpu=3,memory=7Gi on worker-3
  Pods with cpu=500m,memory=1Gi that fit: 6
  fragmentation: Pods with these requests cannot use 0 % of the free cpu, 14 % of the free memory
note: Pods are counted by their requests alone; kubectl scheduler simulate asks kube-scheduler, \
which has other filters as well"""


def words(lines: Any) -> list[list[str]]:
    """The lines without the widths of columns."""
    return [line.split() for line in lines]


def test_the_text_has_the_worst_nodes_and_what_fits() -> None:
    answer = nodes_answer(world(), NOW, shape={"cpu": 500, "memory": 2**30})
    assert words(nodes_lines(answer, 2)) == words(TEXT.split("\n"))


@pytest.mark.parametrize(
    "asked", [{}, {"shape": {"cpu": 500}}, {"namespace": "app"}, {"sort": "load"}]
)
def test_the_text_about_nodes_is_made_from_the_document(asked: dict[str, Any]) -> None:
    answer = nodes_answer(world(), NOW, **asked)
    document = json.loads(json.dumps(document_of(answer)))
    read = decode(type_of(NodesAnswer), document, run=FirstProblem(ignore_unknown=True))
    assert list(nodes_lines(read, 0)) == list(nodes_lines(answer, 0))


def test_without_a_shape_fragmentation_is_for_the_pods_that_run() -> None:
    lines = list(nodes_lines(nodes_answer(world(), NOW), 0))
    (line,) = (
        line for line in lines if "those that run" in line and "memory" in line and GPU not in line
    )
    assert line.strip() == (
        "fragmentation: Pods with the requests of those that run cannot use 25 % of the free cpu, "
        "60 % of the free memory"
    )
    assert any("example.com/gpu 1 of 2" in line for line in lines)


def test_many_sets_of_taints_are_counted() -> None:
    answer = nodes_answer(world(), NOW)
    many = [Partition((f"t{at}:NoSchedule",), 1, {}) for at in range(9)]
    lines = list(nodes_lines(replace(answer, partitions=many), 0))
    assert "… and 4 more sets of taints (-o json has all)" in lines


def test_what_no_pod_can_have_is_stated() -> None:
    made = World()
    for obj in (node("a", "1", more={"pods": "1"}), pod("p", "a", "1", "8Gi")):
        made.add(obj)
    lines = list(nodes_lines(nodes_answer(made, NOW), 0))
    assert (
        "  the biggest Pod that fits: none, because every node has as many Pods as it takes"
        in lines
    )
    assert "  fragmentation: not known, because nothing is free of what these Pods request" in lines


# --- flags ----------------------------------------------------------------------------------------


def test_a_shape_is_read() -> None:
    read = shape_of("cpu=500m, memory=1Gi,nvidia.com/gpu=2,hugepages-2Mi=4Mi")
    assert read == {
        "cpu": 500, "memory": 2**30, "nvidia.com/gpu": 2, "hugepages-2Mi": 4 * 2**20,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", '"" is not RESOURCE=QUANTITY, such as cpu=500m,memory=1Gi'),
        ("cpu", '"cpu" is not RESOURCE=QUANTITY, such as cpu=500m,memory=1Gi'),
        ("mem=1Gi", "mem is none of cpu, memory, ephemeral-storage, hugepages-SIZE or a name"),
        ("gpu=1", "gpu is none of cpu, memory, ephemeral-storage, hugepages-SIZE or a name"),
        ("pods=1", "pods cannot be requested: each Pod counts as one"),
        ("cpu=much", 'cpu: "much" is not a quantity such as 250m, 1.5 or 512Mi'),
        ("cpu=0", "cpu: 0 is not more than 0"),
        ("memory=-1Gi", "memory: -1Gi is not more than 0"),
        ("nvidia.com/gpu=500m", "nvidia.com/gpu: 500m is not a whole number, as it has to be"),
        ("cpu=1,cpu=2", "cpu is there twice; name each resource once"),
        (",".join(f"a/b{at}=1" for at in range(40)), "40 resources; name at most 32"),
    ],
)
def test_a_wrong_shape_is_named(text: str, error: str) -> None:
    with pytest.raises(UsageError) as raised:
        shape_of(text)
    assert str(raised.value).startswith(f"--fits: {error}")


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def on_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command on a file of objects."""

    def run(items: list[dict[str, Any]], *flags: str) -> tuple[int, str, str]:
        file = tmp_path / "world.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        code = kubectl_plugin(["nodes", "--from-files", str(file), *flags])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_files_are_read_without_a_cluster(on_files: Run) -> None:
    code, text, _ = on_files(objects(datetime.now(UTC)), *FITS, "-o", "json")
    found = json.loads(text)
    assert (code, found["fits"], found["shape"]) == (0, 4, {"cpu": 500, "memory": 2**30})
    loads = {one["name"]: one["load"] for one in found["nodes"]}
    assert (loads["worker-1"]["cpu"], loads["worker-3"]) == (0.42, None)
    assert 30 <= loads["worker-1"]["age"] < 900


def test_files_without_pods_are_stated(on_files: Run) -> None:
    code, text, _ = on_files(objects()[:3])
    assert code == 0
    assert "note: the files have no Pod on a node, so all nodes count as empty" in text


@pytest.mark.parametrize(
    ("items", "flags", "error"),
    [
        (objects()[3:], (), "there is no Node"),
        (objects(), ("--sort", "fits"), "--sort fits needs --fits REQUESTS, such as --fits cpu="),
        (objects(), ("--fits", "cpus=1"), 'did you mean "cpu"?'),
    ],
)
def test_wrong_usage_ends_with_2(
    on_files: Run, items: list[dict[str, Any]], flags: tuple[str, ...], error: str
) -> None:
    code, text, errors = on_files(items, *flags)
    assert (code, text) == (2, "")
    assert error in errors


# --- clusters -------------------------------------------------------------------------------------


@pytest.fixture
def served(cluster: Cluster) -> Cluster:
    async def version(_: web.Request) -> web.StreamResponse:
        return web.json_response({"gitVersion": "v1.35.4"})

    cluster.api.routes["/version"] = version
    cluster.api.served |= {NODES, PODS}
    for obj in objects(datetime.now(UTC)):
        cluster.put(NODES if obj["kind"] == "Node" else PODS, obj)
    return cluster


def refuse(cluster: Cluster, path: str, kind: str) -> None:
    message = f'{kind} is forbidden: User "u" cannot list resource "{kind}" in API group ""'
    cluster.api.fail(403, path=path, times=None, reason="Forbidden", message=message)


async def test_a_cluster_is_read_as_files_are(served: Cluster) -> None:
    done = await served.run("nodes", *FITS, "-o", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["fits"], found["states"]) == (4, {"not ready": 1, "tainted": 1, "open": 1})
    paths = {seen.path for seen in served.api.seen}
    assert paths == {"/api/v1/nodes", "/api/v1/pods", "/version"}  # nothing else is read


async def test_without_the_right_to_list_nodes_the_rule_is_named(served: Cluster) -> None:
    refuse(served, "/api/v1/nodes", "nodes")
    done = await served.run("nodes")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: no permission to list nodes; ask a cluster administrator")


async def test_without_the_right_to_list_all_pods_the_way_with_one_namespace_is_named(
    served: Cluster,
) -> None:
    refuse(served, "/api/v1/pods", "pods")
    done = await served.run("nodes")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: no permission to list pods; ask a cluster administrator")
    assert "-n NAMESPACE shows what its Pods request; what is free is not known then" in done.err


async def test_the_pods_of_one_namespace_are_shown_and_the_rest_is_not_known(
    served: Cluster,
) -> None:
    refuse(served, "/api/v1/pods", "pods")
    done = await served.run("nodes", "-n", "app", *FITS)
    assert done.code == 0, done.err
    row = next(line for line in done.out.splitlines() if line.startswith("worker-1"))
    assert row.split()[3:10] == ["2", "of", "4", "(50", "%)", "not", "known"]
    assert "  free: not known" in done.out
    assert "note: the Pods of namespace app alone are counted" in done.out
    found = json.loads((await served.run("nodes", "-n", "app", *FITS, "-o", "json")).out)
    assert (found["fits"], found["namespace"]) == (None, "app")
    assert found["nodes"][0]["resources"]["cpu"]["free"] is None


async def test_without_the_right_in_the_namespace_the_rule_is_named(served: Cluster) -> None:
    refuse(served, "/pods", "pods")
    done = await served.run("nodes", "-n", "app")
    assert (done.code, done.out) == (1, "")
    assert "no permission to list pods in namespace app" in done.err


def test_the_oldest_measurement_is_named() -> None:
    nodes = [NodeUse(f"n{age}", "", (), False, True, {}, NodeLoad("", age, "", 0.1, 0.2))
             for age in (2, 250)]  # fmt: skip
    assert measured_text(NodesAnswer("", nodes, {}, [])) == "measured 2 s to 4 min ago"
    assert measured_text(NodesAnswer("", nodes[:1], {}, [])) == "measured 2 s ago"

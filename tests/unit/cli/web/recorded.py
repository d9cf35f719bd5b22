"""Answers of the pages of nodes, waiting Pods, why and what if: healthy, broken, hostile, huge."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from kube_scheduler_operator.cli.simulation.answer import (
    ConfigurationResult,
    SimulationAnswer,
    SimulationQuestion,
    answer_of,
)
from kube_scheduler_operator.cli.simulation.explanation_text import NoPod
from kube_scheduler_operator.cli.web.pages.waiting import ShownGroup, ShownWaiting
from kube_scheduler_operator.cli.web.pages.what_if import WhatIf
from kube_scheduler_operator.cli.web.pages.why import Why
from kube_scheduler_operator.simulate.decided_by import (
    ClusterDecidedBy,
    DecidedBy,
    DecidingConfiguration,
)
from kube_scheduler_operator.simulate.diagnosis import Cause, Decision, Diagnosis, Group, Score
from kube_scheduler_operator.simulate.edits import Edit
from kube_scheduler_operator.simulate.fix import Fix
from kube_scheduler_operator.simulate.missing_pods import MissingPods
from kube_scheduler_operator.simulate.node_answer import (
    BiggestPod,
    Fragmentation,
    NodeLoad,
    NodesAnswer,
    NodeUse,
    Partition,
    ResourceUse,
    ShapeRoom,
)
from kube_scheduler_operator.simulate.pending import WaitingGroup, WaitingPods
from kube_scheduler_operator.simulate.placements import PlacementOutcome
from kube_scheduler_operator.simulate.scenario import Prepared, Scenario
from kube_scheduler_operator.simulate.utilization import Utilization
from kube_scheduler_operator.simulate.world import EndedPod, World

from ....hostile import STORED

MARKUP: Final = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{ 7*7 }}"
"""What a page must show and not obey."""

GIB: Final = 2**30
_CLUSTER: Final = ClusterDecidedBy("1.35.4", "its Nodes")
_CONFIGURATION: Final = DecidingConfiguration(
    "kube-scheduler", ("default-scheduler",), "revision 3"
)
DECIDED_BY: Final = DecidedBy("1.35.4", cluster=_CLUSTER, configurations=(_CONFIGURATION,))
OTHER_VERSION: Final = replace(DECIDED_BY, version="1.34.4")


def node(at: int, cpu: int, **other: Any) -> NodeUse:
    memory = (cpu * 7) % 100
    amounts = {
        "cpu": (4000, 40 * cpu),
        "memory": (16 * GIB, 16 * GIB * memory // 100),
        "pods": (110, cpu),
    }
    resources = {
        name: ResourceUse(size, used, 0, 0, max(size - used, 0))
        for name, (size, used) in amounts.items()
    }
    values = {"zone": f"zone-{'abc'[at % 3]}", "taints": (), "unschedulable": False, "ready": True}
    return NodeUse(f"worker-{at}", resources=resources, **{**values, **other})


def load(cpu: float | None, memory: float | None) -> NodeLoad:
    return NodeLoad("2026-01-01T00:00:00Z", 12, "prometheus", cpu, memory)


def nodes_answer(nodes: list[NodeUse], **other: Any) -> NodesAnswer:
    states: dict[str, int] = {}
    for each in nodes:
        states[each.state] = states.get(each.state, 0) + 1
    biggest = BiggestPod(nodes[0].name, 3200, 12 * GIB) if nodes else None
    shapes = [ShapeRoom({"cpu": 500, "memory": GIB}, 40, 12, {"cpu": 0.25, "memory": 0.4})]
    fragmentation = Fragmentation({"cpu": 0.25, "memory": 0.4}, shapes, 0.9)
    free = {"cpu": ResourceUse(40000, 21000, 0, 0, 19000),
            "memory": ResourceUse(160 * GIB, 90 * GIB, 0, 0, 70 * GIB)}  # fmt: skip
    partition = Partition((), len(nodes), free, biggest, biggest, None, fragmentation)
    tainted = Partition(("dedicated=gpu:NoSchedule",), 2, free)
    return NodesAnswer("2026-01-01T00:00:00Z", nodes, states, [partition, tainted], **other)


HEALTHY_NODES: Final = nodes_answer(
    [node(at, 10 + at * 7, load=load(0.05 * at, 0.4)) for at in range(12)]
)
BROKEN_NODES: Final = nodes_answer(
    [
        node(1, 100, ready=False),
        node(2, 130, unschedulable=True, zone=""),
        node(3, 90, taints=("dedicated=gpu:NoSchedule",)),
        node(4, 55, load=load(None, 1.2)),
        NodeUse("bare", "", (), False, None, {}),
    ],
    notes=["Pods of other namespaces are not known"],
)
HUGE_NODES: Final = nodes_answer([node(at, at % 100, load=load(0.5, 0.2)) for at in range(5000)])


# --- waiting --------------------------------------------------------------------------------------

SHOWN: Final = ShownWaiting(
    44,
    [
        ShownGroup("unschedulable", "default-scheduler",
                   "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are "
                   "available: 3 No preemption victims found for incoming pod.",
                   40, "2026-01-01T00:00:00Z", [f"shop/web-{at}" for at in range(20)]),
        ShownGroup("gated", "default-scheduler", "", 3, "", ["shop/g-0", "shop/g-1", "shop/g-2"]),
        ShownGroup("not_attempted", "unknown", "", 1, "2026-01-02T00:00:00Z", ["lab/lonely"]),
    ],
    unread=False,
)  # fmt: skip

FIXES: Final = [
    Fix("request 4 of cpu instead of 9", ("a", "b"), object="Deployment shop/web",
        field="spec.template.spec.containers[0].resources.requests.cpu",
        patch=(Edit("Pod shop/web-0", "spec.containers[0].resources.requests.cpu", "9", "4"),)),
    Fix("tolerate the taint dedicated=gpu:NoSchedule", ("c",), object="Deployment shop/web",
        field="spec.template.spec.tolerations",
        patch=(Edit("Pod shop/web-0", "spec.tolerations[0]", None,
                    {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}),)),
    Fix("add a node with at least 9 of cpu", ()),
]  # fmt: skip

UNSCHEDULABLE: Final = Diagnosis(
    "shop/web-0",
    "default-scheduler",
    ["default-scheduler"],
    nodes=3,
    groups=[
        Group(("a", "b"), (Cause("requests 9 of cpu; at most 4 are free", ("Insufficient cpu",)),)),
        Group(("c",), (Cause("has the taint dedicated=gpu:NoSchedule", ("untolerated taint",)),)),
    ],
    fixes=FIXES,
    decision=Decision(reason="Unschedulable", message="0/3 nodes are available"),
    preemption=["Preemption does not help: no Pod of a lower priority runs."],
    decided_by=DECIDED_BY,
    notes=["PodDisruptionBudgets are not read"],
)
RUNNING: Final = Diagnosis(
    "shop/api-1",
    "default-scheduler",
    ["default-scheduler"],
    node="worker-2",
    nodes=5,
    candidates=[f"worker-{at}" for at in range(4)],
    groups=[Group(("worker-4",), (Cause("is cordoned", ("node(s) were unschedulable",)),))],
    decision=Decision("worker-1", best=("worker-1",)),
    lead="worker-1 leads by 6: NodeResourcesFit 80 to 74.",
    scores={
        f"worker-{at}": Score(380 - at * 6 if at else 300,
                              {"NodeResourcesFit": 86 - at * 6, "ImageLocality": 0,
                               "TaintToleration": 300, "PodTopologySpread": 0})
        for at in range(4)
    },
    decided_by=OTHER_VERSION,
)  # fmt: skip
HUGE_RUNNING: Final = replace(
    RUNNING,
    nodes=5000,
    scores={f"n{at}": Score(at, {f"Plugin{number}": at for number in range(20)})
            for at in range(5000)},
    candidates=[f"n{at}" for at in range(5000)],
    groups=[Group((f"x{at}",), (Cause(f"cause {at}"),)) for at in range(2000)],
)  # fmt: skip


def waiting(groups: list[WaitingGroup], **other: Any) -> WaitingPods:
    missing = [MissingPods("ReplicaSet/web", "shop", 3, "exceeded quota: cpu", "raise the quota")]
    return WaitingPods(groups, **{"missing": missing, "decided_by": DECIDED_BY, "notes": [],
                                  **other})  # fmt: skip


GROUPS: Final = [
    WaitingGroup("unschedulable", "Insufficient cpu", "2026-01-01T00:00:00Z", ["ReplicaSet/web"],
                 [f"shop/web-{at}" for at in range(40)], tried=True, diagnosis=UNSCHEDULABLE),
    WaitingGroup("gated", "has the scheduling gates example.com/wait; its owner removes it", "",
                 ["Job/g"], ["shop/g-0"]),
    WaitingGroup("queued", "fits: it is in the queue, or backs off", "", ["Pod/q"], ["shop/q"]),
]  # fmt: skip
CAUSES: Final = waiting(GROUPS)
NO_CAUSES: Final = waiting([], missing=[])
HUGE_CAUSES: Final = waiting([replace(GROUPS[1], pods=[f"ns/p{at}"]) for at in range(3000)])


# --- what if --------------------------------------------------------------------------------------


def outcome(nodes: int, step: float) -> PlacementOutcome:
    names = [f"worker-{at}" for at in range(nodes)]
    return PlacementOutcome(
        {f"shop/p{at}": name for at, name in enumerate(names)},
        utilization=Utilization(
            {name: {"cpu": 1000.0, "memory": 1e9} for name in names},
            {name: {"cpu": max(1000 - at * step, 0), "memory": max(9e8 - at * step * 1e6, 0)}
             for at, name in enumerate(names)},
            {name: int(at * step < 1000) for at, name in enumerate(names)},
        ),
    )  # fmt: skip


def simulation(nodes: int = 12) -> SimulationAnswer:
    question = SimulationQuestion(Scenario(replay=True))
    prepared = Prepared(World(), [], {f"shop/p{at}" for at in range(nodes)})
    columns = [
        ConfigurationResult("today", [outcome(nodes, step) for step in (40, 50, 60)], DECIDED_BY),
        ConfigurationResult("HighNodeUtilization", [outcome(nodes, 180)] * 3, DECIDED_BY),
    ]
    now = {"pending": 2, "nodesUsed": 12, "fullestNodePercent": 91.0, "requestsPercent.cpu": 60.0}
    return answer_of(question, prepared, columns, now, ["webhooks are not considered"])


WHAT_IF: Final = WhatIf("HighNodeUtilization", "all", simulation())


_OWN: Final = frozenset({"states", "profile", "version", "now", "figures"})
"""Fields with words of this program."""
_OWN_WORDS: Final = frozenset({"kind", "cause", "pods", "reason"})
"""The same if they are texts."""
_RESOURCES: Final = ("cpu", "memory", "pods")


def hostile(value: Any, text: str = MARKUP + STORED) -> Any:
    """Return an answer with markup and escapes in every text that strangers may write."""
    if isinstance(value, str):
        return value + text
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{
            field.name: own if _is_own(field.name, own) else hostile(own, text)
            for field in fields(value)
            if field.init
            for own in [getattr(value, field.name)]
        })  # fmt: skip
    if isinstance(value, dict):
        return {
            key if key in _RESOURCES else hostile(key, text): hostile(item, text)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(hostile(item, text) for item in value)
    return value


def _is_own(name: str, value: Any) -> bool:
    return name in _OWN or (name in _OWN_WORDS and isinstance(value, str))


ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "nodes": {
        "healthy": HEALTHY_NODES,
        "broken": BROKEN_NODES,
        "none": NodesAnswer("2026-01-01T00:00:00Z", [], {}, []),
        "huge": HUGE_NODES,
    },
    "waiting": {
        "healthy": ShownWaiting(0, [], unread=False),
        "broken": SHOWN,
        "huge": ShownWaiting(9000, [replace(SHOWN.groups[0])] * 3000, unread=True),
    },
    "causes": {"healthy": NO_CAUSES, "broken": CAUSES, "huge": HUGE_CAUSES},
    "why": {
        "asked nothing": Why("", "default"),
        "running": Why("api-1", "shop", RUNNING, extenders=["load-aware:", "  worker-1  80"]),
        "broken": Why("web-0", "shop", UNSCHEDULABLE),
        "gone": Why("old", "shop", absent=NoPod(
            [], {"shop/old": EndedPod("Failed", "worker-1", "OutOfcpu", "no room", "Job/x")})),
        "huge": Why("api-1", "shop", HUGE_RUNNING),
    },
    "what-if": {
        "asked nothing": WhatIf("", "all"),
        "compared": WHAT_IF,
        "huge": WhatIf("HighNodeUtilization", "waiting", simulation(5000)),
    },
}  # fmt: skip
"""By page."""

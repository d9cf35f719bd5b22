"""Places pods with kube-scheduler, several times, and describes the results.

kube-scheduler may break ties in another way in each run, and place the same pods differently. Only
figures and their spread can be compared.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, islice
from statistics import median
from typing import Final

from ..base.objects import controller_of
from ..base.tasks import gathered
from ..config.language.feature_gates import Gates
from .configuration import default_configuration, profiles_of
from .decisions import NOT_SIMULATED, NOT_TRIED, PodDecision
from .kinds import NODES, PODS, STATEFUL_SETS, Object, pod_name
from .owners import owner_of
from .pending_groups import unread_groups, untried
from .pod_groups import GROUP_FIELDS, group_name
from .probes import families_of, probe, probe_profiles
from .process import binary_version
from .run import Run
from .run_options import RunOptions
from .scenario import Prepared, add_objects, placed_without_scheduler, recreated
from .utilization import Utilization, utilization_of
from .workloads import SimulatedWorkload
from .world import World

_ROUNDS: Final = 10
"""Rounds in which preempted pods are created again."""
_BATCH: Final = 200
_MOST: Final = 10_000
"""Pods after which no more are tried by `largest`."""
_ALONE: Final = 1000
"""New pods that are placed one by one; more of them together, because each takes 10 ms."""
_LARGEST_BATCH: Final = 512
_STATEFUL: Final = f"{STATEFUL_SETS.kind}/"
_AT_ONCE: Final = 4
_SMALL: Final = 200
"""Nodes of a cluster whose runs take place at the same time, _AT_ONCE of them."""
_ELIGIBILITY: Final = ("cordon", "taints", "node affinity")
"""The families of plugins whose rules the DaemonSet controller applies."""
_ELIGIBLE: Final = "eligible"


@dataclass(slots=True)
class PlacementOutcome:
    # namespace/name -> node, of the pods that the question is about
    placed: dict[str, str] = field(default_factory=dict)
    # others of these -> kube-scheduler's message
    pending: dict[str, str] = field(default_factory=dict)
    # the rest of these -> why their scheduler is not simulated
    unknown: dict[str, str] = field(default_factory=dict)
    waiting: int = 0  # number of all pods without a node, except the unknown ones
    # namespace/name of pods that lost their node to another one
    preempted: list[str] = field(default_factory=list)
    # those of them whose replacements found no node
    homeless: list[str] = field(default_factory=list)
    zones: dict[str, int] = field(default_factory=dict)  # zone -> number of pods in `placed`
    utilization: Utilization = field(default_factory=Utilization)  # of all nodes
    largest: int | None = None  # pods of the workload that fit, if that was the question
    more: bool = False  # whether even more could fit than were tried
    notes: list[str] = field(default_factory=list)  # peculiarities of this run

    @property
    def fits(self) -> bool:
        """Whether all pods that the question is about have a node."""
        return not self.pending and not self.unknown and self.largest != 0


@dataclass(frozen=True, slots=True)
class Spread:
    """The values of a figure in several runs."""

    least: float
    median: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of at least one value."""
    return Spread(min(values), float(median(values)), max(values))


async def _place(
    prepared: Prepared, options: RunOptions, base: Utilization, largest: SimulatedWorkload | None
) -> PlacementOutcome:
    """Place the pods once; `base` is the utilization of the world."""
    world, names = prepared.world, list[str]()
    outcome = PlacementOutcome(utilization=base.copy())
    if largest is not None:
        world = world.copy()
        names = list(islice(largest.names(world), _MOST))
        add_objects(world, largest, names)  # kube-scheduler needs to know claims before pods
    async with Run(world, options) as run:
        pods = {pod_name(pod): pod for pod in prepared.pods}
        placement = _Placement(run, world, pods, options)
        for group in queue_groups(prepared):
            await placement.feed(group)
        await placement.recreate()
        if largest is not None:
            await placement.fill(largest, names, outcome)
        outcome.notes = [*run.notes, *unread_groups(options, prepared.pods)]
        placement.result(prepared.subject, outcome)
    zones = outcome.utilization.zones
    counts = Counter(zones.get(node, "") for node in outcome.placed.values())
    outcome.zones = {zone: counts.get(zone, 0) for zone in sorted({*zones.values(), *counts})}
    return outcome


async def placements(
    world: World,
    options: RunOptions,
    pods: list[Object],
    subject: set[str],
    repeat: int,
    in_order: bool = False,  # arguments of questions have names
    largest: SimulatedWorkload | None = None,
) -> list[PlacementOutcome]:
    """Place pods several times.

    Runs of small clusters take place at the same time: they mostly wait. New pods of several
    workloads come in another order each time, see `interleaved`. `subject` has namespace/name of
    the pods that the question is about; for `in_order` see `Prepared`. After all others, pods of
    `largest` are placed until one does not fit; they preempt no others.
    """
    prepared = Prepared(world, pods, subject, in_order=in_order)
    base = utilization_of(world)
    schedulers = 1 + sum(not other.problem for other in options.others)
    at_once = max(_AT_ONCE // schedulers, 1) if is_small(world) else 1

    async def place(number: int) -> PlacementOutcome:
        order = interleaved(pods, random.Random(number))  # noqa: S311
        return await _place(replace(prepared, pods=order), options, base, largest)

    return await gathered([partial(place, number) for number in range(repeat)], at_once)


def is_small(world: World) -> bool:
    """Return whether several runs over a world take place at the same time."""
    return len(world.objects[NODES]) <= _SMALL


def interleaved(pods: Sequence[Object], chance: random.Random) -> list[Object]:
    """Order new pods as their controllers may create them; the others come first, unchanged.

    Controllers work at the same time, and create their pods in batches of 1, 2, 4 and so on
    (kube-controller-manager's slow start), a StatefulSet one by one. Which of them comes first in a
    round is chance. The pods of one workload keep their order, and pods that exist already keep
    their places.
    """
    places = [at for at, pod in enumerate(pods) if _is_new(pod)]
    workloads: dict[tuple[str, str], deque[Object]] = {}
    for at in places:
        pod = pods[at]
        owner = (pod["metadata"]["namespace"], owner_of(pod))
        workloads.setdefault(owner, deque()).append(pod)
    created: list[Object] = []
    batch = 1
    while workloads:
        for owner in chance.sample(list(workloads), len(workloads)):
            waiting = workloads[owner]
            size = 1 if owner[1].startswith(_STATEFUL) else min(batch, len(waiting))
            created.extend(waiting.popleft() for _ in range(size))
            if not waiting:
                del workloads[owner]
        batch = min(2 * batch, _LARGEST_BATCH)
    order = list(pods)
    for at, pod in zip(places, created, strict=True):
        order[at] = pod
    return order


def _is_new(pod: Object) -> bool:
    return not pod["metadata"].get("creationTimestamp")


def queue_groups(prepared: Prepared) -> Iterator[list[Object]]:
    """Yield the pods that may be in kube-scheduler's queue together, which sorts them by priority.

    Controllers create pods more slowly than kube-scheduler places them, so each new pod is alone in
    the queue. That matters: of 400 pods that come one by one, HighNodeUtilization filled 20 to 46
    nodes, of the same ones together 22 to 29.
    """
    pods = prepared.pods
    if prepared.in_order:
        for _, group in groupby(pods, key=_priority):
            yield list(group)
    elif _come_alone(pods):
        for is_new, batch in groupby(pods, key=_is_new):
            together = list(batch)
            yield from [[pod] for pod in together] if is_new else [together]
    elif pods:
        yield pods


def _come_alone(pods: Sequence[Object]) -> bool:
    """Return whether new pods can be placed one by one: none overtakes or needs another."""
    return (
        sum(map(_is_new, pods)) <= _ALONE
        and len({_priority(pod) for pod in pods}) == 1
        and not any(name in pod["spec"] for pod in pods for name in GROUP_FIELDS)
    )


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


class _Placement:
    """Pods that are being placed in one run.

    `world` is the one that it began with; `pods` has all that are fed, by namespace/name.
    """

    def __init__(
        self, run: Run, world: World, pods: dict[str, Object], options: RunOptions
    ) -> None:
        self._run = run
        self._options = options
        self._world = world
        self._pods = pods
        self._decisions: dict[str, PodDecision] = {}
        self._untried: dict[str, str] = {}  # pods of groups that are not tried -> why
        self._origins: dict[str, str] = {}  # of pods that were created again: whom they replace

    async def feed(self, pods: list[Object]) -> dict[str, PodDecision]:
        decisions: dict[str, PodDecision] = {}
        for own in self._run.by_scheduler(pods):
            decisions |= await self._run.schedule(own, settle=False)
        self._decisions |= decisions
        return decisions

    async def recreate(self) -> None:
        """Create pods that were preempted again, as their controllers do."""
        done = 0
        for _ in range(_ROUNDS):
            await self._run.settle()
            victims, done = self._run.preempted[done:], len(self._run.preempted)
            again = []
            for name, _ in victims:
                pod = self._pod(name)
                if pod is not None and controller_of(pod) and not placed_without_scheduler(pod):
                    new = recreated(pod, len(self._origins) + 1)
                    self._origins[pod_name(new)] = name
                    self._pods[pod_name(new)] = new
                    again.append(new)
            if not again:
                return
            await self.feed(again)

    async def fill(
        self, workload: SimulatedWorkload, names: Sequence[str], outcome: PlacementOutcome
    ) -> None:
        """Place pods of a workload until one does not fit."""
        outcome.largest, outcome.more = 0, True
        for at in range(0, len(names), _BATCH):
            batch = list(workload.pods(names[at : at + _BATCH]))
            for pod in batch:
                pod["spec"]["preemptionPolicy"] = "Never"
            decisions = await self._run.schedule(batch, settle=False)
            await self._run.settle()
            for pod in batch:
                if node := decisions[pod_name(pod)].node:
                    outcome.utilization.add(pod, node)
                    outcome.placed[pod_name(pod)] = node
                    outcome.largest += 1
            if not all(decision.node for decision in decisions.values()):
                outcome.more = False
                return

    def result(self, subject: set[str], outcome: PlacementOutcome) -> None:
        """Describe where the pods are; the question is about `subject`."""
        again = set(self._origins.values())
        gone = self._preempted(outcome)
        if any(
            decision.reason == NOT_TRIED and group_name(self._pods[name])
            for name, decision in self._decisions.items()
        ):
            self._untried = untried(self._world, self._options, list(self._pods.values()))
        for name, decision in self._decisions.items():
            if name not in gone:
                self._describe(name, decision, subject, outcome)
            elif name in subject and name not in again:
                outcome.pending[name] = "preempted by a pod of a higher priority"

    def _preempted(self, outcome: PlacementOutcome) -> set[str]:
        """Describe the pods that were preempted; return their names."""
        gone = set()
        for name, node in self._run.preempted:
            gone.add(name)
            outcome.preempted.append(name)
            pod = self._pod(name)
            if pod is not None and name not in self._decisions:
                outcome.utilization.add(pod, node, -1)
        return gone

    def _describe(
        self, name: str, decision: PodDecision, subject: set[str], outcome: PlacementOutcome
    ) -> None:
        """Describe where one pod is, or why it waits."""
        first = self._origin(name)
        if decision.reason == NOT_SIMULATED:
            if first in subject:
                outcome.unknown[name] = decision.message
            return
        if decision.node:
            outcome.utilization.add(self._pods[name], decision.node)
        else:
            outcome.waiting += 1
        if first not in subject:
            if first != name and not decision.node:
                outcome.homeless.append(first)
        elif decision.node:
            outcome.placed[name] = decision.node
        else:
            cause = self._untried.get(name) if decision.reason == NOT_TRIED else ""
            outcome.pending[name] = cause or _reason(decision)

    def _origin(self, name: str) -> str:
        """Return the pod that was created first, of those that replace each other."""
        while name in self._origins:
            name = self._origins[name]
        return name

    def _pod(self, name: str) -> Object | None:
        namespace, _, own = name.partition("/")
        return self._pods.get(name) or self._world.get(PODS, own, namespace)


def _reason(decision: PodDecision) -> str:
    if decision.reason == NOT_TRIED and decision.nominated:
        # kube-scheduler 1.35 decides about the pods of a group one by one.
        return f"fits on {decision.nominated}, and waits until minCount Pods of its group fit"
    if decision.reason == NOT_TRIED:
        return "not tried: it waits for a resource claim or for its pod group"
    reason = decision.message or decision.reason
    if decision.nominated:
        return f"nominated to node {decision.nominated}, where room is not free yet: {reason}"
    return reason


async def eligible_nodes(
    world: World, options: RunOptions, workload: SimulatedWorkload
) -> list[str]:
    """Return the nodes for which the DaemonSet controller creates a pod.

    It applies the rules of taints and of node affinity; room is kube-scheduler's decision.
    """
    pods = list(workload.pods([f"{workload.name}-simulated-probe"]))
    (nodes,) = await eligible(world, options, pods)
    return nodes


async def eligible(world: World, options: RunOptions, pods: Sequence[Object]) -> list[list[str]]:
    """Return the nodes of the DaemonSet of each of these pods."""
    (profile,) = profiles_of(default_configuration())
    gates = Gates(binary_version(options.binary))
    families = families_of(profile, gates)
    rules = {_ELIGIBLE: [name for family in _ELIGIBILITY for name in families[family]]}
    _, own = probe_profiles(profile, rules, gates)
    run_options = replace(
        options,
        config=default_configuration(),
        profiles=[own],
        probes=frozenset({own["schedulerName"]}),
        flags=(),
        others=(),
    )
    asked = [probe(pod, at, own["schedulerName"]) for at, pod in enumerate(pods)]
    async with Run(world, run_options) as run:
        decisions = await run.schedule(asked, settle=False)
    return [sorted(decision.candidates or ()) for decision in decisions.values()]


def figures(outcome: PlacementOutcome) -> dict[str, float]:
    """Return the figures of a run that can be compared, in the order of a table."""
    values: dict[str, float] = {
        "placed": len(outcome.placed),
        "pending": outcome.waiting,
        "preempted": len(outcome.preempted),
        "nodesUsed": outcome.utilization.used,
        "fullestNodePercent": outcome.utilization.fullest,
    }
    if outcome.largest is not None:
        values["largest"] = outcome.largest
    for resource, percent in outcome.utilization.whole().items():
        values[f"requestsPercent.{resource}"] = percent
    for zone, count in outcome.zones.items():
        values[f"zone.{zone}"] = count
    return values


def distribution(outcomes: Sequence[PlacementOutcome]) -> dict[str, Spread]:
    """Return the spread of each figure over several runs of the same question."""
    rows = [figures(outcome) for outcome in outcomes]
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: spread([row.get(key, 0.0) for row in rows]) for key in keys}


def node_counts(outcomes: Sequence[PlacementOutcome]) -> dict[str, Spread]:
    """Return the spread of the number of placed pods by node, most first."""
    counts = [Counter(outcome.placed.values()) for outcome in outcomes]
    names = sorted({name for count in counts for name in count})
    spreads = {name: spread([count.get(name, 0) for count in counts]) for name in names}
    return dict(sorted(spreads.items(), key=lambda item: (-item[1].median, -item[1].most, item[0])))

"""The answer of `kubectl scheduler simulate`, which its text and its JSON are made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...base.field_types import named
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_MESSAGE
from ...base.quantities import CPU, MEMORY
from ...simulate.decided_by import DecidedBy
from ...simulate.placements import (
    PlacementOutcome,
    Spread,
    distribution,
    node_counts,
    spread,
)
from ...simulate.probes import without_preemption
from ...simulate.scenario import Drain, Prepared, Scenario
from ...simulate.utilization import Utilization
from ...simulate.workloads import SimulatedWorkload
from ..console.output import counted

TODAY: Final = "today"
DRAWN: Final = (CPU, MEMORY)
"""Resources of which the answer has each node."""


@dataclass(slots=True)
class SimulationQuestion:
    scenario: Scenario
    workloads: list[SimulatedWorkload] = field(default_factory=list)  # what is placed in addition
    others: list[dict[str, Any]] = field(default_factory=list)  # other objects of the files
    refused: list[str] = field(default_factory=list)  # why the API server would refuse pods
    # title of a workload -> the quota that its dry run named, of which there may be more
    over_quota: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what is not considered
    largest: bool = False  # the question is how many pods fit

    @property
    def title(self) -> str:
        scenario = self.scenario
        parts = [workload.title for workload in self.workloads]
        parts += [f"{node} drained" for node in scenario.drain]
        parts += [f"without {node}" for node in scenario.without]
        parts += [f"{count} more nodes like {like}" for count, like in scenario.add]
        if scenario.replay:
            parts.append("all pods placed again")
        return ", ".join(parts) or "waiting pods"

    def refuse(self, workload: SimulatedWorkload, *reasons: str, what: str = "") -> None:
        """Note why the API server refuses pods of a workload: all of them, or `what`."""
        if not reasons:
            return
        texts = dict.fromkeys(foreign(reason, FOREIGN_MESSAGE) for reason in reasons)
        self.refused.append(
            f"{workload.title}: the API server refuses {what or 'its pods'}: {'; '.join(texts)}"
        )


@dataclass(slots=True)
class ConfigurationResult:
    title: str
    outcomes: list[PlacementOutcome]
    decided_by: DecidedBy | None = None

    @property
    def fits(self) -> int:
        """The number of runs in which everything fits."""
        return sum(outcome.fits for outcome in self.outcomes)

    @property
    def unknown(self) -> dict[str, str]:
        """The pods whose scheduler is not simulated, and why; the same in all runs."""
        return self.outcomes[0].unknown


@dataclass(frozen=True, slots=True)
class WaitingReason:
    """Why pods have no node, in the words of kube-scheduler without preemption's."""

    reason: str
    pods: Spread  # how many, in the runs
    names: list[str]  # of the first run with such pods


@dataclass(frozen=True, slots=True)
class ConfigurationAnswer:
    """What a configuration does with the pods; lists of lists have one entry for each run."""

    name: str
    proposed: bool  # whether the answer is about it: it is not if another one is compared with it
    runs: int
    runs_that_fit: int
    figures: dict[str, Spread]
    # CPU and memory -> requests in percent of the fullest node, of the second fullest, and so on:
    # ties exchange nodes, so only ranks can be compared
    fullness: dict[str, list[Spread]]
    nodes: dict[str, Spread]  # number of placed pods by node, most first
    zones: dict[str, str]  # of these nodes; those without one are missing
    waiting: list[WaitingReason]  # the most frequent first
    reasons: list[dict[str, int]]  # kube-scheduler's whole message -> number of pods
    not_simulated: dict[str, str]  # pod -> why its scheduler is not simulated
    preempted: list[list[str]]
    homeless: list[list[str]]  # of the preempted ones, those whose replacements found no node
    more_fit: bool  # with `max`, whether more could fit than were tried
    decided_by: DecidedBy | None


@dataclass(frozen=True, slots=True)
class LargestQuestion:
    """The question is how many pods of a workload fit."""

    workload: str
    replicas: int  # of its spec


@dataclass(frozen=True, slots=True)
class SimulationAnswer:
    subject: str
    fits: bool | None  # None: all that was tried fits, but not everything could be tried
    decided_by: DecidedBy | None  # that of the first configuration
    repeat: int  # number of runs
    pods: dict[str, int]  # of the question, by the workload or the reason to place them
    added_nodes: list[str]
    drains: list[Drain]
    lost_nodes: list[Drain]
    prevented: list[str]  # what else than kube-scheduler prevents it, a clause each
    refused: list[str]  # why the API server would refuse pods
    now: dict[str, float]  # figures of the unchanged cluster
    configurations: list[ConfigurationAnswer]
    notes: list[str]  # what is not considered
    largest: LargestQuestion | None = named("max", None)

    @property
    def proposed(self) -> list[ConfigurationAnswer]:
        return [each for each in self.configurations if each.proposed]


def answer_of(
    question: SimulationQuestion,
    prepared: Prepared,
    columns: Sequence[ConfigurationResult],
    now: Mapping[str, float],
    notes: Sequence[str],
) -> SimulationAnswer:
    """Return the answer of the runs in `prepared`, the changed world."""
    proposed = [column for column in columns if column.title != TODAY] or columns
    names = {column.title for column in proposed}
    outcomes = [outcome for column in proposed for outcome in column.outcomes]
    drains = [replace(drain, stops=_stops(drain, outcomes)) for drain in prepared.drains]
    prevented = _prevented(drains, refused=bool(question.refused))
    largest = None
    if question.largest:
        workload = question.workloads[0]
        largest = LargestQuestion(workload.title, workload.replicas)
    return SimulationAnswer(
        question.title,
        _fits(proposed, largest, prevented),
        columns[0].decided_by,
        len(columns[0].outcomes),
        {title: len(pods) for title, pods in prepared.groups.items()},
        prepared.added,
        drains,
        prepared.removed,
        prevented,
        question.refused,
        dict(now),
        [configuration_answer(column, proposed=column.title in names) for column in columns],
        list(notes),
        largest,
    )


def _fits(
    proposed: Sequence[ConfigurationResult],
    largest: LargestQuestion | None,
    prevented: Sequence[str],
) -> bool | None:
    outcomes = [outcome for column in proposed for outcome in column.outcomes]
    if prevented:
        return False
    if any(column.unknown for column in proposed):
        return False if any(outcome.pending for outcome in outcomes) else None
    least = max(largest.replicas, 1) if largest else 0
    return all(outcome.fits and (outcome.largest or 0) >= least for outcome in outcomes)


def _stops(drain: Drain, outcomes: Sequence[PlacementOutcome]) -> list[str]:
    """Return the budgets that allow no more evictions, because replacements find no node."""
    stopping = []
    for budget, allowed in drain.one_by_one.items():
        pods = drain.budgets[budget]
        missing = (sum(name in outcome.pending for name in pods) for outcome in outcomes)
        if len(pods) > allowed and max(missing, default=0) >= allowed:
            stopping.append(budget)
    return stopping


def _prevented(drains: Sequence[Drain], *, refused: bool) -> list[str]:
    clauses = []
    for drain in drains:
        clauses += [
            f"PodDisruptionBudget {budget} blocks the drain of {drain.node}"
            for budget in drain.blocked
        ]
        if drain.several:
            clauses.append(
                f"several PodDisruptionBudgets cover one pod of {drain.node}, so that the drain "
                "fails"
            )
        if drain.lost:
            lost = counted(len(drain.lost), "pod")
            clauses.append(
                f"nothing creates {lost} without a controller again after the drain of {drain.node}"
            )
    return clauses + ["the API server refuses pods"] * refused


def configuration_answer(column: ConfigurationResult, *, proposed: bool) -> ConfigurationAnswer:
    """Return what the runs with one configuration show."""
    outcomes, nodes = column.outcomes, node_counts(column.outcomes)
    zones = outcomes[0].utilization.zones
    return ConfigurationAnswer(
        column.title,
        proposed,
        len(outcomes),
        column.fits,
        distribution(outcomes),
        {name: ranked([each.utilization.shares(name) for each in outcomes]) for name in DRAWN},
        nodes,
        {node: zones[node] for node in nodes if node in zones},
        list(_waiting(outcomes)),
        [dict(Counter(outcome.pending.values()).most_common()) for outcome in outcomes],
        column.unknown,
        [outcome.preempted for outcome in outcomes],
        [outcome.homeless for outcome in outcomes],
        any(outcome.more for outcome in outcomes),
        column.decided_by,
    )


def ranked(runs: Sequence[Sequence[float]]) -> list[Spread]:
    """Return the spread of the fullest node, of the second fullest one, and so on."""
    longest = max(map(len, runs), default=0)
    return [
        spread([round(shares[at], 1) if at < len(shares) else 0.0 for shares in runs])
        for at in range(longest)
    ]


def _waiting(outcomes: Sequence[PlacementOutcome]) -> Iterator[WaitingReason]:
    runs: list[dict[str, list[str]]] = []
    for outcome in outcomes:
        runs.append({})
        for name, text in outcome.pending.items():
            runs[-1].setdefault(without_preemption(text), []).append(name)
    often = (sorted(run, key=lambda text: -len(run[text])) for run in runs)
    for text in dict.fromkeys(text for texts in often for text in texts):
        number = spread([len(run.get(text, ())) for run in runs])
        yield WaitingReason(text, number, next(run[text] for run in runs if text in run))


def figures_of_now(utilization: Utilization, waiting: int) -> dict[str, float]:
    """Return the figures of the unchanged cluster, in which `waiting` pods wait."""
    whole = {f"requestsPercent.{name}": value for name, value in utilization.whole().items()}
    return {
        "pending": waiting,
        "nodesUsed": utilization.used,
        "fullestNodePercent": utilization.fullest,
        **whole,
    }


def left_in_place(prepared: Prepared) -> list[str]:
    """Return a sentence about the running pods that no replay places again; empty without any."""
    if not prepared.unplaced:
        return []
    count = sum(prepared.unplaced.values())
    how = ", ".join(f"{what} ({number})" for what, number in sorted(prepared.unplaced.items()))
    stay, them = ("stays", "it") if count == 1 else ("stay", "them")
    return [f"{counted(count, 'pod')} {stay} in place, because no scheduler placed {them}: {how}"]

"""The answer of `kubectl scheduler simulate`: a sentence, figures and places, as text and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_MESSAGE
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
from ..console.output import counted, first_names, format_table, limited, limited_table
from .decided_by import DecidedBy

TODAY: Final = "today"
NOW: Final = "now"
_REASONS: Final = 5
_OF: Final = ("that ", "of ")
"""How titles of groups begin that are not names of workloads."""


@dataclass(slots=True)
class SimulationQuestion:
    scenario: Scenario
    workloads: list[SimulatedWorkload] = field(default_factory=list)  # what is placed in addition
    others: list[dict[str, Any]] = field(default_factory=list)  # other objects of the files
    refused: list[str] = field(default_factory=list)  # why the API server would refuse pods
    # title of a workload -> the quota that its dry run named, of which there may be more
    over_quota: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what is not considered

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

    @property
    def fits(self) -> int:
        """The number of runs in which everything fits."""
        return sum(outcome.fits for outcome in self.outcomes)

    @property
    def unknown(self) -> dict[str, str]:
        """The pods whose scheduler is not simulated, and why; the same in all runs."""
        return self.outcomes[0].unknown

    def cells(self) -> Iterator[tuple[str, str]]:
        """Yield (name, value) of each figure."""
        figures = distribution(self.outcomes)
        zones = [key for key in figures if key.startswith("zone.")]
        requests = [key for key in figures if key.startswith("requestsPercent.")]
        placed = any(figures[key].most for key in zones)
        for key in (*_FIGURES, *requests, *(zones if placed else ())):
            if key in figures:
                yield _label(key), _figure(key, figures[key])


_FIGURES: Final = {
    "largest": "pods that fit",
    "placed": "pods placed",
    "pending": "pods Pending",
    "preempted": "pods preempted",
    "nodesUsed": "nodes used",
    "fullestNodePercent": "fullest node",
}


@dataclass(slots=True)
class SimulationAnswer:
    question: SimulationQuestion
    prepared: Prepared  # the changed world
    columns: list[ConfigurationResult]
    now: Utilization  # of the unchanged cluster
    waiting: int  # the number of pods that wait in it
    notes: list[str]  # what is not considered
    decided_by: DecidedBy
    largest: bool = False  # the question is how many pods fit
    nodes: int = 0  # maximum number of nodes in a table; 0: all

    @property
    def repeat(self) -> int:
        return len(self.columns[0].outcomes)

    @property
    def proposed(self) -> list[ConfigurationResult]:
        """The columns that the exit code is about: all but today's, if there are others."""
        return [column for column in self.columns if column.title != TODAY] or self.columns

    @property
    def fits(self) -> bool:
        """Whether everything fits in every run."""
        enough = not self.largest or all(
            (outcome.largest or 0) >= max(self.question.workloads[0].replicas, 1)
            for column in self.proposed
            for outcome in column.outcomes
        )
        every = all(column.fits == len(column.outcomes) for column in self.proposed)
        return every and enough and not self.prevented

    @property
    def is_unknown(self) -> bool:
        """Whether everything that was tried fits, but not everything could be tried."""
        tried = not any(outcome.pending for column in self.proposed for outcome in column.outcomes)
        return tried and any(column.unknown for column in self.proposed) and not self.prevented

    @property
    def prevented(self) -> list[str]:
        """What else than kube-scheduler prevents it, a clause each."""
        clauses = []
        for drain in self.prepared.drains:
            clauses += [
                f"PodDisruptionBudget {budget} blocks the drain of {drain.node}"
                for budget in drain.blocked
            ]
            if drain.lost:
                lost = counted(len(drain.lost), "pod")
                clauses.append(
                    f"nothing creates {lost} without a controller again after the drain of "
                    f"{drain.node}"
                )
        return clauses + ["the API server refuses pods"] * bool(self.question.refused)

    @property
    def title(self) -> str:
        scenario = self.question.scenario
        parts = [workload.title for workload in self.question.workloads]
        parts += [f"{node} drained" for node in scenario.drain]
        parts += [f"without {node}" for node in scenario.without]
        parts += [f"{count} more nodes like {like}" for count, like in scenario.add]
        if scenario.replay:
            parts.append("all pods placed again")
        return ", ".join(parts) or "waiting pods"

    def document(self) -> dict[str, Any]:
        return {
            "fits": None if self.is_unknown else self.fits,
            "decidedBy": self.decided_by.document(),
            "repeat": self.repeat,
            "pods": {title: len(pods) for title, pods in self.prepared.groups.items()},
            "addedNodes": self.prepared.added,
            "drains": [_drain_document(drain) for drain in self.prepared.drains],
            "lostNodes": [_drain_document(removed) for removed in self.prepared.removed],
            "prevented": self.prevented,
            "refused": self.question.refused,
            "now": self._now(),
            "configurations": [
                {
                    "name": column.title,
                    "runsThatFit": column.fits,
                    "figures": _documents(distribution(column.outcomes)),
                    "nodes": _documents(node_counts(column.outcomes)),
                    "reasons": [
                        dict(Counter(outcome.pending.values()).most_common())
                        for outcome in column.outcomes
                    ],
                    "notSimulated": column.unknown,
                    "preempted": [outcome.preempted for outcome in column.outcomes],
                    "homeless": [outcome.homeless for outcome in column.outcomes],
                }
                for column in self.columns
            ],
            "notes": self.notes,
        }

    def lines(self) -> Iterator[str]:
        yield from self.decided_by.first_line()
        yield from self.question.refused
        for drain in self.prepared.drains:
            yield from _drain_lines(drain, self.proposed)
        for gone in self.prepared.removed:
            yield from _removed_lines(gone)
        for column in self.proposed:
            link = ", but " if column.fits == len(column.outcomes) else "; "
            rest = link + " and ".join(self.prevented) if self.prevented else ""
            yield self._sentence(column).removesuffix(".") + f"{rest}."
        yield ""
        yield from self._table()
        for column in self.columns:
            yield from self._where(column)
        for column in self.columns:
            yield from self._missing(column)
        yield from (f"note: {note}" for note in (self.decided_by.note(), *self.notes))

    def _sentence(self, column: ConfigurationResult) -> str:
        runs = len(column.outcomes)
        under = f" with {column.title}" if column.title != TODAY else ""
        if self.largest:
            workload = self.question.workloads[0]
            fitting = spread([outcome.largest or 0 for outcome in column.outcomes])
            least = "at least " if any(outcome.more for outcome in column.outcomes) else ""
            more = fitting.least - workload.replicas
            enough = (
                f"{more:.0f} more than" if more > 0 else "exactly" if more == 0 else "fewer than"
            )
            return (
                f"{least}{shown_spread(fitting)} pods of {workload.title} fit{under}: {enough} the "
                f"{workload.replicas} of its spec."
            )
        groups = [
            f"{counted(len(pods), 'pod')} {title if title.startswith(_OF) else f'of {title}'}"
            for title, pods in self.prepared.groups.items()
        ]
        if not groups:
            return f"No pod has to be placed{under}."
        what = " and ".join(groups)
        count = sum(map(len, self.prepared.groups.values()))
        fit, fit_not = ("fits", "does not fit") if count == 1 else ("fit", "do not all fit")
        if column.fits == runs:
            return f"{what} {fit}{under}, in {runs} of {counted(runs, 'run')}."
        if column.unknown and not any(outcome.pending for outcome in column.outcomes):
            left = counted(len(column.unknown), "pod")
            return f"Of {what}, {left} cannot be simulated{under}, so whether all fit is not known."
        if not column.fits:
            return f"{what} {fit_not}{under} in any of {counted(runs, 'run')}."
        return (
            f"{what} {fit}{under} in only {column.fits} of {runs} runs: it depends on ties, which "
            "chance decides."
        )

    def _table(self) -> Iterator[str]:
        by_column = [dict(column.cells()) for column in self.columns]
        names = list(dict.fromkeys(name for cells in by_column for name in cells))
        now = {
            _label(key): _figure(key, Spread(value, value, value))
            for key, value in self._now().items()
        }
        rows = [["", NOW, *(column.title for column in self.columns)]]
        rows += [
            [name, now.get(name, ""), *(cells.get(name, "0") for cells in by_column)]
            for name in names
        ]
        yield from format_table(rows)
        yield "A figure is the median of the runs, with the least and the most in brackets."

    def _now(self) -> dict[str, float]:
        whole = {f"requestsPercent.{name}": value for name, value in self.now.whole().items()}
        return {
            "pending": self.waiting,
            "nodesUsed": self.now.used,
            "fullestNodePercent": self.now.fullest,
            **whole,
        }

    def _where(self, column: ConfigurationResult) -> Iterator[str]:
        counts_by_node = node_counts(column.outcomes)
        if not counts_by_node:
            return
        under = f" ({column.title})" if len(self.columns) > 1 else ""
        yield ""
        yield f"Where they are{under}:"
        rows = [["NODE", "ZONE", "PODS"]]
        zones = column.outcomes[0].utilization.zones
        for node, counts in limited(list(counts_by_node.items()), self.nodes):
            rows.append([node, zones.get(node, "-"), shown_spread(counts)])
        yield from limited_table(rows, len(counts_by_node))

    def _missing(self, column: ConfigurationResult) -> Iterator[str]:
        pending = [
            {name: without_preemption(text) for name, text in outcome.pending.items()}
            for outcome in column.outcomes
        ]
        counts = [Counter(reasons.values()) for reasons in pending]
        texts = list(dict.fromkeys(text for count in counts for text, _ in count.most_common()))
        under = f" ({column.title})" if len(self.columns) > 1 else ""
        if texts:
            yield ""
            yield f"Without a node{under}, in the words of kube-scheduler:"
        for text in texts[:_REASONS]:
            number = spread([count[text] for count in counts])
            names = next(
                [name for name, reason in reasons.items() if reason == text]
                for reasons in pending
                if text in reasons.values()
            )
            yield f"  {shown_spread(number)}: {text}"
            yield f"    {first_names(names)}"
        if len(texts) > _REASONS:
            yield f"  … and {len(texts) - _REASONS} other reasons (-o json has all)"
        for text in dict.fromkeys(column.unknown.values()):
            names = [name for name, reason in column.unknown.items() if reason == text]
            yield ""
            yield f"Not simulated{under}: {text}"
            yield f"    {first_names(names)}"
        outcomes = column.outcomes
        victims = dict.fromkeys(name for outcome in outcomes for name in outcome.preempted)
        if victims:
            homeless = {name for outcome in outcomes for name in outcome.homeless}
            rest = f"; {len(homeless)} of them find no other node" if homeless else ""
            yield ""
            yield f"Preempted{under}: {first_names(list(victims))}{rest}"


def left_in_place(prepared: Prepared) -> list[str]:
    """Return a sentence about the running pods that no replay places again; empty without any."""
    if not prepared.unplaced:
        return []
    count = sum(prepared.unplaced.values())
    how = ", ".join(f"{what} ({number})" for what, number in sorted(prepared.unplaced.items()))
    stay, them = ("stays", "it") if count == 1 else ("stay", "them")
    return [f"{counted(count, 'pod')} {stay} in place, because no scheduler placed {them}: {how}"]


def _drain_document(drain: Drain) -> dict[str, Any]:
    return {
        "node": drain.node,
        "moved": drain.moved,
        "stay": drain.stay,
        "blockedByBudgets": drain.blocked,
        "withoutController": drain.lost,
        "evictionsAllowed": drain.one_by_one,
    }


def _drain_lines(drain: Drain, columns: Sequence[ConfigurationResult]) -> Iterator[str]:
    stay = [f"{count} {what}" for what, count in drain.stay.items()]
    rest = f"; {', '.join(stay)} stay" if stay else ""
    yield f"Drain of {drain.node}: {counted(len(drain.moved), 'pod')} would be evicted{rest}."
    for budget, pods in drain.blocked.items():
        yield (
            f"  PodDisruptionBudget {budget} allows no eviction now: {first_names(pods)} "
            f"{'stays' if len(pods) == 1 else 'stay'}, and the drain waits."
        )
    for budget, allowed in drain.one_by_one.items():
        pods = drain.budgets[budget]
        missing = max(
            (sum(name in outcome.pending for name in pods)
             for column in columns for outcome in column.outcomes),
            default=0,
        )  # fmt: skip
        if missing >= allowed and len(pods) > allowed:
            yield (
                f"  PodDisruptionBudget {budget} allows {counted(allowed, 'eviction')}, and the "
                "replacements find no node: the drain would stop."
            )
        elif len(pods) > allowed:
            yield (
                f"  PodDisruptionBudget {budget} allows {counted(allowed, 'eviction')} at a time "
                f"for its {len(pods)} pods there."
            )
    if drain.lost:
        yield (
            f"  {first_names(drain.lost)}: without a controller, so `kubectl drain` needs --force "
            "and nothing creates them again."
        )


def _removed_lines(gone: Drain) -> Iterator[str]:
    yield f"Without {gone.node}: {counted(len(gone.moved), 'pod')} would be created again."
    if gone.lost:
        yield f"  {first_names(gone.lost)}: without a controller, so nothing creates them again."


def _documents(spreads: Mapping[str, Spread]) -> dict[str, Any]:
    return {key: asdict(figure) for key, figure in spreads.items()}


def _label(key: str) -> str:
    what, _, rest = key.partition(".")
    if what == "requestsPercent":
        return f"{rest} requested"
    if what == "zone":
        return f"placed in zone {rest}" if rest else "placed in no zone"
    return _FIGURES[key]


def _figure(key: str, values: Spread) -> str:
    return shown_spread(values, " %" if key.partition(".")[0].endswith("Percent") else "")


def shown_spread(figure: Spread, unit: str = "") -> str:
    """Format as `4 (3-5)`, or as `4` if all runs agree."""

    def number(value: float) -> str:
        return f"{value:.0f}" if unit else f"{value:g}"

    least, middle, most = map(number, (figure.least, figure.median, figure.most))
    between = f" ({least}-{most})" if least != most else ""
    return f"{middle}{unit}{between}"

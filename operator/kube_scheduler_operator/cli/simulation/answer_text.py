"""The text of `kubectl scheduler simulate`: a sentence, figures and places, from its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...simulate.decided_by import framed
from ...simulate.placements import Spread, spread
from ...simulate.scenario import Drain
from ..console.output import counted, first_names, format_table, limited, limited_table
from .answer import TODAY, ConfigurationAnswer, LargestQuestion, SimulationAnswer

NOW: Final = "now"
_MEDIANS: Final = (
    f"The column {NOW} is the cluster as it is, the others are what would follow: the median of "
    "the runs, with the least and the most in brackets."
)
_ONE_RUN: Final = (
    "The figures are those of one run. kube-scheduler breaks ties in another way each time, so a "
    "small difference may be chance."
)
_REASONS: Final = 5
_OF: Final = ("that ", "of ")
"""How titles of groups begin that are not names of workloads."""
_FIGURES: Final = {
    "largest": "pods that fit",
    "placed": "pods placed",
    "pending": "pods Pending",
    "preempted": "pods preempted",
    "nodesUsed": "nodes used",
    "fullestNodePercent": "fullest node",
}


def answer_lines(answer: SimulationAnswer, most: int) -> Iterator[str]:
    """Yield the text output, with at most `most` nodes in a table (0: all)."""
    several = answer.configurations if len(answer.configurations) > 1 else []
    used = (one.decided_by.used_by(one.name) for one in several if one.decided_by is not None)
    notes = [*used, *answer.notes]
    lines = _simulation(answer, most)
    compared = [one.decided_by for one in several]
    return framed(
        answer.decided_by, lines, notes, with_configurations=not several, compared=compared
    )


def _simulation(answer: SimulationAnswer, most: int) -> Iterator[str]:
    yield from answer.refused
    for drain in answer.drains:
        yield from _drain_lines(drain)
    for gone in answer.lost_nodes:
        yield from _removed_lines(gone)
    for each in answer.proposed:
        link = ", but " if each.runs_that_fit == answer.repeat else "; "
        rest = link + " and ".join(answer.prevented) if answer.prevented else ""
        yield f"{_sentence(answer, each)}{rest}."
    yield ""
    yield from _table(answer)
    several = len(answer.configurations) > 1
    for each in answer.configurations:
        yield from _where(each, f" ({each.name})" if several else "", most)
    for each in answer.configurations:
        yield from _missing(each, f" ({each.name})" if several else "")


def _sentence(answer: SimulationAnswer, result: ConfigurationAnswer) -> str:
    """Return the first sentence without its end."""
    runs, fitting = answer.repeat, result.runs_that_fit
    under = f" with {result.name}" if result.name != TODAY else ""
    if answer.largest is not None:
        return _largest(answer.largest, result, under)
    if not answer.pods:
        return f"No pod has to be placed{under}"
    what = " and ".join(
        f"{counted(count, 'pod')} {title if title.startswith(_OF) else f'of {title}'}"
        for title, count in answer.pods.items()
    )
    one = sum(answer.pods.values()) == 1
    fit, fit_not = ("fits", "does not fit") if one else ("fit", "do not all fit")
    if fitting == runs:
        return f"{what} {fit}{under}, in {runs} of {counted(runs, 'run')}"
    if result.not_simulated and not result.waiting:
        left = counted(len(result.not_simulated), "pod")
        return f"Of {what}, {left} cannot be simulated{under}, so whether all fit is not known"
    if not fitting:
        get = "" if one else f": {_placed(answer, result)}"
        return f"{what} {fit_not}{under} in any of {counted(runs, 'run')}{get}"
    return (
        f"{what} {fit}{under} in only {fitting} of {runs} runs: it depends on how "
        "kube-scheduler breaks ties"
    )


def _placed(answer: SimulationAnswer, result: ConfigurationAnswer) -> str:
    """Return how many of the pods in question get a node."""
    placed = result.figures["placed"]
    get = "gets" if placed.least == placed.most == 1 else "get"
    return f"{shown_spread(placed)} of {sum(answer.pods.values())} {get} a node"


def _largest(question: LargestQuestion, result: ConfigurationAnswer, under: str) -> str:
    fitting, replicas = result.figures["largest"], question.replicas
    least = "at least " if result.more_fit else ""
    more = fitting.least - replicas
    enough = f"{more:.0f} more than" if more > 0 else "exactly" if more == 0 else "fewer than"
    # Of the pods that are placed before those of the workload, such as those of a drained node.
    waiting = spread([sum(run.values()) for run in result.reasons])
    pods = "other pod has" if waiting.most == 1 else "other pods have"
    others = f", but {shown_spread(waiting)} {pods} no node" if waiting.most else ""
    fit = "pod" if fitting.most == 1 else "pods"
    fit += f" of {question.workload} fit{'s' * (fitting.most == 1)}"
    return (
        f"{least}{shown_spread(fitting)} {fit}{under}: {enough} the {replicas} of its spec{others}"
    )


def _table(answer: SimulationAnswer) -> Iterator[str]:
    yield from format_table(figure_rows(answer))
    yield figures_note(answer)


def figures_note(answer: SimulationAnswer) -> str:
    """Return the sentence that states what figures are, below their table."""
    return _ONE_RUN if answer.repeat == 1 else _MEDIANS


def figure_rows(answer: SimulationAnswer) -> list[list[str]]:
    """Return the figures, with a column for now and for each configuration; titles come first."""
    by_column = [dict(cells(each.figures)) for each in answer.configurations]
    names = list(dict.fromkeys(name for own in by_column for name in own))
    now = {
        _label(key): _figure(key, Spread(value, value, value)) for key, value in answer.now.items()
    }
    return [
        ["", NOW, *(each.name for each in answer.configurations)],
        *([name, now.get(name, ""), *(own.get(name, "0") for own in by_column)] for name in names),
    ]


def cells(figures: Mapping[str, Spread]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of each figure."""
    zones = [key for key in figures if key.startswith("zone.")]
    requests = [key for key in figures if key.startswith("requestsPercent.")]
    placed = any(figures[key].most for key in zones)
    for key in (*_FIGURES, *requests, *(zones if placed else ())):
        if key in figures:
            yield _label(key), _figure(key, figures[key])


def _where(result: ConfigurationAnswer, under: str, most: int) -> Iterator[str]:
    if not result.nodes:
        return
    yield ""
    yield f"Where they are{under}:"
    rows = [["NODE", "ZONE", "PODS"]]
    for node, counts in limited(list(result.nodes.items()), most):
        rows.append([node, result.zones.get(node, "-"), shown_spread(counts)])
    yield from limited_table(rows, len(result.nodes))


def _missing(result: ConfigurationAnswer, under: str) -> Iterator[str]:
    if result.waiting:
        yield ""
        yield f"Without a node{under}, in the words of kube-scheduler:"
    for waiting in result.waiting[:_REASONS]:
        yield f"  {shown_spread(waiting.pods)}: {waiting.reason}"
        yield f"    {first_names(waiting.names)}"
    if len(result.waiting) > _REASONS:
        yield f"  … and {len(result.waiting) - _REASONS} other reasons (-o json has all)"
    for text in dict.fromkeys(result.not_simulated.values()):
        names = [name for name, reason in result.not_simulated.items() if reason == text]
        yield ""
        yield f"Not simulated{under}: {text}"
        yield f"    {first_names(names)}"
    if victims := dict.fromkeys(name for run in result.preempted for name in run):
        homeless = {name for run in result.homeless for name in run}
        rest = f"; {len(homeless)} of them find no other node" if homeless else ""
        yield ""
        yield f"Preempted{under}: {first_names(list(victims))}{rest}"


def _drain_lines(drain: Drain) -> Iterator[str]:
    stay = [f"{count} {what}" for what, count in drain.stay.items()]
    rest = f"; {', '.join(stay)} stay" if stay else ""
    yield f"Drain of {drain.node}: {counted(len(drain.moved), 'pod')} would be evicted{rest}."
    for budget, pods in drain.blocked.items():
        yield (
            f"  PodDisruptionBudget {budget} allows no eviction now: {first_names(pods)} "
            f"{'stays' if len(pods) == 1 else 'stay'}, and the drain waits."
        )
    for pod, budgets in drain.several.items():
        yield (
            f"  {pod} is covered by {len(budgets)} PodDisruptionBudgets ({first_names(budgets)}), "
            "and the API server evicts no such pod: the drain fails."
        )
    yield from _ending_lines(drain)
    for budget, allowed in drain.one_by_one.items():
        allows = f"  PodDisruptionBudget {budget} allows {counted(allowed, 'eviction')}"
        if budget in drain.stops:
            yield f"{allows}, and the replacements find no node: the drain would stop."
        elif len(drain.budgets[budget]) > allowed:
            yield f"{allows} at a time for its {len(drain.budgets[budget])} pods there."
    if drain.lost:
        yield (
            f"  {first_names(drain.lost)}: without a controller, so `kubectl drain` needs --force "
            "and nothing creates them again."
        )


def _removed_lines(gone: Drain) -> Iterator[str]:
    yield f"Without {gone.node}: {counted(len(gone.moved), 'pod')} would be created again."
    yield from _ending_lines(gone)
    if gone.lost:
        yield f"  {first_names(gone.lost)}: without a controller, so nothing creates them again."


def _ending_lines(drain: Drain) -> Iterator[str]:
    if drain.ending:
        verb = "terminates" if len(drain.ending) == 1 else "terminate"
        yield f"  {first_names(drain.ending)}: {verb} already, so nothing is created instead."


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

"""The text of `kubectl scheduler nodes`, from its answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ...base.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from ...simulate.constraint import quantity_text
from ...simulate.node_answer import (
    BiggestPod,
    Fragmentation,
    NodeLoad,
    NodesAnswer,
    NodeUse,
    Partition,
    ResourceUse,
)
from ..console.output import counted, first_names, limited, limited_table

_UNKNOWN: Final = "not known"
_NONE: Final = "-"
_MOST_PARTITIONS: Final = 5
_MOST_AMOUNTS: Final = 6
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def nodes_lines(answer: NodesAnswer, most: int) -> Iterator[str]:
    """Yield the text output, with at most `most` nodes in the table (0: all)."""
    states = ", ".join(f"{count} {state}" for state, count in answer.states.items())
    yield f"{counted(len(answer.nodes), 'node')}: {states}."
    if answer.fits is not None and answer.shape is not None:
        fit = counted(answer.fits, "Pod")
        yield f"{fit} with {_shape(answer.shape)} and without tolerations fit by their requests."
    yield ""
    shown = limited(answer.nodes, most)
    yield from limited_table(_table(shown, answer), len(answer.nodes), "")
    for partition in answer.partitions[:_MOST_PARTITIONS]:
        yield ""
        yield from _partition_lines(partition, answer)
    if len(answer.partitions) > _MOST_PARTITIONS:
        more = len(answer.partitions) - _MOST_PARTITIONS
        yield f"… and {more} more sets of taints (-o json has all)"
    yield from (f"note: {note}" for note in answer.notes)


# --- the table ------------------------------------------------------------------------------------


def _table(nodes: Iterable[NodeUse], answer: NodesAnswer) -> list[list[str]]:
    columns = ["NODE", "STATE", "ZONE", "CPU", "CPU FREE", "MEMORY", "MEMORY FREE", "PODS"]
    columns += ["FITS"] * (answer.shape is not None)
    return [[*columns, "LOAD", "OTHER", "TAINTS"], *(_row(node, answer) for node in nodes)]


def _row(node: NodeUse, answer: NodesAnswer) -> list[str]:
    cells = [node.name, node.state, node.zone or _NONE]
    for name in (CPU, MEMORY):
        use = node.resources.get(name)
        cells += [_requested(name, use), _free(name, use)]
    cells.append(_requested(PODS, node.resources.get(PODS), share=False))
    if answer.shape is not None:
        cells.append(_UNKNOWN if node.fits is None else str(node.fits))
    return [*cells, _load(node.load), _others(node.resources), first_names(node.taints) or _NONE]


def _requested(name: str, use: ResourceUse | None, *, share: bool = True) -> str:
    if use is None:
        return _NONE
    requested = quantity_text(name, use.requests + use.nominated)
    text = f"{requested} of {quantity_text(name, use.allocatable)}"
    return f"{text} ({use.percent:.0f} %)" if share and use.percent is not None else text


def _free(name: str, use: ResourceUse | None) -> str:
    if use is None:
        return _NONE
    return _UNKNOWN if use.free is None else quantity_text(name, use.free)


def _others(resources: Mapping[str, ResourceUse]) -> str:
    """Return what is requested of resources that not every node has."""
    others = [
        f"{name} {_requested(name, use, share=False)}"
        for name, use in resources.items()
        if name not in (CPU, MEMORY, PODS)
        and (use.requests or use.nominated or (use.allocatable and name != EPHEMERAL_STORAGE))
    ]
    return first_names(others) or _NONE


def _load(load: NodeLoad | None) -> str:
    if load is None:
        return _UNKNOWN
    parts = (
        f"{name} {_UNKNOWN if value is None else _percent(value)}"
        for name, value in ((CPU, load.cpu), (MEMORY, load.memory))
    )
    return f"{', '.join(parts)} ({_age(load.age)} ago)"


def measured_text(answer: NodesAnswer) -> str:
    """Return how long ago the load of the nodes was measured."""
    ages = [node.load.age for node in answer.nodes if node.load is not None]
    least, most = (_age(each) for each in (min(ages, default=0), max(ages, default=0)))
    return f"measured {least} ago" if least == most else f"measured {least} to {most} ago"


def _age(seconds: int) -> str:
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


# --- nodes with the same taints -------------------------------------------------------------------


def _partition_lines(partition: Partition, answer: NodesAnswer) -> Iterator[str]:
    taints = first_names(partition.taints)
    takes = "takes" if partition.nodes == 1 else "take"
    what = f"with {taints}" if taints else f"that {takes} Pods without tolerations"
    yield f"{counted(partition.nodes, 'node')} {what}:"
    yield from (f"  {line}" for line in _room(partition, answer))


def _room(partition: Partition, answer: NodesAnswer) -> Iterator[str]:
    resources = partition.resources
    if any(use.free is None for use in resources.values()):
        yield f"free: {_UNKNOWN}"
        return
    free = {name: use.free or 0 for name, use in resources.items() if use.allocatable or use.free}
    yield f"free: {_amounts(free)}"
    nominated = {name: use.nominated for name, use in resources.items() if use.nominated}
    if nominated:
        yield f"not free: {_amounts(nominated)} for waiting Pods that are nominated"
    leaving = {name: use.leaving for name, use in resources.items() if use.leaving}
    if leaving:
        yield f"will be free when deletions and resizes end: {_amounts(leaving)}"
    yield f"the biggest Pod that fits: {biggest_text(partition)}"
    if partition.fits is not None and answer.shape is not None:
        yield f"Pods with {_shape(answer.shape)} that fit: {partition.fits}"
    yield f"fragmentation: {fragmentation_text(partition.fragmentation, answer)}"


def biggest_text(partition: Partition) -> str:
    """Return the biggest Pod that fits, by CPU and by memory."""
    by_cpu, by_memory = partition.biggest_by_cpu, partition.biggest_by_memory
    if by_cpu is None or by_memory is None:
        return "none, because every node has as many Pods as it takes"
    if (by_cpu.cpu, by_cpu.memory) == (by_memory.cpu, by_memory.memory):
        return _pod(by_cpu)
    return f"{_pod(by_cpu)}, or {_pod(by_memory)}"


def _pod(pod: BiggestPod) -> str:
    return f"{_shape({CPU: pod.cpu, MEMORY: pod.memory})} on {pod.node}"


def fragmentation_text(found: Fragmentation | None, answer: NodesAnswer) -> str:
    """Return what Pods of the usual requests, or of the asked ones, cannot use."""
    if found is None:
        return f"{_UNKNOWN}, because no Pod runs there that could run elsewhere"
    if not found.unusable:
        return f"{_UNKNOWN}, because nothing is free of what these Pods request"
    unusable = found.unusable.items()
    shares = _some([f"{_percent(share)} of the free {name}" for name, share in unusable])
    if answer.shape is not None:
        return f"Pods with these requests cannot use {shares}"
    covered = f" (of {_percent(found.covered)} of them)" if found.covered < 1 else ""
    return f"Pods with the requests of those that run{covered} cannot use {shares}"


def _amounts(amounts: Mapping[str, int]) -> str:
    order = (name for name in amounts if name != EPHEMERAL_STORAGE)
    return _some([f"{quantity_text(name, amounts[name])} of {name}" for name in order]) or "nothing"


def _some(texts: Sequence[str]) -> str:
    more = f", … and {len(texts) - _MOST_AMOUNTS} more" if len(texts) > _MOST_AMOUNTS else ""
    return ", ".join(texts[:_MOST_AMOUNTS]) + more


def _shape(requests: Mapping[str, int]) -> str:
    return ",".join(f"{name}={quantity_text(name, value)}" for name, value in requests.items())

"""What the page "nodes" draws: a cell for each node, by zone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...simulate.node_answer import NodesAnswer, NodeUse
from ...simulate.node_room import fullest

CELL: Final = 16
"""Pixels of a cell's side."""

CELLS: Final = 1500
"""Nodes that a grid shows, the same share of each zone: 5,000 would make a page of 2 MB."""

_LEVELS: Final = 5
_FULL: Final = 100.0
_PERCENT: Final = 100


@dataclass(frozen=True, slots=True)
class Cell:
    title: str  # all that the cell shows
    state: str  # one of STATES
    level: int  # 0 to 4; -1: not known
    top: float  # where its filled part begins


@dataclass(frozen=True, slots=True)
class Zone:
    name: str  # empty: the nodes have none
    nodes: int
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class Grid:
    zones: list[Zone]
    nodes: int
    left_out: int  # nodes without a cell
    unknown: int  # nodes of which the share is not known
    above: dict[int, int]  # percent -> number of nodes with at least that share


def requested(node: NodeUse) -> float | None:
    """Return the larger share of CPU, memory and Pods that is requested, in percent."""
    return fullest(node) if node.resources else None


def measured(node: NodeUse) -> float | None:
    """Return the larger of the measured shares of CPU and memory, in percent."""
    load = node.load
    shares = [share for share in (load.cpu, load.memory) if share is not None] if load else []
    return _PERCENT * max(shares) if shares else None


def grid(answer: NodesAnswer, share: Callable[[NodeUse], float | None]) -> Grid:
    by_zone: dict[str, list[NodeUse]] = {}
    for node in answer.nodes:
        by_zone.setdefault(node.zone, []).append(node)
    shown = min(CELLS / len(answer.nodes), 1.0) if answer.nodes else 1.0
    zones, room = [], CELLS
    for name in sorted(by_zone):
        nodes = by_zone[name]
        count = min(math.ceil(shown * len(nodes)), room)
        zones.append(Zone(name, len(nodes), [_cell(node, share(node)) for node in nodes[:count]]))
        room -= count
    shares = [share(node) for node in answer.nodes]
    known = [each for each in shares if each is not None]
    above = {least: sum(each >= least for each in known) for least in (50, 80, 100)}
    drawn = sum(len(zone.cells) for zone in zones)
    return Grid(zones, len(shares), len(shares) - drawn, len(shares) - len(known), above)


def _cell(node: NodeUse, share: float | None) -> Cell:
    text = "not known" if share is None else f"{share:.0f} %"
    title = f"{node.name}: {text}, {node.state}"
    if share is None:
        return Cell(title, node.state, -1, CELL)
    part = min(max(share, 0.0), _FULL) / _FULL
    return Cell(title, node.state, min(int(part * _LEVELS), _LEVELS - 1), CELL * (1 - part))


def by_requests(answer: NodesAnswer) -> Grid:
    return grid(answer, requested)


def by_load(answer: NodesAnswer) -> Grid | None:
    """Return the grid by measured load; None if no node has a measurement."""
    return grid(answer, measured) if any(map(measured, answer.nodes)) else None

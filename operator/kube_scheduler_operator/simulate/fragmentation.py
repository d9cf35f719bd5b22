"""Fragmentation: the share of what is free that Pods of a shape cannot use.

For one shape it is the unusable free space index of Linux (`unusable_free_index` of mm/vmstat.c;
M. Gorman and A. Whitcroft, "The What, The Why and the Where To of Anti-Fragmentation", Ottawa Linux
Symposium 2006): (free - usable) / free, where `usable` is what the allocations of this size that
fit take. For a workload it is the mean over its shapes, weighted by how frequent each one is
(Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent", USENIX ATC 2023).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.quantities import PODS
from .node_answer import Fragmentation, ShapeRoom

_MOST_SHAPES: Final = 20

Amounts = Mapping[str, int]
Shape = tuple[tuple[str, int], ...]
"""(resource, amount) of each request above 0, sorted."""


def fitting(shape: Shape, free: Amounts) -> int:
    """Return how many Pods of a shape fit, by requests and by the number of Pods."""
    room = free.get(PODS, 0)
    for resource, amount in shape:
        room = min(room, free.get(resource, 0) // amount)
    return max(room, 0)


def fragmentation(free: Collection[Amounts], pods: Mapping[Shape, int]) -> Fragmentation:
    """Return what the most frequent shapes leave of the free amounts of nodes.

    `pods` has the number of Pods of each shape; a shape that nothing runs of counts as one.
    """
    most = Counter(pods).most_common(_MOST_SHAPES)
    totals: Counter[str] = Counter()
    for amounts in free:
        totals.update(amounts)
    rooms = [_room(shape, count, free, totals) for shape, count in most]
    every = sum(pods.values())
    covered = sum(count for _, count in most) / every if every else 1.0
    return Fragmentation(_mean(rooms), rooms, round(covered, 4))


def _room(shape: Shape, pods: int, free: Collection[Amounts], totals: Amounts) -> ShapeRoom:
    fits = sum(fitting(shape, amounts) for amounts in free)
    unusable = {
        foreign(resource, FOREIGN_NAME): round(1 - fits * amount / totals[resource], 4)
        for resource, amount in shape
        if totals[resource]
    }
    requests = {foreign(resource, FOREIGN_NAME): amount for resource, amount in shape}
    return ShapeRoom(requests, pods, fits, unusable)


def _mean(rooms: Collection[ShapeRoom]) -> dict[str, float]:
    shares: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    for room in rooms:
        for resource, share in room.unusable.items():
            weight = max(room.pods, 1)
            shares[resource] += share * weight  # type: ignore[assignment]
            weights[resource] += weight
    return {resource: round(shares[resource] / weights[resource], 4) for resource in shares}

"""Which pods have the room of a pod that can run on one node alone, as those of a DaemonSet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from .kinds import PODS, Object, pod_name
from .lifts import Lifts
from .preemption import priority_of
from .scenario import is_daemon
from .world import World

_TRIED: Final = 5
_HIGHEST: Final = 1_000_000_000
"""The highest value of a PriorityClass that users create."""

Accepting = Callable[[], Awaitable[bool]]
"""Whether the pod fits now."""


async def movable(world: World, node: str, lifts: Lifts, fits: Accepting) -> list[str]:
    """Return the pods of a node, each of which alone would make room: the least important first.

    Raises:
        SimulationError: kube-scheduler ended, or the time is over.
    """
    found = []
    others = sorted(_others(world, node), key=lambda pod: (priority_of(pod), pod_name(pod)))
    for other in others[:_TRIED]:
        async with lifts.lifted([other]):
            if await fits():
                found.append(pod_name(other))
    return found


def priority_above(world: World, node: str) -> int | None:
    """Return a priority above that of the least important pod of a node; None: users have none."""
    priorities = [priority_of(other) for other in _others(world, node)]
    return min(priorities) + 1 if priorities and min(priorities) < _HIGHEST else None


def _others(world: World, node: str) -> Iterator[Object]:
    """Yield the pods of a node that can run elsewhere."""
    for entry in world.objects[PODS].values():
        if entry.node == node and not is_daemon(pod := entry.object()):
            yield pod

"""What a pass wants done: writes, each conditional on what was read, and when to look again.

Actions are data. The executor performs them in order and stops at the first that no longer fits the
cluster (a conflict) or that the API refuses; the next pass then starts from a fresh snapshot.
Reports are performed whatever became of the actions: they say what is wrong. An action's events are
sent only after it succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..base.objects import Object
    from ..kube.events import EventType
    from ..kube.resource import Resource
    from .snapshot import PendingPod


@dataclass(frozen=True, slots=True)
class Event:
    """One line of what happened, for people: `kubectl get events`."""

    reason: str
    message: str
    type: EventType = "Normal"


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object that was not there.

    Attributes:
        resource: its kind.
        obj: the object.
        events: told afterwards.
        exclusive: an object of that name that has another owner is somebody else's, and stays.
    """

    resource: Resource
    obj: Object
    events: tuple[Event, ...] = ()
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace an object that still has the resourceVersion which `obj` carries."""

    resource: Resource
    obj: Object
    subresource: str | None = None
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete exactly the object that was read."""

    resource: Resource
    obj: Object
    events: tuple[Event, ...] = ()


Action = Create | Replace | Delete


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome of a pass.

    Attributes:
        actions: writes, in order; empty when everything is as it should be.
        reports: further writes, which neither wait for the actions nor hold them up.
        requeue_after: seconds until a pass is worth while even if nothing happens; None: no need.
        events: things worth saying that no write stands for.
        chains: whose -> writes that concern nobody else: what fails in one stops no other, nor the
            actions and reports; it is known in the next snapshot (Secondaries.troubles).
        unserved: pods that ask for a scheduler that there is none of; each should be told once.
    """

    actions: tuple[Action, ...] = ()
    reports: tuple[Action, ...] = ()
    requeue_after: float | None = None
    events: tuple[Event, ...] = ()
    chains: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    unserved: tuple[PendingPod, ...] = ()


def soonest(*waits: float | None) -> float | None:
    """The shortest of these times until the next look; None: there is no need for one."""
    return min((wait for wait in waits if wait is not None), default=None)

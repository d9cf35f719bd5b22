"""The result of a reconcile: writes, each conditional on what was read, and when to requeue.

Actions are data. The executor performs them in order and stops at the first conflict or error; the
next reconcile starts from a new snapshot. Reports are performed even if an action failed, because
they report errors. The events of an action are sent after it succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...base.objects import Object
from ...config.effective.upgrades import Upgrade
from ...config.language.versions import Version
from ...kube.api import EventType
from ...kube.resource import ObjectRef, Resource
from .snapshot import CheckIdentity, PendingPod


@dataclass(frozen=True, slots=True)
class Event:
    reason: str
    message: str
    type: EventType = "Normal"


@dataclass(frozen=True, slots=True)
class Create:
    resource: Resource
    obj: Object
    events: tuple[Event, ...] = ()
    exclusive: bool = False  # fail if the object exists with another owner, instead of replacing it


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace an object if it still has the resourceVersion of `obj`."""

    resource: Resource
    obj: Object
    subresource: str | None = None
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the object that was read, identified by its uid."""

    resource: Resource
    obj: Object
    events: tuple[Event, ...] = ()


Action = Create | Replace | Delete


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """What decides where a kube-scheduler places Pods."""

    config: Mapping[str, Any]  # fields of KubeSchedulerConfiguration
    flags: tuple[str, ...] = ()  # e.g. its `--feature-gates`
    # its proxies, if extenders outside the node are called
    environment: Mapping[str, str] = field(default_factory=dict)
    # SchedulerExtender -> its `spec.agent`, of those that the configuration calls
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # the LoadPolicy in use -> its spec, if agents are called
    load_policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # the image and the command of kube-scheduler, if they are settings of users
    program: Mapping[str, Any] = field(default_factory=dict)
    # users' containers beside it, if extenders that the operator does not run are called
    sidecars: Mapping[str, Any] = field(default_factory=dict)
    # other schedulers whose agents read an edited LoadPolicy; no part of the identity
    readers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacementQuestion:
    """A simulation of an edit, which the engine runs; a later snapshot has the answer."""

    identity: CheckIdentity
    before: PlacementRules  # the rules in use
    after: PlacementRules  # the rules after the edit
    image: str  # the image of kube-scheduler
    command: tuple[str, ...]  # the command that runs it there
    seconds: int  # limit from the request to the answer
    situation: str = ""  # that of the last result; if it has not changed, nothing is simulated
    turn: str = ""  # those with the same turn run one after the other; others do not wait for them


@dataclass(frozen=True, slots=True)
class UpgradeQuestion:
    """A check of a newer version, which the engine runs; a later snapshot has the answer."""

    identity: CheckIdentity
    upgrades: Callable[[], Sequence[Upgrade]]  # the schedulers; composed once, when it is run
    target: Version
    image: str  # of the kube-scheduler in use
    command: tuple[str, ...]  # the command that runs kube-scheduler in both images
    next_image: str  # of the kube-scheduler of the target
    seconds: int  # limit from the request to the answer
    named: bool = False  # whether users have named `next_image`
    problem: str = ""  # why no kube-scheduler can be run; empty if one can
    # name -> spec of SchedulerExtenders and LoadPolicies, by which agents decide
    extenders: Mapping[str, Any] = field(default_factory=dict)
    load_policies: Mapping[str, Any] = field(default_factory=dict)
    turn: str = "upgrade"


@dataclass(frozen=True, slots=True)
class Plan:
    actions: tuple[Action, ...] = ()  # writes, in order; empty in a steady state
    reports: tuple[Action, ...] = ()  # status writes; independent of the actions
    requeue_after: float | None = None  # seconds until the next reconcile if nothing changes
    # object -> the writes for it alone. An error in one write set stops neither the others nor
    # actions and reports; the next snapshot has it in `write_errors`.
    write_sets: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    pods_without_scheduler: tuple[PendingPod, ...] = ()  # each gets one event
    served: frozenset[str] | None = None  # schedulerNames that a scheduler serves; None: unknown
    # the simulations of edits to run, and no other ones; empty: none is needed; None: not known
    simulations: tuple[PlacementQuestion, ...] | None = None
    # the checks of newer versions to run, likewise
    upgrades: tuple[UpgradeQuestion, ...] | None = None
    failures: tuple[str, ...] = ()  # messages of the steps that raised an unexpected error


def soonest(*waits: float | None) -> float | None:
    """The shortest of these times until the next reconcile; None if none is needed."""
    return min((wait for wait in waits if wait is not None), default=None)

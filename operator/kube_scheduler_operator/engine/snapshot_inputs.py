"""What a process knows besides the objects in its store: the other inputs of a snapshot."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from ..base.objects import NamespacedName
from ..base.platform import Platform
from ..base.recognition import Decision
from ..base.settings import Settings
from ..kube.resource import ObjectRef, Resource
from ..model.placements import PlacementAnswer
from ..model.snapshot import AssignmentWay, BindingScheduler, FutileWrite, PendingPod


@dataclass(frozen=True, slots=True)
class OperatorSetup:
    """How the operator was started."""

    platform: Platform  # the kind of cluster
    settings: Settings  # the operator's own settings
    # how the platform was decided; None if `--platform` names one with static pods
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class ServerContact:
    """The API server, as this process reaches it; the times are those of Snapshot."""

    version: str  # its `gitVersion`
    answered_since: datetime | None  # since when it has answered without a gap; None: it does not
    newer_version: str = ""  # a newer one that API servers report, until all do; empty without one
    recovered_at: datetime | None = None  # when it last began to answer again; None: it always did
    # when this process noticed that etcd was restored from a backup; None: never
    restored_at: datetime | None = None
    missing_kinds: Container[Resource] = ()  # kinds that it does not serve


@dataclass(frozen=True, slots=True)
class Sightings:
    """What watch events show besides the objects."""

    # time of the last observed renewal of the control plane's scheduler Lease
    lease_seen: datetime | None = None
    # the same for each scheduler
    leases_seen: Mapping[NamespacedName, datetime] = field(default_factory=dict)
    # time at which a control-plane node was last deleted; None: never
    node_left: datetime | None = None
    # what to add to the times that kubelets write, by node
    clocks: Mapping[str, timedelta] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreviousReconcile:
    """What the previous reconcile left behind."""

    error: str = ""  # the error that ended it; empty if it succeeded
    # object -> the error that ended its write set
    write_errors: Mapping[ObjectRef, str] = field(default_factory=dict)
    futile_writes: tuple[FutileWrite, ...] = ()  # objects whose writes have no lasting effect


@dataclass(frozen=True, slots=True)
class PolledState:
    """What polls and simulations show, because no watch does."""

    # pods of all namespaces that no scheduler has attempted
    pending_pods: tuple[PendingPod, ...] = ()
    pending_unread: bool = False  # whether there may be others, because the list is too long
    bindings: tuple[BindingScheduler, ...] = ()  # the processes that bind pods
    bindings_unread: bool = False  # whether there may be others
    # what applies `spec.assign` to new pods; None: not known yet
    assignment_way: AssignmentWay | None = None
    # the result of the last simulation of an edit; None without one
    placement_answer: PlacementAnswer | None = None


NOTHING_SEEN: Final = Sightings()
FIRST_RECONCILE: Final = PreviousReconcile()
NOT_POLLED: Final = PolledState()

"""The inputs of a snapshot besides the objects in the store."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from ...base.objects import NamespacedName
from ...base.platform import Platform
from ...base.recognition import Decision
from ...base.settings import Settings
from ...kube.resource import ObjectRef, Resource
from ..model.placements import PlacementAnswer
from ..model.snapshot import AssignmentWay, BindingScheduler, FutileWrite, PendingPod


@dataclass(frozen=True, slots=True)
class OperatorSetup:
    """How the operator was started."""

    platform: Platform
    settings: Settings
    decision: Decision | None = None  # None if `--platform` names a platform with static pods


@dataclass(frozen=True, slots=True)
class ServerContact:
    """The API server, as this process reaches it; the times are those of Snapshot."""

    version: str  # its `gitVersion`
    answered_since: datetime | None  # since when it has answered without a gap; None: it does not
    newer_version: str = ""  # a newer one that some API servers report, until all do
    recovered_at: datetime | None = None  # when it last began to answer again; None: it always did
    restored_at: datetime | None = None  # when this process noticed a restore of etcd; None: never
    missing_kinds: Container[Resource] = ()  # kinds that it does not serve


@dataclass(frozen=True, slots=True)
class Sightings:
    """The information in watch events besides the objects."""

    # when a renewal of the Lease of the control plane's scheduler was last observed
    lease_seen: datetime | None = None
    # the same for each scheduler
    leases_seen: Mapping[NamespacedName, datetime] = field(default_factory=dict)
    node_left: datetime | None = None  # when a control-plane node was last deleted; None: never
    # node -> what to add to the times that its kubelet writes
    clocks: Mapping[str, timedelta] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreviousReconcile:
    error: str = ""  # the error that ended it; empty if it succeeded
    # object -> the error that ended its write set
    write_errors: Mapping[ObjectRef, str] = field(default_factory=dict)
    futile_writes: tuple[FutileWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class PolledState:
    """The results of polls and simulations, which no watch replaces."""

    pending_pods: tuple[PendingPod, ...] = ()  # those that no scheduler has attempted
    pending_unread: bool = False  # whether there may be others, because the list is too long
    bindings: tuple[BindingScheduler, ...] = ()  # the processes that bind pods
    bindings_unread: bool = False  # whether there may be others
    assignment_way: AssignmentWay | None = None  # what applies `spec.assign`; None: not known yet
    placement_answer: PlacementAnswer | None = None  # of the last simulation of an edit


NOTHING_SEEN: Final = Sightings()
FIRST_RECONCILE: Final = PreviousReconcile()
NOT_POLLED: Final = PolledState()

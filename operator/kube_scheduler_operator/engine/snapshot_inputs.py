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
    """How the operator was started.

    Attributes:
        platform: the kind of cluster.
        settings: the operator's own settings.
        decision: how the platform was decided; None if `--platform` names one with static pods.
    """

    platform: Platform
    settings: Settings
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class ServerContact:
    """The API server, as this process reaches it; the times are those of Snapshot.

    Attributes:
        version: its `gitVersion`.
        answered_since: since when it has answered without a gap; None: it does not.
        newer_version: a newer one that API servers report, until all do; empty without one.
        recovered_at: when it last began to answer again; None: it always did.
        restored_at: when this process noticed that etcd was restored from a backup; None: never.
        missing_kinds: kinds that it does not serve.
    """

    version: str
    answered_since: datetime | None
    newer_version: str = ""
    recovered_at: datetime | None = None
    restored_at: datetime | None = None
    missing_kinds: Container[Resource] = ()


@dataclass(frozen=True, slots=True)
class Sightings:
    """What watch events show besides the objects.

    Attributes:
        lease_seen: time of the last observed renewal of the control plane's scheduler Lease.
        leases_seen: the same for each scheduler.
        node_left: time at which a control-plane node was last deleted; None: never.
        clocks: what to add to the times that kubelets write, by node.
    """

    lease_seen: datetime | None = None
    leases_seen: Mapping[NamespacedName, datetime] = field(default_factory=dict)
    node_left: datetime | None = None
    clocks: Mapping[str, timedelta] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreviousReconcile:
    """What the previous reconcile left behind.

    Attributes:
        error: the error that ended it; empty if it succeeded.
        write_errors: object -> the error that ended its write set.
        futile_writes: objects whose writes have no lasting effect.
    """

    error: str = ""
    write_errors: Mapping[ObjectRef, str] = field(default_factory=dict)
    futile_writes: tuple[FutileWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class PolledState:
    """What polls and simulations show, because no watch does.

    Attributes:
        pending_pods: pods of all namespaces that no scheduler has attempted.
        pending_unread: whether there may be others, because the list is too long.
        bindings: the processes that bind pods.
        bindings_unread: whether there may be others.
        assignment_way: what applies `spec.assign` to new pods; None: not known yet.
        placement_answer: the result of the last simulation of an edit; None without one.
    """

    pending_pods: tuple[PendingPod, ...] = ()
    pending_unread: bool = False
    bindings: tuple[BindingScheduler, ...] = ()
    bindings_unread: bool = False
    assignment_way: AssignmentWay | None = None
    placement_answer: PlacementAnswer | None = None


NOTHING_SEEN: Final = Sightings()
FIRST_RECONCILE: Final = PreviousReconcile()
NOT_POLLED: Final = PolledState()

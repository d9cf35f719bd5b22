"""One immutable view of the cluster and the clock: all input of a reconcile.

Taken once per reconcile, so that all steps see the same state, and built by hand in tests:
`Snapshot(...) -> reconcile() -> Plan` needs no network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, Final

from ...base.json_text import bounded
from ...base.management import ManagementState, management_state
from ...base.names import OVERRIDES
from ...base.objects import NamespacedName, Object, mapping
from ...base.platform import Platform
from ...base.recognition import PlatformDecision
from ...base.settings import Settings
from ...base.spec_limits import check_specs
from ...base.times import ALWAYS
from ...kube.resource import ObjectRef, Resource


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that no scheduler has attempted yet."""

    namespace: str
    name: str
    uid: str
    scheduler: str  # its `spec.schedulerName`
    created: datetime | None


@dataclass(frozen=True, slots=True)
class BindingScheduler:
    scheduler: str  # the schedulerName that it serves
    host: str  # its host name; in a pod with its own network, the pod's name
    at: datetime  # the time of its last known binding


class AssignmentWay(Enum):
    """What applies `spec.assign` of SecondarySchedulers to new pods."""

    POLICY = "a MutatingAdmissionPolicy"
    WEBHOOK = "the operator's webhook"
    NONE_POLICY = "nothing, and a policy could"
    NONE_WEBHOOK = "nothing, and only a webhook could"
    NO_SERVICE = "nothing, because the webhook's Service does not exist"
    UNREADABLE = "unknown, because the operator may not look"


class Futility(Enum):
    """Why writes of an object have no lasting effect; the value is a condition's reason."""

    DROPPED = "FieldsDropped"
    REVERTED = "RevertedByAnotherClient"
    CONFLICT = "RepeatedConflicts"


@dataclass(frozen=True, slots=True)
class FutileWrite:
    """An object whose writes have no lasting effect, and are therefore delayed."""

    ref: ObjectRef
    why: Futility
    fields: tuple[str, ...] = ()  # paths of the fields that do not last; empty for conflicts
    manager: str = ""  # the other client, from managedFields; "unknown" or empty if it is not known


@dataclass(frozen=True, slots=True)
class CheckIdentity:
    """Distinguishes one simulation of an edit from all others."""

    configuration: str  # hash of the rules after the edit
    running: str  # hash of the rules that are in use
    started: str  # when it was requested, RFC 3339; another attempt has another time


@dataclass(frozen=True, slots=True)
class PlacementAnswer:
    identity: CheckIdentity
    # whether a running Pod would have no place, or a waiting one loses the places it has
    worse: bool = False
    effect: str = ""  # the effect in sentences, joined by "; "; empty with an error
    error: str = ""  # why there is no result; empty if there is one
    situation: str = ""  # hash of the Pods, Nodes and other objects that the result is about
    unchanged: bool = False  # whether it is that of the question: the last result still holds
    unknown: bool = False  # whether something that the edit may change was not tried


@dataclass(frozen=True, slots=True)
class UpgradeAnswer:
    identity: CheckIdentity
    result: str  # NothingFound, Changes or NotKnown
    message: str  # the report in lines, the summary first
    tried: bool = True  # whether kube-schedulers were run; else only the rules are known


@dataclass(frozen=True, slots=True)
class Secondaries:
    schedulers: Mapping[str, Object] = field(default_factory=dict)  # SecondarySchedulers, by name
    # SecondaryScheduler -> kind -> name -> the objects created for it, and their pods
    objects: Mapping[str, Mapping[Resource, Mapping[str, Object]]] = field(default_factory=dict)
    # Leases in the namespaces where they may run
    leases: Mapping[NamespacedName, Object] = field(default_factory=dict)
    # when this process last saw each of those renewed, by its own clock
    leases_seen: Mapping[NamespacedName, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loads:
    # LoadPolicies, by name; None: the API does not serve the kind
    policies: Mapping[str, Object] | None = field(default_factory=dict)
    # kind -> name -> the objects created for them, or because of them
    objects: Mapping[Resource, Mapping[str, Object]] = field(default_factory=dict)
    # Secrets of the target namespace that permit the use of their token, without data
    secrets: Mapping[str, Object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    now: datetime  # wall clock, UTC
    platform: Platform
    settings: Settings
    # how the platform was decided; None if `--platform` names one with static pods
    decision: PlatformDecision | None = None
    server_version: str = ""  # `gitVersion` of the API server
    newer_version: str = ""  # a newer one that API servers report, until all do; empty without one
    # the objects with the name "cluster" (ClusterOperator: "kube-scheduler"); None if missing
    scheduler: Object | None = None
    kubescheduler: Object | None = None
    cluster_operator: Object | None = None
    apiserver: Object | None = None
    feature_gate: Object | None = None  # of config.openshift.io, like the next one
    infrastructure: Object | None = None
    # by name; None: the API does not serve the kind
    scheduler_profiles: Mapping[str, Object] | None = field(default_factory=dict)
    scheduler_extenders: Mapping[str, Object] | None = field(default_factory=dict)
    # also None while "cluster" is too large to be read
    operator_settings: Mapping[str, Object] | None = field(default_factory=dict)
    aks_configurations: Mapping[str, Object] | None = None
    # the operator's ConfigMaps in the target namespace, by name
    config_maps: Mapping[str, Object] = field(default_factory=dict)
    # Secrets of schedulers in the target namespace, by name
    secrets: Mapping[str, Object] = field(default_factory=dict)
    # what the cluster keeps for schedulers (platform.Credentials)
    source_config_maps: Mapping[str, Object] = field(default_factory=dict)
    source_secrets: Mapping[str, Object] = field(default_factory=dict)
    # ConfigMaps of users that Scheduler may refer to
    user_config_maps: Mapping[str, Object] = field(default_factory=dict)
    # the operator's ServiceAccounts in the target namespace, by name
    service_accounts: Mapping[str, Object] = field(default_factory=dict)
    nodes: Mapping[str, Object] = field(default_factory=dict)  # control-plane nodes, by name
    # mirror pods of the scheduler as their manifests are, by node name
    operand_pods: Mapping[str, Object] = field(default_factory=dict)
    # node -> labels and annotations that other clients wrote on its mirror pod
    foreign_metadata: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    installer_pods: Mapping[str, Object] = field(default_factory=dict)  # by pod name
    guard_pods: Mapping[str, Object] = field(default_factory=dict)  # by pod name
    config_reader_pods: Mapping[str, Object] = field(default_factory=dict)  # by pod name
    # the operator's PodDisruptionBudgets in the target namespace, by name
    disruption_budgets: Mapping[str, Object] = field(default_factory=dict)
    # all NetworkPolicies in the target namespace, by name, on platforms where the operator keeps
    # some there
    network_policies: Mapping[str, Object] = field(default_factory=dict)
    operand_lease: Object | None = None  # kube-scheduler's own election Lease
    lease_seen: datetime | None = None  # its last observed renewal, by the operator's clock
    node_left: datetime | None = None  # the last observed removal of a control-plane node
    # since when the API server has answered this process without a gap; None: it does not
    answered_since: datetime | None = ALWAYS
    recovered_at: datetime | None = None  # end of the last outage; None: there was none
    last_error: str = ""  # the error that ended the previous reconcile; empty if it succeeded
    # object -> the error that ended its write set in the previous reconcile
    write_errors: Mapping[ObjectRef, str] = field(default_factory=dict)
    futile_writes: tuple[FutileWrite, ...] = ()  # objects whose writes have no lasting effect
    restored_at: datetime | None = None  # when a restore of etcd from a backup was noticed
    secondaries: Secondaries = field(default_factory=Secondaries)
    loads: Loads = field(default_factory=Loads)
    # pods of all namespaces that no scheduler has attempted, from the last polls
    pending_pods: tuple[PendingPod, ...] = ()
    pending_unread: str = ""  # why there may be others that were not read; empty if all were
    # the processes that bind pods by their events, from the last polls
    binding_schedulers: tuple[BindingScheduler, ...] = ()
    bindings_unread: str = ""  # why there may be others that were not read; empty if all were
    # what applies `spec.assign` to new pods; None: not known yet
    assignment_way: AssignmentWay | None = None
    # the uid of the CustomResourceDefinition of SecondarySchedulers; empty if it is not known
    secondary_kind_uid: str = ""
    # SchedulerExtender -> kind -> name -> objects of its agents in the target namespace
    agents: Mapping[str, Mapping[Resource, Mapping[str, Object]]] = field(default_factory=dict)
    # the answers of the simulations that were requested
    placement_answers: Mapping[CheckIdentity, PlacementAnswer] = field(default_factory=dict)
    # those of the requested checks of newer versions
    upgrade_answers: Mapping[CheckIdentity, UpgradeAnswer] = field(default_factory=dict)

    @property
    def status(self) -> Object:
        """KubeScheduler's status; empty if it is not set yet."""
        return ((self.kubescheduler or {}).get("status")) or {}

    @property
    def spec(self) -> Object:
        return ((self.kubescheduler or {}).get("spec")) or {}

    @property
    def management(self) -> ManagementState:
        return management_state(self.kubescheduler)


# --- objects within the limits of base/limits.py ------------------------------------------------

_OBJECTS: Final = (
    "scheduler",
    "kubescheduler",
    "cluster_operator",
    "apiserver",
    "feature_gate",
    "infrastructure",
)
_KINDS: Final = ("scheduler_profiles", "scheduler_extenders", "operator_settings")
"""Fields of Snapshot with one object, and with the objects of one kind."""

# Results for the objects of the last snapshot, by identity: they rarely change, and a cache with a
# fixed number of entries would keep earlier versions of large ones.
_bounded: dict[int, tuple[Object, Object]] = {}
_within: list[tuple[int, ...]] = []  # the identities of the last objects, if none was cut


def bounded_snapshot(snapshot: Snapshot) -> Snapshot:
    """`snapshot` without values that are nested too deep to be processed.

    What remains of such a value is still too deep for `limit_problems`.
    """
    identities = tuple(map(id, _objects(snapshot)))
    if [identities] == _within:
        return snapshot  # the usual case
    kept: dict[int, tuple[Object, Object]] = {}
    specs: list[Any] = []

    def keep(obj: Object | None) -> Object | None:
        if obj is None:
            return None
        entry = _bounded.get(id(obj)) or (obj, bounded(obj))
        kept[id(obj)] = entry
        spec = mapping(entry[1].get("spec"))
        specs.extend((spec, spec.get(OVERRIDES), mapping(entry[1].get("status")).get("accepted")))
        return entry[1]

    def keep_all(objects: Mapping[str, Object] | None) -> Mapping[str, Object] | None:
        return None if objects is None else {n: keep(obj) or obj for n, obj in objects.items()}

    schedulers = keep_all(snapshot.secondaries.schedulers) or {}
    fields: dict[str, Any] = {
        **{name: keep(getattr(snapshot, name)) for name in _OBJECTS},
        **{name: keep_all(getattr(snapshot, name)) for name in _KINDS},
    }
    shallow = replace(
        snapshot,
        **fields,
        secondaries=replace(snapshot.secondaries, schedulers=schedulers),
        loads=replace(snapshot.loads, policies=keep_all(snapshot.loads.policies)),
    )
    _bounded.clear()
    _bounded.update(kept)
    check_specs(specs)
    _within[:] = [identities] if all(obj is same for obj, same in kept.values()) else []
    return shallow


def _objects(snapshot: Snapshot) -> Iterator[Object]:
    """The objects with fields that have no schema."""
    yield from (obj for name in _OBJECTS if (obj := getattr(snapshot, name)) is not None)
    for name in _KINDS:
        yield from (getattr(snapshot, name) or {}).values()
    yield from snapshot.secondaries.schedulers.values()
    yield from (snapshot.loads.policies or {}).values()

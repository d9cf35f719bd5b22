"""One immutable view of the cluster and the clock: all input of a reconcile.

Taken once per reconcile, so that all steps see the same state, and built by hand in tests:
`Snapshot(...) -> reconcile() -> Plan` needs no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from ..base.objects import NamespacedName, Object
from ..base.platform import Platform
from ..base.recognition import Decision
from ..base.settings import Settings
from ..base.times import ALWAYS
from ..kube.resource import ObjectRef, Resource
from .placements import PlacementAnswer


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that no scheduler has attempted yet.

    Attributes:
        namespace: its namespace.
        name: its name.
        uid: its uid, which a recreated pod does not share.
        scheduler: its `spec.schedulerName`.
        created: its creation time.
    """

    namespace: str
    name: str
    uid: str
    scheduler: str
    created: datetime | None


@dataclass(frozen=True, slots=True)
class BindingScheduler:
    """A process that binds pods.

    Attributes:
        scheduler: the schedulerName that it serves.
        host: its host name; in a pod with its own network, the pod's name.
        at: the time of its last known binding.
    """

    scheduler: str
    host: str
    at: datetime


class AssignmentWay(Enum):
    """What applies `spec.assign` of SecondarySchedulers to new pods."""

    POLICY = "a MutatingAdmissionPolicy"
    WEBHOOK = "the operator's webhook"
    NONE_POLICY = "nothing, and a policy could"
    NONE_WEBHOOK = "nothing, and only a webhook could"
    UNREADABLE = "unknown, because the operator may not look"


class Futility(Enum):
    """Why writes of an object have no lasting effect; the value is a condition's reason."""

    DROPPED = "FieldsDropped"
    REVERTED = "RevertedByAnotherClient"
    CONFLICT = "RepeatedConflicts"


@dataclass(frozen=True, slots=True)
class FutileWrite:
    """An object whose writes have no lasting effect, and are therefore delayed.

    Attributes:
        ref: the object.
        why: the cause.
        fields: paths of the fields that do not last; empty for conflicts.
        manager: the other client, from managedFields; "unknown" or empty if it is not known.
    """

    ref: ObjectRef
    why: Futility
    fields: tuple[str, ...] = ()
    manager: str = ""


@dataclass(frozen=True, slots=True)
class Secondaries:
    """The observed state of secondary schedulers.

    Attributes:
        schedulers: SecondarySchedulers, by name.
        objects: SecondaryScheduler -> kind -> name -> the objects created for it, and their pods.
        leases: Leases in the namespaces where they may run.
        leases_seen: when this process last saw each of those renewed, by its own clock.
    """

    schedulers: Mapping[str, Object] = field(default_factory=dict)
    objects: Mapping[str, Mapping[Resource, Mapping[str, Object]]] = field(default_factory=dict)
    leases: Mapping[NamespacedName, Object] = field(default_factory=dict)
    leases_seen: Mapping[NamespacedName, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loads:
    """The observed state of load policies.

    Attributes:
        policies: LoadPolicies, by name; None: the API does not serve the kind.
        objects: kind -> name -> the objects created for them, or because of them.
        secrets: Secrets of the target namespace that permit the use of their token, without data.
    """

    policies: Mapping[str, Object] | None = field(default_factory=dict)
    objects: Mapping[Resource, Mapping[str, Object]] = field(default_factory=dict)
    secrets: Mapping[str, Object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The observed state of the cluster at `now`.

    Attributes:
        now: wall clock, UTC.
        platform: the kind of cluster.
        settings: the operator's own settings.
        decision: how the platform was decided; None if `--platform` names one with static pods.
        server_version: `gitVersion` of the API server.
        newer_version: a newer one that API servers report, until all do; empty without one.
        scheduler: Scheduler "cluster", if there is one.
        kubescheduler: KubeScheduler "cluster", if there is one.
        cluster_operator: ClusterOperator "kube-scheduler", if there is one.
        apiserver: APIServer "cluster" of config.openshift.io, if there is one.
        feature_gate: FeatureGate "cluster" of config.openshift.io, if there is one.
        infrastructure: Infrastructure "cluster" of config.openshift.io, if there is one.
        scheduler_profiles: SchedulerProfiles by name; None: the API does not serve the kind.
        scheduler_extenders: SchedulerExtenders likewise.
        operator_settings: OperatorSettings likewise; at most the one with the name "cluster".
        config_maps: the operator's ConfigMaps in the target namespace, by name.
        secrets: Secrets of schedulers in the target namespace, by name.
        source_config_maps: ConfigMaps that the cluster keeps for schedulers (platform.Credentials).
        source_secrets: Secrets that it keeps for them.
        user_config_maps: ConfigMaps of users that Scheduler may refer to.
        service_accounts: the operator's ServiceAccounts in the target namespace, by name.
        nodes: control-plane nodes, by name.
        operand_pods: mirror pods of the scheduler as their manifests are, by node name.
        foreign_metadata: node -> labels and annotations that other clients wrote on its mirror pod.
        installer_pods: by pod name.
        guard_pods: by pod name.
        config_reader_pods: by pod name.
        disruption_budgets: the operator's PodDisruptionBudgets in the target namespace, by name.
        network_policies: all NetworkPolicies in the target namespace, by name, on platforms where
            the operator keeps some there.
        operand_lease: kube-scheduler's own election Lease.
        lease_seen: when this process last saw the Lease renewed, by its own clock.
        node_left: when this process last saw a control-plane node being taken away; None: never.
        answered_since: since when the API server has answered this process without a gap; None: it
            does not.
        recovered_at: when it last began to answer this process again; None: it always did.
        last_error: the error that ended the previous reconcile; empty if it succeeded.
        write_errors: object -> the error that ended its write set in the previous reconcile.
        futile_writes: objects whose writes have no lasting effect.
        restored_at: when this process noticed that etcd was restored from a backup; None: never.
        secondaries: the observed state of secondary schedulers.
        loads: the observed state of load policies.
        pending_pods: pods of all namespaces that no scheduler has attempted, from the last polls.
        pending_unread: whether there may be others, because the list is too long.
        binding_schedulers: the processes that bind pods by their events, from the last polls.
        bindings_unread: whether there may be others, because the list is too long.
        assignment_way: what applies `spec.assign` to new pods; None: not known yet.
        agents: SchedulerExtender -> kind -> name -> objects of its agents in the target namespace.
        placement_answer: the result of the last simulation of an edit; None without one.
    """

    now: datetime
    platform: Platform
    settings: Settings
    decision: Decision | None = None
    server_version: str = ""
    newer_version: str = ""
    scheduler: Object | None = None
    kubescheduler: Object | None = None
    cluster_operator: Object | None = None
    apiserver: Object | None = None
    feature_gate: Object | None = None
    infrastructure: Object | None = None
    scheduler_profiles: Mapping[str, Object] | None = field(default_factory=dict)
    scheduler_extenders: Mapping[str, Object] | None = field(default_factory=dict)
    operator_settings: Mapping[str, Object] | None = field(default_factory=dict)
    aks_configurations: Mapping[str, Object] | None = None
    config_maps: Mapping[str, Object] = field(default_factory=dict)
    secrets: Mapping[str, Object] = field(default_factory=dict)
    source_config_maps: Mapping[str, Object] = field(default_factory=dict)
    source_secrets: Mapping[str, Object] = field(default_factory=dict)
    user_config_maps: Mapping[str, Object] = field(default_factory=dict)
    service_accounts: Mapping[str, Object] = field(default_factory=dict)
    nodes: Mapping[str, Object] = field(default_factory=dict)
    operand_pods: Mapping[str, Object] = field(default_factory=dict)
    foreign_metadata: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    installer_pods: Mapping[str, Object] = field(default_factory=dict)
    guard_pods: Mapping[str, Object] = field(default_factory=dict)
    config_reader_pods: Mapping[str, Object] = field(default_factory=dict)
    disruption_budgets: Mapping[str, Object] = field(default_factory=dict)
    network_policies: Mapping[str, Object] = field(default_factory=dict)
    operand_lease: Object | None = None
    lease_seen: datetime | None = None
    node_left: datetime | None = None
    answered_since: datetime | None = ALWAYS
    recovered_at: datetime | None = None
    last_error: str = ""
    write_errors: Mapping[ObjectRef, str] = field(default_factory=dict)
    futile_writes: tuple[FutileWrite, ...] = ()
    restored_at: datetime | None = None
    secondaries: Secondaries = field(default_factory=Secondaries)
    loads: Loads = field(default_factory=Loads)
    pending_pods: tuple[PendingPod, ...] = ()
    pending_unread: bool = False
    binding_schedulers: tuple[BindingScheduler, ...] = ()
    bindings_unread: bool = False
    assignment_way: AssignmentWay | None = None
    agents: Mapping[str, Mapping[Resource, Mapping[str, Object]]] = field(default_factory=dict)
    placement_answer: PlacementAnswer | None = None

    @property
    def status(self) -> Object:
        """KubeScheduler's status; empty if it is not set yet."""
        return ((self.kubescheduler or {}).get("status")) or {}

    @property
    def spec(self) -> Object:
        """KubeScheduler's spec."""
        return ((self.kubescheduler or {}).get("spec")) or {}

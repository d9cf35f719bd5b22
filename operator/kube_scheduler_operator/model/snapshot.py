"""One immutable view of the cluster and the clock: all that a pass may know.

Taken once per pass, so that no two steps can see different states, and built by hand in tests:
`Snapshot(...) -> reconcile() -> Plan` needs no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

from ..base.objects import NamespacedName, Object
from ..base.platform import Platform
from ..base.settings import Settings
from ..base.times import ALWAYS

if TYPE_CHECKING:
    from ..kube.resource import Resource


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that no scheduler has looked at yet.

    Attributes:
        namespace: its namespace.
        name: its name.
        uid: what tells it from a namesake.
        scheduler: the scheduler that it asks for.
        created: when it was made.
    """

    namespace: str
    name: str
    uid: str
    scheduler: str
    created: datetime | None


@dataclass(frozen=True, slots=True)
class Binder:
    """Somebody who binds pods.

    Attributes:
        scheduler: the schedulerName that it serves.
        host: what it calls itself.
        at: when it was last seen to.
    """

    scheduler: str
    host: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Secondaries:
    """What is known of further schedulers.

    Attributes:
        schedulers: SecondarySchedulers, by name.
        objects: SecondaryScheduler -> kind -> name -> what was made for it; pods among them.
        leases: Leases in the namespaces where they may run.
        leases_seen: when this process last saw each of those renewed, by its own clock.
        troubles: SecondaryScheduler -> the error that ended the last attempt to write for it.
        pending: pods in the whole cluster that no scheduler has looked at, as far as is known.
        binders: who binds pods, as far as is known.
    """

    schedulers: Mapping[str, Object] = field(default_factory=dict)
    objects: Mapping[str, Mapping[Resource, Mapping[str, Object]]] = field(default_factory=dict)
    leases: Mapping[NamespacedName, Object] = field(default_factory=dict)
    leases_seen: Mapping[NamespacedName, datetime] = field(default_factory=dict)
    troubles: Mapping[str, str] = field(default_factory=dict)
    pending: tuple[PendingPod, ...] = ()
    binders: tuple[Binder, ...] = ()


LOAD_CHAIN: Final = "LoadPolicy/"
"""With what the names of the chains begin that are about LoadPolicies."""


@dataclass(frozen=True, slots=True)
class Loads:
    """What is known of load policies.

    Attributes:
        policies: LoadPolicies, by name; None: the API does not serve the kind.
        objects: kind -> name -> what was made for them, or because of them.
        troubles: LoadPolicy -> the error that ended the last attempt to write for it.
    """

    policies: Mapping[str, Object] | None = field(default_factory=dict)
    objects: Mapping[Resource, Mapping[str, Object]] = field(default_factory=dict)
    troubles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was known at `now`.

    Attributes:
        now: wall clock, UTC.
        platform: the kind of cluster.
        settings: what the operator was started with.
        server_version: `gitVersion` of the API server.
        scheduler: Scheduler "cluster", if there is one.
        kubescheduler: KubeScheduler "cluster", if there is one.
        cluster_operator: ClusterOperator "kube-scheduler", if there is one.
        apiserver: APIServer "cluster" of config.openshift.io, if there is one.
        feature_gate: FeatureGate "cluster" of config.openshift.io, if there is one.
        infrastructure: Infrastructure "cluster" of config.openshift.io, if there is one.
        scheduler_profiles: SchedulerProfiles by name; None: the API does not serve the kind.
        scheduler_extenders: SchedulerExtenders likewise.
        config_maps: our ConfigMaps in the target namespace, by name.
        secrets: Secrets of schedulers in the target namespace, by name.
        source_config_maps: ConfigMaps that the cluster keeps for schedulers (platform.Credentials).
        source_secrets: Secrets that it keeps for them.
        service_accounts: our ServiceAccounts in the target namespace, by name.
        nodes: control-plane nodes, by name.
        operand_pods: mirror pods of the scheduler, by node name.
        installer_pods: by pod name.
        guard_pods: by pod name.
        disruption_budgets: our PodDisruptionBudgets in the target namespace, by name.
        operand_lease: kube-scheduler's own election Lease.
        lease_seen: when this process last saw the Lease renewed, by its own clock.
        node_left: when this process last saw a control-plane node being taken away; None: never.
        answered_since: since when the API server has answered this process without a gap; None: it
            does not.
        recovered_at: when it last began to answer this process again; None: it always did.
        trouble: the error that ended the last pass, if the API refused or failed one of its writes.
        secondaries: what is known of further schedulers.
        loads: what is known of load policies.
        agents: SchedulerExtender -> kind -> name -> what was made for it in the target namespace.
    """

    now: datetime
    platform: Platform
    settings: Settings
    server_version: str = ""
    scheduler: Object | None = None
    kubescheduler: Object | None = None
    cluster_operator: Object | None = None
    apiserver: Object | None = None
    feature_gate: Object | None = None
    infrastructure: Object | None = None
    scheduler_profiles: Mapping[str, Object] | None = field(default_factory=dict)
    scheduler_extenders: Mapping[str, Object] | None = field(default_factory=dict)
    config_maps: Mapping[str, Object] = field(default_factory=dict)
    secrets: Mapping[str, Object] = field(default_factory=dict)
    source_config_maps: Mapping[str, Object] = field(default_factory=dict)
    source_secrets: Mapping[str, Object] = field(default_factory=dict)
    service_accounts: Mapping[str, Object] = field(default_factory=dict)
    nodes: Mapping[str, Object] = field(default_factory=dict)
    operand_pods: Mapping[str, Object] = field(default_factory=dict)
    installer_pods: Mapping[str, Object] = field(default_factory=dict)
    guard_pods: Mapping[str, Object] = field(default_factory=dict)
    disruption_budgets: Mapping[str, Object] = field(default_factory=dict)
    operand_lease: Object | None = None
    lease_seen: datetime | None = None
    node_left: datetime | None = None
    answered_since: datetime | None = ALWAYS
    recovered_at: datetime | None = None
    trouble: str = ""
    secondaries: Secondaries = field(default_factory=Secondaries)
    loads: Loads = field(default_factory=Loads)
    agents: Mapping[str, Mapping[Resource, Mapping[str, Object]]] = field(default_factory=dict)

    @property
    def status(self) -> Object:
        """KubeScheduler's status, empty if there is none yet."""
        return ((self.kubescheduler or {}).get("status")) or {}

    @property
    def spec(self) -> Object:
        """KubeScheduler's spec."""
        return ((self.kubescheduler or {}).get("spec")) or {}

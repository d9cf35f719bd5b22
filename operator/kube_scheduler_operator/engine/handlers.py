"""Everything that is watched, on one page, and how it becomes a snapshot.

kopf delivers the events; a handler only puts the object into the store and wakes the queue. It
writes nothing: no finalizers, no annotations, no state on anybody's objects.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from ..base import names
from ..base.objects import NamespacedName, Object, label
from ..base.platform import AUTHENTICATION_NAMESPACE, Platform
from ..base.settings import Settings
from ..base.times import timestamp
from ..kube.kopf.watcher import Watch
from ..kube.resource import (
    API_SERVERS,
    CLUSTER_OPERATORS,
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    FEATURE_GATES,
    INFRASTRUCTURES,
    JOBS,
    KUBE_SCHEDULERS,
    LEASES,
    LOAD_POLICIES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    ObjectRef,
    Resource,
    Stream,
)
from ..kube.store import Store, View
from ..model.snapshot import LOAD_CHAIN, Binder, Loads, PendingPod, Secondaries, Snapshot

MADE_FOR_AGENTS: Final = (CONFIG_MAPS, DAEMON_SETS, PODS)

MADE_FOR_SECONDARIES: Final = (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    PODS,
    ROLES,
    ROLE_BINDINGS,
    SERVICES,
    SERVICE_ACCOUNTS,
)
MADE_FOR_LOADS: Final = (CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, JOBS)


WRITTEN_BY_PEOPLE: Final = (
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
)


class Wake(Protocol):
    """Asks for a pass."""

    def __call__(self, *, urgent: bool) -> None:
        """Soon, if `urgent`; when it is convenient otherwise."""


def watches(platform: Platform, secondary: Sequence[str] | None = None) -> tuple[Watch, ...]:
    """What the operator reads; it needs the right to list nothing else.

    Args:
        platform: the kind of cluster.
        secondary: namespaces in which further schedulers may run; None: the target namespace.
    """
    places = platform.secondary_namespaces(secondary)
    ours = f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
    target = platform.target_namespace
    operand = ",".join(f"{key}={value}" for key, value in platform.static_pod_labels)
    lease = f"metadata.name={platform.operand_lease_name}"
    found = [
        Watch(SCHEDULERS),
        Watch(KUBE_SCHEDULERS),
        Watch(SCHEDULER_PROFILES, optional=True),
        Watch(SCHEDULER_EXTENDERS, optional=True),
        Watch(CLUSTER_OPERATORS, field_selector=f"metadata.name={names.CLUSTEROPERATOR}"),
        Watch(NODES),
        Watch(CONFIG_MAPS, target, label_selector=ours),
        Watch(SERVICE_ACCOUNTS, target, label_selector=ours),
        Watch(DISRUPTION_BUDGETS, target, label_selector=ours),
        Watch(DAEMON_SETS, target, label_selector=ours),
        Watch(PODS, target, label_selector=_pods_in_target(platform, secondaries=target in places)),
    ]
    if platform.operand_namespace != target:
        if platform.operand_namespace in places:
            operand = f"component in ({names.OPERAND},{names.SECONDARY})"
        found.append(Watch(PODS, platform.operand_namespace, label_selector=operand))
    if platform.operand_lease_namespace not in places:
        found.append(Watch(LEASES, platform.operand_lease_namespace, field_selector=lease))
    found += _secondary_watches(places, {watch.stream for watch in found})
    found += _load_watches(target, {watch.stream for watch in found})
    if platform.cluster_config:
        found += [Watch(API_SERVERS), Watch(FEATURE_GATES), Watch(INFRASTRUCTURES)]
    kept = platform.credentials
    if kept is not None:
        certificate = f"metadata.name={kept.client_certificate}"
        found += [
            Watch(SECRETS, target),
            Watch(CONFIG_MAPS, kept.namespace),
            Watch(SECRETS, kept.namespace, field_selector=certificate),
        ]
    return tuple(found)


def _secondary_watches(places: Sequence[str], known: Set[Stream]) -> Iterator[Watch]:
    """Further schedulers, and what is made for them; what is watched there already is enough."""
    if not places:
        return
    ours = f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
    yield Watch(SECONDARY_SCHEDULERS)
    yield Watch(CLUSTER_ROLE_BINDINGS, label_selector=ours)
    for place in dict.fromkeys((*places, AUTHENTICATION_NAMESPACE)):
        yield Watch(ROLE_BINDINGS, place, label_selector=ours)
    for place in places:
        for resource in (DEPLOYMENTS, SERVICES, ROLES):
            yield Watch(resource, place, label_selector=ours)
        for resource in (CONFIG_MAPS, SERVICE_ACCOUNTS, DISRUPTION_BUDGETS):
            if Stream(resource, place) not in known:
                yield Watch(resource, place, label_selector=ours)
        if Stream(PODS, place) not in known:
            yield Watch(PODS, place, label_selector=f"app={names.SECONDARY}")
        # Schedulers make theirs themselves, without labels.
        yield Watch(LEASES, place)


def _load_watches(target: str, known: Set[Stream]) -> Iterator[Watch]:
    """Load policies, and what is made for them, all of it in the target namespace."""
    ours = f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
    yield Watch(LOAD_POLICIES, optional=True)
    for resource in MADE_FOR_LOADS:
        if Stream(resource, target) not in known:
            yield Watch(resource, target, label_selector=ours)


def _pods_in_target(platform: Platform, *, secondaries: bool) -> str:
    """One watch for all our pods there; schedulers are among them where they have that namespace.

    Their `app` is what tells them apart from the others, on every platform that puts them there.
    """
    apps = [names.INSTALLER, names.GUARD, names.EXTENDER]
    if secondaries:
        apps.append(names.SECONDARY)
    if platform.operand_namespace == platform.target_namespace:
        apps.append(dict(platform.static_pod_labels)["app"])
    return f"app in ({','.join(apps)})"


class Intake:
    """Takes events into the store and decides which of them deserve a pass.

    Args:
        store: where objects go.
        platform: which Lease is the scheduler's.
        wake: asks for a pass, and says whether it is urgent.
        now: wall clock, UTC.
        secondary: namespaces in which further schedulers may run; None: the target namespace.

    Attributes:
        leases_seen: when each Lease of a scheduler was last seen renewed.
        node_left: when a control-plane node was last seen to be taken away.
    """

    def __init__(
        self,
        store: Store,
        platform: Platform,
        wake: Wake,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        secondary: Sequence[str] | None = None,
    ) -> None:
        self.leases_seen: dict[NamespacedName, datetime] = {}
        self.node_left: datetime | None = None
        # Of nobody that is known, as far as is known yet: watches come in any order.
        self._leases: dict[NamespacedName, Mapping[str, Any]] = {}
        self._store = store
        self._platform = platform
        self._wake = wake
        self._now = now
        self._places = platform.secondary_namespaces(secondary)
        self._operand_lease = (platform.operand_lease_namespace, platform.operand_lease_name)

    @property
    def lease_seen(self) -> datetime | None:
        """When the Lease of the control plane's scheduler was last seen renewed."""
        return self.leases_seen.get(self._operand_lease)

    def event(self, resource: Resource, kind: str | None, obj: Mapping[str, Any]) -> None:
        """Take one watch event; `kind` is ADDED, MODIFIED, DELETED or None for a listed object."""
        if resource == LEASES:
            self._lease(obj, deleted=kind == "DELETED")
            return
        if not self._is_of_interest(resource, obj):
            return
        before = self._store.get(resource.ref(obj))
        selectors = self._platform.node_selectors
        if resource == NODES and before is None and not _is_control_plane(obj, selectors):
            return  # thousands of workers, none of which is our business
        if resource == NODES and kind == "DELETED":
            self.node_left = self._now()
        take = self._store.remove if kind == "DELETED" else self._store.put
        changed = take(resource, obj)
        if resource == SECONDARY_SCHEDULERS and kind != "DELETED":
            for place in self._places:
                lease = self._leases.pop((place, obj["metadata"]["name"]), None)
                if lease is not None:
                    self._lease(lease, deleted=False)
        if changed:
            self._wake(urgent=kind == "DELETED" or _is_urgent(resource, before, obj))

    def _is_of_interest(self, resource: Resource, obj: Mapping[str, Any]) -> bool:
        """Whether something that a watch had to include, as it cannot name several, is for us."""
        kept = self._platform.credentials
        if kept is None or resource not in (CONFIG_MAPS, SECRETS):
            return True
        name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
        if resource == SECRETS:
            return name in (kept.client_certificate, kept.serving_certificate)
        # Where further schedulers may run may be any namespace.
        others = label(obj, names.SECONDARY_LABEL) != ""
        return namespace != kept.namespace or name in kept.ca_bundles or others

    def _lease(self, obj: Mapping[str, Any], *, deleted: bool) -> None:
        """A scheduler renews its Lease every two seconds: only a change of hands is news."""
        place = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        if not self._is_a_schedulers(place):
            self._leases.pop(place, None)
            if not deleted and place[0] in self._places:
                self._leases[place] = obj
            return
        before = self._store.get(LEASES.ref(obj))
        changed = (self._store.remove if deleted else self._store.put)(LEASES, obj)
        if not changed:
            return
        now = self._now()
        seen = self.leases_seen.get(place)
        gap = (now - seen).total_seconds() if seen else None
        self.leases_seen[place] = now
        spec = obj.get("spec") or {}
        renewed = timestamp(spec.get("renewTime"))
        if before is None and renewed is not None:
            # It was there before us, and nobody may have renewed it for a long time.
            self.leases_seen[place] = min(now, renewed)
        duration = float(spec.get("leaseDurationSeconds") or 15)
        if deleted or gap is None or gap > duration or _holder(before) != _holder(obj):
            self._wake(urgent=False)

    def _is_a_schedulers(self, place: NamespacedName) -> bool:
        """Whether a Lease is the one of the control plane's scheduler or of a further one.

        Others are in the same namespaces.
        """
        if place == self._operand_lease:
            return True
        namespace, name = place
        known = self._store.get(ObjectRef(SECONDARY_SCHEDULERS, None, name)) is not None
        return known and namespace in self._places


def _is_urgent(resource: Resource, before: Object | None, obj: Object) -> bool:
    """Whether a storm of other events must not delay this: what people edit, and pods that move on.

    The generation grows with edits of the spec; labels, annotations and status can wait.
    """
    if resource in WRITTEN_BY_PEOPLE:
        return _generation(before) != _generation(obj)
    return resource == PODS


def _generation(obj: Object | None) -> int:
    return int(((obj or {}).get("metadata") or {}).get("generation") or 0)


def _holder(lease: Mapping[str, Any] | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


def take_snapshot(
    store: Store,
    platform: Platform,
    settings: Settings,
    *,
    server_version: str,
    lease_seen: datetime | None,
    answered_since: datetime | None,
    recovered_at: datetime | None,
    trouble: str,
    now: datetime,
    unserved: Container[Resource] = (),
    node_left: datetime | None = None,
    leases_seen: Mapping[NamespacedName, datetime] | None = None,
    troubles: Mapping[str, str] | None = None,
    pending: tuple[PendingPod, ...] = (),
    binders: tuple[Binder, ...] = (),
) -> Snapshot:
    """One immutable view of everything, for a pass.

    Kinds that the API does not serve are told apart from those of which there are no objects.
    """
    view = store.view()
    target = platform.target_namespace
    source = platform.credentials.namespace if platform.credentials else ""
    pods = view.list(PODS, platform.operand_namespace, labels=dict(platform.static_pod_labels))
    return Snapshot(
        now=now,
        platform=platform,
        settings=settings,
        server_version=server_version,
        scheduler=view.get(SCHEDULERS, names.CLUSTER),
        kubescheduler=view.get(KUBE_SCHEDULERS, names.CLUSTER),
        cluster_operator=view.get(CLUSTER_OPERATORS, names.CLUSTEROPERATOR),
        scheduler_profiles=None
        if SCHEDULER_PROFILES in unserved
        else _by_name(view.list(SCHEDULER_PROFILES)),
        scheduler_extenders=None
        if SCHEDULER_EXTENDERS in unserved
        else _by_name(view.list(SCHEDULER_EXTENDERS)),
        config_maps=_by_name(_own(view.list(CONFIG_MAPS, target))),
        secrets=_by_name(view.list(SECRETS, target)),
        source_config_maps=_by_name(view.list(CONFIG_MAPS, source)),
        source_secrets=_by_name(view.list(SECRETS, source)),
        apiserver=view.get(API_SERVERS, names.CLUSTER),
        feature_gate=view.get(FEATURE_GATES, names.CLUSTER),
        infrastructure=view.get(INFRASTRUCTURES, names.CLUSTER),
        service_accounts=_by_name(_own(view.list(SERVICE_ACCOUNTS, target))),
        nodes=_by_name(
            node for node in view.list(NODES) if _is_control_plane(node, platform.node_selectors)
        ),
        operand_pods={
            node: pod
            for pod in pods
            if (node := pod["spec"].get("nodeName"))
            and pod["metadata"]["name"] == platform.mirror_pod_name(node)
        },
        installer_pods=_labelled(view.list(PODS, target), names.INSTALLER),
        guard_pods=_labelled(view.list(PODS, target), names.GUARD),
        disruption_budgets=_by_name(_own(view.list(DISRUPTION_BUDGETS, target))),
        operand_lease=view.get(
            LEASES, platform.operand_lease_name, platform.operand_lease_namespace
        ),
        lease_seen=lease_seen,
        node_left=node_left,
        answered_since=answered_since,
        recovered_at=recovered_at,
        trouble=trouble,
        secondaries=replace(
            _secondaries(view, leases_seen or {}, troubles or {}), pending=pending, binders=binders
        ),
        agents=_agents(view, target),
        loads=_loads(view, target, troubles or {}, served=LOAD_POLICIES not in unserved),
    )


def _loads(view: View, target: str, troubles: Mapping[str, str], *, served: bool) -> Loads:
    objects = {
        resource: _by_name(
            obj for obj in view.list(resource, target) if names.LOAD_LABEL in _labels(obj)
        )
        for resource in MADE_FOR_LOADS
    }
    return Loads(
        _by_name(view.list(LOAD_POLICIES)) if served else None,
        objects,
        {
            whose.removeprefix(LOAD_CHAIN): error
            for whose, error in troubles.items()
            if whose.startswith(LOAD_CHAIN)
        },
    )


def _agents(view: View, target: str) -> dict[str, dict[Resource, dict[str, Object]]]:
    found: dict[str, dict[Resource, dict[str, Object]]] = {}
    for resource in MADE_FOR_AGENTS:
        for obj in view.list(resource, target):
            whose = label(obj, names.EXTENDER_LABEL)
            if whose:
                mine = found.setdefault(whose, {}).setdefault(resource, {})
                mine[obj["metadata"]["name"]] = obj
    return found


def _secondaries(
    view: View, leases_seen: Mapping[NamespacedName, datetime], troubles: Mapping[str, str]
) -> Secondaries:
    schedulers = _by_name(view.list(SECONDARY_SCHEDULERS))
    objects: dict[str, dict[Resource, dict[str, Object]]] = {name: {} for name in schedulers}
    for resource in MADE_FOR_SECONDARIES if schedulers else ():
        for obj in view.list(resource):
            whose = label(obj, names.SECONDARY_LABEL)
            if whose not in schedulers:
                continue
            spec = schedulers[whose].get("spec") or {}
            # One of the same name in another namespace is a namesake's, who is gone.
            places = (spec.get("namespace"), AUTHENTICATION_NAMESPACE, None)
            if obj["metadata"].get("namespace") in places:
                objects[whose].setdefault(resource, {})[obj["metadata"]["name"]] = obj
    leases = {
        (obj["metadata"]["namespace"], obj["metadata"]["name"]): obj for obj in view.list(LEASES)
    }
    return Secondaries(schedulers, objects, leases, dict(leases_seen), dict(troubles))


def _own(objects: Sequence[Object]) -> Iterator[Object]:
    """Without those that were made for further schedulers, extenders or load policies."""
    others = {names.SECONDARY_LABEL, names.EXTENDER_LABEL, names.LOAD_LABEL}
    return (obj for obj in objects if others.isdisjoint(_labels(obj)))


def _labels(obj: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return labels


def _by_name(objects: Any) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj for obj in objects}


def _labelled(pods: Any, app: str) -> dict[str, Object]:
    return _by_name(pod for pod in pods if label(pod, "app") == app)


def _is_control_plane(node: Object, selectors: tuple[str, ...]) -> bool:
    labels = node["metadata"].get("labels") or {}
    return any(selector in labels for selector in selectors)

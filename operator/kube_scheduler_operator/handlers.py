"""Everything that is watched, on one page, and how it becomes a snapshot.

kopf delivers the events; a handler only puts the object into the store and wakes the queue. It
writes nothing: no finalizers, no annotations, no state on anybody's objects.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from . import names
from .kube.resource import (
    API_SERVERS,
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    FEATURE_GATES,
    INFRASTRUCTURES,
    KUBE_SCHEDULERS,
    LEASES,
    NODES,
    PODS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from .kube.store import Store
from .kube.watch import Watch
from .platform import Platform
from .settings import Settings
from .snapshot import Object, Snapshot, label, timestamp


class Wake(Protocol):
    """Asks for a pass."""

    def __call__(self, *, urgent: bool) -> None:
        """Soon, if `urgent`; when it is convenient otherwise."""


def watches(platform: Platform) -> tuple[Watch, ...]:
    """What the operator reads; it needs the right to list nothing else."""
    ours = f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
    target = platform.target_namespace
    operand = ",".join(f"{key}={value}" for key, value in platform.static_pod_labels)
    lease = f"metadata.name={platform.operand_lease_name}"
    found = [
        Watch(SCHEDULERS),
        Watch(KUBE_SCHEDULERS),
        Watch(SCHEDULER_PROFILES, optional=True),
        Watch(CLUSTER_OPERATORS, field_selector=f"metadata.name={names.CLUSTEROPERATOR}"),
        Watch(NODES),
        Watch(CONFIG_MAPS, target, label_selector=ours),
        Watch(SERVICE_ACCOUNTS, target, label_selector=ours),
        Watch(DISRUPTION_BUDGETS, target, label_selector=ours),
        Watch(PODS, target, label_selector=_pods_in_target(platform)),
        Watch(LEASES, platform.operand_lease_namespace, field_selector=lease),
    ]
    if platform.operand_namespace != target:
        found.append(Watch(PODS, platform.operand_namespace, label_selector=operand))
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


def _pods_in_target(platform: Platform) -> str:
    """One watch for all our pods there; schedulers are among them where they have that namespace.

    Their `app` is what tells them apart from the others, on every platform that puts them there.
    """
    apps = [names.INSTALLER, names.GUARD]
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
    """

    def __init__(
        self,
        store: Store,
        platform: Platform,
        wake: Wake,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.lease_seen: datetime | None = None
        self._store = store
        self._platform = platform
        self._wake = wake
        self._now = now

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
        take = self._store.remove if kind == "DELETED" else self._store.put
        if take(resource, obj):
            self._wake(urgent=kind == "DELETED" or _is_urgent(resource, before, obj))

    def _is_of_interest(self, resource: Resource, obj: Mapping[str, Any]) -> bool:
        """Whether something that a watch had to include, as it cannot name several, is for us."""
        kept = self._platform.credentials
        if kept is None or resource not in (CONFIG_MAPS, SECRETS):
            return True
        name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
        if resource == SECRETS:
            return name in (kept.client_certificate, kept.serving_certificate)
        return namespace != kept.namespace or name in kept.ca_bundles

    def _lease(self, obj: Mapping[str, Any], *, deleted: bool) -> None:
        """The scheduler renews its Lease every two seconds: only a change of hands is news."""
        platform = self._platform
        if obj["metadata"]["name"] != platform.operand_lease_name:
            return
        before = self._store.get(LEASES.ref(obj))
        changed = (self._store.remove if deleted else self._store.put)(LEASES, obj)
        if not changed:
            return
        now = self._now()
        gap = (now - self.lease_seen).total_seconds() if self.lease_seen else None
        self.lease_seen = now
        spec = obj.get("spec") or {}
        renewed = timestamp(spec.get("renewTime"))
        if before is None and renewed is not None:
            # It was there before us, and nobody may have renewed it for a long time.
            self.lease_seen = min(now, renewed)
        duration = float(spec.get("leaseDurationSeconds") or 15)
        if deleted or gap is None or gap > duration or _holder(before) != _holder(obj):
            self._wake(urgent=False)


def _is_urgent(resource: Resource, before: Object | None, obj: Object) -> bool:
    """Whether a storm of other events must not delay this: what people edit, and pods that move on.

    The generation grows with edits of the spec; labels, annotations and status can wait.
    """
    if resource in (SCHEDULERS, KUBE_SCHEDULERS, SCHEDULER_PROFILES):
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
        config_maps=_by_name(view.list(CONFIG_MAPS, target)),
        secrets=_by_name(view.list(SECRETS, target)),
        source_config_maps=_by_name(view.list(CONFIG_MAPS, source)),
        source_secrets=_by_name(view.list(SECRETS, source)),
        apiserver=view.get(API_SERVERS, names.CLUSTER),
        feature_gate=view.get(FEATURE_GATES, names.CLUSTER),
        infrastructure=view.get(INFRASTRUCTURES, names.CLUSTER),
        service_accounts=_by_name(view.list(SERVICE_ACCOUNTS, target)),
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
        disruption_budgets=_by_name(view.list(DISRUPTION_BUDGETS, target)),
        operand_lease=view.get(
            LEASES, platform.operand_lease_name, platform.operand_lease_namespace
        ),
        lease_seen=lease_seen,
        answered_since=answered_since,
        recovered_at=recovered_at,
        trouble=trouble,
    )


def _by_name(objects: Any) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj for obj in objects}


def _labelled(pods: Any, app: str) -> dict[str, Object]:
    return _by_name(pod for pod in pods if label(pod, "app") == app)


def _is_control_plane(node: Object, selectors: tuple[str, ...]) -> bool:
    labels = node["metadata"].get("labels") or {}
    return any(selector in labels for selector in selectors)

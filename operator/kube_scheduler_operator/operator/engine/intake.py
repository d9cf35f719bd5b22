"""From watch events to the store: which objects it keeps, and which changes wake the queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from ...base import names
from ...base.klog import kv
from ...base.objects import NamespacedName, Object, label, mapping
from ...base.platform import Platform
from ...kube import resource as kinds
from ...kube.oversized import LEFT_OUT
from ...kube.resource import ObjectRef, Resource
from ...kube.store import MIRROR_ANNOTATION, Store
from .node_clocks import NodeClocks

log = logging.getLogger(__name__)

_USER_KINDS: Final = (
    kinds.KUBE_SCHEDULERS,
    kinds.LOAD_POLICIES,
    kinds.SCHEDULER_EXTENDERS,
    kinds.OPERATOR_SETTINGS,
    kinds.SCHEDULER_PROFILES,
    kinds.SCHEDULERS,
    kinds.SECONDARY_SCHEDULERS,
)


MOST_MIRRORS: Final = 8
"""Mirror Pods of a node that are kept: its scheduler is one, and it makes any number."""

LONG_AGO: Final = 60.0
"""Seconds without a renewal after which a Lease is only watched."""


class Wake(Protocol):
    def __call__(self, *, urgent: bool) -> None:
        """Reconcile soon if `urgent`; otherwise in the next batch of changes."""


class Intake:
    """Puts watch events into the store and wakes the queue for changes that need a reconcile.

    `secondary` has the namespaces that may run secondary schedulers; None: the target namespace.
    `calm` returns whether nothing delays the reports of kubelets.
    """

    def __init__(
        self,
        store: Store,
        platform: Platform,
        wake: Wake,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        secondary: Sequence[str] | None = None,
        calm: Callable[[], bool] = lambda: True,
    ) -> None:
        self.leases_seen: dict[NamespacedName, datetime] = {}  # when renewals were last observed
        # OperatorSettings while it exists and cannot be read: a Gate ends by its deletion only
        self.unread: set[Resource] = set()
        self.node_left: datetime | None = None  # when a control-plane node was last deleted
        self.clocks = NodeClocks(now, calm)
        # Leases that may turn out to belong to a SecondaryScheduler that is listed later.
        self._unclaimed_leases: dict[NamespacedName, Mapping[str, Any]] = {}
        self._crowded: set[str] = set()  # nodes of which mirror Pods are left out
        self._store = store
        self._platform = platform
        self._wake = wake
        self._now = now
        self._namespaces = platform.secondary_namespaces(secondary)
        self._operand_lease = (platform.operand_lease_namespace, platform.operand_lease_name)

    @property
    def lease_seen(self) -> datetime | None:
        return self.leases_seen.get(self._operand_lease)

    def forget(self) -> None:
        """Forget objects outside of the store: etcd was restored from a backup."""
        self._unclaimed_leases.clear()
        self.leases_seen.clear()
        self.unread.clear()

    def event(self, resource: Resource, kind: str | None, obj: Mapping[str, Any]) -> None:
        """Take one watch event; `kind` is ADDED, MODIFIED, DELETED or None for a listed object."""
        deleted = kind == "DELETED"
        if resource == kinds.LEASES:
            self._lease(obj, deleted=deleted)
            return
        if not self._is_relevant(resource, obj):
            if resource != kinds.SECRETS or self._store.get(resource.ref(obj)) is None:
                return
            deleted = True  # it has lost its label
        if resource == kinds.SECRETS and self._is_token(obj):
            obj = {key: value for key, value in obj.items() if key not in ("data", "stringData")}
        before = self._store.get(resource.ref(obj))
        if resource == kinds.PODS and before is None and not self._has_room(obj):
            return
        if resource == kinds.NODES and before is None and not self._platform.is_control_plane(obj):
            return  # it has lost the label
        self._note_nodes(resource, before, obj, deleted=deleted)
        changed = self._stored(resource, obj, deleted=deleted)
        if resource == kinds.SECONDARY_SCHEDULERS and not deleted:
            self._claim_leases(obj["metadata"]["name"])
        if changed:
            self._wake(urgent=deleted or _is_urgent(resource, before, obj))

    def _stored(self, resource: Resource, obj: Mapping[str, Any], *, deleted: bool) -> bool:
        """Update the store; return whether it changed."""
        if LEFT_OUT in obj:
            if resource == kinds.OPERATOR_SETTINGS:
                self.unread.add(resource)
            return self._store.leave_out(resource.ref(obj))
        self.unread.discard(resource)
        if deleted:
            return self._store.remove(resource, obj)
        # Of both, a watch reports a lost label as a deletion.
        may_return = resource == kinds.NODES or (resource == kinds.SECRETS and self._is_token(obj))
        return self._store.put(resource, obj, may_return=may_return)

    def _has_room(self, pod: Mapping[str, Any]) -> bool:
        """Return whether a Pod is kept; one that is left out is logged, once for a node."""
        node = _mirrored_on(pod)
        if not node:
            return True
        mirrors = sum(_mirrored_on(other) == node for other in self._store.all(kinds.PODS))
        if mirrors < MOST_MIRRORS:
            return True
        if node not in self._crowded:
            self._crowded.add(node)
            log.warning(
                "A node has too many mirror Pods with the labels of its scheduler; some are left "
                "out",
                extra=kv(node=node, kept=MOST_MIRRORS),
            )
        return False

    def _note_nodes(
        self, resource: Resource, before: Object | None, obj: Mapping[str, Any], *, deleted: bool
    ) -> None:
        if not deleted:
            self.clocks.observe(resource, before, obj)
        elif resource == kinds.NODES:
            self.node_left = self._now()
            self.clocks.forget(obj["metadata"]["name"])

    def _claim_leases(self, scheduler: str) -> None:
        """Take the Leases of a secondary scheduler that were listed before it."""
        for namespace in self._namespaces:
            lease = self._unclaimed_leases.pop((namespace, scheduler), None)
            if lease is not None:
                self._lease(lease, deleted=False)

    def _is_relevant(self, resource: Resource, obj: Mapping[str, Any]) -> bool:
        """Return whether the operator uses the object; a watch cannot select several names."""
        credentials = self._platform.credentials
        if resource == kinds.SECRETS and self._is_token(obj):
            return True
        if credentials is None or resource not in (kinds.CONFIG_MAPS, kinds.SECRETS):
            return True
        name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
        if resource == kinds.SECRETS:
            return name in (credentials.client_certificate, credentials.serving_certificate)
        # Secondary schedulers may run in the namespace of the credentials.
        secondary = label(obj, names.SECONDARY_LABEL) != ""
        return namespace != credentials.namespace or name in credentials.ca_bundles or secondary

    def _is_token(self, obj: Mapping[str, Any]) -> bool:
        """Return whether this is a Secret for LoadPolicies; only its label is needed."""
        own = self._platform.credentials
        credentials = (own.client_certificate, own.serving_certificate) if own is not None else ()
        is_other = obj["metadata"]["name"] not in credentials
        return is_other and label(obj, names.TOKEN_FOR_LABEL) != ""

    def _lease(self, obj: Mapping[str, Any], *, deleted: bool) -> None:
        """Note a renewal; only a new holder or a late renewal wakes the queue.

        A scheduler renews its Lease every two seconds.
        """
        key = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        if not self._is_scheduler_lease(key):
            self._unclaimed_leases.pop(key, None)
            if not deleted and key[0] in self._namespaces:
                self._unclaimed_leases[key] = obj
            return
        before = self._store.get(kinds.LEASES.ref(obj))
        changed = (self._store.remove if deleted else self._store.put)(kinds.LEASES, obj)
        if not changed:
            return
        now = self._now()
        seen = self.leases_seen.get(key)
        gap = (now - seen).total_seconds() if seen else None
        self.leases_seen[key] = now
        # Not `renewTime`, which is by the holder's clock: a Lease whose holder is long gone counts
        # as expired one lease duration after the start of this process.
        late = gap is None or gap > _duration(obj)
        if deleted or late or _holder(before) != _holder(obj):
            self._wake(urgent=False)

    def late_leases(self) -> list[ObjectRef]:
        """The Leases of which no renewal was observed for longer than their duration.

        Those of which none was observed for long have no holder: watching them is enough.
        """
        late = []
        for (namespace, name), seen in self.leases_seen.items():
            ref, age = (
                ObjectRef(kinds.LEASES, namespace, name),
                (self._now() - seen).total_seconds(),
            )
            lease = self._store.get(ref)
            if lease is not None and _duration(lease) < age < LONG_AGO:
                late.append(ref)
        return late

    def _is_scheduler_lease(self, key: NamespacedName) -> bool:
        if key == self._operand_lease:
            return True
        namespace, name = key
        known = self._store.get(ObjectRef(kinds.SECONDARY_SCHEDULERS, None, name)) is not None
        return known and namespace in self._namespaces


def _mirrored_on(pod: Mapping[str, Any]) -> str:
    """Return the node of a mirror Pod; empty: it is another one."""
    mirrors = MIRROR_ANNOTATION in mapping(pod["metadata"].get("annotations"))
    return str(mapping(pod.get("spec")).get("nodeName") or "") if mirrors else ""


def _is_urgent(resource: Resource, before: Object | None, obj: Object) -> bool:
    """Return whether a storm of other events must not delay this: an edited spec, or a Pod.

    `metadata.generation` grows with the spec only; labels, annotations and status can wait.
    """
    if resource in _USER_KINDS:
        return _generation(before) != _generation(obj)
    return resource == kinds.PODS


def _generation(obj: Object | None) -> int:
    return int(((obj or {}).get("metadata") or {}).get("generation") or 0)


def _duration(lease: Mapping[str, Any]) -> float:
    return float((lease.get("spec") or {}).get("leaseDurationSeconds") or 15)


def _holder(lease: Mapping[str, Any] | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")

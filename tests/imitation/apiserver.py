"""An API server in memory, with the rules that a controller can trip over.

Optimistic locking, uids, generations, status subresources, immutable ConfigMaps, the validation
rules of KubeScheduler, graceful deletion of pods and garbage collection by owner references.
"""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kube_scheduler_operator.kube.errors import ApiError, ApiRequest, from_response
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    PODS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
    ObjectRef,
    Resource,
)

from .clock import Clock
from .validation import kubescheduler_problem, sealed_problem

Object = dict[str, Any]

WITH_STATUS = (
    KUBE_SCHEDULERS,
    CLUSTER_OPERATORS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    SCHEDULERS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
)
GC_DELAY = (0.2, 3.0)
SERVER_FIELDS = ("uid", "creationTimestamp", "generation", "deletionTimestamp")


@dataclass(frozen=True, slots=True)
class Change:
    """A committed write."""

    actor: str  # who did it
    kind: str  # ADDED, MODIFIED or DELETED
    ref: ObjectRef  # which object
    old: Object | None  # as it was, None if it is new
    new: Object  # as it is; of a deleted one its last state, with the version of the deletion


class ApiServer:
    """Objects and who listens to their changes."""

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        gc_delay: tuple[float, float] = GC_DELAY,
    ) -> None:
        self._gc_delay = gc_delay
        self.objects: dict[ObjectRef, Object] = {}
        self.namespaces = {"kube-system", "default", "kube-scheduler-operator"}
        self.version = 100
        self.back_since = -math.inf
        self.away = False  # no request is answered; kubelets keep their reports in memory
        self.listeners: list[Callable[[Change], None]] = []
        self._uids: set[str] = set()
        self._clock = clock
        self._rng = rng

    # --- reading -------------------------------------------------------------------------------
    def get(self, ref: ObjectRef) -> Object:
        if ref not in self.objects:
            raise self.error("get", ref, 404, "NotFound", f'{ref.resource} "{ref.name}" not found')
        return self.objects[ref]

    def find(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        return self.objects.get(ObjectRef(resource, namespace, name))

    def list(self, resource: Resource, namespace: str | None = None) -> list[Object]:
        return [
            obj
            for ref, obj in self.objects.items()
            if ref.resource == resource and namespace in (None, ref.namespace)
        ]

    # --- writing -------------------------------------------------------------------------------
    def create(self, actor: str, resource: Resource, body: Mapping[str, Any]) -> Object:
        ref = resource.ref(body)
        if resource.namespaced and ref.namespace not in self.namespaces:
            message = f'namespaces "{ref.namespace}" not found'
            raise self.error("create", ref, 404, "NotFound", message)
        if ref in self.objects:
            message = f'{resource} "{ref.name}" already exists'
            raise self.error("create", ref, 409, "AlreadyExists", message)
        obj = clone(body)
        if resource in WITH_STATUS:
            obj.pop("status", None)
        metadata = obj["metadata"]
        metadata["uid"] = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        metadata["creationTimestamp"] = self._clock.stamp()
        if resource in WITH_STATUS:
            metadata["generation"] = 1
        if resource == PODS:
            obj.setdefault("status", {"phase": "Pending"})
        self._admit("create", ref, None, obj)
        return self._commit(actor, "ADDED", ref, None, obj)

    def replace(
        self,
        actor: str,
        resource: Resource,
        body: Mapping[str, Any],
        subresource: str | None = None,
    ) -> Object:
        ref = resource.ref(body)
        old = self.get(ref)
        given = body["metadata"].get("resourceVersion")
        if given and given != old["metadata"]["resourceVersion"]:
            raise self.error("update", ref, 409, "Conflict", "the object has been modified")
        if body["metadata"].get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
            raise self.error("update", ref, 409, "Conflict", "Precondition failed: UID")
        if subresource == "status":
            obj = {**old, "status": clone(body.get("status") or {})}
        else:
            obj = clone(body)
            if resource in WITH_STATUS:
                obj.pop("status", None)
                if "status" in old:
                    obj["status"] = old["status"]
            obj["metadata"] = {
                **{k: v for k, v in obj["metadata"].items() if k not in SERVER_FIELDS},
                **{k: v for k, v in old["metadata"].items() if k in SERVER_FIELDS},
            }
            if resource in WITH_STATUS and obj.get("spec") != old.get("spec"):
                obj["metadata"]["generation"] += 1
        if resource == PODS and actor == "operator":
            obj["status"] = old["status"]  # only the kubelet's requests change it
        obj["metadata"] = {
            **obj["metadata"],
            "resourceVersion": old["metadata"]["resourceVersion"],
        }
        self._admit("update", ref, old, obj)
        if obj == old:
            return old
        return self._commit(actor, "MODIFIED", ref, old, obj)

    def delete(self, actor: str, ref: ObjectRef, uid: str | None = None) -> None:
        old = self.get(ref)
        if uid is not None and uid != old["metadata"]["uid"]:
            raise self.error("delete", ref, 409, "Conflict", "Precondition failed: UID")
        if ref.resource == PODS and _lives_on_a_node(old):
            if "deletionTimestamp" not in old["metadata"]:
                metadata = {**old["metadata"], "deletionTimestamp": self._clock.stamp()}
                self._commit(actor, "MODIFIED", ref, old, {**old, "metadata": metadata})
            return
        self.finalize(actor, ref)

    def finalize(self, actor: str, ref: ObjectRef) -> None:
        """Take an object out at once, as the kubelet does with pods that have ended."""
        old = self.objects.pop(ref, None)
        if old is None:
            return
        self._uids.discard(old["metadata"]["uid"])
        self.version += 1
        gone = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
        self._notify(Change(actor, "DELETED", ref, old, gone))
        owner = old["metadata"]["uid"]
        for dependent, obj in list(self.objects.items()):
            if owner in _owners(obj):
                self._collect_later(dependent, obj)

    def edit(
        self,
        actor: str,
        resource: Resource,
        name: str,
        change: Callable[[Object], object],
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Object:
        """Read, change and write an object, as people and other controllers do."""
        obj = clone(self.get(ObjectRef(resource, namespace, name)))
        change(obj)
        return self.replace(actor, resource, obj, subresource)

    def put(self, actor: str, resource: Resource, name: str, spec: Mapping[str, Any]) -> Object:
        """Create an object without a namespace, or replace its spec; the rest stays."""
        old = self.find(resource, name)
        if old is not None:
            return self.replace(actor, resource, {**old, "spec": spec})
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return self.create(actor, resource, {**kind, "metadata": {"name": name}, "spec": spec})

    def overwrite(self, actor: str, resource: Resource, obj: Mapping[str, Any]) -> Object:
        """Store an object as it is, past every rule: what an older server may have let through."""
        ref = resource.ref(obj)
        old = self.objects.get(ref)
        metadata = {"uid": f"uid-{self.version}", **obj["metadata"]}
        kind = "MODIFIED" if old else "ADDED"
        return self._commit(actor, kind, ref, old, {**obj, "metadata": metadata})

    def restore(self, objects: Mapping[ObjectRef, Object], version: int) -> None:
        """Take over the state of a backup, without events."""
        self.objects, self.version = {ref: clone(obj) for ref, obj in objects.items()}, version
        self._uids = {obj["metadata"]["uid"] for obj in self.objects.values()}

    def error(self, verb: str, ref: ObjectRef, status: int, reason: str, message: str) -> ApiError:
        request = ApiRequest(verb, ref.path, ref.resource, ref.namespace, ref.name)
        body = {"kind": "Status", "reason": reason, "message": message}
        return from_response(request, status, body)

    # --- behind the scenes ----------------------------------------------------------------------
    def _admit(self, verb: str, ref: ObjectRef, old: Object | None, new: Object) -> None:
        problem = ""
        if ref.resource == CONFIG_MAPS and old is not None:
            problem = sealed_problem(old, new)
        if ref.resource == KUBE_SCHEDULERS:
            for level in ("logLevel", "operatorLogLevel"):
                new.setdefault("spec", {}).setdefault(level, "Normal")
            problem = kubescheduler_problem(
                (old or {}).get("status") or {}, new.get("status") or {}
            )
        if problem:
            raise self.error(verb, ref, 422, "Invalid", problem)

    def _commit(
        self, actor: str, kind: str, ref: ObjectRef, old: Object | None, obj: Object
    ) -> Object:
        self.version += 1
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}
        self.objects[ref] = obj
        self._uids.add(obj["metadata"]["uid"])
        self._notify(Change(actor, kind, ref, old, obj))
        if _owners(obj) - self._uids:
            self._collect_later(ref, obj)
        return obj

    def _notify(self, change: Change) -> None:
        for listener in list(self.listeners):
            listener(change)

    def _collect_later(self, ref: ObjectRef, obj: Object) -> None:
        uid = obj["metadata"]["uid"]

        def collect() -> None:
            # A live read, as the garbage collector does before it acts.
            live = self.objects.get(ref)
            if live is None or live["metadata"]["uid"] != uid:
                return
            owners = _owners(live)
            if owners and not owners & self._uids:
                self.delete("gc", ref)
            elif owners - self._uids:
                # One that exists is enough, and the references to the others go.
                self.edit("gc", ref.resource, ref.name, self._forget_owners, ref.namespace)

        self._clock.after(self._rng.uniform(*self._gc_delay), collect)

    def _forget_owners(self, obj: Object) -> None:
        references = obj["metadata"]["ownerReferences"]
        kept = [owner for owner in references if owner["uid"] in self._uids]
        obj["metadata"]["ownerReferences"] = kept


def clone(value: Any) -> Any:
    """A deep copy of JSON, of any depth."""
    whole = [value]
    pending: list[tuple[Any, Any]] = [(whole, 0)]
    while pending:
        holder, key = pending.pop()
        item = holder[key]
        if isinstance(item, Mapping):
            copy: Any = dict(item)
            keys: Iterable[Any] = item
        elif isinstance(item, list | tuple):
            copy, keys = list(item), range(len(item))
        else:
            continue
        holder[key] = copy
        pending += [(copy, key) for key in keys]
    return whole[0]


def _owners(obj: Object) -> set[str]:
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()}


def _lives_on_a_node(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return bool(pod.get("spec", {}).get("nodeName")) and phase not in ("Succeeded", "Failed")

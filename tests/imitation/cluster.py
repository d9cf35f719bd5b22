"""A cluster in which nothing takes time: the operator's store learns of every change at once."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

from kube_scheduler_operator.base.platform import KUBEADM, Platform
from kube_scheduler_operator.kube.errors import Conflict
from kube_scheduler_operator.kube.resource import ObjectRef, Resource
from kube_scheduler_operator.kube.store import Store
from kube_scheduler_operator.operator.engine.executor import Executor
from kube_scheduler_operator.operator.model.plan import Plan

from .apiserver import ApiServer, Change, Object
from .clock import BEGIN, Clock
from .connection import Connection, Recorder, finish


class InstantCluster:
    """An API server, and the operator's store and executor.

    Attributes:
        forbidden: kinds and names of objects whose writes by the operator are rejected, with the
            error.
        writes: the operator's writes, as `VERB KIND NAME`.
    """

    def __init__(self, platform: Platform = KUBEADM) -> None:
        self.platform = platform
        self.clock = Clock()
        self.server = ApiServer(self.clock, random.Random(1), gc_delay=(0.0, 0.0))
        self.server.namespaces.add(platform.target_namespace)
        self.store = Store()
        self.recorder = Recorder()
        self.connection = Connection(self.server)
        self.executor = Executor(self.connection, self.store, self.recorder)
        self.writes: list[str] = []
        self.server.listeners.append(self._learn)
        self.connection.faults.append(self._note)

    @property
    def now(self) -> datetime:
        return self.clock.wall()

    @now.setter
    def now(self, moment: datetime) -> None:
        self.clock.now = (moment - BEGIN).total_seconds()

    # --- what others do -------------------------------------------------------------------------

    def put(self, resource: Resource, name: str, **spec: Any) -> Object:
        """Create an object of a user, or replace its spec; its status stays."""
        return self.server.put("user", resource, name, spec)

    def keep(self, resource: Resource, obj: Object) -> Object:
        """Store an object of another client as it is, whatever its content."""
        return self.server.overwrite("other", resource, obj)

    def change(
        self, resource: Resource, name: str, namespace: str | None = None, **fields: Any
    ) -> None:
        """Replace fields as another client; `labels` and `annotations` are added."""
        obj = self.get(resource, name, namespace)
        metadata = {**obj["metadata"]}
        for key in ("labels", "annotations"):
            if key in fields:
                metadata[key] = {**(metadata.get(key) or {}), **fields.pop(key)}
        if "spec" in fields and "generation" in metadata:
            metadata["generation"] += 1
        self.keep(resource, {**obj, "metadata": metadata, **fields})

    def remove(self, resource: Resource, name: str, namespace: str | None = None) -> set[str]:
        """Delete an object; returns what the garbage collector deletes, as `KIND NAME`."""
        collected: set[str] = set()

        def listen(change: Change) -> None:
            if change.actor == "gc" and change.kind == "DELETED":
                collected.add(f"{change.ref.resource.kind} {change.ref.name}")

        self.server.listeners.append(listen)
        self.server.delete("user", ObjectRef(resource, namespace, name))
        self.clock.run(0.0)
        self.server.listeners.remove(listen)
        return collected

    def begin_as(self, other: InstantCluster) -> None:
        """Take over the objects and the clock of another cluster."""
        self.clock.now = other.clock.now
        self.server.restore(other.server.objects, other.server.version)
        for ref, obj in self.server.objects.items():
            self.store.put(ref.resource, obj)

    # --- the operator ---------------------------------------------------------------------------

    def execute(self, plan: Plan) -> None:
        """Perform a plan; no write conflicts, because nothing is faster than the store."""
        finish(self.executor.execute(plan))
        conflicts = [error for error in self.connection.answers if isinstance(error, Conflict)]
        assert conflicts == []
        self.clock.run(0.0)

    # --- what is there --------------------------------------------------------------------------

    def find(self, resource: Resource, name: str, namespace: str | None = None) -> Any:
        return self.server.find(resource, name, namespace)

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Any:
        return self.server.get(ObjectRef(resource, namespace, name))

    def list(self, resource: Resource) -> tuple[Any, ...]:
        return self.store.view().list(resource)

    def _learn(self, change: Change) -> None:
        if change.kind == "DELETED":
            self.store.remove(change.ref.resource, change.new)
        else:
            self.store.put(change.ref.resource, change.new)

    def _note(self, verb: str, ref: ObjectRef, subresource: str | None) -> None:
        words = ("replace" if verb == "update" else verb, subresource, ref.resource.kind, ref.name)
        self.writes.append(" ".join(word for word in words if word))

"""A cluster in memory for whole reconciles: real store, snapshot and executor, a dictionary as API.

Deployments roll out at once, and dependents are deleted with their owner.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kube_scheduler_operator.base.images import AllowedImages
from kube_scheduler_operator.base.platform import KUBEADM, Platform
from kube_scheduler_operator.base.recognition import Decision
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.engine.executor import Executor
from kube_scheduler_operator.engine.reconcile import reconcile
from kube_scheduler_operator.engine.snapshot_inputs import OperatorSetup, ServerContact
from kube_scheduler_operator.engine.snapshots import take_snapshot
from kube_scheduler_operator.kube.errors import ApiRequest, NotFound
from kube_scheduler_operator.kube.resource import (
    DAEMON_SETS,
    DEPLOYMENTS,
    KUBE_SCHEDULERS,
    PODS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
    ObjectRef,
    Resource,
)
from kube_scheduler_operator.model.plan import Plan
from kube_scheduler_operator.model.snapshot import Snapshot

from .stored import Stored

IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = 60


class _Api:
    """The API of the executor; it reads only deleted objects again."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.create, self.replace, self.delete = cluster.create, cluster.replace, cluster.delete

    async def get(self, ref: ObjectRef) -> Any:
        raise NotFound(ApiRequest("get", ref.path), status=404)


class FakeCluster(Stored):
    """A cluster without nodes.

    Attributes:
        now: the clock; every reconcile advances it.
        allowed_images: the operator's setting.
        image: the operator's setting of kube-scheduler's image.
        agents_ready: whether the pods of DaemonSets become Ready, one for each.
        writes: writes since the last `settle`, as `VERB KIND NAME`.
    """

    def __init__(self, platform: Platform = KUBEADM, decision: Decision | None = None) -> None:
        super().__init__()
        self._platform, self._decision = platform, decision
        self.now = BEGIN
        self.agents_ready = True
        self.allowed_images = AllowedImages()
        self.image = IMAGE
        self.writes: list[str] = []
        self._executor = Executor(_Api(self), self._store, self)  # type: ignore[arg-type]
        self.put(SCHEDULERS, "cluster")
        self.put(KUBE_SCHEDULERS, "cluster")

    # --- users ------------------------------------------------------------------------------

    def put(self, resource: Resource, name: str, **spec: Any) -> None:
        """Create or edit; the status stays."""
        before = self._store.view().get(resource, name) or {}
        generation = int(before.get("metadata", {}).get("generation", 0)) + 1
        metadata = {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **before.get("metadata", {"uid": f"uid-of-{name}"}),
            "name": name,
            "generation": generation,
        }
        self._keep(resource, {**before, "metadata": metadata, "spec": spec})

    def secondary(self, name: str, **spec: Any) -> None:
        self.put(SECONDARY_SCHEDULERS, name, namespace=KUBEADM.target_namespace, **spec)

    def profile(self, name: str, scheduler: str = "", **spec: Any) -> None:
        self.put(
            SCHEDULER_PROFILES, name, **({"scheduler": scheduler} if scheduler else {}), **spec
        )

    def extender(self, name: str, **spec: Any) -> None:
        self.put(SCHEDULER_EXTENDERS, name, **spec)

    def remove(self, resource: Resource, name: str) -> set[str]:
        """Delete an object and its dependents; returns these as `KIND NAME`."""
        obj = self.get(resource, name)
        owned = [
            (ref, one)
            for ref in self._store.view()
            if (one := self._store.get(ref))
            and obj["metadata"]["uid"]
            in [owner["uid"] for owner in one["metadata"].get("ownerReferences", ())]
        ]
        for ref, one in owned:
            self._forget(ref.resource, one)
        self._forget(resource, obj)
        return {f"{ref.resource.kind} {ref.name}" for ref, _ in owned}

    def annotate(self, resource: Resource, name: str, namespace: str, **annotations: str) -> None:
        """Annotate an object as another client."""
        obj = self._store.view().get(resource, name, namespace) or {}
        merged = {**obj["metadata"].get("annotations", {}), **annotations}
        self._keep(resource, {**obj, "metadata": {**obj["metadata"], "annotations": merged}})

    # --- the operator -----------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The cluster a second after the last snapshot."""
        self.now += timedelta(seconds=1)
        return take_snapshot(
            self._store,
            OperatorSetup(
                self._platform,
                Settings(operand_image=self.image, allowed_images=self.allowed_images),
                self._decision,
            ),
            ServerContact("v1.35.4", answered_since=BEGIN - timedelta(hours=1)),
            self.now,
        )

    def reconcile(self) -> Plan:
        """The plan of a reconcile, a second after the last one; it must not change its input."""
        snapshot = self.snapshot()
        before = copy.deepcopy(snapshot)
        plan = reconcile(snapshot)
        assert snapshot == before, "a step changed the snapshot"
        assert reconcile(snapshot) == plan, "one snapshot gave two plans"
        return plan

    def settle(self) -> list[str]:
        """Reconcile until there is nothing to write; returns the writes."""
        self.writes = []
        for daemon_set in self.list(DAEMON_SETS):
            self._run(daemon_set)
        for _ in range(LIMIT):
            plan = self.reconcile()
            if not (plan.actions or plan.reports or plan.write_sets):
                return self.writes
            asyncio.run(self._executor.execute(plan))
            for deployment in self.list(DEPLOYMENTS):
                self._roll_out(deployment)
            for daemon_set in self.list(DAEMON_SETS):
                self._run(daemon_set)
        raise AssertionError(f"writes do not stop: {self.writes}")

    def event(self, *_: Any) -> None:
        """Events are ignored."""

    # --- the API ----------------------------------------------------------------------------

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> Any:
        assert self._store.get(resource.ref(obj)) is None
        made = copy.deepcopy(dict(obj))
        made["metadata"] = {"uid": f"uid-{self._version}", "generation": 1, **made["metadata"]}
        return self._write("create", resource, made)

    async def replace(
        self, resource: Resource, obj: Mapping[str, Any], *, subresource: str | None = None
    ) -> Any:
        before = self._store.get(resource.ref(obj)) or {}
        assert obj["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        made = copy.deepcopy(dict(obj))
        if subresource is None and made.get("spec") != before.get("spec"):
            made["metadata"]["generation"] = int(made["metadata"].get("generation", 0)) + 1
        return self._write(f"replace {subresource}" if subresource else "replace", resource, made)

    async def delete(self, ref: ObjectRef, *, uid: str) -> None:
        obj = self._store.get(ref) or {}
        assert obj["metadata"]["uid"] == uid
        self.writes.append(f"delete {ref.resource.kind} {ref.name}")
        self._forget(ref.resource, obj)

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Any:
        found = self._store.view().get(resource, name, namespace)
        assert found is not None, (resource.kind, name)
        return found

    def list(self, resource: Resource) -> tuple[Any, ...]:
        return self._store.view().list(resource)

    def _write(self, verb: str, resource: Resource, obj: dict[str, Any]) -> Any:
        self.writes.append(f"{verb} {resource.kind} {obj['metadata']['name']}")
        return self._keep(resource, obj)

    def _run(self, daemon_set: Any) -> None:
        """Report one pod, on the only node."""
        ready = int(self.agents_ready)
        status = {
            "desiredNumberScheduled": 1,
            "updatedNumberScheduled": 1,
            "numberReady": ready,
            "observedGeneration": daemon_set["metadata"]["generation"],
        }
        if daemon_set.get("status") != status:
            self._keep(DAEMON_SETS, {**daemon_set, "status": status})

    def _roll_out(self, deployment: Any) -> None:
        """Replace all pods by pods of the current template."""
        generation = deployment["metadata"]["generation"]
        if deployment.get("status", {}).get("observedGeneration") == generation:
            return
        name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
        template, replicas = deployment["spec"]["template"], deployment["spec"]["replicas"]
        for pod in self.list(PODS):
            if pod["metadata"]["name"].startswith(f"{name}-"):
                self._forget(PODS, pod)
        for index in range(replicas):
            metadata = {
                "name": f"{name}-{self._version}-{index}",
                "namespace": namespace,
                "uid": f"uid-{self._version}",
                "labels": template["metadata"]["labels"],
            }
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            self._keep(PODS, {"metadata": metadata, "spec": template["spec"], "status": ready})
        counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), replicas)
        self._keep(
            DEPLOYMENTS, {**deployment, "status": {**counts, "observedGeneration": generation}}
        )

"""A simulated cluster with annotator, exporter, Job and garbage collector."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, Platform
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.engine.executor import Executor
from kube_scheduler_operator.engine.snapshot_inputs import (
    OperatorSetup,
    PreviousReconcile,
    ServerContact,
)
from kube_scheduler_operator.engine.snapshots import take_snapshot
from kube_scheduler_operator.kube.errors import ApiRequest, Forbidden, NotFound
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    LOAD_POLICIES,
    SECRETS,
    ObjectRef,
    Resource,
)
from kube_scheduler_operator.loadpolicy.load_state import policy_digest
from kube_scheduler_operator.loadpolicy.reconcile import LoadPolicies, load_policies
from kube_scheduler_operator.model.plan import Plan
from kube_scheduler_operator.model.snapshot import Snapshot

from ..stored import Stored

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "default"
IMAGE = "registry.example.com/kube-scheduler-operator:1"
LIMIT = 20

Object = dict[str, Any]


class World(Stored):
    """A cluster in which only LoadPolicies are reconciled.

    Attributes:
        now: the clock.
        served: whether the API serves the kind.
        forbidden: kinds whose writes the API rejects.
        writes: writes of the last `run`, as `VERB KIND NAME`.
        events: its events.
    """

    def __init__(self, platform: Platform = KUBEADM, **settings: Any) -> None:
        super().__init__()
        self.platform = platform
        self.settings = Settings(operator_image=IMAGE, **settings)
        self.now = BEGIN
        self.served = True
        self.forbidden: set[Resource] = set()
        self.writes: list[str] = []
        self.events: list[str] = []
        self._executor = Executor(self, self._store, self)  # type: ignore[arg-type]

    # --- people -------------------------------------------------------------------------------

    def put(self, name: str = NAME, *, born: int = 0, **spec: Any) -> None:
        """Create or edit a LoadPolicy; keeps its status."""
        before = self._store.view().get(LOAD_POLICIES, name) or {}
        metadata = {
            "creationTimestamp": stamp(BEGIN + timedelta(seconds=born)),
            **before.get("metadata", {"uid": f"uid-of-{name}-{self._version}"}),
            "name": name,
        }
        metadata["generation"] = int(metadata.get("generation", 0)) + 1
        self._keep(LOAD_POLICIES, {**before, "metadata": metadata, "spec": spec})

    def secret(self, name: str, **labels: str) -> None:
        """Create or label a Secret in the target namespace."""
        metadata = {"name": name, "namespace": self.platform.target_namespace}
        found = {key.replace("_", "-"): value for key, value in labels.items()}
        prefixed = {f"{names.PREFIX}/{key}": value for key, value in found.items()}
        self._keep(SECRETS, {"metadata": {**metadata, "labels": prefixed}})

    def remove(self, name: str = NAME) -> set[str]:
        """Delete a LoadPolicy and collect garbage; returns what was collected, as `KIND NAME`."""
        policy = self.one(LOAD_POLICIES, name)
        uid = policy["metadata"]["uid"]
        gone = set()
        for ref in list(self._store.view()):
            one = self._store.get(ref)
            if one and uid in [o["uid"] for o in one["metadata"].get("ownerReferences", ())]:
                self._forget(ref.resource, one)
                gone.add(f"{ref.resource.kind} {ref.name}")
        self._forget(LOAD_POLICIES, policy)
        return gone

    def change(self, resource: Resource, name: str, **fields: Any) -> None:
        """Edit an object as another client; an edit of the spec increments the generation."""
        obj = copy.deepcopy(self.one(resource, name)) | fields
        if "spec" in fields:
            obj["metadata"]["generation"] += 1
        self._keep(resource, obj)

    # --- the cluster --------------------------------------------------------------------------

    def come_up(self, name: str = NAME, nodes: int = 3) -> None:
        """All pods become Ready."""
        self.change(DEPLOYMENTS, f"load-annotator-{name}", status={"readyReplicas": 2})
        if self.find(DAEMON_SETS, f"node-metrics-{name}"):
            counts = {"desiredNumberScheduled": nodes, "numberReady": nodes}
            self.change(DAEMON_SETS, f"node-metrics-{name}", status=counts)

    def cycle(self, name: str = NAME, **report: Any) -> None:
        """The annotator finishes a cycle and reports it."""
        text = self.file(name)
        state = {
            "at": stamp(self.now), "nodes": 3, "known": 3, "stale": [], "staleCount": 0,
            "missing": [], "missingCount": 0, "error": "", "policy": policy_digest(text),
            "write": json.loads(text)["write"], "removed": [], **report,
        }  # fmt: skip
        data = {**self.one(CONFIG_MAPS, "load-state")["data"], "state.json": json.dumps(state)}
        self.change(CONFIG_MAPS, "load-state", data=data)

    def installed(self, **spec: Any) -> None:
        """A LoadPolicy in use whose programs run."""
        self.put(**spec)
        self.run()
        self.come_up()
        self.cycle()
        self.run()

    def end_job(self, condition: str = "Complete") -> None:
        self.change(
            JOBS, "load-cleanup", status={"conditions": [{"type": condition, "status": "True"}]}
        )

    # --- the operator -------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        return take_snapshot(
            self._store,
            OperatorSetup(self.platform, self.settings),
            ServerContact(
                "v1.35.4",
                answered_since=BEGIN,
                missing_kinds=() if self.served else (LOAD_POLICIES,),
            ),
            self.now,
            previous=PreviousReconcile(write_errors=self._executor.write_errors),
        )

    def reconciled(self) -> LoadPolicies:
        """Reconcile once without writing."""
        return load_policies(self.snapshot())

    def run(self) -> list[str]:
        """Reconcile until nothing changes; returns the writes."""
        self.writes, self.events = [], []
        for _ in range(LIMIT):
            write_sets = self.reconciled().write_sets
            errors = dict(self._executor.write_errors)
            written = len(self.writes)
            asyncio.run(self._executor.execute(Plan(write_sets=write_sets)))
            if len(self.writes) == written and errors == self._executor.write_errors:
                return self.writes
        raise AssertionError(f"does not settle: {self.writes}")

    def event(self, kind: str, reason: str, message: str) -> None:
        self.events.append(message)

    # --- state --------------------------------------------------------------------------------

    def find(self, resource: Resource, name: str) -> Any:
        place = self.platform.target_namespace if resource.namespaced else None
        return self._store.view().get(resource, name, place)

    def one(self, resource: Resource, name: str) -> Any:
        found = self.find(resource, name)
        assert found is not None, (resource.kind, name)
        return found

    def everything(self) -> set[str]:
        """`KIND NAME` of all objects except LoadPolicies."""
        return {
            f"{ref.resource.kind} {ref.name}"
            for ref in self._store.view()
            if ref.resource != LOAD_POLICIES
        }

    def file(self, name: str = NAME) -> str:
        return str(self.one(CONFIG_MAPS, f"load-policy-{name}")["data"]["policy.json"])

    def policy(self, name: str = NAME) -> Object:
        found: Object = json.loads(self.file(name))
        return found

    def written(self) -> str:
        return str(self.one(CONFIG_MAPS, "load-state")["data"]["written"])

    def status(self, name: str = NAME) -> Object:
        found: Object = self.one(LOAD_POLICIES, name).get("status", {})
        return found

    def condition(self, kind: str, name: str = NAME) -> tuple[str, str, str]:
        """Status, reason and message."""
        for one in self.status(name).get("conditions", ()):
            if one["type"] == kind:
                return one["status"], one.get("reason", ""), one.get("message", "")
        raise AssertionError(f"no condition {kind}")

    def degraded(self) -> str:
        """The message of KubeScheduler's condition; empty if it is not degraded."""
        (condition,) = self.reconciled().conditions
        assert condition.type == names.LOAD_POLICIES_DEGRADED
        assert (condition.status == "True") == bool(condition.message)
        return condition.message

    # --- the API ------------------------------------------------------------------------------

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> Any:
        self._refuse(resource)
        assert self._store.get(resource.ref(obj)) is None
        made = copy.deepcopy(dict(obj))
        made["metadata"] = {
            "uid": f"uid-{self._version}",
            "generation": 1,
            "creationTimestamp": stamp(self.now),
            **made["metadata"],
        }
        self.writes.append(f"create {resource.kind} {obj['metadata']['name']}")
        return self._keep(resource, made)

    async def replace(
        self, resource: Resource, obj: Mapping[str, Any], *, subresource: str | None = None
    ) -> Any:
        self._refuse(resource)
        before = self._store.get(resource.ref(obj)) or {}
        assert obj["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        made = copy.deepcopy(dict(obj))
        if subresource is None and made.get("spec") != before.get("spec"):
            made["metadata"]["generation"] = int(made["metadata"].get("generation", 0)) + 1
        verb = subresource or "replace"
        self.writes.append(f"{verb} {resource.kind} {obj['metadata']['name']}")
        return self._keep(resource, made)

    async def get(self, ref: ObjectRef) -> Any:
        found = self._store.get(ref)
        if found is None:
            raise NotFound(ApiRequest("get", ref.path), status=404)
        return found

    async def delete(self, ref: ObjectRef, *, uid: str) -> None:
        self._refuse(ref.resource)
        obj = self._store.get(ref) or {}
        assert obj["metadata"]["uid"] == uid
        self.writes.append(f"delete {ref.resource.kind} {ref.name}")
        self._forget(ref.resource, obj)

    def _refuse(self, resource: Resource) -> None:
        if resource in self.forbidden:
            raise Forbidden(ApiRequest("update", resource.path()), status=403)


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

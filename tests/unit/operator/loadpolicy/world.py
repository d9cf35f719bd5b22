"""A simulated cluster with annotator, exporter, Job and garbage collector."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, Platform
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.errors import ApiError, ApiRequest, Forbidden
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
from kube_scheduler_operator.operator.engine.snapshots import take_snapshot
from kube_scheduler_operator.operator.loadpolicy.reconcile import LoadPolicies, load_policies
from kube_scheduler_operator.operator.model.plan import Plan
from kube_scheduler_operator.operator.model.snapshot import Snapshot
from kube_scheduler_operator.operator.model.workloads import digest

from ....expect import condition_in
from ....imitation.clock import BEGIN
from ....imitation.cluster import InstantCluster

NAME = "default"
IMAGE = "registry.example.com/kube-scheduler-operator:1"
LIMIT = 20

Object = dict[str, Any]


class World:
    """A cluster in which only LoadPolicies are reconciled.

    Attributes:
        served: whether the API serves the kind.
        forbidden: kinds whose writes the API rejects.
    """

    def __init__(self, platform: Platform = KUBEADM, **settings: Any) -> None:
        self.platform = platform
        self.settings = Settings(operator_image=IMAGE, **settings)
        self.cluster = InstantCluster(platform)
        self.cluster.connection.faults.insert(0, self._refuse)
        self.served = True
        self.forbidden: set[Resource] = set()

    # --- people -------------------------------------------------------------------------------

    def put(self, name: str = NAME, **spec: Any) -> None:
        """Edit a LoadPolicy, or create one that is younger than all others."""
        if self.find(LOAD_POLICIES, name) is None:
            self.cluster.clock.run(1.0)
        self.cluster.put(LOAD_POLICIES, name, **spec)

    def secret(self, name: str, **labels: str) -> None:
        """Create or label a Secret in the target namespace."""
        metadata = {"name": name, "namespace": self.platform.target_namespace}
        prefixed = {
            f"{names.PREFIX}/{key.replace('_', '-')}": value for key, value in labels.items()
        }
        self.cluster.keep(SECRETS, {"metadata": {**metadata, "labels": prefixed}})

    def remove(self, name: str = NAME) -> set[str]:
        """Delete a LoadPolicy; returns what the garbage collector deletes, as `KIND NAME`."""
        return self.cluster.remove(LOAD_POLICIES, name)

    def change(self, resource: Resource, name: str, **fields: Any) -> None:
        """Edit an object as another client."""
        self.cluster.change(resource, name, self._place(resource), **fields)

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
            "at": self.cluster.clock.stamp(), "nodes": 3, "known": 3, "stale": [], "staleCount": 0,
            "missing": [], "missingCount": 0, "error": "", "policy": digest(text),
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
        missing = () if self.served else (LOAD_POLICIES,)
        now, errors = self.cluster.now, self.cluster.executor.write_errors
        objects = take_snapshot(
            self.cluster.store, self.platform, self.settings, now, missing_kinds=missing
        )
        return replace(objects, server_version="v1.35.4", answered_since=BEGIN, write_errors=errors)

    def reconciled(self) -> LoadPolicies:
        """Reconcile once without writing."""
        return load_policies(self.snapshot())

    def run(self) -> list[str]:
        """Reconcile until nothing changes; returns the writes."""
        cluster = self.cluster
        cluster.writes, cluster.recorder.events = [], []
        for _ in range(LIMIT):
            errors = dict(cluster.executor.write_errors)
            written = len(cluster.writes)
            cluster.execute(Plan(write_sets=self.reconciled().write_sets))
            if len(cluster.writes) == written and errors == cluster.executor.write_errors:
                return cluster.writes
        raise AssertionError(f"does not settle: {cluster.writes}")

    @property
    def events(self) -> list[str]:
        """The messages of the events of the last `run`."""
        return [message for _, _, message in self.cluster.recorder.events]

    # --- state --------------------------------------------------------------------------------

    def find(self, resource: Resource, name: str) -> Any:
        return self.cluster.find(resource, name, self._place(resource))

    def one(self, resource: Resource, name: str) -> Any:
        return self.cluster.get(resource, name, self._place(resource))

    def _place(self, resource: Resource) -> str | None:
        return self.platform.target_namespace if resource.namespaced else None

    def everything(self) -> set[str]:
        """`KIND NAME` of all objects except LoadPolicies."""
        return {
            f"{ref.resource.kind} {ref.name}"
            for ref in self.cluster.store.view()
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
        return condition_in(self.status(name).get("conditions", ()), kind)

    def degraded(self) -> str:
        """The message of KubeScheduler's condition; empty if it is not degraded."""
        (condition,) = self.reconciled().conditions
        assert condition.type == names.LOAD_POLICIES_DEGRADED
        assert (condition.status == "True") == bool(condition.message)
        return condition.message

    def _refuse(self, verb: str, ref: ObjectRef, _: str | None) -> ApiError | None:
        is_forbidden = ref.resource in self.forbidden
        return Forbidden(ApiRequest(verb, ref.path), status=403) if is_forbidden else None

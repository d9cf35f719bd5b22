"""A whole cluster: API server, control-plane nodes, election of the scheduler, users, operator."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, Platform
from kube_scheduler_operator.base.settings import Rollout, Settings
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    LEASES,
    PODS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    ObjectRef,
)
from kube_scheduler_operator.operator.controlplane.revision.history import Revision, read

from ..expect import condition_of
from ..imitation.apiserver import ApiServer, Object
from ..imitation.clock import Clock
from ..imitation.kubelet import lease_spec
from .invariants import Invariants
from .machine import Machine
from .operator import OperatorProcess
from .scheduler import STOCK, Behavior, Manifest

LEASE_SECONDS = 15.0
RENEWAL = 4.0


class World:
    """Everything, deterministic from `seed`.

    Args:
        nodes: how many control-plane nodes.
        seed: decides lags and uids.
        lag: longest delay of a watch event, seconds.
        script: `percentageOfNodesToScore` of a configuration -> how a scheduler behaves with it.
        start: whether the operator is started.
        platform: the kind of cluster.
    """

    def __init__(
        self,
        nodes: int = 1,
        seed: int = 1,
        lag: float = 0.2,
        script: dict[int, Behavior] | None = None,
        start: bool = True,
        secondary: bool = False,
        platform: Platform = KUBEADM,
    ) -> None:
        self.clock = Clock()
        self.rng = random.Random(seed)
        self.platform = platform
        self.script = script or {}
        self.server = ApiServer(self.clock, self.rng)
        # Without secondary schedulers, watches without events only take time.
        places = None if secondary else ()
        self.settings = Settings(rollout=Rollout(), secondary_namespaces=places)
        self.machines: dict[str, Machine] = {}
        self.invariants = Invariants(self)
        self.server.listeners.append(self.invariants.changed)
        self.server.put("admin", SCHEDULERS, names.CLUSTER, {})
        self.server.put("admin", KUBE_SCHEDULERS, names.CLUSTER, {})
        for name in "abcdefg"[:nodes]:
            self.add_node(f"node-{name}")
        self._elect()
        self._beat()
        self.operator = OperatorProcess(
            self.server, self.clock, self.rng, self.platform, self.settings, lag
        )
        self.run(4.0)
        if start:
            self.operator.start()

    # --- time -----------------------------------------------------------------------------------
    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.run_until(None, seconds)

    def run_until(
        self, condition: Callable[[], bool] | None, timeout: float, why: str = ""
    ) -> None:
        """Let things happen until `condition` holds; every step is checked."""
        end = self.clock.now + timeout
        while not (condition and condition()):
            if not self.clock.step(end):
                if condition is None or condition():
                    return
                raise AssertionError(f"not within {timeout:g} s: {why or condition}\n{self}")
            self.invariants.check()

    def settle(self, timeout: float = 300.0) -> None:
        """Until every node runs what is wanted, nothing is wrong, and the operator is content."""
        self.run_until(self.settled, timeout, "settled")

    def settled(self) -> bool:
        status = self.status
        revisions = self.revisions
        latest = revisions[-1].number if revisions else 0
        return (
            bool(latest)
            and status.get("latestAvailableRevision") == latest
            and all(machine.healthy for machine in self.machines.values())
            and {entry["nodeName"] for entry in self.entries} == set(self.machines)
            and all(self.is_on_target(entry) for entry in self.entries)
            and self.condition(names.STATIC_PODS_AVAILABLE) == "True"
            and self.condition(names.NODE_INSTALLER_PROGRESSING) == "False"
        )

    def is_on_target(self, entry: Object) -> bool:
        """Whether a node runs the newest revision that is not bad, by all accounts."""
        good = [r.number for r in self.revisions if not r.bad and not r.withdrawn]
        current = entry.get("currentRevision")
        machine = self.machines[entry["nodeName"]]
        return (
            not entry.get("targetRevision")
            and bool(good)
            and current == good[-1]
            and machine.shown == current
            and self.revision(current).outcome == names.OUTCOME_INSTALLED
        )

    # --- what is there --------------------------------------------------------------------------
    @property
    def kubescheduler(self) -> Object:
        return self.server.find(KUBE_SCHEDULERS, "cluster") or {}

    @property
    def status(self) -> Object:
        return self.kubescheduler.get("status") or {}

    @property
    def entries(self) -> list[Object]:
        return self.status.get("nodeStatuses") or []

    @property
    def revisions(self) -> tuple[Revision, ...]:
        found = self.server.list(CONFIG_MAPS, self.platform.target_namespace)
        return read({obj["metadata"]["name"]: obj for obj in found}, KUBEADM.parts)

    def revision(self, number: int) -> Revision:
        return next(revision for revision in self.revisions if revision.number == number)

    def condition(self, type_: str) -> str:
        return str(self.full_condition(type_).get("status", ""))

    def full_condition(self, type_: str) -> Object:
        conditions = self.status.get("conditions") or []
        return next((c for c in conditions if c["type"] == type_), {})

    def operator_condition(self, type_: str) -> Object:
        found = self.server.find(CLUSTER_OPERATORS, names.CLUSTEROPERATOR) or {}
        conditions = (found.get("status") or {}).get("conditions") or []
        return next((c for c in conditions if c["type"] == type_), {})

    def current(self) -> dict[str, int]:
        return {entry["nodeName"]: entry.get("currentRevision", 0) for entry in self.entries}

    def config(self, number: int) -> str:
        return str(self.config_map(f"{names.CONFIG}-{number}")["data"][names.CONFIG_KEY])

    def config_map(self, name: str) -> Object:
        return self.server.get(self.config_map_ref(name))

    def config_map_ref(self, name: str) -> ObjectRef:
        return ObjectRef(CONFIG_MAPS, self.platform.target_namespace, name)

    def installer_pods(self) -> list[Object]:
        return self._pods(names.INSTALLER)

    def guard_pods(self) -> list[Object]:
        return self._pods(names.GUARD)

    def guarded(self) -> set[str]:
        """Nodes with a guard that runs."""
        return {
            pod["spec"]["nodeName"]
            for pod in self.guard_pods()
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def is_guarded(self) -> bool:
        """Whether every node has its guard, and a scheduler that knows the node's kubeconfig."""
        return self.guarded() == set(self.machines) and all(
            machine.process is not None
            and machine.process.manifest.kubeconfig == machine.kubeconfig
            for machine in self.machines.values()
        )

    def _pods(self, app: str) -> list[Object]:
        found = self.server.list(PODS, self.platform.target_namespace)
        return [pod for pod in found if pod["metadata"]["labels"]["app"] == app]

    def has_event(self, reason: str) -> bool:
        return any(event[1] == reason for event in self.operator.recorder.events)

    # --- what users do --------------------------------------------------------------------------
    def spec(self, **fields: Any) -> None:
        """Set fields of KubeScheduler's spec."""
        self.server.edit("user", KUBE_SCHEDULERS, "cluster", lambda obj: obj["spec"].update(fields))

    def profile(self, name: str) -> None:
        self.server.edit(
            "user", SCHEDULERS, "cluster", lambda obj: obj["spec"].update(profile=name)
        )

    def offer(self, name: str, **spec: Any) -> None:
        """Create a SchedulerProfile, or write another spec into it."""
        self.server.put("user", SCHEDULER_PROFILES, name, spec)

    def retract(self, name: str) -> None:
        """Delete a SchedulerProfile."""
        self.server.delete("user", ObjectRef(SCHEDULER_PROFILES, None, name))

    def accepted(self, name: str) -> str:
        """Status of the condition Accepted of a SchedulerProfile; empty if not reported."""
        return condition_of(self.server.find(SCHEDULER_PROFILES, name) or {}, names.ACCEPTED)[0]

    @property
    def served(self) -> list[str]:
        """The schedulerNames of the latest revision that nodes run."""
        config = json.loads(self.config(max(self.current().values())))
        return [profile["schedulerName"] for profile in config.get("profiles") or ()]

    def tune(self, percentage: int | None) -> None:
        """An edit whose effect on the scheduler is in the script."""
        overrides = None if percentage is None else {"percentageOfNodesToScore": percentage}
        self.spec(unsupportedConfigOverrides=overrides)

    def outage(self, seconds: float) -> None:
        """The API server is away for so long."""
        self.server.away = True
        self.operator.lose_api_server()
        for machine in self.machines.values():
            machine.lose_api_server()
        self.run(seconds)
        self.server.away, self.server.back_since = False, self.clock.now
        self.operator.find_api_server()

    # --- nodes ----------------------------------------------------------------------------------
    def add_node(self, name: str, manifest: Manifest = STOCK) -> Machine:
        machine = Machine(
            name, self.server, self.clock, self.platform, self.script, self.rng, manifest
        )
        self.machines[name] = machine
        return machine

    def remove_node(self, name: str) -> None:
        self.machines.pop(name).remove()

    def replace_node(self, name: str) -> Machine:
        """Another machine under the same name."""
        self.remove_node(name)
        self.run(2.0)
        return self.add_node(name)

    # --- the scheduler's own election -----------------------------------------------------------
    @property
    def leader(self) -> str:
        lease = self.server.find(LEASES, self.platform.operand_lease_name, "kube-system")
        return str(((lease or {}).get("spec") or {}).get("holderIdentity", "")).rpartition("_")[0]

    def _elect(self) -> None:
        if self.server.away:
            self.clock.after(RENEWAL, self._elect)
            return
        healthy = [name for name, machine in sorted(self.machines.items()) if machine.healthy]
        ref = ObjectRef(LEASES, "kube-system", self.platform.operand_lease_name)
        lease = self.server.objects.get(ref)
        held_for = self.clock.now - getattr(self, "_renewed", -100.0)
        holder = self.leader
        if holder not in healthy and held_for > LEASE_SECONDS and healthy:
            holder = healthy[0]
        if holder in healthy:
            self._renewed = self.clock.now
            machine = self.machines[holder]
            spec = lease_spec(f"{holder}_{machine.uid}", machine.stamp(), int(LEASE_SECONDS))
            if lease is None:
                metadata = {"name": ref.name, "namespace": ref.namespace}
                body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
                self.server.create(
                    "scheduler", LEASES, {**body, "metadata": metadata, "spec": spec}
                )
            else:
                self.server.replace("scheduler", LEASES, {**lease, "spec": spec})
        self.clock.after(RENEWAL, self._elect)

    def _beat(self) -> None:
        for machine in list(self.machines.values()):
            machine.heartbeat()
        self.clock.after(60.0, self._beat)

    def __str__(self) -> str:
        lines = [f"t={self.clock.now:.2f} passes={self.operator.passes} {self.operator.trouble}"]
        lines += [f"  {entry}" for entry in self.entries]
        lines += [
            f"  revision {r.number}: ready={r.ready} {r.outcome} {r.message} {r.hash[:8]} "
            f"quarantined={[q[:8] for q in r.quarantined]}"
            for r in self.revisions
        ]
        lines += [
            f"  {m.name}: up={m.up} shown={m.shown} healthy={m.healthy} swapping={m.swapping}"
            for m in self.machines.values()
        ]
        lines += [
            f"  {pod['metadata']['name']}: {pod['status']} "
            f"{pod['metadata'].get('deletionTimestamp')}"
            for pod in self.installer_pods()
        ]
        lines += [
            f"  {c['type']}={c['status']} {c.get('reason')}: {c.get('message')}"
            for c in self.status.get("conditions") or ()
        ]
        return "\n".join(lines)

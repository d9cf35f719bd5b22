"""A cluster in memory: it performs the writes of reconciles and simulates the Deployment's pods."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.images import EVERY_IMAGE
from kube_scheduler_operator.base.objects import NamespacedName, label
from kube_scheduler_operator.base.platform import KUBEADM, Platform
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.controlplane.observed_facts import facts_of, objects_of
from kube_scheduler_operator.engine.reconcile import reconcile
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PODS,
    SECONDARY_SCHEDULERS,
    ObjectRef,
    Resource,
)
from kube_scheduler_operator.model.plan import Action, Create, Delete, Plan, Replace
from kube_scheduler_operator.model.snapshot import (
    BindingScheduler,
    PendingPod,
    Secondaries,
    Snapshot,
)
from kube_scheduler_operator.secondary.objects import running_hash
from kube_scheduler_operator.secondary.reconcile import SecondarySchedulers, secondary_schedulers

IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"
NAMESPACE = KUBEADM.target_namespace
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "my-scheduler"

Object = dict[str, Any]


class World:
    """A cluster without a managed control plane: only secondary schedulers are reconciled.

    Attributes:
        writes: what the last `run` wrote, as `VERB KIND NAME`.
        events: the events of that run.
    """

    def __init__(self, platform: Platform = KUBEADM, **settings: Any) -> None:
        self.platform = platform
        settings = {"allowed_images": EVERY_IMAGE, **settings}
        self.settings = Settings(operand_image=IMAGE, **settings)
        self.now = BEGIN
        self.objects: dict[tuple[Resource, str | None, str], Object] = {}
        self.leases: dict[NamespacedName, Object] = {}
        self.leases_seen: dict[NamespacedName, datetime] = {}
        self.write_errors: dict[ObjectRef, str] = {}
        self.pending: tuple[PendingPod, ...] = ()
        self.binders: tuple[BindingScheduler, ...] = ()
        self.nodes: dict[str, Object] = {}
        self.node_left: datetime | None = None
        self.config_maps: dict[str, Object] = {}
        self.profiles: dict[str, Object] | None = {}
        self.extenders: dict[str, Object] | None = {}
        self.recovered_at: datetime | None = None
        self.answered_since: datetime | None = BEGIN - timedelta(hours=1)
        self.writes: list[str] = []
        self.events: list[str] = []
        self._version = 0

    # --- the user ---------------------------------------------------------------------------

    def put(self, name: str = NAME, *, uid: str = "", born: int = 0, **spec: Any) -> None:
        """Create or edit a SecondaryScheduler."""
        key = (SECONDARY_SCHEDULERS, None, name)
        found = self.objects.get(key)
        metadata = {
            "name": name,
            "uid": uid or f"uid-of-{name}",
            "creationTimestamp": f"2026-01-01T00:00:{born:02d}Z",
            "generation": found["metadata"]["generation"] + 1 if found else 1,
        }
        obj = {"metadata": metadata, "spec": {"namespace": NAMESPACE, **spec}}
        if found and found["metadata"]["uid"] == metadata["uid"]:
            obj["status"] = found["status"]
        self._store(SECONDARY_SCHEDULERS, obj)

    def profile(self, name: str, scheduler: str = NAME, **spec: Any) -> None:
        """Create or edit a SchedulerProfile; its status stays."""
        assert self.profiles is not None
        status = self.profiles.get(name, {}).get("status", {})
        spec = {"scheduler": scheduler, **spec}
        self.profiles[name] = {"metadata": {"name": name}, "spec": spec, "status": status}

    def extender(self, name: str, scheduler: str = NAME, port: int = 0, **spec: Any) -> None:
        """Create or edit a SchedulerExtender; its status records `port`."""
        assert self.extenders is not None
        spec = {"scheduler": scheduler, **spec}
        status = {"agent": {"port": port}} if port else {}
        self.extenders[name] = {"metadata": {"name": name}, "spec": spec, "status": status}

    # --- the operator -----------------------------------------------------------------------

    def plan(self) -> Plan:
        """The plan of one reconcile."""
        return reconcile(self.snapshot())

    @property
    def wait(self) -> float | None:
        """Seconds until the next reconcile if nothing changes, for secondary schedulers."""
        return self.secondary().requeue_after

    def secondary(self) -> SecondarySchedulers:
        """The result of one reconcile for secondary schedulers."""
        snapshot = self.snapshot()
        return secondary_schedulers(snapshot, objects_of(snapshot), facts_of(snapshot, IMAGE))

    def snapshot(self) -> Snapshot:
        schedulers = {
            name: obj
            for (kind, _, name), obj in self.objects.items()
            if kind == SECONDARY_SCHEDULERS
        }
        created: dict[str, dict[Resource, dict[str, Object]]] = {name: {} for name in schedulers}
        for (kind, _, name), obj in self.objects.items():
            whose = label(obj, names.SECONDARY_LABEL)
            if whose in created:
                created[whose].setdefault(kind, {})[name] = obj
        secondaries = Secondaries(
            schedulers,
            created,
            self.leases,
            self.leases_seen,
        )
        return Snapshot(
            now=self.now,
            platform=self.platform,
            settings=self.settings,
            server_version="v1.35.4",
            config_maps=self.config_maps,
            nodes=self.nodes,
            node_left=self.node_left,
            scheduler_profiles=self.profiles,
            scheduler_extenders=self.extenders,
            answered_since=self.answered_since,
            recovered_at=self.recovered_at,
            secondaries=secondaries,
            pending_pods=self.pending,
            binding_schedulers=self.binders,
            write_errors=dict(self.write_errors),
        )

    def run(self, limit: int = 10) -> None:
        """Reconcile until there is nothing to write."""
        self.writes, self.events = [], []
        for _ in range(limit):
            write_sets = self.plan().write_sets
            if not write_sets:
                return
            for writes in write_sets.values():
                for action in writes:
                    self._perform(action)
        raise AssertionError(f"not settled: {self.writes}")

    def _perform(self, action: Action) -> None:
        obj = copy.deepcopy(dict(action.obj))
        metadata = obj["metadata"]
        kind = action.resource.kind
        self.writes.append(f"{type(action).__name__.lower()} {kind} {metadata['name']}")
        self.events += [event.message for event in action.events]
        key = (action.resource, metadata.get("namespace"), metadata["name"])
        before = self.objects.get(key)
        match action:
            case Create():
                assert before is None, key
                assert action.exclusive, key
                obj["metadata"] = {"generation": 1, **metadata, "uid": f"uid-{self._version}"}
                self._store(action.resource, obj)
            case Replace():
                assert before is not None, key
                assert metadata["resourceVersion"] == before["metadata"]["resourceVersion"]
                if before.get("immutable"):
                    assert obj["data"] == before["data"], "an immutable object cannot change"
                if action.subresource != "status" and obj.get("spec") != before.get("spec"):
                    obj["metadata"] = {**metadata, "generation": metadata["generation"] + 1}
                self._store(action.resource, obj)
            case Delete():
                del self.objects[key]

    def _store(self, resource: Resource, obj: Object) -> None:
        self._version += 1
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(self._version)
        place = metadata.get("namespace") if resource.namespaced else None
        self.objects[resource, place, metadata["name"]] = obj

    # --- the cluster ------------------------------------------------------------------------

    def get(
        self, resource: Resource, name: str = NAME, namespace: str | None = NAMESPACE
    ) -> Object:
        return self.objects[resource, namespace if resource.namespaced else None, name]

    def edit(self, resource: Resource, name: str = NAME, **fields: Any) -> None:
        """Edit one of the operator's objects as another client; a new spec is a new generation."""
        obj = copy.deepcopy(self.get(resource, name))
        obj |= fields
        if "spec" in fields:
            obj["metadata"]["generation"] += 1
        self._store(resource, obj)

    def config_map_hashes(self, name: str = NAME) -> set[str]:
        return {
            label(obj, names.CONFIG_HASH_LABEL)
            for (kind, _, _), obj in self.objects.items()
            if kind == CONFIG_MAPS and label(obj, names.SECONDARY_LABEL) == name
        }

    def running(self, name: str = NAME) -> str:
        """The hash of the content that the Deployment runs."""
        return running_hash(self.get(DEPLOYMENTS, name))

    def pod(self, hash_: str, index: int = 0, *, name: str = NAME, **status: Any) -> None:
        """Create a pod that runs a content; it is healthy by default."""
        pod_name = f"{name}-{hash_}-{index}"
        labels = {names.SECONDARY_LABEL: name, names.CONFIG_HASH_LABEL: hash_}
        metadata = {
            "name": pod_name,
            "namespace": NAMESPACE,
            "labels": labels,
            "creationTimestamp": stamp(self.now),
        }
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": []}
        self._store(PODS, {"metadata": metadata, "spec": {}, "status": status or ready})

    def no_pods(self, hash_: str = "", name: str = NAME) -> None:
        for key, obj in list(self.objects.items()):
            mine = key[0] == PODS and label(obj, names.SECONDARY_LABEL) == name
            if mine and hash_ in ("", label(obj, names.CONFIG_HASH_LABEL)):
                del self.objects[key]

    def roll_out(self, name: str = NAME) -> None:
        """Complete the Deployment's rollout; one of its pods leads."""
        deployment = copy.deepcopy(self.get(DEPLOYMENTS, name))
        replicas = deployment["spec"]["replicas"]
        self.no_pods(name=name)
        hash_ = running_hash(deployment)
        for index in range(replicas):
            self.pod(hash_, index, name=name)
        counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), replicas)
        generation = deployment["metadata"]["generation"]
        deployment["status"] = {**counts, "observedGeneration": generation}
        self._store(DEPLOYMENTS, deployment)
        spec = {"holderIdentity": f"{name}-{hash_}-0_x", "leaseDurationSeconds": 15}
        self.leases[NAMESPACE, name] = {"metadata": {"name": name}, "spec": spec}
        self.leases_seen[NAMESPACE, name] = self.now

    def installed(self, **spec: Any) -> str:
        """Create a SecondaryScheduler and complete its rollout; return the hash of its content."""
        self.put(**spec)
        self.run()
        self.roll_out()
        self.run()
        return self.running()

    # --- the report ------------------------------------------------------------------------

    def status(self, name: str = NAME) -> Object:
        found: Object = self.get(SECONDARY_SCHEDULERS, name).get("status", {})
        return found

    def condition(self, type_: str, name: str = NAME) -> tuple[str, str, str]:
        """Status, reason and message."""
        for one in self.status(name).get("conditions", ()):
            if one["type"] == type_:
                return one["status"], one.get("reason", ""), one.get("message", "")
        raise AssertionError(f"no condition {type_}")

    def outcomes(self, name: str = NAME) -> dict[str, str]:
        return {entry["hash"]: entry["outcome"] for entry in self.status(name).get("history", ())}


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def refusing(words: str, code: int = 1) -> Object:
    """Status of a pod whose kube-scheduler refuses its configuration."""
    ended = {"exitCode": code, "message": words, "finishedAt": "2026-01-01T00:00:00Z"}
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 20s"}
    preflight = {
        "name": names.PREFLIGHT,
        "state": {"waiting": waiting},
        "lastState": {"terminated": ended},
    }
    return {"initContainerStatuses": [preflight], "containerStatuses": []}


def crashing(words: str, restarts: int, ended: datetime, container: str = names.OPERAND) -> Object:
    """Status of a pod with a crash-looping container."""
    terminated = {"exitCode": 1, "message": words, "finishedAt": stamp(ended)}
    one = {
        "name": container,
        "ready": False,
        "restartCount": restarts,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
        "lastState": {"terminated": terminated},
    }
    return {"conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [one]}


def hanging(since: datetime) -> Object:
    """Status of a pod that runs and does not become Ready."""
    state = {"running": {"startedAt": stamp(since)}}
    one = {"name": names.OPERAND, "ready": False, "restartCount": 0, "state": state}
    return {"conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [one]}

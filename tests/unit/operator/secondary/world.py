"""A cluster in which only secondary schedulers are reconciled, with the Deployment's Pods."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.images import EVERY_IMAGE
from kube_scheduler_operator.base.objects import NamespacedName, label
from kube_scheduler_operator.base.platform import KUBEADM, Platform
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PODS,
    SECONDARY_SCHEDULERS,
    ObjectRef,
    Resource,
)
from kube_scheduler_operator.operator.controlplane.desired import facts_of, objects_of
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.model.plan import Create, Plan
from kube_scheduler_operator.operator.model.snapshot import (
    BindingScheduler,
    PendingPod,
    Secondaries,
    Snapshot,
)
from kube_scheduler_operator.operator.secondary.content import running_hash
from kube_scheduler_operator.operator.secondary.reconcile import (
    SecondarySchedulers,
    secondary_schedulers,
)

from ....expect import condition_in
from ....imitation.clock import BEGIN
from ....imitation.cluster import InstantCluster
from ....imitation.workloads import roll_out

IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"
NAMESPACE = KUBEADM.target_namespace
NAME = "my-scheduler"

Object = dict[str, Any]


class World:
    """A cluster without a managed control plane: only secondary schedulers are reconciled.

    Attributes:
        cluster: with the SecondarySchedulers and their objects.
    """

    def __init__(self, platform: Platform = KUBEADM, **settings: Any) -> None:
        self.platform = platform
        settings = {"allowed_images": EVERY_IMAGE, **settings}
        self.settings = Settings(operand_image=IMAGE, **settings)
        self.cluster = InstantCluster(platform)
        self.cluster.server.namespaces |= set(self.settings.secondary_namespaces or ())
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

    # --- the user ---------------------------------------------------------------------------

    def put(self, name: str = NAME, *, uid: str = "", born: int = 0, **spec: Any) -> None:
        """Create or edit a SecondaryScheduler."""
        found = self.cluster.find(SECONDARY_SCHEDULERS, name)
        metadata = {
            "name": name,
            "uid": uid or f"uid-of-{name}",
            "creationTimestamp": f"2026-01-01T00:00:{born:02d}Z",
            "generation": found["metadata"]["generation"] + 1 if found else 1,
        }
        obj = {"metadata": metadata, "spec": {"namespace": NAMESPACE, **spec}}
        if found and found["metadata"]["uid"] == metadata["uid"]:
            obj["status"] = found["status"]
        self.cluster.keep(SECONDARY_SCHEDULERS, obj)

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
            obj["metadata"]["name"]: obj for obj in self.cluster.list(SECONDARY_SCHEDULERS)
        }
        created: dict[str, dict[Resource, dict[str, Object]]] = {name: {} for name in schedulers}
        for ref, obj in self.cluster.server.objects.items():
            whose = label(obj, names.SECONDARY_LABEL)
            if whose in created:
                created[whose].setdefault(ref.resource, {})[ref.name] = obj
        secondaries = Secondaries(
            schedulers,
            created,
            self.leases,
            self.leases_seen,
        )
        return Snapshot(
            now=self.cluster.now,
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
        self.cluster.writes, self.cluster.recorder.events = [], []
        for _ in range(limit):
            write_sets = self.plan().write_sets
            if not write_sets:
                return
            for action in chain.from_iterable(write_sets.values()):
                assert not isinstance(action, Create) or action.exclusive, action
            self.cluster.execute(Plan(write_sets=write_sets))
        raise AssertionError(f"not settled: {self.writes}")

    @property
    def writes(self) -> list[str]:
        """The writes of the last `run`, as `VERB KIND NAME`."""
        return self.cluster.writes

    @property
    def events(self) -> list[str]:
        """The messages of the events of the last `run`."""
        return [message for _, _, message in self.cluster.recorder.events]

    # --- the cluster ------------------------------------------------------------------------

    @property
    def objects(self) -> dict[tuple[Resource, str | None, str], Object]:
        """All objects, by kind, namespace and name."""
        found = self.cluster.server.objects
        return {(ref.resource, ref.namespace, ref.name): obj for ref, obj in found.items()}

    def get(
        self, resource: Resource, name: str = NAME, namespace: str | None = NAMESPACE
    ) -> Object:
        return dict(self.cluster.get(resource, name, namespace if resource.namespaced else None))

    def edit(self, resource: Resource, name: str = NAME, **fields: Any) -> None:
        """Edit one of the operator's objects as another client."""
        self.cluster.change(resource, name, NAMESPACE if resource.namespaced else None, **fields)

    def config_map_hashes(self, name: str = NAME) -> set[str]:
        return {
            label(obj, names.CONFIG_HASH_LABEL)
            for obj in self.cluster.list(CONFIG_MAPS)
            if label(obj, names.SECONDARY_LABEL) == name
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
            "creationTimestamp": self.cluster.clock.stamp(),
        }
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": []}
        self.cluster.keep(PODS, {"metadata": metadata, "spec": {}, "status": status or ready})

    def no_pods(self, hash_: str = "", name: str = NAME) -> None:
        for pod in self.cluster.list(PODS):
            is_own = label(pod, names.SECONDARY_LABEL) == name
            if is_own and hash_ in ("", label(pod, names.CONFIG_HASH_LABEL)):
                self.cluster.remove(PODS, pod["metadata"]["name"], NAMESPACE)

    def roll_out(self, name: str = NAME) -> None:
        """Complete the Deployment's rollout; one of its pods leads."""
        self.no_pods(name=name)
        roll_out(self.cluster.server, self.get(DEPLOYMENTS, name), self.cluster.clock.stamp())
        holder = f"{name}-{self.running(name)}-0_x"
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
        self.leases[NAMESPACE, name] = {"metadata": {"name": name}, "spec": spec}
        self.leases_seen[NAMESPACE, name] = self.cluster.now

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
        return condition_in(self.status(name).get("conditions", ()), type_)

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

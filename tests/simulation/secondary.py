"""Secondary schedulers: simulates the Deployment controller, the pods and their Lease."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEASES,
    PODS,
    SECONDARY_SCHEDULERS,
)

from .apiserver import clone
from .scheduler import REFUSAL

if TYPE_CHECKING:
    from .apiserver import Change, Object
    from .world import World

DELAY = 3.0
RENEWAL = 2.0
BAD = 77
"""With this parallelism kube-scheduler refuses its configuration."""


class PlayedSecondaries:
    """Simulates the workloads of SecondarySchedulers in a world.

    Attributes:
        refused_images: images whose kube-scheduler refuses every configuration.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._server = world.server
        self._pods = 0
        self.refused_images: set[str] = set()
        self._server.listeners.append(self._changed)

    def put(self, name: str, **spec: Any) -> None:
        """Create one, or replace its spec."""
        body = {
            "apiVersion": SECONDARY_SCHEDULERS.api_version,
            "kind": SECONDARY_SCHEDULERS.kind,
            "metadata": {"name": name},
            "spec": {"namespace": self.world.platform.target_namespace, **spec},
        }
        if self._server.find(SECONDARY_SCHEDULERS, name) is None:
            self._server.create("user", SECONDARY_SCHEDULERS, body)
            self._renew(name)
        else:
            self._server.edit(
                "user", SECONDARY_SCHEDULERS, name, lambda obj: obj.update(spec=body["spec"])
            )

    def renew(self, name: str) -> None:
        """Renew the Lease of one that the operator makes."""
        self._renew(name)

    def status(self, name: str) -> Object:
        return (self._server.find(SECONDARY_SCHEDULERS, name) or {}).get("status") or {}

    def outcomes(self, name: str) -> list[str]:
        """Outcomes of its contents, the newest first."""
        return [entry["outcome"] for entry in self.status(name).get("history", ())]

    def condition(self, name: str, kind: str) -> str:
        found = {c["type"]: c["status"] for c in self.status(name).get("conditions", ())}
        return str(found.get(kind, ""))

    # --- the controller -----------------------------------------------------------------------

    def _changed(self, change: Change) -> None:
        if change.ref.resource != DEPLOYMENTS or change.kind == "DELETED":
            return
        before = (change.old or {}).get("metadata", {}).get("generation")
        if before != change.new["metadata"]["generation"]:
            name = change.ref.name
            self.world.clock.after(DELAY, lambda: self._roll_out(name))

    def _roll_out(self, name: str) -> None:
        namespace = self.world.platform.target_namespace
        deployment = self._server.find(DEPLOYMENTS, name, namespace)
        if deployment is None:
            return
        template = deployment["spec"]["template"]
        content = template["metadata"]["labels"][names.CONFIG_HASH_LABEL]
        replicas = deployment["spec"]["replicas"]
        config = self._server.find(CONFIG_MAPS, f"{name}-config-{content}", namespace)
        refused = config is None or (
            json.loads(config["data"][names.CONFIG_KEY]).get("parallelism") == BAD
        )
        refused |= template["spec"]["containers"][0]["image"] in self.refused_images
        own = self._own(name, namespace)
        good = [pod for pod in own if pod["metadata"]["labels"][names.CONFIG_HASH_LABEL] == content]
        if not refused:
            for pod in own:
                if pod not in good[:replicas]:
                    self._server.finalize("kubelet", PODS.ref(pod))
        else:
            for pod in own:
                if not pod["status"].get("conditions"):
                    self._server.finalize("kubelet", PODS.ref(pod))
        missing = 1 if refused else max(replicas - len(good), 0)
        for _ in range(missing):
            self._pod(name, deployment, template, refused=refused)
        ready = 0 if refused else replicas
        status = {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": replicas + refused,
            "updatedReplicas": 1 if refused else replicas,
            "availableReplicas": replicas if refused else ready,
        }
        self._server.edit(
            "controller", DEPLOYMENTS, name, lambda obj: obj.update(status=status), namespace,
            "status",
        )  # fmt: skip

    def _own(self, name: str, namespace: str) -> list[Object]:
        return [
            pod
            for pod in self._server.list(PODS, namespace)
            if (pod["metadata"].get("labels") or {}).get(names.SECONDARY_LABEL) == name
        ]

    def _pod(self, name: str, deployment: Object, template: Object, *, refused: bool) -> None:
        self._pods += 1
        metadata = deployment["metadata"]
        owner = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": name,
            "uid": metadata["uid"],
        }
        ended = {"exitCode": 1, "message": REFUSAL, "finishedAt": self.world.clock.stamp()}
        preflight = {"name": names.PREFLIGHT, "lastState": {"terminated": ended}}
        running = {"name": names.OPERAND, "ready": True, "state": {"running": {}}}
        status = (
            {"phase": "Pending", "initContainerStatuses": [preflight]}
            if refused
            else {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [running],
            }
        )
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{self._pods}",
                "namespace": metadata["namespace"],
                "labels": dict(template["metadata"]["labels"]),
                "ownerReferences": [owner],
            },
            "spec": clone(template["spec"]),
            "status": status,
        }
        self._server.create("controller", PODS, pod)

    # --- the leader ---------------------------------------------------------------------------

    def _renew(self, name: str) -> None:
        namespace = self.world.platform.target_namespace
        ready = [
            pod["metadata"]["name"]
            for pod in self._own(name, namespace)
            if pod["status"].get("conditions")
        ]
        if ready and not self._server.away:
            spec = {
                "holderIdentity": f"{ready[0]}_1",
                "leaseDurationSeconds": 15,
                "renewTime": self.world.clock.stamp().replace("Z", ".000000Z"),
            }
            if self._server.find(LEASES, name, namespace) is None:
                lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
                metadata = {"name": name, "namespace": namespace}
                self._server.create(
                    "secondary", LEASES, {**lease, "metadata": metadata, "spec": spec}
                )
            else:
                self._server.edit(
                    "secondary", LEASES, name, lambda obj: obj.update(spec=spec), namespace
                )
        if self._server.find(SECONDARY_SCHEDULERS, name) is not None:
            self.world.clock.after(RENEWAL, lambda: self._renew(name))

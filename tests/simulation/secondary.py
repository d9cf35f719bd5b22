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

from ..expect import condition_of
from ..imitation.kubelet import lease_spec
from ..imitation.workloads import is_ready, roll_out
from .scheduler import REFUSAL

if TYPE_CHECKING:
    from ..imitation.apiserver import Change, Object
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
        self.refused_images: set[str] = set()
        self._server.listeners.append(self._changed)

    def put(self, name: str, **spec: Any) -> None:
        """Create one, or replace its spec."""
        is_new = self._server.find(SECONDARY_SCHEDULERS, name) is None
        spec = {"namespace": self.world.platform.target_namespace, **spec}
        self._server.put("user", SECONDARY_SCHEDULERS, name, spec)
        if is_new:
            self._renew(name)

    def renew(self, name: str) -> None:
        """Renew the Lease of one that the operator makes."""
        self._renew(name)

    def lose_pods(self, name: str) -> None:
        """End all its pods at once; the Deployment controller does nothing."""
        namespace = self.world.platform.target_namespace
        for pod in self._own(name, namespace):
            self._server.finalize("kubelet", PODS.ref(pod))

    def status(self, name: str) -> Object:
        return (self._server.find(SECONDARY_SCHEDULERS, name) or {}).get("status") or {}

    def outcomes(self, name: str) -> list[str]:
        """Outcomes of its contents, the newest first."""
        return [entry["outcome"] for entry in self.status(name).get("history", ())]

    def condition(self, name: str, kind: str) -> str:
        return condition_of(self._server.find(SECONDARY_SCHEDULERS, name) or {}, kind)[0]

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
        config = self._server.find(CONFIG_MAPS, f"{name}-config-{content}", namespace)
        is_refused = (
            config is None
            or json.loads(config["data"][names.CONFIG_KEY]).get("parallelism") == BAD
            or template["spec"]["containers"][0]["image"] in self.refused_images
        )
        refusal = REFUSAL if is_refused else ""
        roll_out(self._server, deployment, self.world.clock.stamp(), refusal)

    def _own(self, name: str, namespace: str) -> list[Object]:
        return [
            pod
            for pod in self._server.list(PODS, namespace)
            if (pod["metadata"].get("labels") or {}).get(names.SECONDARY_LABEL) == name
        ]

    # --- the leader ---------------------------------------------------------------------------

    def _renew(self, name: str) -> None:
        namespace = self.world.platform.target_namespace
        ready = [pod["metadata"]["name"] for pod in self._own(name, namespace) if is_ready(pod)]
        if ready and not self._server.away:
            spec = lease_spec(f"{ready[0]}_1", self.world.clock.stamp())
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

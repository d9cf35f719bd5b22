"""A cluster with two schedulers, Pods of both and of none, for commands that simulate.

A program in the place of kube-scheduler decides by CPU, so the answers are about who decides.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aiohttp import web

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.schema import DEFAULT_SCHEDULER
from kube_scheduler_operator.kube.resource import NODES, PODS
from kube_scheduler_operator.simulate.kinds import POD_GROUPS

from ....builders import container, controlled_by
from ....builders import pod as made_pod
from ....imitation import kube_scheduler
from ..conftest import Cluster, Done
from .secondary_scheduler import SPACE, Schedulers

MINE, UNKNOWN = "mine", "unknown"
CONTROL_PLANE_LEASE = (KUBEADM.operand_lease_namespace, KUBEADM.operand_lease_name)


class World:
    """Two nodes with 2 CPUs, and Pods of 500m of both schedulers, and of none."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.program = kube_scheduler.install(folder / "kube-scheduler")
        self.schedulers = Schedulers(cluster)
        cluster.api.served |= {NODES}
        cluster.api.routes["/version"] = self._version
        for lease in (CONTROL_PLANE_LEASE, (SPACE, MINE)):
            cluster.lease(*lease)
        for name in ("n1", "n2"):
            status = {
                "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "20"},
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
            cluster.put(NODES, {"metadata": metadata, "status": status, "spec": {}})
        for scheduler in (DEFAULT_SCHEDULER, MINE, UNKNOWN):
            self.pod(f"waits-{scheduler}", scheduler)
            self.pod(f"runs-{scheduler}", scheduler, "n1")

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"gitVersion": kube_scheduler.VERSION})

    def pod(
        self, name: str, scheduler: str, node: str = "", cpu: str = "500m", **spec: Any
    ) -> None:
        obj = made_pod(
            name,
            node=node,
            namespace="shop",
            containers=[container({"cpu": cpu})],
            metadata={
                "creationTimestamp": "2026-01-01T00:00:00Z",
                **(controlled_by("ReplicaSet", name) if node else {}),
            },
            status={"phase": "Running" if node else "Pending"},
            schedulerName=scheduler,
            **spec,
        )
        self.cluster.put(PODS, obj)

    def group(self, name: str, *, least: int, waiting: int) -> None:
        """Add a PodGroup with waiting Pods of the control plane's scheduler."""
        self.cluster.api.served.add(POD_GROUPS)
        metadata = {"name": name, "namespace": "shop"}
        spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
        self.cluster.put(POD_GROUPS, {"metadata": metadata, "spec": spec})
        for number in range(waiting):
            reference = {"podGroupName": name}
            self.pod(f"{name}-{number}", DEFAULT_SCHEDULER, schedulingGroup=reference)

    def workload(self, scheduler: str) -> str:
        """A file with a Deployment of two Pods."""
        spec = {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "image": "i", **container({"cpu": "500m"})}],
        }
        template = {"metadata": {"labels": {"app": "new"}}, "spec": spec}
        obj = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "new", "namespace": "shop"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "new"}}}
            | {"template": template},
        }
        path = self.folder / f"{scheduler}.json"
        path.write_text(json.dumps(obj))
        return str(path)

    async def run(self, *arguments: str) -> Done:
        flags = ("--platform", "kubeadm", "--kube-scheduler", str(self.program))
        return await self.cluster.run(*arguments, *flags)

    async def answer(self, *arguments: str) -> tuple[int, Any]:
        done = await self.run(*arguments, "-o", "json")
        assert done.out, done.err
        return done.code, json.loads(done.out)

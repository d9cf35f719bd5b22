"""Pods that want a node, for as long as one likes, and how long each of them waits for it.

They go to a node that exists only in the API, so that no kubelet has to start them and nothing but
the scheduler is asked.
"""

from __future__ import annotations

import threading
import time
import uuid
from datetime import UTC, datetime

from cluster.api import Api, ApiError, Object
from cluster.console import say

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PODS = "/api/v1/namespaces/default/pods"
SINK = "sink"


class Load:
    """A pod at an interval while the block runs; records the holders of the scheduler's Lease.

    Attributes:
        refused: pods that the API server did not take, because it was away.

    Args:
        api: the cluster.
        interval: seconds from pod to pod.
        scheduler: their `spec.schedulerName`; empty: the default scheduler.
        lease: the path of its Lease.
    """

    def __init__(
        self, api: Api, interval: float = 0.1, scheduler: str = "", lease: str = LEASE
    ) -> None:
        self._api = api
        self._spec = {"schedulerName": scheduler} if scheduler else {}
        self._lease = lease
        self.refused = 0
        self._interval = interval
        self._over = threading.Event()
        self._found = threading.Event()
        self._created: dict[str, float] = {}
        self._bound: dict[str, float] = {}
        self.holders: list[str] = []
        self._threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._create, self._watch, self._beat)
        ]
        self._mark = uuid.uuid4().hex[:6]

    @property
    def lease_moves(self) -> int:
        """How often the scheduler's Lease got another holder."""
        return max(len(self.holders) - 1, 0)

    def __enter__(self) -> Load:
        self._make_sink()
        for thread in self._threads:
            thread.start()
        time.sleep(2)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._threads[0].join()

    def finish(self) -> tuple[list[float], int]:
        """Wait for the last pods and clean up.

        Returns:
            The seconds that each bound pod waited, and how many were never bound.
        """
        deadline = time.monotonic() + 60
        while len(self._bound) < len(self._created) and time.monotonic() < deadline:
            time.sleep(0.2)
        self._found.set()
        lost = len(self._created) - len(self._bound)
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        while self._api.request("GET", f"{PODS}?labelSelector=load&limit=1")["items"]:
            # All at once takes longer than a request may.
            self._api.request("DELETE", f"{PODS}?labelSelector=load&limit=500", options)
        self._api.request("DELETE", f"/api/v1/nodes/{SINK}")
        return [bound - self._created[name] for name, bound in self._bound.items()], lost

    def _make_sink(self) -> None:
        quantity = {"cpu": "1000", "memory": "1000Gi", "pods": "100000"}
        metadata = {"name": SINK, "labels": {SINK: ""}}
        # Nothing starts there: others' pods, such as the Job with which kubeadm checks a cluster,
        # must not be sent to it.
        spec = {"taints": [{"key": SINK, "effect": "NoSchedule"}]}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}
        self._api.create("/api/v1/nodes", node)
        self._renew()
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "Benchmark",
            "message": "takes pods and does not start them",
            "lastHeartbeatTime": _now(),
            "lastTransitionTime": _now(),
        }
        status = {"capacity": quantity, "allocatable": quantity, "conditions": [ready]}
        self._api.request("PATCH", f"/api/v1/nodes/{SINK}/status", {"status": status})

    def _renew(self) -> None:
        spec = {"holderIdentity": SINK, "leaseDurationSeconds": 40, "renewTime": _now(precise=True)}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        self._api.create(NODE_LEASES, {**lease, "metadata": {"name": SINK}, "spec": spec})
        self._api.request("PATCH", f"{NODE_LEASES}/{SINK}", {"spec": spec})

    def _create(self) -> None:
        number, due = 0, time.monotonic()
        while not self._over.is_set():
            number += 1
            name = f"load-{self._mark}-{number}"
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": {"load": ""}},
                "spec": {
                    "nodeSelector": {SINK: ""},
                    "tolerations": [{"operator": "Exists"}],
                    "terminationGracePeriodSeconds": 0,
                    "automountServiceAccountToken": False,
                    "containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10"}],
                    **self._spec,
                },
            }
            self._created[name] = time.monotonic()
            try:
                self._api.request("POST", PODS, pod)
            except ApiError as error:
                del self._created[name]
                self.refused += 1
                if self.refused == 1:
                    say(f"  a pod could not be created: {error}")
            due += self._interval
            time.sleep(max(due - time.monotonic(), 0.0))

    def _watch(self) -> None:
        """Read which pods are bound; the next request shows what happened since this one."""
        version = ""
        while not self._found.is_set():
            query = f"?watch=true&labelSelector=load&timeoutSeconds=5&resourceVersion={version}"
            try:
                for event in self._api.watch(f"{PODS}{query}"):
                    pod = event.get("object", {})
                    version = pod.get("metadata", {}).get("resourceVersion", "")
                    self._look(pod)
            except ApiError as error:
                say(f"  the watch of pods ended: {error}")
                version = ""
                time.sleep(0.5)

    def _look(self, pod: Object) -> None:
        name = pod.get("metadata", {}).get("name", "")
        if name in self._created and pod.get("spec", {}).get("nodeName"):
            self._bound.setdefault(name, time.monotonic())

    def _beat(self) -> None:
        """Keep the node alive and look who holds the scheduler's Lease."""
        renewed = time.monotonic()
        while not self._over.is_set():
            try:
                holder = self._api.request("GET", self._lease)["spec"].get("holderIdentity", "")
                if holder and self.holders[-1:] != [holder]:
                    self.holders.append(holder)
                if time.monotonic() - renewed > 10:
                    self._renew()
                    renewed = time.monotonic()
            except ApiError as error:
                say(f"  {error}")
            time.sleep(0.2)


def _now(*, precise: bool = False) -> str:
    text = datetime.now(UTC).isoformat(timespec="microseconds" if precise else "seconds")
    return text.replace("+00:00", "Z")

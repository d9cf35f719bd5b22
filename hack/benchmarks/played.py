"""Kubelets and kube-schedulers that are played, for a control plane without nodes.

Deployments and ReplicaSets are real ones; the pods that these make become Ready as soon as they are
seen, end as soon as they should, and one of each scheduler renews its Lease, as often as real ones
do.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cluster.api import Api, ApiError, Object
from cluster.console import say
from cluster.observe import OPERATOR_NAMESPACE

if TYPE_CHECKING:
    from cluster.model import Sandbox

LABEL = "kube-scheduler-operator.dev/secondary-scheduler"
_PODS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods"
_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{OPERATOR_NAMESPACE}/leases"
_RENEWED_EVERY = 2.0
"""kube-scheduler's retryPeriod, seconds."""


class Schedulers:
    """The pods of all secondary schedulers of a sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._api = Api(sandbox)
        self._ready: dict[str, set[str]] = {}  # scheduler -> its pods that are Ready
        self._leaders: dict[str, str] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._run, self._elect)
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End; the last events of a watch may be lost."""
        self._stop.set()
        self._threads[1].join(10)

    # --- kubelets -----------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                found = self._api.request("GET", f"{_PODS}?labelSelector={LABEL}")
                for pod in found["items"]:
                    self._take(pod)
                version = found["metadata"]["resourceVersion"]
                query = f"labelSelector={LABEL}&watch=1&resourceVersion={version}&timeoutSeconds=50"
                for event in self._api.watch(f"{_PODS}?{query}"):
                    if self._stop.is_set():
                        return
                    if event.get("type") == "DELETED":
                        self._forget(event["object"])
                    elif "metadata" in event.get("object", {}):
                        self._take(event["object"])
            except ApiError as error:
                if not self._stop.is_set():
                    say(f"  simulated kubelet: {error}")
                    time.sleep(1)

    def _take(self, pod: Object) -> None:
        name, status = pod["metadata"]["name"], pod.get("status", {})
        if "deletionTimestamp" in pod["metadata"]:
            self._forget(pod)
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            self._request("DELETE", f"{_PODS}/{name}", body)
        elif status.get("phase") == "Pending" and not status.get("containerStatuses"):
            now = _now()
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
            container = {
                "name": "kube-scheduler",
                "state": {"running": {"startedAt": now}},
                "ready": True,
                "restartCount": 0,
                "image": "played",
                "imageID": "",
            }
            self._request(
                "PATCH",
                f"{_PODS}/{name}/status",
                {"status": {"phase": "Running", "conditions": [ready],
                            "containerStatuses": [container]}},
            )  # fmt: skip
        else:
            self._ready.setdefault(pod["metadata"]["labels"][LABEL], set()).add(name)

    def _forget(self, pod: Object) -> None:
        self._ready.get(pod["metadata"]["labels"][LABEL], set()).discard(pod["metadata"]["name"])

    def _request(self, method: str, path: str, body: Object) -> None:
        """One that may come too late."""
        try:
            self._api.request(method, path, body)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    # --- kube-schedulers ----------------------------------------------------------------------

    def _elect(self) -> None:
        while not self._stop.wait(_RENEWED_EVERY):
            for scheduler in sorted(self._ready):
                pods = sorted(self._ready[scheduler])
                if pods and self._leaders.get(scheduler) not in pods:
                    self._leaders[scheduler] = pods[0]
                if self._stop.is_set() or not pods:
                    continue
                try:
                    self._renew(scheduler)
                except ApiError as error:
                    say(f"  simulated kube-scheduler: {error}")

    def _renew(self, scheduler: str) -> None:
        spec = {
            "holderIdentity": f"{self._leaders[scheduler]}_played",
            "leaseDurationSeconds": 15,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        try:
            self._api.request("PATCH", f"{_LEASES}/{scheduler}", {"spec": spec})
        except ApiError as error:
            if error.code != 404:
                raise
            body = {"metadata": {"name": scheduler}, "spec": spec}
            self._api.create(_LEASES, body)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

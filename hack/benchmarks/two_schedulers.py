"""Two schedulers over the same nodes: how many pods the kubelets refuse.

Each scheduler learns what the other one bound from its watch, some milliseconds later. Where both
give the last room of a node away, the kubelet takes the first pod and fails the second one
(OutOfcpu). Pods arrive until all nodes are full; in the first case every other pod is for the
provider's scheduler, in the second one all are for the managed scheduler.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from benchmarks.table import Row
from cluster.api import Api, Object
from cluster.console import say
from cluster.model import Sandbox
from cluster.observe import SCHEDULER, until

MANAGED = "managed-scheduler"
DEFAULT = "default-scheduler"
PODS = "/api/v1/namespaces/default/pods"
KIND = f"/apis/kube-scheduler-operator.dev/v1alpha1/secondaryschedulers/{MANAGED}"
MILLICORES = 50
"""Requested by each pod."""

CASES = (("half of the pods each", (DEFAULT, MANAGED)), ("one scheduler for all", (MANAGED,)))
_SETTLED_SECONDS = 3.0
_PATIENCE = 120.0


def measure(sandbox: Sandbox, rates: Sequence[float], rounds: int) -> Iterator[Row]:
    """Fill the nodes at each of these rates (pods a second) in both cases, several times."""
    api = Api(sandbox)
    before = _hash(api)
    api.request("PATCH", SCHEDULER, {"spec": {"profile": "HighNodeUtilization"}})
    until(lambda: _hash(api) != before and _settled(api), 120, "the profile was not rolled out")
    for rate in rates:
        for called, schedulers in CASES:
            refused, pods = [], 0
            for _ in range(rounds):
                found = _fill(api, rate, schedulers)
                refused.append(100.0 * found[1] / found[0])
                pods += found[0]
                say(f"  {rate:g}/s, {called}: {found[1]} of {found[0]} pods refused")
            yield Row(f"{rate:g} pods/s, {called} ({pods} pods): refused", refused, "%", None)


def _fill(api: Api, rate: float, schedulers: Sequence[str]) -> tuple[int, int]:
    """(pods that were bound, those of them that a kubelet refused) until the nodes are full."""
    count = _room(api)
    due = time.monotonic()
    for number in range(count):
        api.request("POST", PODS, _pod(number, schedulers[number % len(schedulers)]))
        due += 1 / rate
        time.sleep(max(due - time.monotonic(), 0.0))
    time.sleep(_SETTLED_SECONDS)
    until(lambda: all(map(_decided, _pods(api))), _PATIENCE, "pods were not decided")
    pods = _pods(api)
    bound = [pod for pod in pods if pod["spec"].get("nodeName")]
    refused = [pod for pod in bound if pod.get("status", {}).get("phase") == "Failed"]
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    api.request("DELETE", f"{PODS}?labelSelector=two", options)
    until(lambda: not _pods(api), _PATIENCE, "pods were not deleted")
    time.sleep(_SETTLED_SECONDS)
    return len(bound), len(refused)


def _decided(pod: Object) -> bool:
    """Whether a kubelet took or refused it, or no node has room."""
    status = pod.get("status", {})
    if pod["spec"].get("nodeName"):
        return bool(status.get("startTime"))
    return any(one.get("reason") == "Unschedulable" for one in status.get("conditions", ()))


def _room(api: Api) -> int:
    """How many pods fit on all nodes beside those that run already."""
    free = {
        name: _millicores(node["status"]["allocatable"]["cpu"])
        for name, node in api.nodes().items()
    }
    for pod in api.request("GET", "/api/v1/pods").get("items", []):
        node = pod["spec"].get("nodeName")
        if node in free and pod.get("status", {}).get("phase") not in ("Failed", "Succeeded"):
            for container in pod["spec"]["containers"]:
                requested = container.get("resources", {}).get("requests", {}).get("cpu", "0")
                free[node] -= _millicores(requested)
    return sum(each // MILLICORES for each in free.values())


def _millicores(quantity: str) -> int:
    if quantity.endswith("m"):
        return int(quantity.removesuffix("m"))
    return int(float(quantity) * 1000)


def _pod(number: int, scheduler: str) -> Object:
    requests = {"cpu": f"{MILLICORES}m"}
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": requests},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"two-{number}", "labels": {"two": ""}},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }


def _pods(api: Api) -> list[Object]:
    found: list[Object] = api.request("GET", f"{PODS}?labelSelector=two").get("items", [])
    return found


def _hash(api: Api) -> str:
    return str(api.request("GET", KIND).get("status", {}).get("configHash", ""))


def _settled(api: Api) -> bool:
    conditions = api.request("GET", KIND).get("status", {}).get("conditions", [])
    states = {one["type"]: one["status"] for one in conditions}
    return states.get("Progressing") == "False" and states.get("Available") == "True"

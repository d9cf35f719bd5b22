"""Pods that tests want to have placed, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from cluster import images
from cluster.observe import OPERATOR_NAMESPACE, until

from ..expect import condition_of
from .conftest import PODS_IN_DEFAULT, Cluster

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def apply(cluster: Cluster, *manifests: str | Mapping[str, Any]) -> None:
    """`kubectl apply` of texts and objects."""
    texts = (each if isinstance(each, str) else yaml.safe_dump(dict(each)) for each in manifests)
    cluster.kubectl("apply", "-f", "-", stdin="\n---\n".join(texts))


def patient(text: str) -> list[dict[str, Any]]:
    """Manifests whose extenders have time on a busy machine: one that is late is left out."""
    found = [each for each in yaml.safe_load_all(text) if each]
    for each in found:
        if each["kind"] == "SchedulerExtender":
            each["spec"]["timeout"] = "5s"
    return found


def pod(
    name: str, scheduler: str = "", requests: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A pod that does nothing, of a scheduler; `spec` is whatever else it has."""
    container: dict[str, Any] = {"name": "main", "image": images.PAUSE}
    if requests:
        container["resources"] = {"requests": dict(requests)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": scheduler or "default-scheduler",
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def create(cluster: Cluster, *pods: dict[str, Any]) -> None:
    """Create pods in the namespace default."""
    for each in pods:
        cluster.api.request("POST", PODS_IN_DEFAULT, each)


def node_of(cluster: Cluster, name: str) -> str:
    """The node that a pod has; empty if it has none."""
    found = cluster.api.request("GET", f"{PODS_IN_DEFAULT}/{name}")
    return str(found["spec"].get("nodeName", ""))


def placed(cluster: Cluster, name: str, timeout: float = 60) -> str:
    """Wait until a pod has a node, and say which."""
    until(
        lambda: bool(node_of(cluster, name)),
        timeout,
        lambda: f"pod {name} has no node: {why_pending(cluster, name)}",
    )
    return node_of(cluster, name)


def why_pending(cluster: Cluster, name: str) -> str:
    """The scheduler's event about a pod without a feasible node."""
    pod = cluster.api.request("GET", f"{PODS_IN_DEFAULT}/{name}")
    return condition_of(pod, "PodScheduled")[2]


def events(cluster: Cluster, name: str, reason: str) -> list[dict[str, Any]]:
    """The events about a pod that is there, and not about another one that had its name."""
    uid = cluster.api.request("GET", f"{PODS_IN_DEFAULT}/{name}")["metadata"]["uid"]
    found = cluster.api.request("GET", f"{EVENTS}?fieldSelector=regarding.uid%3D{uid}")
    return [item for item in found["items"] if item["reason"] == reason]


def delete(cluster: Cluster, *names: str) -> None:
    """Delete pods and wait until they have gone: what they requested is free again."""
    cluster.delete_pods(names)


def conditions(obj: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """An object's conditions by type, if they are about its current generation."""
    status = obj.get("status") or {}
    if status.get("observedGeneration") != obj["metadata"].get("generation"):
        return {}
    return {condition["type"]: condition for condition in status.get("conditions", [])}


def wait_for(cluster: Cluster, path: str, timeout: float = 90, **wanted: str) -> dict[str, Any]:
    """Wait until an object's conditions have the wanted status, by type; return the object."""

    def found() -> dict[str, str]:
        known = conditions(cluster.api.request("GET", path))
        return {kind: known[kind]["status"] for kind in wanted if kind in known}

    until(
        lambda: found() == wanted,
        timeout,
        lambda: f"{path} is not {wanted}: {cluster.api.request('GET', path).get('status')}",
    )
    return cluster.api.request("GET", path)


def made_for(cluster: Cluster, selector: str) -> list[str]:
    """The names of all objects that the operator made for one, by their label."""
    kinds = "all,sa,cm,pdb,role,rolebinding,clusterrole,clusterrolebinding,lease"
    return cluster.kubectl("get", kinds, "-A", "-o", "name", "-l", selector).split()


def own_pods(cluster: Cluster, selector: str) -> list[dict[str, Any]]:
    """The pods with a label in the operator's namespace that are not on their way out."""
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods?labelSelector="
    found = cluster.api.request("GET", path + selector.replace("=", "%3D").replace("/", "%2F"))
    return [item for item in found["items"] if "deletionTimestamp" not in item["metadata"]]


def annotate(cluster: Cluster, node: str, **annotations: str | None) -> None:
    """Set annotations of a node, under their bare keys with - for _; None takes one away."""
    values = {key.replace("_", "-"): value for key, value in annotations.items()}
    patch = {"metadata": {"annotations": values}}
    cluster.api.request("PATCH", f"/api/v1/nodes/{node}", patch)

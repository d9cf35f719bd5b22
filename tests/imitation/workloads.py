"""The controllers of Deployments and DaemonSets: their Pods, and what they report."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import DAEMON_SETS, DEPLOYMENTS, PODS, ObjectRef

from .apiserver import ApiServer, Object, clone
from .kubelet import ready_status, refused_status

ACTOR = "controller"


def roll_out(server: ApiServer, deployment: Object, at: str, refusal: str = "") -> None:
    """Replace the Pods of a Deployment by Pods of its template; with `refusal`, try with one.

    Args:
        refusal: the message with which the new Pod's kube-scheduler rejects its configuration;
            empty: new Pods become Ready.
    """
    template, replicas = deployment["spec"]["template"], deployment["spec"]["replicas"]
    uid = deployment["metadata"]["uid"]
    own = [
        pod
        for pod in server.list(PODS, deployment["metadata"]["namespace"])
        if uid in [owner["uid"] for owner in pod["metadata"].get("ownerReferences", ())]
    ]
    current = [pod for pod in own if is_of(template, pod)]
    for pod in own:
        leaves = not is_ready(pod) if refusal else pod not in current[:replicas]
        if leaves:
            server.finalize("kubelet", PODS.ref(pod))
    for _ in range(1 if refusal else replicas - len(current)):
        made = _pod(server, deployment)
        status = refused_status(refusal, at) if refusal else ready_status(made, at)
        server.create(ACTOR, PODS, {**made, "status": status})
    surplus = 1 if refusal else 0
    _report(
        server,
        DEPLOYMENTS.ref(deployment),
        replicas=replicas + surplus,
        updatedReplicas=surplus or replicas,
        availableReplicas=replicas,
    )


def run_on_nodes(server: ApiServer, daemon_set: Object, nodes: int, ready: int) -> None:
    """Report a DaemonSet whose Pods are on all nodes."""
    counts = {
        "desiredNumberScheduled": nodes,
        "updatedNumberScheduled": nodes,
        "numberReady": ready,
    }
    _report(server, DAEMON_SETS.ref(daemon_set), **counts)


def is_of(template: Mapping[str, Any], pod: Object) -> bool:
    """Whether a Pod was made of a template."""
    return bool(
        pod["metadata"]["labels"] == template["metadata"]["labels"]
        and pod["spec"] == template["spec"]
    )


def is_ready(pod: Object) -> bool:
    return bool(pod["status"].get("conditions"))


def _pod(server: ApiServer, deployment: Object) -> Object:
    metadata, template = deployment["metadata"], deployment["spec"]["template"]
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    labels = template["metadata"]["labels"]
    content = labels.get(names.CONFIG_HASH_LABEL) or metadata["generation"]
    numbered = (f"{metadata['name']}-{content}-{number}" for number in count())
    taken = {pod["metadata"]["name"] for pod in server.list(PODS, metadata["namespace"])}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": next(name for name in numbered if name not in taken),
            "namespace": metadata["namespace"],
            "labels": dict(labels),
            "ownerReferences": [owner],
        },
        "spec": clone(template["spec"]),
    }


def _report(server: ApiServer, ref: ObjectRef, **counts: int) -> None:
    generation = server.get(ref)["metadata"]["generation"]
    status = {**counts, "observedGeneration": generation}
    server.edit(
        ACTOR, ref.resource, ref.name, lambda obj: obj.update(status=status), ref.namespace,
        "status",
    )  # fmt: skip

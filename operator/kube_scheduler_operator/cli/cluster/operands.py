"""The schedulers of control-plane nodes: their mirror pods, their leader, what each one runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ...base import names
from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME
from ...base.platform import Platform
from ...kube.api import Api, Object
from ...kube.errors import Forbidden
from ...kube.resource import LEASES, NODES, PODS, ObjectRef
from ...operator.model import operand_pods
from ..console.errors import CommandError
from .operator_objects import find_object


async def list_operand_pods(api: Api, platform: Platform) -> dict[str, Object]:
    """Return the mirror pods by node; none where the provider runs the scheduler.

    A manifest on a node without a role of the control plane is not the cluster's scheduler.
    """
    if not platform.owns_static_pods:
        return {}
    selector = ",".join(f"{key}={value}" for key, value in platform.static_pod_labels)
    listed = await api.list(PODS, platform.operand_namespace, label_selector=selector)
    pods = dict(operand_pods.schedulers_by_node(listed.items, platform))
    workers = await asyncio.gather(*(_is_worker(api, platform, node) for node in pods))
    return {node: pods[node] for node, worker in zip(pods, workers, strict=True) if not worker}


async def _is_worker(api: Api, platform: Platform, name: str) -> bool:
    """Return whether a node has no role of the control plane; False if it cannot be read.

    It is listed: the operator's own account, with which `status` runs in its Pod, may not get one.
    """
    try:
        listed = await api.list(NODES, field_selector=f"metadata.name={name}")
    except Forbidden:
        return False
    return any(not platform.is_control_plane(node) for node in listed.items)


def lease_of(platform: Platform) -> ObjectRef:
    """Return the key of the Lease that the schedulers share."""
    return LEASES.named(platform.operand_lease_name, platform.operand_lease_namespace)


def operand_on(pods: Mapping[str, Object], node: str) -> Object:
    """Return the scheduler pod of a node.

    Raises:
        CommandError: the node has none; the message lists the nodes that do.
    """
    if node not in pods:
        raise CommandError(
            f"node {node!r} does not run a scheduler; use --node with {', '.join(sorted(pods))}"
        )
    return pods[node]


async def find_leader(api: Api, platform: Platform, pods: Mapping[str, Object]) -> str:
    """Return the node whose scheduler holds the Lease.

    Raises:
        CommandError: none of them does.
    """
    ref = lease_of(platform)
    lease = await find_object(api, ref) or {}
    holder = str((lease.get("spec") or {}).get("holderIdentity") or "")
    for node in pods:
        if holder.startswith(f"{node}_"):
            return node
    state = f"{ref} has no holder"
    if holder:
        state = f"{foreign(holder, FOREIGN_NAME)} holds {ref} and is not a scheduler of a node"
    raise CommandError(f"{state}; select one with --node" if pods else state)


def identity(pod: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Summarize the scheduler of a pod, for `status --verbose`; None without a pod."""
    if pod is None:
        return None
    operand = operand_pods.read(pod)
    status = pod.get("status") or {}
    statuses = status.get("containerStatuses") or ()
    container: Mapping[str, Any] = next((c for c in statuses if c.get("name") == names.OPERAND), {})
    running = (container.get("state") or {}).get("running") or {}
    return {
        "pod": f"{pod['metadata'].get('namespace', '')}/{operand.name}",
        "created": pod["metadata"].get("creationTimestamp", ""),
        "started": running.get("startedAt", ""),
        "restarts": operand.restarts,
        "revisionLabel": operand.revision,
        "contentHash": operand.content_hash,
        "kubeconfigFingerprint": operand.kubeconfig,
        "image": operand.image,
        "imageID": container.get("imageID", ""),
        "command": list(operand.arguments),
        "problem": operand.trouble,
        "terminationMessage": operand.termination_message,
    }


def render_identity(node: str, scheduler: Mapping[str, Any] | None) -> list[str]:
    if scheduler is None:
        return [f"{node}: no scheduler pod"]
    revision = scheduler["revisionLabel"]
    facts = {
        "pod": f"{scheduler['pod']}, created {scheduler['created']}",
        "started": f"{scheduler['started'] or 'not running'}, {scheduler['restarts']} restarts",
        "revision": str(revision) if revision else "none: not installed by the operator",
        "content": scheduler["contentHash"],
        "kubeconfig": scheduler["kubeconfigFingerprint"],
        "image": " ".join(filter(None, (scheduler["image"], scheduler["imageID"]))),
        "problem": scheduler["problem"],
        "last error": scheduler["terminationMessage"],
    }
    lines = [f"{node}:"]
    for name, fact in facts.items():
        if fact:
            lines.append(f"  {name:<11} {fact.splitlines()[-1]}")
    command = scheduler["command"]
    lines.append(f"  {'command':<11} {command[0] if command else ''}")
    lines += [f"  {'':<13} {argument}" for argument in command[1:]]
    return lines

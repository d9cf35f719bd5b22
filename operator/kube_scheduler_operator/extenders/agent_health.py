"""The health of agents: how many are Ready, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from ..base.objects import Object
from ..base.times import timestamp
from ..model.pod_status import containers, crashing, is_ready, named, waiting
from ..model.snapshot import Snapshot
from .agent import ManagedAgent
from .status import AgentHealth


def of_daemon_set(
    snapshot: Snapshot,
    agent: ManagedAgent,
    daemon_set: Object | None,
    pods: Iterable[Object],
    trouble: str = "",
) -> tuple[AgentHealth, float | None]:
    """(health of the agents on control-plane nodes, seconds until it may change by itself).

    `daemon_set` is None if it does not exist yet; `trouble` is the error of the last write for it.
    """
    status = (daemon_set or {}).get("status") or {}
    desired = int(status.get("desiredNumberScheduled") or 0)
    ready = int(status.get("numberReady") or 0)
    wait = None
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        found, left = _trouble(snapshot, pod)
        trouble = trouble or found
        if left is not None:
            wait = left if wait is None else min(wait, left)
    health = AgentHealth(
        namespace=snapshot.platform.target_namespace,
        workload=f"DaemonSet/{agent.object_name}",
        desired=desired,
        ready=ready,
        complete=daemon_set is not None and _complete(snapshot, daemon_set, desired, ready),
        trouble=trouble,
    )
    return health, wait


def of_sidecars(
    agent: ManagedAgent, namespace: str, workload: str, pods: Iterable[Object]
) -> AgentHealth:
    """The health of agents in a secondary scheduler's pods; that scheduler reports their errors."""
    living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    listed = [
        pod
        for pod in living
        if named((pod.get("spec") or {}).get("containers") or (), agent.object_name)
    ]
    found = [named(containers(pod), agent.object_name) for pod in listed]
    ready = sum(bool(status.get("ready")) for status in found)
    complete = bool(listed) and ready == len(listed)
    return AgentHealth(namespace, workload, len(listed), ready, complete)


def _complete(snapshot: Snapshot, daemon_set: Object, desired: int, ready: int) -> bool:
    """Whether all agents on reachable nodes are Ready and up to date."""
    status = daemon_set.get("status") or {}
    seen = int(status.get("observedGeneration") or 0)
    if seen < int(daemon_set["metadata"].get("generation") or 0):
        return False
    away = sum(_is_away(node) for node in snapshot.nodes.values())
    updated = int(status.get("updatedNumberScheduled") or 0)
    return ready > 0 and ready >= desired - away and updated >= desired - away


def _is_away(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") != "True" for c in conditions)


def _trouble(snapshot: Snapshot, pod: Object) -> tuple[str, float | None]:
    """(why an agent is not Ready, empty while it may still start; seconds until then)."""
    if "deletionTimestamp" in pod["metadata"] or is_ready(pod):
        return "", None
    where = f"pod {pod['metadata']['name']}"
    died = crashing(pod)
    if died:
        return f"{where} crashes: {died}", None
    created: datetime | None = timestamp(pod["metadata"].get("creationTimestamp"))
    age = (snapshot.now - created).total_seconds() if created is not None else 0.0
    left = snapshot.settings.rollout.pending_tolerance - age
    if left > 0:
        return "", left
    why = waiting(pod, containers(pod))
    return f"{where} is not Ready: {why or 'see its log'}", None

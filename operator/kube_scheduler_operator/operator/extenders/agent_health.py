from __future__ import annotations

from collections.abc import Iterable

from ...base.objects import Object, is_being_deleted
from ...base.times import timestamp
from ...config.effective.extenders.agent import ManagedAgent
from ..model.plan import soonest
from ..model.pod_status import containers, crashing, is_ready, named, waiting
from ..model.snapshot import Snapshot
from .status import AgentHealth


def of_daemon_set(
    snapshot: Snapshot,
    agent: ManagedAgent,
    daemon_set: Object | None,
    pods: Iterable[Object],
    trouble: str = "",
) -> tuple[AgentHealth, float | None]:
    """Return (health of the agents on control-plane nodes, seconds until it may change by itself).

    `daemon_set` is None if it does not exist yet; `trouble` is the error of the last write for it.
    """
    status = (daemon_set or {}).get("status") or {}
    desired = int(status.get("desiredNumberScheduled") or 0)
    ready = int(status.get("numberReady") or 0)
    waits = []
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        pod_trouble, left = _trouble(snapshot, pod)
        trouble = trouble or pod_trouble
        waits.append(left)
    health = AgentHealth(
        namespace=snapshot.platform.target_namespace,
        workload=f"DaemonSet/{agent.object_name}",
        desired=desired,
        ready=ready,
        complete=daemon_set is not None and _complete(snapshot, daemon_set, desired, ready),
        trouble=trouble,
    )
    return health, soonest(*waits)


def of_sidecars(
    agent: ManagedAgent, namespace: str, workload: str, pods: Iterable[Object]
) -> AgentHealth:
    """Count agents in a secondary scheduler's pods; that scheduler reports their errors."""
    with_agent = [
        pod
        for pod in pods
        if not is_being_deleted(pod)
        and named((pod.get("spec") or {}).get("containers") or (), agent.object_name)
    ]
    ready = sum(bool(named(containers(pod), agent.object_name).get("ready")) for pod in with_agent)
    complete = bool(with_agent) and ready == len(with_agent)
    return AgentHealth(namespace, workload, len(with_agent), ready, complete)


def _complete(snapshot: Snapshot, daemon_set: Object, desired: int, ready: int) -> bool:
    """Return whether all agents on reachable nodes are Ready and up to date."""
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
    """Return (why an agent is not Ready, empty while it may still start; seconds until then)."""
    if is_being_deleted(pod) or is_ready(pod):
        return "", None
    where = f"pod {pod['metadata']['name']}"
    crashes = crashing(pod)
    if crashes:
        return f"{where} crashes: {crashes}", None
    created = timestamp(pod["metadata"].get("creationTimestamp"))
    age = (snapshot.now - created).total_seconds() if created is not None else 0.0
    left = snapshot.settings.rollout.pending_tolerance - age
    if left > 0:
        return "", left
    why = waiting(pod, containers(pod))
    return f"{where} is not Ready: {why or 'see its log'}", None

"""How agents are, from what runs them: how many answer, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from ..base.objects import Object
from ..base.times import timestamp
from ..model.pod_status import containers, crashing, is_ready, named, waiting
from ..model.snapshot import Snapshot
from .agent import Agent
from .status import AgentHealth


def of_daemon_set(
    snapshot: Snapshot,
    agent: Agent,
    daemon_set: Object | None,
    pods: Iterable[Object],
    trouble: str = "",
) -> tuple[AgentHealth, float | None]:
    """(how the agents on the control-plane nodes are, seconds until it may be worse by itself).

    Args:
        snapshot: nodes, clock and patience.
        agent: what they are.
        daemon_set: what runs them; None: there is none yet.
        pods: of that.
        trouble: why it could not be written, if it could not.
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


def of_sidecars(agent: Agent, namespace: str, workload: str, pods: Iterable[Object]) -> AgentHealth:
    """How the agents in the pods of a further scheduler are; what fails there, that scheduler says.

    Args:
        agent: what they are.
        namespace: where they are.
        workload: what runs them.
        pods: of the scheduler.
    """
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
    """Whether all that can be Ready are, and are what the DaemonSet says; nodes may be away."""
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
    """(why an agent does not answer, unless that is a matter of time; seconds until it is none)."""
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
    return f"{where} is not Ready: {why or 'its log says why'}", None

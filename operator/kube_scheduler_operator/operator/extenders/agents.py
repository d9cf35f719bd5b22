"""The agents of SchedulerExtenders: when they are created and removed, their objects and health.

An agent runs before the scheduler's configuration names it, which waits for the agent
(config/effective/extenders/validate.py).
It is removed when no revision that a node runs, is about to run or would return to calls it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from ...base import names
from ...base.findings import Finding
from ...base.json_text import parse_json
from ...base.objects import Object, annotation, is_being_deleted, mapping
from ...base.platform import Platform
from ...base.settings import Settings
from ...base.templates import canonical_json, render_file
from ...base.times import timestamp
from ...config.effective.attachment import CONTROL_PLANE, EXTENDER, scheduler_of
from ...config.effective.extenders.agent import (
    CONFIG_KEY,
    ManagedAgent,
    agent_file,
    container,
    volumes,
)
from ...config.effective.extenders.entry import agent_url
from ...config.effective.extenders.validate import ExtenderResult, known_port
from ...config.language.warnings.configuration import scheduler_names
from ...kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    PODS,
    SCHEDULER_EXTENDERS,
    ObjectRef,
    Resource,
)
from ..model.apply import keep
from ..model.plan import Action, Delete, Event, soonest
from ..model.pod_status import condition, containers, crashing, is_ready, named, waiting
from ..model.snapshot import Snapshot
from ..model.workloads import digest, keep_workload
from .status import FAILING, AgentHealth

Existing = Mapping[Resource, Mapping[str, Object]]
"""The objects of one SchedulerExtender: kind -> name -> object."""

ACCOUNT: Final = "scheduler-extender"
BINDING_ACCOUNT: Final = "scheduler-extender-binder"
"""For agents that bind pods; deploy/ has both ServiceAccounts and their rights."""

USER: Final = 65532


@dataclass(frozen=True, slots=True)
class ControlPlaneAgents:
    """The result for all agents on control-plane nodes."""

    # SchedulerExtender -> the writes for its agents
    write_sets: Mapping[ObjectRef, tuple[Action, ...]] = field(default_factory=dict)
    health: Mapping[str, AgentHealth] = field(default_factory=dict)  # by SchedulerExtender
    findings: tuple[Finding, ...] = ()
    # seconds until the next reconcile if nothing changes; None if none is needed
    requeue_after: float | None = None


def control_plane_agents(
    snapshot: Snapshot,
    results: Iterable[ExtenderResult],
    in_use: Callable[[], Iterable[str]],
    desired: Mapping[str, Any] | None = None,
) -> ControlPlaneAgents:
    """Create, correct and remove the agents on control-plane nodes.

    `in_use` returns the configurations, as JSON, that schedulers run, are about to run or would
    return to; an agent that one of them calls is not removed. Agents bind Pods of the profiles in
    them, and in `desired`, the configuration that follows.
    """
    objects = snapshot.scheduler_extenders
    if objects is None:
        return ControlPlaneAgents()  # the desired state is unknown
    writes: dict[str, tuple[Action, ...]] = {}
    health: dict[str, AgentHealth] = {}
    findings = []
    waits = []
    validated = {result.name: result for result in results}
    for name, result in validated.items():
        if result.agent is None or scheduler_of(result.spec or {}) != CONTROL_PLANE:
            continue
        existing = snapshot.agents.get(name, {})
        agent = ManagedAgent(name, result.agent, result.port)
        if known_port(objects[name]) == result.port:
            # The port is written to the status first, so that it is chosen only once.
            try:
                if agent.binds:
                    agent = replace(agent, scheduler_names=_served(in_use(), desired))
                writes[name] = keep_agent(snapshot.platform, agent, snapshot.settings, existing)
            except Exception as error:  # of this extender only
                findings.append(EXTENDER.defect(name, result.root, error))
        daemon_set = existing.get(DAEMON_SETS, {}).get(agent.object_name)
        pods = existing.get(PODS, {}).values()
        trouble = snapshot.write_errors.get(SCHEDULER_EXTENDERS.named(name), "")
        health[name], wait = of_daemon_set(snapshot, agent, daemon_set, pods, trouble)
        waits.append(wait)
        if health[name].trouble:
            findings.append(_finding(name, health[name].trouble))
    for name in sorted(snapshot.agents.keys() - health.keys()):
        if name not in objects or name in validated or _is_elsewhere(snapshot, name):
            writes[name] = tuple(_removal(snapshot, name, in_use))
    return ControlPlaneAgents(
        {SCHEDULER_EXTENDERS.named(name): actions for name, actions in writes.items() if actions},
        health,
        tuple(findings),
        soonest(*waits),
    )


def removed_agents(snapshot: Snapshot) -> Mapping[ObjectRef, tuple[Action, ...]]:
    """Delete all agents after the removal from all nodes."""
    return {
        SCHEDULER_EXTENDERS.named(name): actions
        for name, existing in sorted(snapshot.agents.items())
        if (actions := tuple(remove_agent(name, existing)))
    }


def _is_elsewhere(snapshot: Snapshot, name: str) -> bool:
    """Return whether another scheduler has it; without a Scheduler, nothing was validated."""
    status = (snapshot.scheduler_extenders or {})[name].get("status") or {}
    return scheduler_of(status.get("accepted") or {}) != CONTROL_PLANE


def _removal(
    snapshot: Snapshot, name: str, in_use: Callable[[], Iterable[str]]
) -> Iterator[Action]:
    existing = snapshot.agents[name]
    url = known_url(name, existing)
    if url and any(f'"{url}"' in text for text in in_use()):
        return
    yield from remove_agent(name, existing)


def _served(in_use: Iterable[str], desired: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the schedulerNames of the configurations in use and of the one that follows."""
    configurations = [mapping(parse_json(text)) for text in in_use if text]
    if desired is not None:
        configurations.append(desired)
    return tuple(sorted({name for config in configurations for name in scheduler_names(config)}))


def _finding(name: str, trouble: str) -> Finding:
    path = f"SchedulerExtender/{name}"
    return Finding(names.SCHEDULER_EXTENDERS_DEGRADED, FAILING, path, trouble, blocking=False)


# --- objects ----------------------------------------------------------------------------------


def keep_agent(
    platform: Platform, agent: ManagedAgent, settings: Settings, existing: Existing
) -> tuple[Action, ...]:
    """Create or correct an agent's objects; it reads a new configuration without a restart."""
    key = canonical_json([agent.name, agent.spec, agent.port, 0, agent.scheduler_names])
    config_map, daemon_set, spec_hash = _rendered(
        platform, key, settings.operator_image, settings.image_pull_secrets
    )
    return (
        *keep(CONFIG_MAPS, existing.get(CONFIG_MAPS, {}), config_map, ("data",)),
        *keep_workload(
            DAEMON_SETS,
            existing.get(DAEMON_SETS, {}).get(agent.object_name),
            daemon_set,
            spec_hash,
            what=f"agents of SchedulerExtender {agent.name} on port {agent.port}",
            why="the SchedulerExtender or the operator's image changed",
        ),
    )


def remove_agent(name: str, existing: Existing) -> Iterator[Action]:
    """Delete the objects of an agent that no scheduler calls any more."""
    for resource in (DAEMON_SETS, CONFIG_MAPS):
        for _, obj in sorted(existing.get(resource, {}).items()):
            if not is_being_deleted(obj):
                where = f"{resource.kind}/{obj['metadata']['name']}"
                message = f"Deleted {where}: no scheduler calls SchedulerExtender {name} any more"
                yield Delete(resource, obj, (Event(f"{resource.kind}Deleted", message),))


def known_url(name: str, existing: Existing) -> str:
    """Return the URL of the existing agents; empty if their objects do not have it."""
    for daemon_set in existing.get(DAEMON_SETS, {}).values():
        port = annotation(daemon_set, names.EXTENDER_PORT_ANNOTATION)
        if port.isdecimal():
            return agent_url(name, int(port))
    return ""


# Rendering a template costs more than the rest of a reconcile.
@lru_cache(maxsize=64)
def _rendered(
    platform: Platform, key: str, image: str, pull_secrets: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return (ConfigMap, DaemonSet, hash of its spec); cached, so callers must not change them."""
    agent = ManagedAgent(*json.loads(key))
    config_map, daemon_set = render_file(
        "extender.yaml.j2",
        platform=platform,
        agent=agent,
        names=names,
        labels={
            "app": names.EXTENDER,
            names.EXTENDER_LABEL: agent.name,
            **names.OWN_LABELS,
        },
        annotations=dict(platform.static_pod_annotations),
        account=BINDING_ACCOUNT if agent.binds else ACCOUNT,
        config_key=CONFIG_KEY,
        config=agent_file(agent),
        container=container(agent, image),
        volumes=volumes(agent, agent.object_name, CONFIG_KEY),
        pull_secrets=[{"name": name} for name in pull_secrets],
        user=USER,
    )
    return config_map, daemon_set, digest(canonical_json(daemon_set["spec"]))


# --- health -----------------------------------------------------------------------------------


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
    nodes = snapshot.nodes.values()
    away = sum(bool(condition(node, "Ready")) and not is_ready(node) for node in nodes)
    updated = int(status.get("updatedNumberScheduled") or 0)
    return ready > 0 and ready >= desired - away and updated >= desired - away


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

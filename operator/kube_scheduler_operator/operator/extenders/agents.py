"""The agents of the control plane's scheduler: when they are created and removed.

An agent runs before the scheduler's configuration names it, which waits for the agent
(config/effective/extenders/validate.py).
It is removed when no revision that a node runs, is about to run or would return to calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ...base import names
from ...base.findings import Finding
from ...config.effective.attachment import CONTROL_PLANE, EXTENDER, scheduler_of
from ...config.effective.extenders.agent import ManagedAgent
from ...config.effective.extenders.validate import ExtenderResult, known_port
from ...kube.resource import DAEMON_SETS, PODS, SCHEDULER_EXTENDERS, ObjectRef
from ..model.plan import Action, soonest
from ..model.snapshot import Snapshot
from .agent_health import of_daemon_set
from .agent_objects import keep_agent, known_url, remove_agent
from .status import FAILING, AgentHealth


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
) -> ControlPlaneAgents:
    """Create, correct and remove the agents on control-plane nodes.

    `in_use` returns the configurations, as JSON, that schedulers run, are about to run or would
    return to; an agent that one of them calls is not removed.
    """
    objects = snapshot.scheduler_extenders
    if objects is None:
        return ControlPlaneAgents()  # the desired state is unknown
    writes: dict[str, tuple[Action, ...]] = {}
    health: dict[str, AgentHealth] = {}
    findings = []
    waits = []
    validated = {result.name: result for result in results}
    settings = snapshot.settings
    for name, result in validated.items():
        if result.agent is None or scheduler_of(result.spec or {}) != CONTROL_PLANE:
            continue
        existing = snapshot.agents.get(name, {})
        agent = ManagedAgent(name, result.agent, result.port)
        if known_port(objects[name]) == result.port:
            # The port is written to the status first, so that it is chosen only once.
            try:
                writes[name] = keep_agent(
                    snapshot.platform,
                    agent,
                    settings.operator_image,
                    settings.image_pull_secrets,
                    existing,
                )
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


def _finding(name: str, trouble: str) -> Finding:
    path = f"SchedulerExtender/{name}"
    return Finding(names.SCHEDULER_EXTENDERS_DEGRADED, FAILING, path, trouble, blocking=False)

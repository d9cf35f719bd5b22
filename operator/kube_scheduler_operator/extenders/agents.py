"""The agents of the control plane's scheduler: each for itself, and gone after the last call.

An agent runs before the scheduler is told of it (extenders/validate.py waits for that), and
goes when no revision that a node runs, is to run or would go back to calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..base import names
from ..base.findings import Finding
from ..controlplane.revision.history import read
from ..kube.resource import DAEMON_SETS, PODS
from ..model.attachment import CONTROL_PLANE, scheduler_of
from ..model.plan import Action, soonest
from ..model.snapshot import Snapshot
from .agent import Agent
from .agent_health import of_daemon_set
from .agent_objects import keep_agent, known_url, remove_agent
from .status import FAILING, AgentHealth
from .validate import ExtenderVerdict, known_port


@dataclass(frozen=True, slots=True)
class Agents:
    """What is to be done about agents on control-plane nodes.

    Attributes:
        chains: whose -> writes that concern nobody else.
        health: SchedulerExtender -> how its agents are.
        findings: what is wrong with them.
        requeue_after: seconds until a pass is worth while even if nothing happens; None: no need.
    """

    chains: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    health: Mapping[str, AgentHealth] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    requeue_after: float | None = None


def chain_of(name: str) -> str:
    """The key of the writes for a SchedulerExtender's agents, which is no SecondaryScheduler's."""
    return f"SchedulerExtender {name}"


def control_plane_agents(snapshot: Snapshot, verdicts: Iterable[ExtenderVerdict]) -> Agents:
    """What is to be done.

    Args:
        snapshot: what was seen.
        verdicts: of the SchedulerExtenders that the control plane's scheduler is to have or has.
    """
    objects = snapshot.scheduler_extenders
    if objects is None:
        return Agents()  # nobody knows what is wanted
    chains: dict[str, tuple[Action, ...]] = {}
    health: dict[str, AgentHealth] = {}
    findings = []
    waits = []
    judged = {verdict.name: verdict for verdict in verdicts}
    settings = snapshot.settings
    for name, verdict in judged.items():
        if verdict.agent is None or scheduler_of(verdict.spec or {}) != CONTROL_PLANE:
            continue
        existing = snapshot.agents.get(name, {})
        agent = Agent(name, verdict.agent, verdict.port)
        if known_port(objects[name]) == verdict.port:
            # The port is written down first: no second one is ever chosen.
            chains[name] = keep_agent(
                snapshot.platform,
                agent,
                settings.operator_image,
                settings.image_pull_secrets,
                existing,
            )
        daemon_set = existing.get(DAEMON_SETS, {}).get(agent.object_name)
        pods = existing.get(PODS, {}).values()
        trouble = snapshot.secondaries.troubles.get(chain_of(name), "")
        health[name], wait = of_daemon_set(snapshot, agent, daemon_set, pods, trouble)
        waits.append(wait)
        if health[name].trouble:
            findings.append(_finding(name, health[name].trouble))
    for name in sorted(snapshot.agents.keys() - health.keys()):
        if name not in objects or name in judged or _is_elsewhere(snapshot, name):
            chains[name] = tuple(_removal(snapshot, name))
    return Agents(
        {chain_of(name): actions for name, actions in chains.items() if actions},
        health,
        tuple(findings),
        soonest(*waits),
    )


def removed_agents(snapshot: Snapshot) -> Mapping[str, tuple[Action, ...]]:
    """Writes after which nothing is left of any agent, when no scheduler is ours any more."""
    found = {
        chain_of(name): tuple(remove_agent(name, existing))
        for name, existing in sorted(snapshot.agents.items())
    }
    return {whose: actions for whose, actions in found.items() if actions}


def _is_elsewhere(snapshot: Snapshot, name: str) -> bool:
    """Whether another scheduler has it now; else nobody was judged, as there is no Scheduler."""
    status = (snapshot.scheduler_extenders or {})[name].get("status") or {}
    return scheduler_of(status.get("accepted") or {}) != CONTROL_PLANE


def _removal(snapshot: Snapshot, name: str) -> Iterator[Action]:
    existing = snapshot.agents[name]
    url = known_url(name, existing)
    if url and any(f'"{url}"' in text for text in _in_use(snapshot)):
        return
    yield from remove_agent(name, existing)


def _in_use(snapshot: Snapshot) -> Iterator[str]:
    """The configurations that schedulers run, are about to run or would go back to, as text."""
    target = (snapshot.config_maps.get(names.CONFIG) or {}).get("data") or {}
    yield str(target.get(names.CONFIG_KEY, ""))
    entries = snapshot.status.get("nodeStatuses") or ()
    numbers = {
        int(entry.get(key) or 0)
        for entry in entries
        for key in ("currentRevision", "targetRevision")
    }
    history = read(snapshot.config_maps, snapshot.platform.parts)
    on_its_way = ("", names.OUTCOME_INSTALLED)
    numbers |= {revision.number for revision in history[-1:] if revision.outcome in on_its_way}
    for revision in history:
        if revision.number in numbers:
            copy = revision.copies.get(names.CONFIG) or {}
            yield str((copy.get("data") or {}).get(names.CONFIG_KEY, ""))


def _finding(name: str, trouble: str) -> Finding:
    path = f"SchedulerExtender/{name}"
    return Finding(names.SCHEDULER_EXTENDERS_DEGRADED, FAILING, path, trouble, blocking=False)

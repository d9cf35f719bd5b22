"""Which nodes accept pods, and otherwise why none does, without placing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..config.language.feature_gates import Gates
from .configuration import profiles_of
from .decisions import PodDecision, unknown_scheduler
from .kinds import PODS, Object
from .probes import ALL, families_of, probe, probe_profiles, reasons, whole_reason
from .run import Run, RunOptions, gates_of
from .world import World


@dataclass(frozen=True, slots=True)
class Acceptance:
    nodes: frozenset[str] = frozenset()  # that accept the pod
    reasons: tuple[str, ...] = ()  # kube-scheduler's, if there is no such node


async def acceptances(
    world: World, options: RunOptions, pods: Sequence[Object]
) -> list[Acceptance]:
    """Try each pod alone, as a new one and with its own place free.

    Raises:
        SimulationError: kube-scheduler could not be run.
    """
    if not pods:
        return []
    tried = {at: Acceptance(reasons=(unknown_scheduler(pod),)) for at, pod in enumerate(pods)}
    gates = gates_of(options)
    for profile in profiles_of(options.config):
        name = profile["schedulerName"]
        own = [at for at, pod in enumerate(pods) if pod["spec"]["schedulerName"] == name]
        waiting = [at for at in own if not pods[at]["spec"].get("nodeName")]
        running = [[at] for at in own if at not in set(waiting)]
        if own:
            async with Run(world, _probing(options, profile, gates)) as run:
                for together in (waiting, *running):
                    tried |= await _try(run, {at: pods[at] for at in together})
    return [tried[at] for at in range(len(pods))]


def _probing(options: RunOptions, profile: Mapping[str, Any], gates: Gates) -> RunOptions:
    """Return the options for probes with all filters of a profile."""
    only = frozenset({ALL})
    return replace(
        options,
        profiles=probe_profiles(profile, families_of(profile, gates), gates)[:1],
        probes=only,
        extended=only,
        probed=str(profile["schedulerName"]),
    )


async def _try(run: Run, pods: Mapping[int, Object]) -> dict[int, Acceptance]:
    running = [pod for pod in pods.values() if pod["spec"].get("nodeName")]
    run.forget(running)
    probes = [probe(pod, f"simulation-{at:05d}", ALL) for at, pod in pods.items()]
    decisions = await run.schedule(probes, settle=False)
    run.forget(probes)
    for pod in running:
        run.put(PODS, {**pod, "metadata": dict(pod["metadata"])})
    return dict(zip(pods, map(_acceptance, decisions.values()), strict=True))


def _acceptance(decision: PodDecision) -> Acceptance:
    if decision.candidates:
        return Acceptance(frozenset(decision.candidates))
    texts = tuple(dict.fromkeys(text for _, text in reasons(decision.message)))
    return Acceptance(reasons=texts or (whole_reason(decision.message),))

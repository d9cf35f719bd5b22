"""Profiles and pods that ask kube-scheduler one question each.

kube-scheduler stops at the first plugin that rejects a node, and only counts the reasons. So each
family of filter plugins gets its own profile, and each constraint of the pod its own pod,
without the other constraints of its family. An extender that only looks records the nodes that
remain, and no probe is ever bound. The results are exact for each node, with a few dozen pods for
any number of nodes.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_REASON
from ..config.language.feature_gates import Gates
from ..config.language.plugins.effective_plugins import effective_plugins
from .configuration import profiles_of
from .constraints import FAMILY_OF
from .decisions import PodDecision
from .kinds import PODS, Object
from .run import IMPOSSIBLE, Run, RunOptions, gates_of, serving
from .world import World

ALL: Final = "simulation-all"
EXTENDERS: Final = "extenders"
"""The family of extenders, which has no plugins."""
_PREFIX: Final = "simulation-only-"
_OFF: Final = {"disabled": [{"name": "*"}]}
_AFTER: Final = ("postFilter", "preScore", "score", "reserve", "permit", "preBind", "postBind")
_AVAILABLE: Final = " nodes are available: "
_REASON: Final = re.compile(r"(\d+) (.+?)(?=, \d+ |$)")

MOST_REASONS: Final = 10
"""Reasons of a pod that are kept: it may request thousands of resources, each of which is one."""


def families_of(profile: Mapping[str, Any], gates: Gates) -> dict[str, list[str]]:
    """Return the filter plugins of a profile by family, in their order of execution.

    A plugin that belongs to no family is one of its own.
    """
    families: dict[str, list[str]] = {}
    effective = effective_plugins(profile, gates)
    names = [entry.name for entry in effective.points.get("filter", ())]
    for name in (*names, *effective.unknown):
        family = FAMILY_OF.get(name, name)
        if name not in families.setdefault(family, []):
            families[family].append(name)
    return families


def profile_of(family: str) -> str:
    """Return the schedulerName of the profile that runs one family only."""
    return _PREFIX + re.sub(r"[^a-z0-9]+", "-", family.lower())


def probe_profiles(
    profile: Mapping[str, Any], families: Mapping[str, Sequence[str]], gates: Gates
) -> list[dict[str, Any]]:
    """Return the profiles for probes: all filters, and each family."""
    lists = copy.deepcopy(dict(profile.get("plugins") or {}))
    everything: dict[str, Any] = {
        **copy.deepcopy(dict(profile)),
        "schedulerName": ALL,
        "percentageOfNodesToScore": 100,
        "plugins": {**lists, "postFilter": _OFF, "preEnqueue": _OFF},
    }
    queue = effective_plugins(profile, gates).points.get("queueSort", ())
    bind = effective_plugins(profile, gates).points.get("bind", ())
    profiles = [everything]
    for family, names in families.items():
        enabled = [{"name": plugin} for plugin in (*(plugin.name for plugin in queue), *names)]
        plugins: dict[str, Any] = {
            "multiPoint": {**_OFF, "enabled": enabled},
            "preEnqueue": _OFF,
            **dict.fromkeys(_AFTER, _OFF),
            "bind": {**_OFF, "enabled": [{"name": plugin.name} for plugin in bind]},
        }
        if "queueSort" in lists:  # must be written alike in all profiles
            plugins["queueSort"] = lists["queueSort"]
        profiles.append(
            {
                "schedulerName": profile_of(family),
                "percentageOfNodesToScore": 100,
                "pluginConfig": copy.deepcopy(profile.get("pluginConfig") or []),
                "plugins": plugins,
            }
        )
    return profiles


def probe(pod: Object, number: int, scheduler: str) -> Object:
    """Return a copy of a pod under another name, for a profile, that is tried at once.

    No pod of a cluster can have that name, so a probe never takes the place of one. Claims that are
    generated from the pod's name keep the name that they have.
    """
    copied = copy.deepcopy(pod)
    original, name = pod["metadata"]["name"], f"{IMPOSSIBLE}{number:05d}"
    copied["metadata"].update(name=name, uid=name)
    spec = copied["spec"]
    spec["schedulerName"] = scheduler
    spec.pop("schedulingGates", None)
    spec.pop("nodeName", None)
    for volume in spec.get("volumes") or ():
        if volume.pop("ephemeral", None) is not None:
            volume["persistentVolumeClaim"] = {"claimName": f"{original}-{volume['name']}"}
    generated = {
        status.get("name"): status.get("resourceClaimName")
        for status in copied.get("status", {}).get("resourceClaimStatuses") or ()
    }
    for claim in spec.get("resourceClaims") or ():
        if claim.pop("resourceClaimTemplateName", None) is not None:
            claim["resourceClaimName"] = (
                generated.get(claim["name"]) or f"{original}-{claim['name']}"
            )
    copied["status"] = {"phase": "Pending"}
    return copied


def reasons(message: str) -> list[tuple[int, str]]:
    """Return (nodes, reason) of a message of kube-scheduler, without preemption's part.

    An empty list: the pod was rejected as a whole, and the message is the reason.
    """
    matches = _REASON.findall(whole_reason(message)) if _AVAILABLE in message else ()
    return [(int(count), reason) for count, reason in matches]


def whole_reason(message: str) -> str:
    """Return the message without the number of nodes, and without what preemption adds to it."""
    return without_preemption(message.partition(_AVAILABLE)[2] or message)


def without_preemption(message: str) -> str:
    return re.split(r"\. (?:preemption|no new claims)", message, maxsplit=1)[0].rstrip(". ")


# --- which nodes accept pods ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Acceptance:
    nodes: frozenset[str] = frozenset()  # that accept the pod
    reasons: tuple[str, ...] = ()  # kube-scheduler's, if there is no such node


async def acceptances(
    world: World, options: RunOptions, pods: Sequence[Object]
) -> list[Acceptance]:
    """Try each pod alone, by its scheduler, as a new one and with its own place free.

    Raises:
        SimulationError: kube-scheduler could not be run.
    """
    tried: dict[int, Acceptance] = {}
    by_name: dict[str, list[int]] = {}
    for at, pod in enumerate(pods):
        by_name.setdefault(pod["spec"]["schedulerName"], []).append(at)
    for name, own in by_name.items():
        service = serving(options, name)
        if service.options is None:
            tried |= dict.fromkeys(own, Acceptance(reasons=(service.problem,)))
            continue
        waiting = [at for at in own if not pods[at]["spec"].get("nodeName")]
        running = [[at] for at in own if pods[at]["spec"].get("nodeName")]
        async with Run(world, _probing(service.options, name)) as run:
            for together in (waiting, *running):
                tried |= await _try(run, {at: pods[at] for at in together})
    return [tried[at] for at in range(len(pods))]


def _probing(options: RunOptions, scheduler_name: str) -> RunOptions:
    """Return the options for probes with all filters of a profile."""
    only, gates = frozenset({ALL}), gates_of(options)
    profile = profile_named(options, scheduler_name)
    return replace(
        options,
        profiles=probe_profiles(profile, families_of(profile, gates), gates)[:1],
        probes=only,
        extended=only,
        probed=scheduler_name,
    )


def profile_named(options: RunOptions, scheduler_name: str) -> dict[str, Any]:
    """Return the profile of a schedulerName that the options serve."""
    profiles = profiles_of(options.config)
    return next(profile for profile in profiles if profile["schedulerName"] == scheduler_name)


Accepted = Mapping[str, frozenset[str]]
"""Family of filters -> the nodes that it accepts alone."""


async def accepted_by_family(
    world: World, options: RunOptions, pods: Sequence[Object]
) -> list[Accepted | None]:
    """Try each running pod with each family of filters alone; None: no profile serves it.

    Raises:
        SimulationError: kube-scheduler could not be run.
    """
    accepted: list[Accepted | None] = [None] * len(pods)
    if not pods:
        return accepted
    gates = gates_of(options)
    for profile in profiles_of(options.config):
        name = profile["schedulerName"]
        own = [at for at, pod in enumerate(pods) if pod["spec"]["schedulerName"] == name]
        if not own:
            continue
        families = families_of(profile, gates)
        if options.extenders:
            families[EXTENDERS] = []
        alone = replace(
            options,
            profiles=probe_profiles(profile, families, gates)[1:],
            probes=frozenset(map(profile_of, families)),
            extended=frozenset({profile_of(EXTENDERS)}),
            probed=name,
        )
        async with Run(world, alone) as run:
            for at in own:
                accepted[at] = await _try_families(run, pods[at], list(families))
    return accepted


async def _try_families(run: Run, pod: Object, families: Sequence[str]) -> Accepted:
    run.forget([pod])
    probes = [probe(pod, at, profile_of(family)) for at, family in enumerate(families)]
    decisions = await run.schedule(probes, settle=False)
    run.forget(probes)
    run.put(PODS, {**pod, "metadata": dict(pod["metadata"])})
    nodes = (frozenset(decision.candidates or ()) for decision in decisions.values())
    return dict(zip(families, nodes, strict=True))


async def _try(run: Run, pods: Mapping[int, Object]) -> dict[int, Acceptance]:
    running = [pod for pod in pods.values() if pod["spec"].get("nodeName")]
    run.forget(running)
    probes = [probe(pod, at, ALL) for at, pod in pods.items()]
    decisions = await run.schedule(probes, settle=False)
    run.forget(probes)
    for pod in running:
        run.put(PODS, {**pod, "metadata": dict(pod["metadata"])})
    return dict(zip(pods, map(_acceptance, decisions.values()), strict=True))


def _acceptance(decision: PodDecision) -> Acceptance:
    if decision.candidates:
        return Acceptance(frozenset(decision.candidates))
    texts = list(dict.fromkeys(text for _, text in reasons(decision.message)))
    if more := texts[MOST_REASONS:]:
        texts = [*texts[:MOST_REASONS], f"{len(more)} more reasons"]
    shown = texts or [whole_reason(decision.message)]
    return Acceptance(reasons=tuple(foreign(text, FOREIGN_REASON) for text in shown))

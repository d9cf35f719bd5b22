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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import orjson

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_REASON
from ..config.language.feature_gates import Gates
from ..config.language.plugins.effective_plugins import effective_plugins
from .configuration import OFF, only, profiles_of
from .constraints import FAMILY_OF
from .decisions import PodDecision
from .device_claims import claims_of
from .kinds import IMPOSSIBLE, Object
from .lifts import Lifts, witness_profiles
from .nominations import nominated
from .pod_groups import ungrouped
from .replicas import Replicas
from .run import Run
from .run_options import RunOptions, gates_of, serving
from .shared_runs import Runs
from .world import World

ALL: Final = "simulation-all"
EXTENDERS: Final = "extenders"
"""The family of extenders, which has no plugins."""
_PREFIX: Final = "simulation-only-"
_AVAILABLE: Final = " nodes are available: "
_REASON: Final = re.compile(r'(\d+) ((?>"(?:[^"\\]|\\.)*"|.)+?)(?=, \d+ |$)')
"""A number of nodes and a reason, in which the names that strangers chose are quoted."""

MOST_REASONS: Final = 10
"""Reasons of a pod that are kept: it may request thousands of resources, each of which is one."""
_MOST_FIRSTS: Final = 3
"""Replicas that keep apart of which one is sought that its own node accepts."""


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
        "plugins": {**lists, "postFilter": OFF, "preEnqueue": OFF},
    }
    alone = [only(profile, gates, profile_of(family), names) for family, names in families.items()]
    return [everything, *alone]


def probe(pod: Object, number: int, scheduler: str) -> Object:
    """Return a copy of a pod under another name, for a profile, that is tried at once.

    No pod of a cluster can have that name, so a probe never takes the place of one. Claims that are
    generated from the pod's name keep the name that they have.
    """
    copied = ungrouped(pod)  # a group has Pods of one scheduler, and is decided about as a whole
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
    whole = whole_reason(message)
    matches = _REASON.findall(whole) if _AVAILABLE in message and _REASON.match(whole) else ()
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
    reasons: tuple[str, ...] = ()  # kube-scheduler's, if no node accepts the pod
    own: str = ""  # the node of the pod that accepts it as well, because its place is free

    def __contains__(self, node: object) -> bool:
        return bool(node) and (node == self.own or node in self.nodes)

    def __bool__(self) -> bool:
        """Whether some node accepts the pod."""
        return bool(self.nodes or self.own)


async def acceptances(
    world: World, options: RunOptions, pods: Sequence[Object], runs: Runs = Run
) -> list[Acceptance]:
    """Try each pod alone, by its scheduler, as a new one and with its own place free.

    Of replicas that filters cannot distinguish, one is tried; for those that run see `Replicas`.

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
        replicas = Replicas(world, service.options)
        groups = _tried_together(((at, pods[at]) for at in own), replicas)
        alike = {at: _read_by_filters(pods[at]) for at in own if not _place_of(pods[at])}
        firsts = {key: at for at, key in reversed(alike.items())}
        chosen, _ = probing(world, service.options, name)
        async with runs(world, chosen, [pods[at] for at in own]) as run:
            tries = _Tries(run, chosen.probes)
            tried |= await tries.with_all_filters({at: pods[at] for at in firsts.values()})
            for group in groups:
                apart = replicas.keep_apart(pods[group[0]])
                by_node = {_place_of(pods[at]): pods[at] for at in group}
                found = await tries.on_their_nodes(by_node, apart=apart)
                tried |= {at: found[_place_of(pods[at])] for at in group}
        tried |= {at: tried[firsts[key]] for at, key in alike.items()}
    return [tried[at] for at in range(len(pods))]


def _place_of(pod: Object) -> str:
    """Return the node of a pod, or the one to which it is nominated; empty without one."""
    return pod["spec"].get("nodeName") or nominated(pod)


def _tried_together(pods: Iterable[tuple[int, Object]], replicas: Replicas) -> list[list[int]]:
    """Return the pods with a place, in groups that share a trial."""
    groups: dict[Any, list[int]] = {}
    for at, pod in pods:
        if not _place_of(pod):
            continue
        anywhere = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        alone = nominated(pod) or claims_of(pod) or replicas.stand_for_each_other(pod)
        content = _read_by_filters({**pod, "spec": anywhere})
        groups.setdefault(at if alone else (content, replicas.place(pod)), []).append(at)
    return list(groups.values())


_OWN_METADATA: Final = ("name", "uid", "creationTimestamp")
_NAMED_AFTER_PODS: Final = ("resourceClaims", "schedulingGroup", "workloadRef")
"""Fields with claims that are named after the pod, and with groups whose number of pods counts."""


def _read_by_filters(pod: Object) -> bytes:
    """Return all that filters read of a new pod, in which replicas do not differ."""
    metadata, spec = pod["metadata"], pod["spec"]
    is_one_of_its_own = any(spec.get(field) for field in _NAMED_AFTER_PODS) or any(
        "ephemeral" in volume for volume in spec.get("volumes") or ()
    )
    if not is_one_of_its_own:
        metadata = {key: value for key, value in metadata.items() if key not in _OWN_METADATA}
    return orjson.dumps([metadata, spec])


def probing(
    world: World, options: RunOptions, scheduler_name: str
) -> tuple[RunOptions, dict[str, list[str]]]:
    """Return the options for probes of a profile, and its families of filters."""
    gates = gates_of(options)
    profile = profile_named(options, scheduler_name)
    families = families_of(profile, gates)
    if options.extenders:
        families[EXTENDERS] = []
    probes = probe_profiles(profile, families, gates) + witness_profiles(profile, gates, world)
    chosen = replace(
        options,
        profiles=probes,
        probes=frozenset(own["schedulerName"] for own in probes),
        extended=frozenset({ALL, profile_of(EXTENDERS)}),
        probed=scheduler_name,
    )
    return chosen, families


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
        witness = witness_profiles(profile, gates, world)
        profiles = probe_profiles(profile, families, gates)[1:] + witness
        alone = replace(
            options,
            profiles=profiles,
            probes=frozenset(own["schedulerName"] for own in profiles),
            extended=frozenset({profile_of(EXTENDERS)}),
            probed=name,
        )
        async with Run(world, alone, [pods[at] for at in own]) as run:
            tries = _Tries(run, alone.probes)
            for at in own:
                accepted[at] = await tries.with_each_family(pods[at], list(families))
    return accepted


class _Tries:
    """Probes in one run, each with a name of its own: a name that is used again has a past."""

    def __init__(self, run: Run, profiles: Collection[str]) -> None:
        self._run = run
        self._lifts = Lifts(run, profiles)

    async def with_each_family(self, pod: Object, families: Sequence[str]) -> Accepted:
        asked = [(pod, profile_of(family)) for family in families]
        decisions = await self._ask(asked, [pod])
        nodes = (frozenset(decision.candidates or ()) for decision in decisions)
        return dict(zip(families, nodes, strict=True))

    async def with_all_filters(self, pods: Mapping[int, Object]) -> dict[int, Acceptance]:
        own = list(pods.values())
        decisions = await self._ask([(pod, ALL) for pod in own], own)
        return dict(zip(pods, map(_acceptance, decisions), strict=True))

    async def on_their_nodes(
        self, pods: Mapping[str, Object], *, apart: bool = False
    ) -> dict[str, Acceptance]:
        """Return which nodes accept each pod with its own place free, by its place.

        Several pods are alike. If they keep apart, the place of one stands for that of each: one
        that its own node accepts, if there is one among the first.
        """
        if len(pods) == 1:
            ((place, only_one),) = pods.items()
            return {place: (await self.with_all_filters({0: only_one}))[0]}
        for place, first in islice(pods.items(), _MOST_FIRSTS if apart else 1):
            nodes = await self._accepting(first, [first] if apart else [])
            accepted = not apart or place in nodes
            if accepted:
                break
        full = {node: pod for node, pod in pods.items() if node not in nodes}
        # With the places of all free, rules about others may accept what they would not.
        own = await self._accepting(first, list(full.values())) if full and accepted else nodes
        found = {node: Acceptance(nodes, own=node if node in own else "") for node in pods}
        if refused := [node for node in pods if not found[node]]:
            reasons_ = await self.on_their_nodes({refused[0]: pods[refused[0]]})
            found |= dict.fromkeys(refused, reasons_[refused[0]])
        return found

    async def _accepting(self, pod: Object, lifted: Sequence[Object]) -> frozenset[str]:
        """Return the nodes that accept a pod like one while the places of pods are free."""
        (decision,) = await self._ask([(pod, ALL)], lifted)
        return frozenset(decision.candidates or ())

    async def _ask(
        self, questions: Sequence[tuple[Object, str]], lifted: Sequence[Object]
    ) -> list[PodDecision]:
        """Return the decisions about (pod, schedulerName) while the places of pods are free."""
        probes = []
        for pod, name in questions:
            probes.append(probe(pod, self._run.next_number(), name))
        async with self._lifts.lifted(lifted):
            decisions = await self._run.schedule(probes, settle=False)
            self._run.forget(probes)
        return list(decisions.values())


def _acceptance(decision: PodDecision) -> Acceptance:
    if decision.candidates:
        return Acceptance(frozenset(decision.candidates))
    texts = list(dict.fromkeys(text for _, text in reasons(decision.message)))
    if more := texts[MOST_REASONS:]:
        texts = [*texts[:MOST_REASONS], f"{len(more)} more reasons"]
    shown = texts or [whole_reason(decision.message)]
    return Acceptance(reasons=tuple(foreign(text, FOREIGN_REASON) for text in shown))

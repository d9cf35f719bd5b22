"""On which nodes that do not exist yet a Pod would fit: kube-scheduler decides about templates.

A template joins a copy of the cluster as an empty, Ready node; the share of the DaemonSets that
would run there is taken off its allocatable resources.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE, FOREIGN_NAME
from ..base.objects import controller_of, entries, mapping
from ..base.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, amounts
from ..base.quantities import PODS as PODS_RESOURCE
from ..scheduling.policies.pods import Demand
from . import node_groups, node_pools
from .admission import admit
from .configuration import profiles_of
from .constraints import host_ports
from .kinds import (
    CSI_NODES,
    DAEMON_SETS,
    HOSTNAME,
    IMPOSSIBLE,
    NODES,
    PODS,
    RESOURCE_SLICES,
    Object,
)
from .new_nodes import (
    BLOCKED,
    CANNOT,
    FITS,
    MOST_TEMPLATES,
    SIZE_UNKNOWN,
    UNKNOWN,
    Coming,
    ComingNode,
    NewNode,
    NodeMaker,
    NodeTemplate,
    add_pod,
    shown,
)
from .new_nodes import written as written_sizes
from .node_rules import REQUIRED
from .placements import eligible
from .requirements import ZONE, written
from .run_options import RunOptions
from .workloads import DAEMON_SET, WorkloadError, read_workloads
from .world import World

_DEVICES: Final = "devices"
_VOLUMES: Final = "volumes"
_LIKE_ITS_NODES: Final = (
    "cluster-autoscaler expects a new node to be like those of the group, even if the group spans "
    "more zones: a group with nodes in the zone of the volume alone can grow for it"
)
_NODE_AFFINITY: Final = "node affinity"
_EVERY_NODE: Final = (CPU, MEMORY, "nodes")
"""Limits that a node of any size counts against."""
_MOST_DAEMONS: Final = 200
_MOST_DOMAINS: Final = 6
_MOST_CAUSES: Final = 4
_SIMULATED: Final = "simulated"
_ON_NEW_NODE: Final = re.compile(rf"in {re.escape(HOSTNAME)} {IMPOSSIBLE}new-[\w-]+")
_NEW_NAME: Final = re.compile(rf"{IMPOSSIBLE}new-[\w-]+")
_OWN_NAME: Final = re.compile(rf"({re.escape(HOSTNAME)}=[^\s,]+), (?:which|and) no node has.*")
_NO_LABEL: Final = re.compile(r", and no node has the label ([^\s;]+)(?:; nodes have .*)?$")
_NO_VALUE: Final = re.compile(r", which no node has(?:; nodes have [^;]*)?(?=;|$)")
"""How sentences about all nodes of a cluster end, which are about templates here."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a node is excluded."""

    family: str
    text: str
    resource: str = ""  # of which it has too little


Trial = Callable[[World], Awaitable[Mapping[str, Sequence[Rejection]]]]
"""Returns, for a world, why each node excludes the Pod; a node that accepts it is left out."""


@dataclass(slots=True)
class Tried:
    """A template and what kube-scheduler decided about it."""

    template: NodeTemplate
    share: dict[str, float] = field(default_factory=dict)  # what DaemonSets take
    ports: dict[str, str] = field(default_factory=dict)  # host port -> the DaemonSet that uses it
    others: dict[str, float] = field(default_factory=dict)  # what other Pods take
    free: dict[str, float] = field(default_factory=dict)  # what is left
    rejections: Sequence[Rejection] = ()
    was_tried: bool = False


async def new_nodes(
    world: World, pod: Object, options: RunOptions, trial: Trial
) -> tuple[list[NewNode], list[ComingNode]]:
    """Return what could make a node for a Pod that fits nowhere, and the nodes being made.

    The Pod of a DaemonSet belongs to a node that exists: nothing is returned.
    """
    if (controller_of(pod) or {}).get("kind") == DAEMON_SET:
        return [], []
    sources = [*node_pools.node_pools(world, pod), *node_groups.node_groups(world, pod)]
    coming = [*node_pools.node_claims(world), *node_groups.coming_nodes(world)]
    templates = [one.template for one in coming if one.template is not None]
    # None takes the place of the others.
    turns = zip_longest(*(source.templates for source in sources))
    templates += [template for turn in turns for template in turn if template is not None]
    if not sources and not coming:
        return [], []
    tried = {template.name: Tried(template) for template in templates[:MOST_TEMPLATES]}
    if tried:
        await _take_shares(world, options, tried.values())
        _take_pods(world, coming, tried)
        _size(pod, tried.values())
        needed = _needed(world, pod, options)
        for batch in _batches(pod, tried.values()):
            await _try(needed, batch, trial)
    answers = [_answer(source, pod, tried) for source in sources]
    return answers, [_coming(one, pod, tried) for one in coming]


def answered(world: World) -> frozenset[str]:
    """Return the existing nodes about whose like `new_nodes` has the answer."""
    return frozenset((*node_pools.members(world), *node_groups.members(world)))


# --- the share of DaemonSets ----------------------------------------------------------------------


async def _take_shares(world: World, options: RunOptions, tried: Iterable[Tried]) -> None:
    """Set what DaemonSets take of each template: those whose rules its labels and taints meet."""
    daemons = list(islice(_daemons(world), _MOST_DAEMONS))
    if not daemons:
        return
    by_name = {one.template.name: one for one in tried}
    empty = World()
    for one in by_name.values():
        empty.add(one.template.node)
    empty.complete()
    for pod, names in zip(daemons, await eligible(empty, options, daemons), strict=True):
        owner = str((controller_of(pod) or {}).get("name"))
        for name in names:
            add_pod(by_name[name].share, pod)
            by_name[name].ports |= dict.fromkeys(host_ports(pod["spec"]), owner)


def _daemons(world: World) -> Iterator[Object]:
    """Yield a Pod of each DaemonSet, as it is created for any node."""
    known: set[tuple[str, str]] = set()
    for obj in world.all(DAEMON_SETS):
        try:
            ((workload,), _) = read_workloads([obj], obj["kind"])
        except (ValueError, WorkloadError):
            continue
        admit(workload.template, world)
        known.add((workload.namespace, str(obj["metadata"]["name"])))
        yield from workload.pods([f"{workload.name}-{_SIMULATED}"])
    for entry in world.objects[PODS].values():
        if b'"DaemonSet"' not in entry.content:
            continue
        pod = entry.object()
        owner = controller_of(pod) or {}
        key = (pod["metadata"]["namespace"], str(owner.get("name")))
        if owner.get("kind") == DAEMON_SET and key not in known:
            known.add(key)
            yield _of_any_node(pod)


def _of_any_node(pod: Object) -> Object:
    """Return the Pod of a DaemonSet without the affinity to its node."""
    spec = pod["spec"]
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    terms = mapping(affinity.get(REQUIRED)).get("nodeSelectorTerms")
    left = [{key: one[key] for key in one if key != "matchFields"} for one in entries(terms)]
    spec.get("affinity", {}).pop("nodeAffinity", None)
    if any(left):
        required = {REQUIRED: {"nodeSelectorTerms": [term for term in left if term]}}
        spec["affinity"]["nodeAffinity"] = required
    spec.pop("nodeName", None)
    return {**pod, "status": {"phase": "Pending"}}


def _take_pods(world: World, coming: Iterable[Coming], tried: Mapping[str, Tried]) -> None:
    """Take off what other Pods use of nodes that exist already, and are not ready."""
    there = {
        one.node: tried[one.template.name]
        for one in coming
        if one.node and one.template is not None and one.template.name in tried
    }
    for entry in world.objects[PODS].values() if there else ():
        if entry.node in there:
            pod = entry.object()
            if (controller_of(pod) or {}).get("kind") != DAEMON_SET:
                add_pod(there[entry.node].others, pod)


def _size(pod: Object, tried: Iterable[Tried]) -> None:
    """Set the allocatable resources that are left for the Pod.

    Where the size is not known, the Pod fits unless requirements bound it.
    """
    asked = {**Demand(pod["spec"]).requests, PODS_RESOURCE: 1.0}
    for one in tried:
        status = one.template.node["status"]
        sizes = amounts(status["allocatable"])
        if not one.template.like:
            unbounded = {
                resource: amount + one.share.get(resource, 0.0)
                for resource, amount in asked.items()
            }
            sizes = {**unbounded, **sizes}
            for resource, (most, _) in one.template.bounds.items():
                sizes[resource] = min(most, sizes.get(resource, most))
        one.free = {
            resource: size - one.share.get(resource, 0.0) - one.others.get(resource, 0.0)
            for resource, size in sizes.items()
        }
        status["allocatable"] = written_sizes(one.free)


# --- kube-scheduler's decisions -------------------------------------------------------------------


def _needed(world: World, pod: Object, options: RunOptions) -> World:
    """Return what decides about empty nodes: of a Pod without rules about others, not all Pods.

    Pods with anti-affinity may keep it from the zone of a new node.
    """
    spec = pod["spec"]
    affinity = mapping(spec.get("affinity"))
    about_others = (
        spec.get("volumes"),
        spec.get("resourceClaims"),
        spec.get("topologySpreadConstraints"),
        affinity.get("podAffinity"),
        affinity.get("podAntiAffinity"),
        options.extenders,
        any(map(_may_be_about_others, profiles_of(options.config))),
    )
    if any(about_others):
        return world
    needed = world.copy()
    pods = needed.objects[PODS]
    kept = {key: one for key, one in pods.items() if b"podAntiAffinity" in one.content}
    nodes = {one.node for one in kept.values()}
    needed.objects[PODS] = kept
    needed.objects[NODES] = {
        key: one for key, one in needed.objects[NODES].items() if key[1] in nodes
    }
    return needed


def _batches(pod: Object, tried: Iterable[Tried]) -> list[list[Tried]]:
    """Return the templates that are tried together.

    A node in a new zone changes the spread over zones for all others, so each zone is tried alone.
    """
    keys = {
        str(rule.get("topologyKey"))
        for rule in entries(pod["spec"].get("topologySpreadConstraints"))
        if rule.get("whenUnsatisfiable") == "DoNotSchedule"
    } - {HOSTNAME}
    batches: dict[tuple[str | None, ...], list[Tried]] = {}
    for one in tried:
        labels = mapping(one.template.node["metadata"].get("labels"))
        batches.setdefault(tuple(labels.get(key) for key in sorted(keys)), []).append(one)
    return list(batches.values())[:_MOST_DOMAINS]


def _may_be_about_others(profile: Mapping[str, Any]) -> bool:
    """Return whether a profile has other plugins, or rules of its own about other Pods."""
    return bool(profile.get("plugins")) or "DoNotSchedule" in repr(profile.get("pluginConfig"))


async def _try(world: World, batch: Sequence[Tried], trial: Trial) -> None:
    changed = world.copy()
    for one in batch:
        changed.add(one.template.node)
        _copy_parts(changed, one.template)
    rejections = await trial(changed)
    for one in batch:
        one.rejections, one.was_tried = rejections.get(one.template.name, ()), True


def _copy_parts(world: World, template: NodeTemplate) -> None:
    """Add the CSI drivers and devices of the node that a template is a copy of.

    Otherwise drivers are those of any node: DaemonSets install them.
    """
    name = template.name
    drivers = world.get(CSI_NODES, template.copied)
    if drivers is None:
        drivers = next(world.all(CSI_NODES), None)
        for driver in entries(mapping((drivers or {}).get("spec")).get("drivers")):
            driver.pop("allocatable", None)  # the limit of another size
    if drivers is not None:
        drivers["metadata"].update(name=name, uid=f"{CSI_NODES.plural}-{name}")
        world.add(drivers)
    for obj in list(world.all(RESOURCE_SLICES)) if template.copied else ():
        if mapping(obj.get("spec")).get("nodeName") == template.copied:
            own = f"{obj['metadata']['name']}-{name}"
            obj["metadata"].update(name=own, uid=own)
            obj["spec"].update(
                nodeName=name, pool={**mapping(obj["spec"].get("pool")), "name": name}
            )
            world.add(obj)


# --- answers --------------------------------------------------------------------------------------


def _answer(source: NodeMaker, pod: Object, all_tried: Mapping[str, Tried]) -> NewNode:
    known = [all_tried[one.name] for one in source.templates if one.name in all_tried]
    tried = [one for one in known if one.was_tried]
    if not tried:
        causes = [*source.obstacles, *_used_up(source)]
        unknown = source.unknown or "it was not tried, because there are too many templates"
        outcome = BLOCKED if causes else UNKNOWN
        return NewNode(source.title, outcome, (*causes, unknown), command=source.command)
    causes_of = {one.template.name: _causes(one, source, pod) for one in tried}
    best = min(
        tried,
        key=lambda one: (
            len(causes_of[one.template.name]),
            not one.template.like,
            len(one.template.assumed),
        ),
    )
    causes = causes_of[best.template.name]
    blocked = (*source.obstacles, *_used_up(source), *_too_little_left(source, pod, best))
    caveats = [f"whether the cloud offers {one} is not known" for one in best.template.assumed]
    others = [one for one in tried if causes_of[one.template.name]]
    if source.unknown:
        caveats.append(source.unknown)
    if _only_devices(best):
        return _made(source, UNKNOWN, best, pod, ("which devices it would have is not known",))
    if causes:
        more = [cause for one in others for cause in causes_of[one.template.name]]
        if source.partial or len(tried) < len(source.templates):
            caveat = "it could make other nodes, which were not tried"
            return _made(source, UNKNOWN, best, pod, (caveat, *causes[: _MOST_CAUSES - 1]))
        of_volume = any(one.family == _VOLUMES for one in best.rejections)
        if source.expects_its_like and of_volume:
            causes = [*causes[: _MOST_CAUSES - 1], _LIKE_ITS_NODES]
        shown_causes = tuple(dict.fromkeys((*causes, *more)))[:_MOST_CAUSES]
        return _made(source, CANNOT, best, pod, (*shown_causes, *blocked))
    if blocked:
        return _made(source, BLOCKED, best, pod, blocked)
    if best.template.like:
        caveats += _zones(tried, causes_of)
        return _made(source, FITS, best, pod, tuple(caveats))
    size = _unknown_size(best, pod)
    too_small = [cause for one in others for cause in causes_of[one.template.name]]
    facts = (size, *dict.fromkeys((*too_small, *caveats)))[:_MOST_CAUSES]
    return _made(source, SIZE_UNKNOWN, best, pod, facts)


def _made(
    source: NodeMaker, outcome: str, best: Tried, pod: Object, causes: tuple[str, ...]
) -> NewNode:
    asked = {CPU, MEMORY, *Demand(pod["spec"]).requests}
    share = _listed({key: value for key, value in best.share.items() if key in asked})
    return NewNode(
        source.title,
        outcome,
        tuple(foreign(cause, FOREIGN_MESSAGE) for cause in causes),
        best.template.like,
        share,
        source.command,
    )


def _listed(amounts_: Mapping[str, float]) -> str:
    return " and ".join(
        f"{shown(resource, amount)} of {resource}"
        for resource, amount in amounts_.items()
        if amount
    )


def _only_devices(one: Tried) -> bool:
    families = {rejection.family for rejection in one.rejections}
    return families == {_DEVICES} and not one.template.copied


def _causes(one: Tried, source: NodeMaker, pod: Object) -> list[str]:
    """Return why a template does not do for the Pod: kube-scheduler's reasons, then limits."""
    causes = [_text(rejection, one, source, pod) for rejection in one.rejections]
    causes += [
        f"DaemonSet {foreign(one.ports[port], FOREIGN_NAME)} uses the host port {port} of its nodes"
        for port in dict.fromkeys(host_ports(pod["spec"]))
        if port in one.ports
    ]
    for limit in source.limits:
        has = one.template.capacity.get(limit.resource, 0.0)
        if one.template.like and has > limit.limit - limit.used > 0:
            causes.append(f"{limit.text}, and {one.template.like} has {shown(limit.resource, has)}")
    return list(dict.fromkeys(causes))


def _text(rejection: Rejection, one: Tried, source: NodeMaker, pod: Object) -> str:
    resource = rejection.resource
    if not resource:
        text = _of_its_nodes(rejection.text, source)
        if rejection.family == _NODE_AFFINITY:
            own = [one for one in source.requirements if str(one.get("key")) in text]
            required = "; ".join(map(written, own))
            text += f"; it requires {required}" if required else ""
        return text
    asked = Demand(pod["spec"]).requests.get(resource, 0.0)
    wanted = f"the Pod requests {shown(resource, asked)}"
    used = {"DaemonSets": one.share.get(resource, 0.0), "Pods there": one.others.get(resource, 0.0)}
    taken = " and ".join(
        f"{who} take {shown(resource, much)}" for who, much in used.items() if much
    )
    if one.template.like:
        has = one.free.get(resource, 0.0) + sum(used.values())
        whose = f"{one.template.like} has {shown(resource, has)} of {resource}"
    else:
        most, requirement = one.template.bounds.get(resource, (0.0, ""))
        whose = f"its nodes have at most {shown(resource, most)} of {resource} ({requirement})"
    return f"{whose}{f', of which {taken}' if taken else ''}, and {wanted}"


def _of_its_nodes(text: str, source: NodeMaker) -> str:
    """Return a sentence about a template as one about the nodes of its source."""
    text = text.replace("the node has the taint", "its nodes have the taint")
    text = _NEW_NAME.sub("a new node", _ON_NEW_NODE.sub("on a new node", text))
    text = _OWN_NAME.sub(r"\1, and a new node has a name of its own", text)
    if lacking := _NO_LABEL.search(text):
        gives = f"; {source.labelled_by} can give it to them" if source.labelled_by else ""
        text = f"{text[: lacking.start()]}, and none of its nodes has the label {lacking[1]}{gives}"
    return _NO_VALUE.sub(", which none of its nodes has", text)


def _used_up(source: NodeMaker) -> Iterator[str]:
    """Yield the limits that no further node keeps."""
    for limit in source.limits:
        if limit.resource in _EVERY_NODE and limit.limit - limit.used <= 0:
            yield limit.text


def _too_little_left(source: NodeMaker, pod: Object, one: Tried) -> Iterator[str]:
    """Yield the limits that leave less than the Pod and the DaemonSets of its node need."""
    asked = Demand(pod["spec"]).requests
    for limit in source.limits:
        left = limit.limit - limit.used
        if limit.resource in _EVERY_NODE and left <= 0:
            continue
        wanted = asked.get(limit.resource, 0.0)
        share = one.share.get(limit.resource, 0.0) if wanted else 0.0
        if wanted + share > left:
            daemons = f", DaemonSets {shown(limit.resource, share)}" if share else ""
            yield f"{limit.text}, and the Pod requests {shown(limit.resource, wanted)}{daemons}"
        elif not one.template.like and limit.resource in one.template.least:
            least, requirement = one.template.least[limit.resource]
            if least > left:
                smallest = shown(limit.resource, least)
                yield f"{limit.text}, and a node of it has at least {smallest} ({requirement})"


def _unknown_size(one: Tried, pod: Object) -> str:
    asked = {key: value for key, value in Demand(pod["spec"]).requests.items() if value}
    disk = asked.pop(EPHEMERAL_STORAGE, 0.0)
    share = _listed({key: one.share.get(key, 0.0) for key in asked})
    daemons = f" beside DaemonSets ({share})" if share else ""
    needed = _listed(asked) or "room"
    unknown = (
        f"whether an instance type that it permits has {needed}{daemons} is not known: the list "
        "of types is the cloud's"
    )
    if disk:  # Karpenter's providers set it, for all instance types alike
        size = shown(EPHEMERAL_STORAGE, disk)
        unknown += f"; its NodeClass sets whether the disk has {size} of {EPHEMERAL_STORAGE}"
    return unknown


def _zones(tried: Sequence[Tried], causes_of: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield that the zone of the next node decides, where it does."""
    zones: dict[bool, set[str]] = {True: set(), False: set()}
    for one in tried:
        zone = mapping(one.template.node["metadata"].get("labels")).get(ZONE)
        if one.template.like and zone:
            zones[not causes_of[one.template.name]].add(str(zone))
    if others := zones[False] - zones[True]:
        yield (
            f"in zone {' or '.join(sorted(zones[True]))}; in {' or '.join(sorted(others))} it "
            "does not fit"
        )


def _coming(one: Coming, pod: Object, tried: Mapping[str, Tried]) -> ComingNode:
    found = tried.get(one.template.name) if one.template is not None else None
    if found is None or not found.was_tried:
        outcome, causes = UNKNOWN, ["what it would be like is not known"]
    elif _only_devices(found):
        outcome, causes = UNKNOWN, ["which devices it would have is not known"]
    elif causes := _causes(found, NodeMaker(one.title, one.command), pod):
        outcome = CANNOT
    elif found.template.like:
        outcome = FITS
    else:
        outcome, causes = SIZE_UNKNOWN, [_unknown_size(found, pod)]
    shown_causes = tuple(foreign(cause, FOREIGN_MESSAGE) for cause in causes[:_MOST_CAUSES])
    return ComingNode(one.title, one.since, one.state, outcome, shown_causes, one.command)

"""Warnings about plugin lists that kube-scheduler accepts but that rarely do what is intended."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....base.findings import Path, Problem, did_you_mean, listing, warning_problem
from ..plugins.effective_plugins import (
    WEIGHTED,
    WILDCARD,
    EffectivePlugins,
    configured_plugins,
    effective_plugins,
    listed_plugins,
)
from ..plugins.in_tree_plugins import (
    INVALID_PLUGINS,
    INVALID_PLUGINS_SINCE,
    OLD_PLUGINS,
    PLUGINS,
    Plugin,
    default_plugins,
    plugins,
)
from ..plugins.known_schedulers import owner_fix
from ..plugins.target_scheduler import Target
from ..schema import args_struct

SAFETY_FILTER_OFF: Final = "SafetyFilterOff"
NOT_PREPARED: Final = "NotPrepared"
OUTVOTED: Final = "OutvotedPlugins"
NEGATIVE_WEIGHT: Final = "NegativeWeight"
ZERO_WEIGHT: Final = "ZeroWeight"
WEIGHT_RESET: Final = "WeightReset"
USELESS_WEIGHT: Final = "UselessWeight"
USELESS_DISABLED: Final = "UselessDisabled"
UNUSED_ARGUMENTS: Final = "UnusedArguments"
UNNAMED_ARGUMENTS: Final = "UnnamedArguments"
OUTVOTED_STRATEGY: Final = "OutvotedStrategy"
REMOVED_LATER: Final = "RemovedLater"
IMAGES_ALONE: Final = "ImagesAlone"
NO_NODE_MATCHES: Final = "NoNodeMatches"

SAFETY_FILTERS: Final[Mapping[str, str]] = {
    "NodeUnschedulable": "only the taint that is added a moment later keeps pods off cordoned "
    "nodes, and without TaintToleration nothing does: a drained node fills up again",
    "NodeName": "the scheduler ignores spec.nodeName, and the kubelet rejects pods that name "
    "another node",
    "NodeResourcesFit": "pods are bound to full nodes, and the kubelet rejects them with OutOfcpu, "
    "OutOfmemory or OutOfpods: they end as Failed, and controllers replace them indefinitely",
    "NodePorts": "pods are bound to nodes where their hostPort is in use, and the kubelet rejects "
    "them with NodePorts",
    "TaintToleration": "pods are bound to tainted nodes: to the control plane, and to nodes that "
    "are not Ready, from which they are evicted",
    "NodeAffinity": "the scheduler ignores nodeSelector and required node affinity, and the "
    "kubelet rejects pods on other nodes with NodeAffinity",
    "VolumeBinding": "claims with WaitForFirstConsumer are never bound, and pods are bound to "
    "nodes that cannot reach their volumes: they stay in ContainerCreating",
}
"""Filter that every profile should run -> the consequence of disabling it."""

NEEDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "filter": (
        "preFilter",
        (
            "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "VolumeBinding",
            "PodTopologySpread", "InterPodAffinity", "DynamicResources",
        ),
    ),
    "score": ("preScore", ("TaintToleration", "PodTopologySpread", "InterPodAffinity")),
}  # fmt: skip
"""Point -> (preparing point, plugins whose pods fail with an error if they skip that point)."""

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_IMAGES: Final = "ImageLocality"  # its thresholds: 23 MiB, and 1000 MiB for each container

_REACHES: Final = {"filter": "has a candidate node", "score": "fits on more than one node"}

_WEIGHTED_LISTS: Final = (*WEIGHTED, "multiPoint")

_FIRST_POD: Final = 50
"""Points of PodTopologySpread between a node with one Pod of a workload and two nodes without."""


@dataclass(frozen=True, slots=True)
class ExpandedProfile:
    """A profile with valid types, and its effective plugins."""

    document: Mapping[str, Any]  # as written
    effective: EffectivePlugins
    target: Target  # the scheduler that reads it
    known: Mapping[str, Plugin]  # the scheduler's in-tree plugins, by name
    defaults: Mapping[str, int]  # the scheduler's default plugins, with their weights

    @classmethod
    def read(cls, document: Mapping[str, Any], target: Target) -> ExpandedProfile:
        gates = target.gates
        effective = effective_plugins(document, gates)
        known, defaults = plugins(gates.version), dict(default_plugins(gates))
        return cls(document, effective, target, known, defaults)

    def running(self, point: str) -> list[str]:
        return [entry.name for entry in self.effective.points.get(point, ())]

    def find(self, name: str, points: Sequence[str], key: str) -> Path:
        """Return the path of the entry with the name or `*` at these points; else of the lists."""
        listed = list(listed_plugins(self.document, key))
        for wanted in points:
            for point, path, entry in listed:
                if point == wanted and entry.get("name") in (name, WILDCARD):
                    return path
        return ("plugins",)


def plugin_warnings(
    profile: ExpandedProfile, extenders: Sequence[Mapping[str, Any]] = ()
) -> Iterator[Problem]:
    """Yield warnings about a profile; the extenders of the same configuration also score."""
    yield from _safety_filters(profile)
    yield from _unprepared(profile)
    yield from _weights(profile)
    yield from _outvoted(profile, extenders)
    yield from _strategy(profile)
    yield from _disabled(profile)
    yield from _arguments(profile)
    yield from _added_affinity(profile)
    yield from _removed_later(profile)


def _safety_filters(profile: ExpandedProfile) -> Iterator[Problem]:
    running = profile.running("filter")
    for name, consequence in SAFETY_FILTERS.items():
        if name in profile.defaults and name not in running:
            at = profile.find(name, ("filter", "multiPoint"), "disabled")
            fix = f"enable {name} at filter"
            if at[-1] != "plugins":
                fix = f"remove this entry, or also enable {name} here"
            yield warning_problem(
                SAFETY_FILTER_OFF, at, f"{name} does not run at filter: {consequence}", fix
            )


def _unprepared(profile: ExpandedProfile) -> Iterator[Problem]:
    for point, (before, names) in NEEDS.items():
        prepared = profile.running(before)
        for name in profile.running(point):
            if name in names and name not in prepared:
                yield warning_problem(
                    NOT_PREPARED,
                    profile.find(name, (before, "multiPoint"), "disabled"),
                    f"{name} runs at {point} but not at {before}, so every pod that "
                    f"{_REACHES[point]} fails there with an error",
                    f"also enable {name} at {before}, or enable it at multiPoint instead",
                )


def _weights(profile: ExpandedProfile) -> Iterator[Problem]:
    defaults, known, minor = profile.defaults, profile.known, profile.target.minor
    for point, path, entry in listed_plugins(profile.document, "enabled"):
        name, weight = entry.get("name", ""), entry.get("weight") or 0
        plugin = known.get(name)
        points = plugin.points_at(minor) if plugin else WEIGHTED
        can_score = any(weighted in points for weighted in WEIGHTED)
        scores = point in _WEIGHTED_LISTS and can_score
        if weight and not scores:
            where, fix = (f" at {point}", ", or set it at score") if can_score else ("", "")
            yield warning_problem(
                USELESS_WEIGHT,
                (*path, "weight"),
                f"{name} does not score{where}, so its weight has no effect",
                f"remove the weight{fix}",
            )
        elif weight < 0:
            yield warning_problem(
                NEGATIVE_WEIGHT,
                (*path, "weight"),
                f"weight {weight} makes {name} prefer the nodes that it scores lowest",
                "set 1 or more, or disable the plugin at score",
            )
        elif entry.get("weight") == 0 and scores and point != "placementScore":
            yield warning_problem(
                ZERO_WEIGHT,
                (*path, "weight"),
                f"weight 0 does not switch {name} off: it counts as 1",
                f"to switch it off, list {name} in disabled of score; otherwise set 1 or more",
            )
        elif not weight and scores and point != "placementScore" and defaults.get(name, 0) > 1:
            yield warning_problem(
                WEIGHT_RESET,
                path,
                f"{name} is listed without a weight, which means 1 instead of its default "
                f"weight {defaults[name]}",
                f"set weight: {defaults[name]}, or weight: 1 if this is intended",
            )


def _outvoted(
    profile: ExpandedProfile, extenders: Sequence[Mapping[str, Any]]
) -> Iterator[Problem]:
    if profile.effective.unknown:
        return  # unknown plugins may score
    scorers = [
        Scorer.plugin(entry.name, entry.weight) for entry in profile.effective.points["score"]
    ]
    scorers += [
        Scorer.extender(
            f"extenders[{index}]",
            extender.get("weight") or 1,
            optional=bool(extender.get("managedResources")),
        )
        for index, extender in enumerate(extenders)
        if extender.get("prioritizeVerb")
    ]
    if [scorer.name for scorer in scorers] == [_IMAGES]:
        yield warning_problem(
            IMAGES_ALONE,
            profile.find(_IMAGES, ("score", "multiPoint"), "enabled"),
            f"only {_IMAGES} scores, and it distinguishes nodes only by images of more than 23 "
            "MiB, weighted by the share of nodes that have them, up to 1000 MiB per container, and "
            "by names as nodes report them (with containerd docker.io/library/nginx:1.29, not "
            "nginx:1.29); among all other nodes the choice is random, or with 1.35 mostly by their "
            "order",
            "enable a second plugin at score, unless all images are of that size and all Pods "
            "write their whole names",
        )
    vote = outvoted(scorers)
    if vote is None:
        return
    deciding, others = ", ".join(vote.deciding), ", ".join(vote.outvoted)
    name = vote.deciding[0]
    at: Path = ("plugins",)
    if not name.startswith("extenders["):
        at = profile.find(name, ("score", "multiPoint"), "enabled")
    verb = "decides" if len(vote.deciding) == 1 else "decide"
    yield warning_problem(
        OUTVOTED,
        at,
        f"{deciding} {verb} alone: the smallest difference of two nodes counts {vote.unit}, and "
        f"all other scores together at most {vote.reach}, so {others} can only break ties",
        f"set weights that are closer together, or disable {others} at score if this is intended",
    )


def _strategy(profile: ExpandedProfile) -> Iterator[Problem]:
    """Warn about bin packing that PodTopologySpread outvotes.

    By default it spreads the Pods of every Service, ReplicaSet and StatefulSet. Of three nodes, one
    with the first Pod of a workload scores 50 points less than the others, with more nodes up to
    78. A Pod adds as many points to the score of MostAllocated as it requests percent of a node.
    """
    weights = {entry.name: entry.weight or 1 for entry in profile.effective.points["score"]}
    fit, spread = weights.get("NodeResourcesFit"), weights.get("PodTopologySpread")
    if fit is None or spread is None or fit <= 0 or _FIRST_POD * spread < fit:
        return
    arguments = {
        entry.get("name"): (path, entry.get("args") or {})
        for path, entry in configured_plugins(profile.document)
    }
    path, args = arguments.get("NodeResourcesFit", ((), {}))
    strategy = args.get("scoringStrategy") or {}
    _, spreading = arguments.get("PodTopologySpread", ((), {}))
    if not _packs(strategy) or not _spreads_by_default(spreading):
        return
    percent = _FIRST_POD * spread // fit
    effect = f"packs only Pods that request more than about {percent} percent of a node"
    if percent >= 100:
        effect = "hardly packs Pods"
    yield warning_problem(
        OUTVOTED_STRATEGY,
        (*path, "args", "scoringStrategy", "type"),
        f"{strategy['type']} {effect}: PodTopologySpread, with weight {spread} against {fit} of "
        "NodeResourcesFit, spreads the Pods of each Service, ReplicaSet and StatefulSet",
        "give PodTopologySpread the args {defaultingType: List}, so that it spreads only Pods with "
        "topologySpreadConstraints, as a SchedulerProfile with base: BinPacking does",
    )


def _packs(strategy: Mapping[str, Any]) -> bool:
    """Report whether a scoring strategy prefers fuller nodes."""
    shape = (strategy.get("requestedToCapacityRatio") or {}).get("shape") or ()
    scores = [point.get("score") or 0 for point in shape]
    rising = bool(scores) and scores[-1] > scores[0]
    kind = strategy.get("type")
    return kind == "MostAllocated" or (kind == "RequestedToCapacityRatio" and rising)


def _spreads_by_default(args: Mapping[str, Any]) -> bool:
    """Report whether PodTopologySpread scores Pods that have no constraints."""
    if args.get("defaultingType") != "List":
        return True
    constraints = args.get("defaultConstraints") or ()
    return any(each.get("whenUnsatisfiable") == "ScheduleAnyway" for each in constraints)


def _disabled(profile: ExpandedProfile) -> Iterator[Problem]:
    """Warn about entries of `disabled` without effect, except repetitions of another list."""
    target = profile.target
    known, defaults = profile.known, profile.defaults
    added = {
        entry.get("name")
        for point, _, entry in listed_plugins(profile.document, "enabled")
        if point == "multiPoint"
    }
    for point, path, entry in listed_plugins(profile.document, "disabled"):
        name = entry.get("name") or ""
        if name == WILDCARD:
            continue
        plugin = known.get(name)
        if plugin is None:
            if target.plugins_on_record:
                yield _useless(path, *_missing(name, target))
            elif name not in added and (meant := _misspelt(name, target)):
                has_none = f"kube-scheduler 1.{target.minor} has no plugin {name}"
                what = f"{has_none}, unless its image adds it"
                yield _useless(path, what, f'did you mean "{meant}"?')
        elif point != "multiPoint" and not plugin.implements(point, target.minor):
            points = listing(plugin.points_at(target.minor))
            yield _useless(path, f"{name} does not implement {point}", f"disable it at {points}")
        elif name not in defaults and (point == "multiPoint" or name not in added):
            what = f"{name} is not enabled by default in Kubernetes 1.{target.minor}"
            yield _useless(path, what, "remove this entry")


def _misspelt(name: str, target: Target) -> str:
    """Return the plugin of Kubernetes that a name in a custom image is a slip of; or empty.

    Plugins of others are named after those that they replace, so this is nearer than a hint.
    """
    lower = {known.lower(): known for known in plugins(target.gates.version)}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.93)
    return lower[close[0]] if close else ""


def _missing(name: str, target: Target) -> tuple[str, str]:
    """Return (why the target has no such plugin, the fix)."""
    minor = target.minor
    if name in OLD_PLUGINS:
        return f"API version v1 has no plugin {name}", f"remove this entry and {OLD_PLUGINS[name]}"
    other = PLUGINS.get(name)
    if other is not None and other.until is not None and other.until < minor:
        return f"{name} was removed in Kubernetes 1.{other.until + 1}", "remove this entry"
    if other is not None:
        return f"{name} was added in Kubernetes 1.{other.since}", "remove this entry"
    if fix := owner_fix(name):
        return f"kube-scheduler 1.{minor} has no plugin {name}", fix
    hint = did_you_mean(name, plugins(target.gates.version)).removeprefix("; ")
    return f"kube-scheduler 1.{minor} has no plugin {name}", hint or "remove this entry"


def _useless(path: Path, why: str, fix: str) -> Problem:
    return warning_problem(USELESS_DISABLED, path, f"this entry has no effect: {why}", fix)


def _arguments(profile: ExpandedProfile) -> Iterator[Problem]:
    target = profile.target
    running = {entry.name for entries in profile.effective.points.values() for entry in entries}
    running |= set(profile.effective.unknown)
    known = profile.known
    for path, entry in configured_plugins(profile.document):
        name = entry.get("name") or ""
        if not name:
            yield _unnamed(entry, path)
            continue
        if name in running and entry.get("args") and _takes_none(name, target):
            why, fix = f"{name} has no arguments", "remove this entry"
            yield warning_problem(
                UNUSED_ARGUMENTS, path, f"these arguments have no effect: {why}", fix
            )
            continue
        if name in running or (name in INVALID_PLUGINS and target.minor >= INVALID_PLUGINS_SINCE):
            continue  # the last case is an error
        why = f"{name} is not enabled in this profile"
        fix = f"enable {name}, or remove its arguments"
        if name not in known and target.plugins_on_record:
            why, fix = _missing(name, target)
            fix = fix.replace("this entry", "its arguments")
        elif name in known and not known[name].points_at(target.minor):
            continue
        yield warning_problem(UNUSED_ARGUMENTS, path, f"these arguments have no effect: {why}", fix)


def _added_affinity(profile: ExpandedProfile) -> Iterator[Problem]:
    """Warn about required terms that match no node: without a term, or with only empty ones."""
    if "NodeAffinity" not in profile.running("filter"):
        return
    for path, entry in configured_plugins(profile.document):
        if entry.get("name") != "NodeAffinity":
            continue
        added = (entry.get("args") or {}).get("addedAffinity") or {}
        required = added.get(_REQUIRED)
        terms = (required or {}).get("nodeSelectorTerms") or ()
        if required is None or any(
            term.get("matchExpressions") or term.get("matchFields") for term in terms
        ):
            continue
        yield warning_problem(
            NO_NODE_MATCHES,
            (*path, "args", "addedAffinity", _REQUIRED),
            "no term selects a node, so every Pod of this profile stays Pending",
            f"add a term with matchExpressions to nodeSelectorTerms, or remove {_REQUIRED}",
        )


def _takes_none(name: str, target: Target) -> bool:
    """Return whether a plugin is an in-tree one without arguments."""
    return target.plugins_on_record and name in PLUGINS and args_struct(name, target.minor) is None


def _unnamed(entry: Mapping[str, Any], path: Path) -> Problem:
    args = entry.get("args")
    inner = args.get("name") if isinstance(args, Mapping) else None
    if isinstance(inner, str) and inner:
        why = f'name "{inner}" is inside of args, one level too deep'
        fix = f"move it beside args: {{name: {inner}, args: …}}"
    else:
        why, fix = "the entry has no name", "add the name of the plugin: {name: PLUGIN, args: …}"
    message = f"kube-scheduler ignores these arguments: {why}"
    return warning_problem(UNNAMED_ARGUMENTS, path, message, fix)


def _removed_later(profile: ExpandedProfile) -> Iterator[Problem]:
    """Warn about entries with which a later kube-scheduler does not start."""
    minor = profile.target.minor
    for point, path, entry in listed_plugins(profile.document, "enabled"):
        name = entry.get("name") or ""
        plugin = PLUGINS.get(name)
        if plugin is None or not plugin.exists(minor):
            continue
        if plugin.until is not None:
            yield _later(path, name, plugin.until)
        elif point in plugin.points_until and minor <= plugin.points_until[point]:
            yield _later(path, f"{name} from {point}", plugin.points_until[point])
    for path, entry in configured_plugins(profile.document):
        plugin = PLUGINS.get(entry.get("name") or "")
        if plugin is not None and plugin.until is not None and minor <= plugin.until:
            yield _later(path, entry["name"], plugin.until)


def _later(path: Path, what: str, until: int) -> Problem:
    return warning_problem(
        REMOVED_LATER,
        path,
        f"Kubernetes 1.{until + 1} removes {what}, and its kube-scheduler rejects this entry",
        "remove it before the upgrade",
    )


# --- outvoted weights ----------------------------------------------------------------------------
# A plugin scores a node from 0 to 100 in integers, an extender from 0 to 10, multiplied by ten.
# The node with the greatest weighted sum wins. Take the heaviest scorers, and let g be the
# greatest common divisor of the weighted values of one point of each: their sum is a multiple of
# g, so two nodes that differ in it differ by at least g. All other scorers together contribute at
# most the sum of their maximum scores. If that is less than g, they only choose among nodes with
# equal scores of the heavy ones: they are outvoted.

MAX_NODE_SCORE: Final = 100
EXTENDER_POINTS: Final = 10
"""Points of a plugin's 100 that one of an extender's 10 points is worth."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A plugin or an extender that scores nodes."""

    name: str  # of the plugin, or a label for the extender
    point: int  # weighted value of one point, at least 1
    most: int  # weighted value of the maximum score
    optional: bool = False  # whether it only scores some pods, and so cannot outvote others

    @classmethod
    def plugin(cls, name: str, weight: int) -> Scorer:
        """Create a plugin; weight 0 means 1, and a negative weight counts like a positive one."""
        point = abs(weight) or 1
        return cls(name, point, MAX_NODE_SCORE * point)

    @classmethod
    def extender(cls, name: str, weight: int, *, optional: bool) -> Scorer:
        return cls(name, EXTENDER_POINTS * weight, MAX_NODE_SCORE * weight, optional)


@dataclass(frozen=True, slots=True)
class Outvoted:
    deciding: tuple[str, ...]  # scorers that decide alone, heaviest first
    outvoted: tuple[str, ...]  # scorers that only break ties
    unit: int  # smallest difference of two nodes in the sum of the deciding scorers
    reach: int  # maximum sum of the outvoted scorers, less than `unit`


def outvoted(scorers: Iterable[Scorer]) -> Outvoted | None:
    """Find the smallest set of scorers that outvotes all others; None if no set does."""
    ordered = sorted(scorers, key=lambda scorer: -scorer.point)
    for count in range(1, len(ordered)):
        deciding, others = ordered[:count], ordered[count:]
        if deciding[-1].optional:
            return None
        unit = math.gcd(*(scorer.point for scorer in deciding))
        reach = sum(scorer.most for scorer in others)
        if unit > reach:
            return Outvoted(_names(deciding), _names(others), unit, reach)
    return None


def _names(scorers: Sequence[Scorer]) -> tuple[str, ...]:
    return tuple(scorer.name for scorer in scorers)

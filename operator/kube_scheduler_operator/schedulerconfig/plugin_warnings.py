"""Plugin lists that kube-scheduler accepts and that do not do what somebody had in mind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..base.findings import WARNING, Path, Problem, did_you_mean
from .catalogue import NEVER_IN_V1, NEVER_IN_V1_SINCE, PLUGINS, Plugin, default_plugins, plugins
from .check import Target
from .effective_plugins import EVERYTHING, Effective, effective_plugins
from .outvoted_weights import Scorer, silenced

SAFETY_FILTER_OFF: Final = "SafetyFilterOff"
NOT_PREPARED: Final = "NotPrepared"
SILENCED: Final = "SilencedPlugins"
NEGATIVE_WEIGHT: Final = "NegativeWeight"
WEIGHT_RESET: Final = "WeightReset"
USELESS_WEIGHT: Final = "UselessWeight"
USELESS_DISABLED: Final = "UselessDisabled"
UNUSED_ARGUMENTS: Final = "UnusedArguments"
REMOVED_LATER: Final = "RemovedLater"
IMAGES_ALONE: Final = "ImagesAlone"

SAFETY_FILTERS: Final[Mapping[str, str]] = {
    "NodeUnschedulable": "only the taint that follows a moment later keeps pods off cordoned "
    "nodes, and without TaintToleration not even that: a node that is drained fills up again",
    "NodeName": "a node's name is no longer compared with spec.nodeName, and the kubelet refuses "
    "a pod that names another node",
    "NodeResourcesFit": "pods land on full nodes, and the kubelet refuses them with OutOfcpu, "
    "OutOfmemory or OutOfpods: they are Failed, and their controllers make new ones without end",
    "NodePorts": "pods land where their hostPort is taken, and the kubelet refuses them with "
    "NodePorts",
    "TaintToleration": "pods land on tainted nodes: on the control plane, and on nodes that are "
    "not Ready, from which they are evicted",
    "NodeAffinity": "nodeSelector and required node affinity count for nothing, and the kubelet "
    "refuses pods on the wrong nodes with NodeAffinity",
    "VolumeBinding": "claims that wait for their first consumer are never bound, and pods land on "
    "nodes that cannot reach their volumes: they stay in ContainerCreating",
}
"""Filters that nobody should be without, and what happens then."""

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
"""Point -> (the one before it, plugins that end a pod's cycle in error when that did not run)."""

_IMAGES: Final = "ImageLocality"  # its thresholds: 23 MiB, and 1000 MiB for each container

_REACHES: Final = {"filter": "finds a node to try", "score": "fits on more than one node"}

_WEIGHED: Final = ("score", "placementScore", "multiPoint")
_SCORES: Final = ("score", "placementScore")

_FIT: Final = "the strategy is NodeResourcesFit's argument scoringStrategy"
_OLD_NAMES: Final[Mapping[str, str]] = {
    "NodeResourcesLeastAllocated": _FIT,
    "NodeResourcesMostAllocated": _FIT,
    "RequestedToCapacityRatio": _FIT,
    "NodeLabel": "NodeAffinity does this with its argument addedAffinity",
    "ServiceAffinity": "PodTopologySpread does this with its argument defaultConstraints",
    "SelectorSpread": "PodTopologySpread does this",
    "NodePreferAvoidPods": "taints do this",
}
"""Plugins of the API versions before v1, and what does their work now."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile of the right shape with what it leads to.

    Attributes:
        document: as written.
        path: where it is in the configuration.
        effective: its plugins, expanded.
        target: the scheduler that reads it.
        known: all plugins of this scheduler, by name.
        defaults: those that are on by default, with their weights.
    """

    document: Mapping[str, Any]
    path: Path
    effective: Effective
    target: Target
    known: Mapping[str, Plugin]
    defaults: Mapping[str, int]

    @classmethod
    def read(cls, document: Mapping[str, Any], path: Path, target: Target) -> Profile:
        """Expand its plugins."""
        gates = target.gates
        effective = effective_plugins(document, gates)
        known, defaults = plugins(gates.version), dict(default_plugins(gates))
        return cls(document, path, effective, target, known, defaults)

    @property
    def lists(self) -> Mapping[str, Any]:
        """Its plugin lists, by extension point."""
        return {point: value or {} for point, value in (self.document.get("plugins") or {}).items()}

    def running(self, point: str) -> list[str]:
        """The plugins that run at a point."""
        return [entry.name for entry in self.effective.points.get(point, ())]

    def find(self, name: str, points: Sequence[str], key: str) -> Path:
        """Where a list of these points has the name, or `*`; else where the lists are."""
        for point in points:
            for index, entry in enumerate(self.lists.get(point, {}).get(key) or ()):
                if entry.get("name") in (name, EVERYTHING):
                    return (*self.path, "plugins", point, key, index)
        return (*self.path, "plugins")


def plugin_hazards(
    profile: Profile, extenders: Sequence[Mapping[str, Any]] = ()
) -> Iterator[Problem]:
    """What hurts about one profile.

    Args:
        profile: the profile.
        extenders: of the same configuration, because they score as well.
    """
    yield from _safety(profile)
    yield from _unprepared(profile)
    yield from _weights(profile)
    yield from _silence(profile, extenders)
    yield from _disabled(profile)
    yield from _arguments(profile)
    yield from _removed_later(profile)


def _safety(profile: Profile) -> Iterator[Problem]:
    running = profile.running("filter")
    for name, consequence in SAFETY_FILTERS.items():
        if name in profile.defaults and name not in running:
            at = profile.find(name, ("filter", "multiPoint"), "disabled")
            fix = f"enable {name} at filter"
            if at[-1] != "plugins":
                fix = f"take it out of this list, or enable {name} beside it"
            yield _warning(
                SAFETY_FILTER_OFF, at, f"{name} does not run at filter: {consequence}", fix
            )


def _unprepared(profile: Profile) -> Iterator[Problem]:
    for point, (before, names) in NEEDS.items():
        prepared = profile.running(before)
        for name in profile.running(point):
            if name in names and name not in prepared:
                yield _warning(
                    NOT_PREPARED,
                    profile.find(name, (before, "multiPoint"), "disabled"),
                    f"{name} runs at {point} without having run at {before}, so every pod that "
                    f"{_REACHES[point]} fails there with an error",
                    f"enable {name} at {before} too, or at multiPoint instead",
                )


def _weights(profile: Profile) -> Iterator[Problem]:
    defaults, known, minor = profile.defaults, profile.known, profile.target.minor
    for point, lists in profile.lists.items():
        for index, entry in enumerate(lists.get("enabled") or ()):
            name, weight = entry.get("name", ""), entry.get("weight") or 0
            path = (*profile.path, "plugins", point, "enabled", index)
            plugin = known.get(name)
            points = plugin.points_at(minor) if plugin else _SCORES
            scores = point in _WEIGHED and any(each in points for each in _SCORES)
            if weight and not scores:
                yield _warning(
                    USELESS_WEIGHT,
                    (*path, "weight"),
                    f"{name} does not score at {point}, so its weight counts for nothing",
                    "remove it, or write it at score",
                )
            elif weight < 0:
                yield _warning(
                    NEGATIVE_WEIGHT,
                    (*path, "weight"),
                    f"a weight of {weight} makes {name} prefer the nodes that it finds worst",
                    "use 1 or more, or disable the plugin at score",
                )
            elif not weight and scores and point != "placementScore" and defaults.get(name, 0) > 1:
                yield _warning(
                    WEIGHT_RESET,
                    path,
                    f"{name} is listed without a weight and so counts 1, no longer "
                    f"{defaults[name]} as by default",
                    f"write weight: {defaults[name]}, or weight: 1 if that is meant",
                )


def _silence(profile: Profile, extenders: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    if profile.effective.unknown:
        return  # who else scores is not known
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
        yield _warning(
            IMAGES_ALONE,
            profile.find(_IMAGES, ("score", "multiPoint"), "enabled"),
            f"only {_IMAGES} scores, and it tells nodes apart only by images of more than 23 MiB, "
            "counted by the share of nodes that have them, and no better from 1000 MiB for each "
            "container on; among all other nodes chance decides, or with 1.35 mostly their order",
            "enable a second plugin at score, unless all images are of that size",
        )
    found = silenced(scorers)
    if found is None:
        return
    loud, silent = ", ".join(found.loud), ", ".join(found.silent)
    name = found.loud[0]
    at: Path = (*profile.path, "plugins")
    if not name.startswith("extenders["):
        at = profile.find(name, ("score", "multiPoint"), "enabled")
    they = "decides" if len(found.loud) == 1 else "decide"
    yield _warning(
        SILENCED,
        at,
        f"{loud} {they} alone: a difference of one point there is {found.unit}, and all others "
        f"together add at most {found.reach}; {silent} only choose among equals",
        f"bring the weights closer together, or disable {silent} at score if that is meant",
    )


def _disabled(profile: Profile) -> Iterator[Problem]:
    """Entries of `disabled` that change nothing, so that whoever wrote them meant something else.

    What another list switches off as well is off, as it says: that is not told.
    """
    target = profile.target
    known, defaults = profile.known, profile.defaults
    added = {
        entry.get("name") for entry in profile.lists.get("multiPoint", {}).get("enabled") or ()
    }
    for point, lists in profile.lists.items():
        for index, entry in enumerate(lists.get("disabled") or ()):
            name = entry.get("name") or ""
            if name == EVERYTHING:
                continue
            path = (*profile.path, "plugins", point, "disabled", index)
            plugin = known.get(name)
            if plugin is None:
                if target.plugins_on_record:
                    yield _useless(path, *_missing(name, target))
            elif point != "multiPoint" and not plugin.implements(point, target.minor):
                points = ", ".join(plugin.points_at(target.minor))
                yield _useless(
                    path, f"{name} never runs at {point}", f"disable it where it runs: {points}"
                )
            elif name not in defaults and (point == "multiPoint" or name not in added):
                yield _useless(
                    path,
                    f"{name} is off by default in Kubernetes 1.{target.minor}",
                    "remove this entry",
                )


def _missing(name: str, target: Target) -> tuple[str, str]:
    """(why there is no such plugin, what to do)."""
    minor = target.minor
    if name in _OLD_NAMES:
        return f"v1 of the API has no plugin {name}", f"remove this entry: {_OLD_NAMES[name]}"
    other = PLUGINS.get(name)
    if other is not None and other.until is not None and other.until < minor:
        return f"{name} was removed in Kubernetes 1.{other.until + 1}", "remove this entry"
    if other is not None:
        return f"{name} comes with Kubernetes 1.{other.since}", "remove this entry"
    hint = did_you_mean(name, plugins(target.gates.version)).removeprefix("; ")
    return f"kube-scheduler 1.{minor} has no plugin {name}", hint or "remove this entry"


def _useless(path: Path, why: str, fix: str) -> Problem:
    return _warning(USELESS_DISABLED, path, f"this entry does nothing: {why}", fix)


def _arguments(profile: Profile) -> Iterator[Problem]:
    target = profile.target
    running = {entry.name for entries in profile.effective.points.values() for entry in entries}
    running |= set(profile.effective.unknown)
    known = profile.known
    for index, entry in enumerate(profile.document.get("pluginConfig") or ()):
        name = entry.get("name") or ""
        path = (*profile.path, "pluginConfig", index)
        if (
            not name
            or name in running
            or (name in NEVER_IN_V1 and target.minor >= NEVER_IN_V1_SINCE)
        ):
            continue  # the last is an error, which says enough
        why = f"{name} runs nowhere in this profile"
        fix = f"enable {name}, or remove its arguments"
        if name not in known and target.plugins_on_record:
            why, fix = _missing(name, target)
            fix = fix.replace("this entry", "its arguments")
        elif name in known and not known[name].points_at(target.minor):
            continue
        yield _warning(UNUSED_ARGUMENTS, path, f"nobody reads these arguments: {why}", fix)


def _removed_later(profile: Profile) -> Iterator[Problem]:
    """What the next minor versions of kube-scheduler refuse: they would not start any more."""
    minor = profile.target.minor
    for point, lists in profile.lists.items():
        for index, entry in enumerate(lists.get("enabled") or ()):
            name = entry.get("name") or ""
            plugin = PLUGINS.get(name)
            if plugin is None or not plugin.exists(minor):
                continue
            path = (*profile.path, "plugins", point, "enabled", index)
            if plugin.until is not None:
                yield _later(path, f"the plugin {name}", plugin.until)
            elif point in plugin.points_until and minor <= plugin.points_until[point]:
                yield _later(path, f"{name} at {point}", plugin.points_until[point])
    for index, entry in enumerate(profile.document.get("pluginConfig") or ()):
        plugin = PLUGINS.get(entry.get("name") or "")
        if plugin is not None and plugin.until is not None and minor <= plugin.until:
            path = (*profile.path, "pluginConfig", index)
            yield _later(path, f"the plugin {entry['name']}", plugin.until)


def _later(path: Path, what: str, until: int) -> Problem:
    return _warning(
        REMOVED_LATER,
        path,
        f"Kubernetes 1.{until + 1} has no longer {what} and does not start with this entry",
        "remove it before the upgrade",
    )


def _warning(reason: str, path: Path, message: str, fix: str) -> Problem:
    return Problem(reason, path, message, fix, WARNING)

"""How the effective plugins and arguments of two profiles differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....base.findings import Path
from ....base.objects import mapping
from ...language.feature_gates import Gates
from ...language.plugins.default_args import defaulted_args
from ...language.plugins.effective_plugins import WEIGHTED, PluginEntry, effective_plugins
from ...language.schema import POINTS

FIT: Final = "NodeResourcesFit"
SPREAD: Final = "PodTopologySpread"
_SCORING: Final[Mapping[str, tuple[str, ...]]] = {
    FIT: ("scoringStrategy",),
    "InterPodAffinity": ("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"),
    "VolumeBinding": ("bindTimeoutSeconds", "shape"),
}
"""Plugin -> its arguments that do not decide whether a node is feasible."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TYPE: Final = ("apiVersion", "kind")
_PERCENTAGES: Final[Mapping[str, str]] = {
    "percentageOfNodesToScore": "score",
    "percentageOfPlacementsToScore": "placementScore",
}
"""Field -> the extension point that it limits."""


@dataclass(frozen=True, slots=True)
class ProfileDifference:
    path: Path  # the field of the first profile that causes it
    text: str  # what the first profile has and the second one does not


def profile_differences(
    profile: Mapping[str, Any],
    other: Mapping[str, Any],
    gates: Gates,
    points: Collection[str] = POINTS,
) -> Iterator[ProfileDifference]:
    """Yield the differences of two valid profiles at some extension points."""
    yield from _plugins(profile, other, gates, points)
    yield from _arguments(profile, other, gates, points)
    for name, point in _PERCENTAGES.items():
        percentage = profile.get(name)
        if percentage != other.get(name) and point in points:
            yield ProfileDifference((name,), f"it is {percentage}")


def plugin_arguments(profile: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the arguments by plugin, without apiVersion and kind."""
    return {
        str(entry.get("name")): {
            key: value for key, value in mapping(entry.get("args")).items() if key not in _TYPE
        }
        for entry in profile.get("pluginConfig") or ()
    }


def filtering_profile(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the profile with those arguments only that decide whether a node is feasible."""
    configs = []
    for entry in profile.get("pluginConfig") or ():
        name, args = str(entry.get("name")), dict(mapping(entry.get("args")))
        for key in _SCORING.get(name, ()):
            args.pop(key, None)
        if name == SPREAD:
            constraints = args.get("defaultConstraints") or ()
            hard = [
                constraint
                for constraint in constraints
                if constraint.get("whenUnsatisfiable") == "DoNotSchedule"
            ]
            args = {"defaultingType": "List", "defaultConstraints": hard} if hard else {}
        if name == "NodeAffinity":
            required = mapping(args.get("addedAffinity")).get(_REQUIRED)
            args = {"addedAffinity": {_REQUIRED: required}} if required else {}
        configs.append({"name": name, "args": args})
    return {**profile, "pluginConfig": configs}


def _plugins(
    profile: Mapping[str, Any],
    other: Mapping[str, Any],
    gates: Gates,
    points: Collection[str],
) -> Iterator[ProfileDifference]:
    here, there = effective_plugins(profile, gates).points, effective_plugins(other, gates).points
    lists = mapping(profile.get("plugins"))
    by_text: dict[str, list[str]] = {}
    for point in POINTS:
        if point in points:
            text = _changed(point, here.get(point, ()), there.get(point, ()))
            if text:
                by_text.setdefault(text, []).append(point)
    for text, changed in by_text.items():
        listed = [point for point in (*changed, "multiPoint") if lists.get(point)]
        yield ProfileDifference(("plugins", *listed[:1]), f"{', '.join(changed)}: {text}")


def _changed(point: str, here: Sequence[PluginEntry], there: Sequence[PluginEntry]) -> str:
    weighted = point in WEIGHTED
    wanted = {plugin.name: plugin.weight or 1 if weighted else 0 for plugin in here}
    usual = {plugin.name: plugin.weight or 1 if weighted else 0 for plugin in there}
    parts = [
        f"{name} has the weight {weight}" if weighted else f"{name} runs"
        for name, weight in wanted.items()
        if usual.get(name) != weight
    ]
    missing = [name for name in usual if name not in wanted]
    if missing and not wanted:
        return "no plugin runs"
    if missing:
        parts.append(f"{', '.join(missing)} {'do' if len(missing) > 1 else 'does'} not run")
    return ", ".join(parts)


def _arguments(
    profile: Mapping[str, Any],
    other: Mapping[str, Any],
    gates: Gates,
    points: Collection[str],
) -> Iterator[ProfileDifference]:
    here, there = plugin_arguments(profile), plugin_arguments(other)
    running = {
        entry.name
        for point, entries in effective_plugins(profile, gates).points.items()
        for entry in entries
        if point in points
    }
    order = list(here)
    for name in dict.fromkeys((*here, *there)):
        if name not in running:
            continue
        wanted = defaulted_args(name, here.get(name, {}), gates)
        usual = defaulted_args(name, there.get(name, {}), gates)
        for key in dict.fromkeys((*wanted, *usual)):
            if wanted.get(key) == usual.get(key):
                continue
            path: Path = ("pluginConfig",)
            if name in here:
                path = (*path, order.index(name), "args", key)
            yield ProfileDifference(path, f"{name} has {key} {_short(wanted.get(key))}")


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_short(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "[" + ", ".join(_short(item) for item in value) + "]"
    return "unset" if value is None else str(value)

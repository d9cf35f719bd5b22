"""Effective plugins: kube-scheduler's two-stage expansion of a profile's plugin lists.

First, each list is merged with the default list of its point: that of multiPoint enables plugins,
and those of other points only disable some. Then multiPoint is expanded to the extension points
that each plugin implements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from ....base.bounded_cache import cached_by_content
from ....base.findings import Path
from ....base.objects import entries, mapping
from ..feature_gates import Gates
from ..schema import POINTS
from ..versions import Version
from .in_tree_plugins import default_plugins, disabled_by_default, plugins

WILDCARD: Final = "*"
MULTI_POINT: Final = "multiPoint"
WEIGHTED: Final = ("score", "placementScore")
"""Extension points at which a plugin's weight counts."""


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin in a list; weight 0 means unset."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The plugins enabled and disabled at one extension point."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: frozenset[str] = frozenset()


_EMPTY: Final = PluginSet()


@dataclass(frozen=True, slots=True)
class EffectivePlugins:
    points: Mapping[str, tuple[PluginEntry, ...]]  # extension point -> plugins, in order
    duplicates: tuple[tuple[str, str], ...]  # (point, name) that kube-scheduler rejects
    # extension point -> weights, also of disabled plugins, in the order in which kube-scheduler
    # adds them up
    weights: Mapping[str, tuple[int, ...]]
    named: tuple[str, ...]  # plugins that a list enables
    unknown: tuple[str, ...]  # of these, out-of-tree plugins, whose extension points are unknown


def effective_plugins(profile: Mapping[str, Any], gates: Gates) -> EffectivePlugins:
    """Expand the plugin lists of a profile with valid types (decode.py).

    Results are cached and must not be modified.
    """
    return _effective(profile.get("plugins") or {}, gates)


# A profile is expanded for its validation, its scheduler's validation, and the status.
@cached_by_content(512)
def _effective(lists: Mapping[str, Any], gates: Gates) -> EffectivePlugins:
    known = _points(gates.version)
    sets = {
        # Most profiles have no lists at most points.
        point: merge_with_defaults(default_set(gates, point), read_set(lists[point]))
        if lists.get(point)
        else default_set(gates, point)
        for point in POINTS
    }
    multi = merge_with_defaults(default_set(gates, MULTI_POINT), read_set(lists.get(MULTI_POINT)))

    points: dict[str, tuple[PluginEntry, ...]] = {}
    duplicates: list[tuple[str, str]] = []
    for point, here in sets.items():
        points[point], repeated = _expand(point, here, multi, known)
        duplicates.extend((point, name) for name in repeated)
    lists_of_all = (*sets.values(), multi)
    named = tuple(dict.fromkeys(entry.name for lists in lists_of_all for entry in lists.enabled))
    unknown = tuple(name for name in named if name not in known)
    weights: dict[str, tuple[int, ...]] = {}
    for point in WEIGHTED:
        summed: dict[str, int] = {}
        for entry in (*sets[point].enabled, *multi.enabled):
            if point in known.get(entry.name, ()):
                summed.setdefault(entry.name, entry.weight or 1)
        weights[point] = tuple(summed.values())
    return EffectivePlugins(points, tuple(duplicates), weights, named, unknown)


@lru_cache(maxsize=256)
def default_set(gates: Gates, point: str) -> PluginSet:
    """Return the default list of a point."""
    if point == MULTI_POINT:
        return PluginSet(tuple(PluginEntry(*plugin) for plugin in default_plugins(gates)))
    disabled = disabled_by_default(gates, point)
    return PluginSet(disabled=disabled) if disabled else _EMPTY


@cache
def _points(version: Version) -> Mapping[str, frozenset[str]]:
    """Map plugins to their extension points; cached, because hundreds of profiles need it."""
    known = plugins(version)
    return {name: frozenset(plugin.points_at(version.minor)) for name, plugin in known.items()}


def merge_with_defaults(default: PluginSet, custom: PluginSet) -> PluginSet:
    """First stage: merge one point's list of a profile with the default list of that point."""
    disabled = custom.disabled | default.disabled
    listed = {entry.name: index for index, entry in enumerate(custom.enabled)}
    enabled: list[PluginEntry] = []
    replaced: set[int] = set()
    if WILDCARD not in disabled:
        for entry in default.enabled:
            if entry.name in disabled:
                continue
            if entry.name in listed:
                index = listed[entry.name]
                replaced.add(index)
                enabled.append(custom.enabled[index])
            else:
                enabled.append(entry)
    enabled += [entry for index, entry in enumerate(custom.enabled) if index not in replaced]
    return PluginSet(tuple(enabled), disabled)


def _expand(
    point: str, here: PluginSet, multi: PluginSet, known: Mapping[str, frozenset[str]]
) -> tuple[tuple[PluginEntry, ...], list[str]]:
    """Second stage: return (plugins at the point in order, duplicate names).

    The weight at the point takes precedence over the one at multiPoint.
    """
    explicit: dict[str, PluginEntry] = {}
    duplicates: list[str] = []
    for entry in here.enabled:
        if entry.name in explicit:
            duplicates.append(entry.name)
        explicit.setdefault(entry.name, entry)
    overriding: list[str] = []
    from_multi: dict[str, PluginEntry] = {}
    for entry in multi.enabled if WILDCARD not in here.disabled else ():
        if point not in known.get(entry.name, ()) or entry.name in here.disabled:
            continue
        if entry.name in explicit:
            overriding.append(entry.name)
        elif entry.name in from_multi:
            duplicates.append(entry.name)
        else:
            from_multi[entry.name] = entry
    ordered = [entry for name, entry in explicit.items() if name in overriding]
    ordered += from_multi.values()
    ordered += [entry for name, entry in explicit.items() if name not in overriding]
    return tuple(ordered), duplicates


def read_set(lists: Mapping[str, Any] | None) -> PluginSet:
    """Read the lists of one extension point with valid types."""
    lists = lists or {}
    enabled = tuple(
        PluginEntry(item.get("name") or "", item.get("weight") or 0)
        for item in lists.get("enabled") or ()
    )
    disabled = frozenset(item.get("name") or "" for item in lists.get("disabled") or ())
    return PluginSet(enabled, disabled)


# --- the lists of a profile, with entries of any types -------------------------------------------


def listed_plugins(
    profile: Mapping[str, Any], *keys: str
) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """Yield (extension point, path, entry) of the lists with these keys: enabled, disabled."""
    for point, lists in mapping(profile.get("plugins")).items():
        for key in keys:
            for index, entry in enumerate(entries(mapping(lists).get(key))):
                yield point, ("plugins", point, key, index), mapping(entry)


def configured_plugins(profile: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield (path, entry) of pluginConfig."""
    for index, entry in enumerate(entries(profile.get("pluginConfig"))):
        yield ("pluginConfig", index), mapping(entry)


def named_plugins(profile: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield (path of its name, name) of every plugin in the lists and in pluginConfig."""
    for _, path, entry in listed_plugins(profile, "enabled", "disabled"):
        yield (*path, "name"), str(entry.get("name"))
    for path, entry in configured_plugins(profile):
        yield (*path, "name"), str(entry.get("name"))

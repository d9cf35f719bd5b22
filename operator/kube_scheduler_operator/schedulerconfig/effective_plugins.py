"""Which plugins run where: kube-scheduler's two-stage expansion of a profile's plugin lists.

First each list is merged with the defaults, which all stand at multiPoint; then multiPoint is
expanded to the extension points that each plugin implements.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final

from .catalogue import default_plugins, plugins
from .feature_gates import Gates
from .schema import POINTS
from .versions import Version

EVERYTHING: Final = "*"
WEIGHTED: Final = ("score", "placementScore")
"""Extension points at which a plugin's weight counts."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A plugin in a list; weight 0 means that none was given."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What is enabled and disabled at one point."""

    enabled: tuple[Entry, ...] = ()
    disabled: frozenset[str] = frozenset()


_NOTHING: Final = PluginSet()


@dataclass(frozen=True, slots=True)
class Effective:
    """The plugins of one profile.

    Attributes:
        points: per extension point the plugins that run there, in order, with their weights.
        twice: (point, name) of plugins that kube-scheduler would refuse to register twice.
        weights: per point that has weights, those in the order in which kube-scheduler adds them
            up; disabled ones too.
        named: every plugin that is enabled in some list.
        unknown: those of them that the catalogue does not know, so that neither are their points.
    """

    points: Mapping[str, tuple[Entry, ...]]
    twice: tuple[tuple[str, str], ...]
    weights: Mapping[str, tuple[int, ...]]
    named: tuple[str, ...]
    unknown: tuple[str, ...]


def effective_plugins(profile: Mapping[str, Any], gates: Gates) -> Effective:
    """Expand the plugin lists of a profile that has the right shape (schema.decode).

    The result is the same object for the same lists: nobody may change it.
    """
    lists = profile.get("plugins") or {}
    explicit = frozenset(gates.explicit.items())
    return _effective(_Case(json.dumps(lists, default=str), lists), gates.version, explicit)


@dataclass(frozen=True, slots=True)
class _Case:
    """Plugin lists, the same if their content is."""

    key: str
    lists: Mapping[str, Any] = field(compare=False)


# A profile is asked about when it is judged, with all others, and for its scheduler's status.
@lru_cache(maxsize=512)
def _effective(case: _Case, version: Version, explicit: frozenset[tuple[str, bool]]) -> Effective:
    lists = case.lists
    known = _points(version)
    defaults = _defaults(version, explicit)
    sets = {
        # Of most profiles most points say nothing.
        point: merge_with_defaults(_NOTHING, _read(lists[point])) if lists.get(point) else _NOTHING
        for point in POINTS
    }
    multi = merge_with_defaults(defaults, _read(lists.get("multiPoint")))

    points: dict[str, tuple[Entry, ...]] = {}
    twice: list[tuple[str, str]] = []
    for point, here in sets.items():
        points[point], repeated = _expand(point, here, multi, known)
        twice.extend((point, name) for name in repeated)
    lists_of_all = (*sets.values(), multi)
    named = tuple(dict.fromkeys(entry.name for each in lists_of_all for entry in each.enabled))
    unknown = tuple(name for name in named if name not in known)
    weights: dict[str, tuple[int, ...]] = {}
    for point in WEIGHTED:
        summed: dict[str, int] = {}
        for entry in (*sets[point].enabled, *multi.enabled):
            if point in known.get(entry.name, ()):
                summed.setdefault(entry.name, entry.weight or 1)
        weights[point] = tuple(summed.values())
    return Effective(points, tuple(twice), weights, named, unknown)


@lru_cache(maxsize=16)
def _defaults(version: Version, explicit: frozenset[tuple[str, bool]]) -> PluginSet:
    """What is enabled by default at multiPoint."""
    enabled = default_plugins(Gates(version, dict(explicit)))
    return PluginSet(tuple(Entry(name, weight) for name, weight in enabled))


@cache
def _points(version: Version) -> Mapping[str, frozenset[str]]:
    """Where each plugin of a version can run; asked thousands of times for hundreds of profiles."""
    known = plugins(version)
    return {name: frozenset(plugin.points_at(version.minor)) for name, plugin in known.items()}


def merge_with_defaults(default: PluginSet, custom: PluginSet) -> PluginSet:
    """First stage: one point's list of a profile merged with the default list of that point."""
    disabled = custom.disabled | default.disabled
    wanted = {entry.name: index for index, entry in enumerate(custom.enabled)}
    enabled: list[Entry] = []
    replaced: set[int] = set()
    if EVERYTHING not in disabled:
        for entry in default.enabled:
            if entry.name in disabled:
                continue
            if entry.name in wanted:
                index = wanted[entry.name]
                replaced.add(index)
                enabled.append(custom.enabled[index])
            else:
                enabled.append(entry)
    enabled += [entry for index, entry in enumerate(custom.enabled) if index not in replaced]
    return PluginSet(tuple(enabled), disabled)


def _expand(
    point: str, here: PluginSet, multi: PluginSet, known: Mapping[str, frozenset[str]]
) -> tuple[tuple[Entry, ...], list[str]]:
    """Second stage: (plugins at the point in order, names that are there twice).

    A plugin that is listed here keeps the weight that it has here.
    """
    explicit: dict[str, Entry] = {}
    twice: list[str] = []
    for entry in here.enabled:
        if entry.name in explicit:
            twice.append(entry.name)
        explicit.setdefault(entry.name, entry)
    overriding: list[str] = []
    from_multi: dict[str, Entry] = {}
    for entry in multi.enabled if EVERYTHING not in here.disabled else ():
        if point not in known.get(entry.name, ()) or entry.name in here.disabled:
            continue
        if entry.name in explicit:
            overriding.append(entry.name)
        elif entry.name in from_multi:
            twice.append(entry.name)
        else:
            from_multi[entry.name] = entry
    ordered = [entry for name, entry in explicit.items() if name in overriding]
    ordered += from_multi.values()
    ordered += [entry for name, entry in explicit.items() if name not in overriding]
    return tuple(ordered), twice


def _read(value: Any) -> PluginSet:
    lists = value or {}
    enabled = tuple(
        Entry(item.get("name") or "", item.get("weight") or 0)
        for item in lists.get("enabled") or ()
    )
    disabled = frozenset(item.get("name") or "" for item in lists.get("disabled") or ())
    return PluginSet(enabled, disabled)

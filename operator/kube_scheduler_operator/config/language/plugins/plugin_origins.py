"""The effective plugins of a profile, with the origin of every entry.

Merging replaces plugin lists as a whole (merge.py), so a list has one origin: the last layer that
sets it. Plugins that no list names are kube-scheduler's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ..feature_gates import Gates
from ..schema import DEFAULT_SCHEDULER, POINTS, POINTS_SINCE
from .effective_plugins import WEIGHTED, WILDCARD, effective_plugins
from .in_tree_plugins import default_plugins, plugins

Origin = Literal["default", "base", "profile", "override"]
DEFAULT: Final = "default"
"""kube-scheduler's defaults."""
BASE: Final = "base"
"""The named profile over which the other layers are merged."""
PROFILE: Final = "profile"
"""A profile or configuration file of the user, or the observed configuration."""
OVERRIDE: Final = "override"
"""unsupportedConfigOverrides."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A whole or partial KubeSchedulerConfiguration that is merged over the previous ones."""

    origin: Origin
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PluginRow:
    name: str
    weight: int  # of its score; 0 at points without scores
    origin: Origin  # of its entry and weight


@dataclass(frozen=True, slots=True)
class ProfileTable:
    scheduler_name: str
    points: Mapping[str, tuple[PluginRow, ...]]  # extension point -> plugins, in order
    # extension point -> default plugins that do not run there, with their default weight and the
    # origin of the entry that disables them
    off: Mapping[str, tuple[PluginRow, ...]]
    unknown: tuple[PluginRow, ...]  # out-of-tree plugins, whose points are unknown; weight 0


def profile_tables(
    config: Mapping[str, Any], layers: Sequence[Layer], gates: Gates
) -> tuple[ProfileTable, ...]:
    """Return the tables of all profiles, in the order of the configuration.

    The merged configuration and its layers, in order, have valid types (decode.py) and no nulls.
    """
    return tuple(_table(profile, layers, gates) for profile in config.get("profiles") or [{}])


def _table(profile: Mapping[str, Any], layers: Sequence[Layer], gates: Gates) -> ProfileTable:
    name = profile.get("schedulerName") or DEFAULT_SCHEDULER
    lists = _Lists(
        profile.get("plugins") or {},
        [(layer.origin, _plugins_of(layer.config, name)) for layer in layers],
    )
    effective = effective_plugins(profile, gates)
    minor = gates.version.minor
    known = plugins(gates.version)
    weights = dict(default_plugins(gates))
    points: dict[str, tuple[PluginRow, ...]] = {}
    off: dict[str, tuple[PluginRow, ...]] = {}
    for point in POINTS:
        if POINTS_SINCE.get(point, 0) > minor:
            continue
        weighted = point in WEIGHTED
        points[point] = tuple(
            PluginRow(
                entry.name,
                (entry.weight or 1) if weighted else 0,
                lists.enabled(point, entry.name),
            )
            for entry in effective.points[point]
        )
        running = {row.name for row in points[point]}
        missing = tuple(
            PluginRow(default, (weight or 1) if weighted else 0, lists.disabled(point, default))
            for default, weight in weights.items()
            if default not in running and known[default].implements(point, minor)
        )
        if missing:
            off[point] = missing
    unknown = tuple(PluginRow(plugin, 0, lists.enabled("", plugin)) for plugin in effective.unknown)
    return ProfileTable(name, points, off, unknown)


@dataclass(frozen=True, slots=True)
class _Lists:
    """Plugin lists, and the layers that they come from."""

    merged: Mapping[str, Any]
    layers: Sequence[tuple[Origin, Mapping[str, Any]]]

    def enabled(self, point: str, name: str) -> Origin:
        """Return the origin of a plugin's entry at a point; without a point, in any list."""
        for listed in (point, "multiPoint") if point else self.merged:
            if name in self._names(listed, "enabled"):
                return self._origin(listed, "enabled")
        return DEFAULT

    def disabled(self, point: str, name: str) -> Origin:
        """Return the origin of the entry that disables a plugin at a point."""
        for listed in (point, "multiPoint"):
            if {name, WILDCARD} & self._names(listed, "disabled"):
                return self._origin(listed, "disabled")
        return DEFAULT

    def _names(self, point: str, key: str) -> set[str]:
        lists = self.merged.get(point) or {}
        return {entry.get("name", "") for entry in lists.get(key) or ()}

    def _origin(self, point: str, key: str) -> Origin:
        origin: Origin
        for origin, lists in reversed(self.layers):
            here = lists.get(point)
            if isinstance(here, Mapping) and here.get(key) is not None:
                return origin
        return PROFILE


def _plugins_of(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a layer's plugin lists for a schedulerName; a layer may have any types."""
    profiles = config.get("profiles")
    for profile in profiles if isinstance(profiles, list) else ():
        if isinstance(profile, Mapping):
            lists = profile.get("plugins")
            if (profile.get("schedulerName") or DEFAULT_SCHEDULER) == name:
                return lists if isinstance(lists, Mapping) else {}
    return {}

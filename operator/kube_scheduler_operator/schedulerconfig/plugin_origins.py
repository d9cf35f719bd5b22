"""Which plugins run where, and who said so: the effective table with the origin of every entry.

Plugin lists replace each other as a whole when configurations are laid over each other (merge.py),
so a list has one origin: the last layer that has it. What no list names is kube-scheduler's own
default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from .catalogue import default_plugins, plugins
from .effective_plugins import EVERYTHING, effective_plugins
from .feature_gates import Gates
from .schema import POINTS, POINTS_SINCE

Origin = Literal["default", "base", "profile", "override"]
DEFAULT: Final = "default"
"""kube-scheduler itself."""
BASE: Final = "base"
"""The named profile that everything is laid over."""
PROFILE: Final = "profile"
"""What the user wrote as a profile or a configuration file, or what was observed."""
OVERRIDE: Final = "override"
"""unsupportedConfigOverrides."""

WEIGHED: Final = ("score", "placementScore")
"""Extension points at which weights count."""
DEFAULT_SCHEDULER: Final = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Layer:
    """A KubeSchedulerConfiguration, or a part of one, that is laid over those before it."""

    origin: Origin
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A plugin at an extension point.

    Attributes:
        name: of the plugin.
        weight: what its score counts; 0 at points without scores.
        origin: who put it there, with this weight.
    """

    name: str
    weight: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class Table:
    """What one profile leads to.

    Attributes:
        scheduler_name: of the profile.
        points: per extension point of this version the plugins that run there, in order.
        off: per extension point the default plugins that do not run there, and who said so;
            their weight is what it would be.
        unknown: plugins of a custom image, of which nobody can say where they run; weight 0.
    """

    scheduler_name: str
    points: Mapping[str, tuple[Row, ...]]
    off: Mapping[str, tuple[Row, ...]]
    unknown: tuple[Row, ...]


def tables(config: Mapping[str, Any], layers: Sequence[Layer], gates: Gates) -> tuple[Table, ...]:
    """The tables of all profiles, in the order of the configuration.

    Args:
        config: the merged configuration, of the right shape (schema.decode), without nulls.
        layers: what it was merged from, in the order in which that was done.
        gates: of the scheduler that reads it.
    """
    return tuple(_table(profile, layers, gates) for profile in config.get("profiles") or [{}])


def _table(profile: Mapping[str, Any], layers: Sequence[Layer], gates: Gates) -> Table:
    name = profile.get("schedulerName") or DEFAULT_SCHEDULER
    written = _Written(
        profile.get("plugins") or {},
        [(layer.origin, _plugins_of(layer.config, name)) for layer in layers],
    )
    effective = effective_plugins(profile, gates)
    minor = gates.version.minor
    known = plugins(gates.version)
    weights = dict(default_plugins(gates))
    points: dict[str, tuple[Row, ...]] = {}
    off: dict[str, tuple[Row, ...]] = {}
    for point in POINTS:
        if POINTS_SINCE.get(point, 0) > minor:
            continue
        weighed = point in WEIGHED
        points[point] = tuple(
            Row(
                entry.name,
                (entry.weight or 1) if weighed else 0,
                written.enabled(point, entry.name),
            )
            for entry in effective.points[point]
        )
        running = {row.name for row in points[point]}
        missing = tuple(
            Row(default, (weight or 1) if weighed else 0, written.disabled(point, default))
            for default, weight in weights.items()
            if default not in running and known[default].implements(point, minor)
        )
        if missing:
            off[point] = missing
    unknown = tuple(Row(each, 0, written.enabled("", each)) for each in effective.unknown)
    return Table(name, points, off, unknown)


@dataclass(frozen=True, slots=True)
class _Written:
    """Plugin lists, and where each comes from."""

    merged: Mapping[str, Any]
    layers: Sequence[tuple[Origin, Mapping[str, Any]]]

    def enabled(self, point: str, name: str) -> Origin:
        """Who enabled a plugin at a point; without a point, in any list."""
        for each in (point, "multiPoint") if point else self.merged:
            if name in self._names(each, "enabled"):
                return self._origin(each, "enabled")
        return DEFAULT

    def disabled(self, point: str, name: str) -> Origin:
        """Who disabled a plugin at a point."""
        for each in (point, "multiPoint"):
            if {name, EVERYTHING} & self._names(each, "disabled"):
                return self._origin(each, "disabled")
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
    """A layer's plugin lists for a schedulerName; a layer's shape is not known to be right."""
    profiles = config.get("profiles")
    for profile in profiles if isinstance(profiles, list) else ():
        if isinstance(profile, Mapping):
            lists = profile.get("plugins")
            if (profile.get("schedulerName") or DEFAULT_SCHEDULER) == name:
                return lists if isinstance(lists, Mapping) else {}
    return {}

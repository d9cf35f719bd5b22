"""The plugins of an old profile: the version's defaults merged with the profile's lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...base.findings import Path
from ..language.feature_gates import Gates
from ..language.plugins.effective_plugins import (
    WILDCARD,
    PluginEntry,
    PluginSet,
    effective_plugins,
    merge_with_defaults,
)
from ..language.plugins.in_tree_plugins import default_plugins, plugins
from ..language.schema import POINTS
from ..language.versions import Version
from .old_defaults import PointPlugins, points_of

MULTI: Final = "multiPoint"
_KEYS: Final = ("enabled", "disabled")
_LAST_BETA: Final = Version(1, 29)
"""The oldest recorded version; 1.28, the last with v1beta3, has the same defaults."""


@dataclass(frozen=True, slots=True)
class ListedPlugin:
    """A plugin in a list of the old document."""

    name: str
    path: Path  # of its entry in the document
    weight: int = 0  # 0 means unset
    label: str = ""  # the name in the document, if it differs

    def __str__(self) -> str:
        return self.label or self.name


@dataclass(frozen=True, slots=True)
class PluginLists:
    """An old profile's lists for one extension point, in order."""

    enabled: tuple[ListedPlugin, ...] = ()
    disabled: tuple[ListedPlugin, ...] = ()

    @property
    def closed(self) -> bool:
        """Whether all default plugins are disabled."""
        return any(item.name == WILDCARD for item in self.disabled)


@dataclass(frozen=True, slots=True)
class OldProfile:
    """The plugins of one profile of an old document."""

    source: str  # display name of the version
    path: Path  # of the profile
    written: Mapping[str, PluginLists]  # point -> lists of the document
    ran: PointPlugins  # point -> plugins that the old scheduler ran, with their old names
    points: Mapping[str, frozenset[str]]  # default plugin of the old version -> its points

    def disables(self, point: str, name: str) -> bool:
        """Return whether the document disables the plugin by name, also at multiPoint."""
        return any(
            item.name == name
            for where in (point, MULTI)
            for item in self.written.get(where, PluginLists()).disabled
        )


def read_lists(lists: Mapping[str, Any], path: Path) -> dict[str, PluginLists]:
    """Read `plugins` of a profile with valid types."""
    return {
        point: PluginLists(*(_listed(sets or {}, key, (*path, point)) for key in _KEYS))
        for point, sets in lists.items()
    }


def _listed(sets: Mapping[str, Any], key: str, path: Path) -> tuple[ListedPlugin, ...]:
    return tuple(
        ListedPlugin(item.get("name", ""), (*path, key, index), item.get("weight", 0))
        for index, item in enumerate(sets.get(key, ()))
    )


def expand(
    source: str, path: Path, written: Mapping[str, PluginLists], defaults: PointPlugins | None
) -> OldProfile:
    """Determine the plugins that ran; only versions with multiPoint pass no defaults."""
    if defaults is None:
        gates = Gates(_LAST_BETA)
        lists = {point: _document(item) for point, item in written.items()}
        ran = effective_plugins({"plugins": lists}, gates).points
        known = plugins(_LAST_BETA)
        points = {
            name: frozenset(known[name].points_at(_LAST_BETA.minor))
            for name, _weight in default_plugins(gates)
        }
        return OldProfile(source, path, written, ran, points)
    ran = {
        point: merge_with_defaults(
            PluginSet(defaults.get(point, ())), _plugin_set(written.get(point, PluginLists()))
        ).enabled
        for point in POINTS
    }
    return OldProfile(source, path, written, ran, points_of(defaults))


def _plugin_set(lists: PluginLists) -> PluginSet:
    return PluginSet(
        tuple(PluginEntry(plugin.name, plugin.weight) for plugin in lists.enabled),
        frozenset(plugin.name for plugin in lists.disabled),
    )


def _document(lists: PluginLists) -> dict[str, Any]:
    return {
        "enabled": [{"name": plugin.name, "weight": plugin.weight} for plugin in lists.enabled],
        "disabled": [{"name": plugin.name} for plugin in lists.disabled],
    }

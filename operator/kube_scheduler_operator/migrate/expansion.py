"""What an old scheduler ran: its defaults with the lists of a profile over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.findings import Path
from ..schedulerconfig.catalogue import default_plugins, plugins
from ..schedulerconfig.effective_plugins import (
    EVERYTHING,
    Entry,
    PluginSet,
    effective_plugins,
    merge_with_defaults,
)
from ..schedulerconfig.feature_gates import Gates
from ..schedulerconfig.schema import POINTS
from ..schedulerconfig.versions import Version
from .old_defaults import Lists, points_of

MULTI: Final = "multiPoint"
_LAST_BETA: Final = Version(1, 29)
"""The oldest version on record; v1beta3 ended one before it and had the same defaults."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A plugin in a list of the old document.

    Attributes:
        name: of the plugin.
        path: where the document has it.
        weight: 0 means that none was given.
        label: what the document calls it, if that is not the plugin's name.
    """

    name: str
    path: Path
    weight: int = 0
    label: str = ""

    def __str__(self) -> str:
        """What the document calls it."""
        return self.label or self.name


@dataclass(frozen=True, slots=True)
class Written:
    """What an old document has at one point, in its order."""

    enabled: tuple[Listed, ...] = ()
    disabled: tuple[Listed, ...] = ()

    @property
    def closed(self) -> bool:
        """True if no default plugin is wanted."""
        return any(item.name == EVERYTHING for item in self.disabled)

    @property
    def as_set(self) -> PluginSet:
        """For the algorithm of kube-scheduler."""
        return PluginSet(
            tuple(Entry(item.name, item.weight) for item in self.enabled),
            frozenset(item.name for item in self.disabled),
        )


@dataclass(frozen=True, slots=True)
class OldProfile:
    """The plugins of one profile of an old document.

    Attributes:
        source: the version's name, for people.
        path: of the profile.
        written: per point.
        ran: per point what the old scheduler ran, under its own names.
        points: per plugin that the old scheduler enabled by default, the points that it had.
    """

    source: str
    path: Path
    written: Mapping[str, Written]
    ran: Lists
    points: Mapping[str, frozenset[str]]

    def turned_off(self, point: str, name: str) -> bool:
        """True if the document disables the plugin by name, there or everywhere."""
        return any(
            item.name == name
            for where in (point, MULTI)
            for item in self.written.get(where, Written()).disabled
        )


def read_lists(lists: Mapping[str, Any], path: Path) -> dict[str, Written]:
    """`plugins` of a profile that has the right shape."""
    return {
        point: Written(*(
            tuple(
                Listed(item.get("name", ""), (*path, point, key, index), item.get("weight", 0))
                for index, item in enumerate((sets or {}).get(key, ()))
            )
            for key in ("enabled", "disabled")
        ))
        for point, sets in lists.items()
    }  # fmt: skip


def expand(
    source: str, path: Path, written: Mapping[str, Written], defaults: Lists | None
) -> OldProfile:
    """What the old version ran; without a table of defaults it is one that has multiPoint."""
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
            PluginSet(defaults.get(point, ())), written.get(point, Written()).as_set
        ).enabled
        for point in POINTS
    }
    return OldProfile(source, path, written, ran, points_of(defaults))


def _document(item: Written) -> dict[str, Any]:
    return {
        "enabled": [{"name": each.name, "weight": each.weight} for each in item.enabled],
        "disabled": [{"name": each.name} for each in item.disabled],
    }

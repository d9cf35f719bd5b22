"""Plugin lists with which the target version runs the plugins that the old version ran.

The desired plugins are those that ran, with their current names, including the points that they
have implemented since. To keep lists short, the result starts with the profile's own lists, and
entries are added where `effective_plugins.py` shows a missing plugin, an extra one or another
weight.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..language.feature_gates import Gates
from ..language.plugins.effective_plugins import WILDCARD, PluginEntry, effective_plugins
from ..language.plugins.in_tree_plugins import PLUGINS, Plugin, default_plugins, listable_plugins
from ..language.schema import POINTS
from .changes import ConversionLog
from .old_defaults import (
    AVOID,
    BEFORE,
    CLOUD_LIMITS,
    FIT,
    FOLLOWS,
    NODE_LABEL,
    SERVICE_AFFINITY,
    SPREADING,
    STRATEGIES,
    WITHOUT_REPLACEMENT,
    PointPlugins,
    replacement,
)
from .old_profile import MULTI, ListedPlugin, OldProfile, PluginLists
from .old_schema import is_in_tree

_ORDERED: Final = (
    "preEnqueue", "queueSort", "postFilter", "reserve", "permit", "preBind", "bind", "postBind",
)  # fmt: skip
"""Points at which order matters; filters and scores are independent of it."""
_TOGETHER: Final = frozenset(("preFilter", "filter", "reserve", "preBind"))
"""Points at which a plugin depends on an earlier one: all of them or none."""


def convert_lists(old: OldProfile, gates: Gates, report: ConversionLog) -> dict[str, Any]:
    """Convert `plugins` of a profile; empty if the defaults suffice."""
    known = listable_plugins(gates.version)
    desired, new = _desired_plugins(old, known, gates)
    translation = _Translation(old, desired, known, gates, report)
    lists = {point: translation.lists(point, item) for point, item in old.written.items()}
    disabled = [name for name in new if _add_disabled(lists, MULTI, name)]
    if disabled:
        why = f'a list that disables "*" gets no plugins that were added after {old.source}'
        report.same((*old.path, "plugins"), f"{', '.join(disabled)} disabled at multiPoint", why)
    _report_defaults(old, report)
    translation.correct(lists)
    return {point: sets for point, sets in lists.items() if sets}


def _desired_plugins(
    old: OldProfile, known: Mapping[str, Plugin], gates: Gates
) -> tuple[dict[str, dict[str, PluginEntry]], list[str]]:
    """Return (point -> plugins to run in the target version, newer plugins to disable)."""
    desired: dict[str, dict[str, PluginEntry]] = {point: {} for point in POINTS}
    _add_successors(desired, old, known, gates)
    closed = {point for point, item in old.written.items() if item.closed}
    mentioned = {entry.name for entries in old.ran.values() for entry in entries}
    off = []
    for name, weight in default_plugins(gates):
        points = known[name].points_at(gates.version.minor)
        entry = PluginEntry(name, weight)
        if name in old.points or name in mentioned:
            _add_new_points(desired, old, entry, points, closed)
        elif MULTI in closed or closed & _TOGETHER & set(points):
            off.append(name)
        else:
            for point in points:
                if point not in closed and not old.disables(point, name):
                    _put_in_default_order(desired[point], entry)
    return desired, [] if MULTI in closed else off


def _add_successors(
    desired: dict[str, dict[str, PluginEntry]],
    old: OldProfile,
    known: Mapping[str, Plugin],
    gates: Gates,
) -> None:
    """Add the plugins that ran, with their current names."""
    strategy = chosen_strategy(old.ran)
    for point, entries in old.ran.items():
        own = {entry.name: entry for entry in entries if entry.name not in STRATEGIES}
        for entry in entries:
            name = replacement(entry.name, point, known)
            if name is None or (entry.name in STRATEGIES and entry.name != strategy):
                continue
            if _superseded_limit(entry.name, name, point, old):
                continue
            weight = own[name].weight if name in own else entry.weight
            if entry.name in (NODE_LABEL, SERVICE_AFFINITY):  # its preferences must not count less
                weight = max(weight or 1, entry.weight or 1)
                desired[point].pop(name, None)
            desired[point].setdefault(name, PluginEntry(name, weight))
            before, minor = BEFORE.get(point), gates.version.minor
            if before and name != entry.name and known[name].implements(before, minor):
                desired[before].setdefault(name, PluginEntry(name))


def _add_new_points(
    desired: dict[str, dict[str, PluginEntry]],
    old: OldProfile,
    entry: PluginEntry,
    points: Iterable[str],
    closed: Container[str],
) -> None:
    """Add a plugin that ran at the points that it has implemented since."""
    name = entry.name
    for point in sorted(points, key=lambda point: point in FOLLOWS):
        if point in old.points.get(name, ()) or name in desired[point]:
            continue
        main = FOLLOWS.get(point)
        if main is None:
            # NodeResourcesFit only scores in place of the plugins that it replaced.
            there = name != FIT and point not in closed and name in _of_all(desired)
        else:
            there = name in desired[main] and (point == "preFilter" or point not in closed)
        if there:
            desired[point][name] = entry


def _superseded_limit(name: str, now: str, point: str, old: OldProfile) -> bool:
    """Return whether a default cloud limit would enable a NodeVolumeLimits that is disabled."""
    if name not in CLOUD_LIMITS or name == now or not old.disables(point, now):
        return False
    return all(item.name != name for item in old.written.get(point, PluginLists()).enabled)


def chosen_strategy(ran: PointPlugins) -> str | None:
    """Return the resource score plugin with the largest weight, which determines the strategy."""
    candidates = [entry for entry in ran.get("score", ()) if entry.name in STRATEGIES]
    if not candidates:
        return None
    return max(candidates, key=lambda entry: entry.weight or 1).name


@dataclass(frozen=True, slots=True)
class _Translation:
    """The translation of a profile's lists, point by point."""

    old: OldProfile
    desired: Mapping[str, Mapping[str, PluginEntry]]  # point -> plugins to run in the target
    known: Mapping[str, Plugin]  # of the target version
    gates: Gates  # of the target version
    report: ConversionLog

    def lists(self, point: str, item: PluginLists) -> dict[str, Any]:
        """Translate one point's lists to current names, without removed plugins."""
        enabled, repeated = self._enabled(point, item)
        disabled = self._disabled(point, item, enabled)
        sets = {"enabled": [*enabled.values(), *repeated], "disabled": list(disabled.values())}
        return {key: value for key, value in sets.items() if value}

    def _enabled(
        self, point: str, item: PluginLists
    ) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
        """Return (name -> entry, entries that the document repeats)."""
        enabled: dict[str, dict[str, Any]] = {}
        repeated: list[dict[str, Any]] = []
        for listed in item.enabled:
            name = replacement(listed.name, point, self.known)
            if name != listed.name:
                self._report_entry(listed, name, point)
            if name is None or (
                point != MULTI and name in PLUGINS and name not in self.desired[point]
            ):
                continue
            entry: dict[str, Any] = {"name": name}
            if listed.weight:
                entry["weight"] = listed.weight
            if name not in enabled:
                enabled[name] = entry
            elif name == listed.name and name in (
                other.name for other in item.enabled[: item.enabled.index(listed)]
            ):
                repeated.append(entry)  # old and new kube-schedulers reject this
            elif name == listed.name:
                enabled[name] = entry
        return enabled, repeated

    def _disabled(
        self, point: str, item: PluginLists, enabled: Container[str]
    ) -> dict[str, dict[str, Any]]:
        """Return name -> entry."""
        defaults = {name for name, _weight in default_plugins(self.gates)}
        minor, version = self.gates.version.minor, self.gates.version.short
        disabled: dict[str, dict[str, Any]] = {}
        for listed in item.disabled:
            name = replacement(listed.name, point, self.known)
            if listed.name == WILDCARD or not is_in_tree(listed.name):
                disabled[listed.name] = {"name": listed.name}
            elif name not in defaults or not (
                point == MULTI or self.known[name].implements(point, minor)
            ):
                why = f"kube-scheduler {version} does not run it at {point} by default"
                self._report_removal(listed, why)
            elif self._stays_disabled(listed, name, point, enabled):
                disabled[name] = {"name": name}
                if name != listed.name:
                    what = f"{name} disabled instead of {listed.name}"
                    self.report.same(listed.path, what, f"{name} replaced it")
            else:
                self._report_removal(listed, f"{name} replaced it, but also an enabled plugin")
        return disabled

    def _stays_disabled(
        self, listed: ListedPlugin, name: str, point: str, enabled: Container[str]
    ) -> bool:
        """Return whether no other entry enables the successor of a disabled plugin."""
        moved = name == listed.name and (point == MULTI or name in enabled)
        return moved or point == MULTI or name not in self.desired[point]

    def _report_removal(self, listed: ListedPlugin, why: str) -> None:
        what = f"{listed.name} removed from the disabled plugins"
        self.report.same(listed.path, what, why)

    def _report_entry(self, listed: ListedPlugin, name: str | None, point: str) -> None:
        """Report the change of a plugin that the document lists."""
        report, path = self.report, listed.path
        replaced, removed = f"{listed} replaced by {name}", f"{listed} removed"
        if listed.name in STRATEGIES:
            chosen = chosen_strategy(self.old.ran)
            why = (
                f"{name} has one scoringStrategy per profile, and {chosen} has the larger weight; "
                "use a second profile"
            )
            if name is None:
                report.lost(path, removed, f"it never implemented {point}")
            elif listed.name == chosen:
                strategy = STRATEGIES[listed.name]
                report.same(path, replaced, f"its scoringStrategy {strategy} is equivalent")
            else:
                report.lost(path, removed, why)
        elif name is not None:
            why, differs = _SUCCESSION.get((listed.name, point), _LIMITS_NOW)
            add = report.differs if differs else report.same
            add(path, replaced, why)
        elif listed.name == "VolumeBinding":
            report.same(path, f"VolumeBinding removed from {point}", "it does this at preBind")
        elif listed.name == NODE_LABEL or listed.name not in WITHOUT_REPLACEMENT:
            why = f"kube-scheduler {self.gates.version.short} has no such plugin at {point}"
            report.lost(path, removed, why)
        elif listed.name == SERVICE_AFFINITY and point == "preFilter":
            report.same(path, removed, "it only prepared its filter")
        else:
            report.lost(path, removed, WITHOUT_REPLACEMENT[listed.name])

    def correct(self, lists: dict[str, dict[str, Any]]) -> None:
        """Add entries to the lists until they run the desired plugins."""
        runs = effective_plugins({"plugins": lists}, self.gates)
        anywhere = _of_all(self.desired)
        weights: list[str] = []
        added: dict[str, list[str]] = {}
        removed: dict[str, list[str]] = {}
        for point, entries in runs.points.items():
            here = {entry.name: entry for entry in entries if entry.name in PLUGINS}
            for name in (name for name in here if name not in self.desired[point]):
                where = point if name in anywhere else MULTI
                if _add_disabled(lists, where, name):
                    removed.setdefault(where, []).append(name)
            for name, entry in self.desired[point].items():
                if name not in PLUGINS:
                    continue
                if name not in here:
                    _set_enabled(lists, point, entry)
                    added.setdefault(point, []).append(name)
                elif point == "score" and (here[name].weight or 1) != (entry.weight or 1):
                    _set_enabled(lists, point, PluginEntry(name, entry.weight or 1))
                    weights.append(f"{name} {entry.weight or 1}")
        self._keep_order(lists)
        self._report_corrections(sorted(weights), added, removed)

    def _report_corrections(
        self,
        weights: Sequence[str],
        added: Mapping[str, Sequence[str]],
        removed: Mapping[str, Sequence[str]],
    ) -> None:
        path, source = (*self.old.path, "plugins"), self.old.source
        version = self.gates.version.short
        if weights:
            why = f"kube-scheduler {version} has other default weights than {source}"
            self.report.same((*path, "score"), f"weights set: {', '.join(weights)}", why)
        for point, names in added.items():
            why = f"{source} ran it, and kube-scheduler {version} only does with this entry"
            self.report.same((*path, point), f"{', '.join(sorted(names))} enabled at {point}", why)
        for point, names in removed.items():
            why = f"{source} did not run it there, and kube-scheduler {version} does by default"
            self.report.same((*path, point), f"{', '.join(sorted(names))} disabled at {point}", why)

    def _keep_order(self, lists: dict[str, dict[str, Any]]) -> None:
        """List all plugins of a point in order if their order matters and would change."""
        runs = effective_plugins({"plugins": lists}, self.gates).points
        for point in _ORDERED:
            before = {entry.name for entry in self.old.ran.get(point, ())}
            now = [entry.name for entry in runs[point] if entry.name in before]
            expected = [name for name in self.desired[point] if name in before]
            if now == expected or sorted(now) != sorted(expected):
                continue
            lists[point] = {
                "enabled": [{"name": name} for name in self.desired[point]],
                "disabled": [{"name": WILDCARD}],
            }
            why = f"kube-scheduler {self.gates.version.short} would run them in another order"
            where = (*self.old.path, "plugins", point)
            self.report.same(where, f"all plugins of {point} listed in order", why)
            why = "all plugins are listed in order"
            for item in self.old.written.get(point, PluginLists()).disabled:
                self.report.same(item.path, f'{item} replaced by "*"', why)


def _report_defaults(old: OldProfile, report: ConversionLog) -> None:
    """Report removed default plugins that the document does not name."""
    named = {item.name for written in old.written.values() for item in written.enabled}
    for entry in old.ran.get("score", ()):
        path = (*old.path, "plugins", "score")
        if entry.name in named:
            continue
        if entry.name == AVOID:
            what = f"{AVOID}, a default plugin of {old.source}, removed"
            report.differs(path, what, WITHOUT_REPLACEMENT[AVOID])
        elif entry.name in SPREADING:
            what = f"{entry.name}, a default plugin of {old.source}, replaced by PodTopologySpread"
            report.differs(path, what, _SPREADS[0])


_SPREADS: Final = (
    "its System constraints spread pods of a Service or ReplicaSet without their own constraints",
    True,
)
_SUCCESSION: Final = {
    **{(name, point): _SPREADS for name in SPREADING for point in ("preScore", "score", MULTI)},
    (NODE_LABEL, "filter"): ("its addedAffinity requires the labels", False),
    (NODE_LABEL, "score"): ("its addedAffinity prefers the labels, with the larger weight", True),
    (SERVICE_AFFINITY, "score"): ("its defaultConstraints spread over the labels", True),
}
"""(plugin, point) -> (reason for its replacement, whether the behaviour differs)."""
_LIMITS_NOW: Final = ("it counts volumes of CSI drivers, which attach these volumes today", False)


def _put_in_default_order(here: dict[str, PluginEntry], entry: PluginEntry) -> None:
    """Insert a plugin at its position in the default order."""
    order = list(PLUGINS)
    items = list(here.items())
    later = (
        index
        for index, (name, _entry) in enumerate(items)
        if name in PLUGINS and order.index(name) > order.index(entry.name)
    )
    items.insert(next(later, len(items)), (entry.name, entry))
    here.clear()
    here.update(items)


def _of_all(desired: Mapping[str, Iterable[str]]) -> set[str]:
    return {name for names in desired.values() for name in names}


def _add_disabled(lists: dict[str, dict[str, Any]], point: str, name: str) -> bool:
    """Disable a plugin at a point; return False if it already is."""
    entries = lists.setdefault(point, {}).setdefault("disabled", [])
    if any(entry["name"] == name for entry in entries):
        return False
    entries.append({"name": name})
    return True


def _set_enabled(lists: dict[str, dict[str, Any]], point: str, entry: PluginEntry) -> None:
    entries = lists.setdefault(point, {}).setdefault("enabled", [])
    for item in entries:
        if item["name"] == entry.name:
            item["weight"] = entry.weight
            return
    weight = {"weight": entry.weight} if point == "score" and entry.weight else {}
    entries.append({"name": entry.name, **weight})

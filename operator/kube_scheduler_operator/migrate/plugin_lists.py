"""Plugin lists that make the new version run what the old one ran.

What ran is the old version's defaults with the profile's lists over them. What shall run is the
same under today's names, and at the points that these plugins came to implement since. The lists of
the result are what the profile had written, and then whatever `effective.py` says is still missing,
too many, or weighted otherwise: so they stay as short as the user had them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..schedulerconfig.catalogue import PLUGINS, Plugin, default_plugins, listable
from ..schedulerconfig.effective_plugins import EVERYTHING, Entry, effective_plugins
from ..schedulerconfig.feature_gates import Gates
from ..schedulerconfig.schema import POINTS
from .changes import Report
from .expansion import MULTI, Listed, OldProfile, Written
from .old_defaults import (
    AVOID,
    CLOUD_LIMITS,
    FIT,
    GONE,
    NODE_LABEL,
    SERVICE_AFFINITY,
    SPREADING,
    STRATEGIES,
    Lists,
)
from .old_schema import is_own
from .successors import BEFORE, FOLLOWS, successor

_ORDERED: Final = (
    "preEnqueue", "queueSort", "postFilter", "reserve", "permit", "preBind", "bind", "postBind",
)  # fmt: skip
"""Points at which the order decides what happens; all filters and scores count in any order."""
_TOGETHER: Final = frozenset(("preFilter", "filter", "reserve", "preBind"))
"""Points at which a plugin counts on what it did at an earlier one: all of them or none."""


def convert_lists(old: OldProfile, gates: Gates, report: Report) -> dict[str, Any]:
    """`plugins` for a profile of the new version; empty if the defaults do."""
    known = listable(gates.version)
    shall, new = _wanted(old, known, gates)
    lists = {
        point: _translated(point, item, old, shall, known, gates, report)
        for point, item in old.written.items()
    }
    disabled = [name for name in new if _add_disabled(lists, MULTI, name)]
    if disabled:
        report.same(
            (*old.path, "plugins"),
            f"{', '.join(disabled)} disabled at multiPoint",
            f'lists that were closed with "*" get no plugin that came after {old.source}',
        )
    _tell_defaults(old, report)
    _correct(lists, old, shall, gates, report)
    return {point: sets for point, sets in lists.items() if sets}


def _wanted(
    old: OldProfile, known: Mapping[str, Plugin], gates: Gates
) -> tuple[dict[str, dict[str, Entry]], list[str]]:
    """(per point what shall run in the new version, newer plugins that shall not run at all)."""
    shall: dict[str, dict[str, Entry]] = {point: {} for point in POINTS}
    strategy = chosen_strategy(old.ran)
    for point, entries in old.ran.items():
        own = {entry.name: entry for entry in entries if entry.name not in STRATEGIES}
        for entry in entries:
            name = successor(entry.name, point, known)
            if name is None or (entry.name in STRATEGIES and entry.name != strategy):
                continue
            if _unwanted_limit(entry.name, name, point, old):
                continue
            weight = own[name].weight if name in own else entry.weight
            if entry.name in (NODE_LABEL, SERVICE_AFFINITY):  # what it preferred must not get less
                weight = max(weight or 1, entry.weight or 1)
                shall[point].pop(name, None)
            shall[point].setdefault(name, Entry(name, weight))
            before = BEFORE.get(point)
            if name != entry.name and before and before in known[name].points_at(_minor(gates)):
                shall[before].setdefault(name, Entry(name))
    closed = {point for point, item in old.written.items() if item.closed}
    mentioned = {entry.name for entries in old.ran.values() for entry in entries}
    off = []
    for name, weight in default_plugins(gates):
        points = known[name].points_at(_minor(gates))
        if name not in old.points and name not in mentioned:
            if MULTI in closed or closed & _TOGETHER & set(points):
                off.append(name)
                continue
            for point in points:
                if point not in closed and not old.turned_off(point, name):
                    _put_in_default_order(shall[point], Entry(name, weight))
            continue
        for point in sorted(points, key=lambda point: point in FOLLOWS):
            if point in old.points.get(name, ()) or name in shall[point]:
                continue
            main = FOLLOWS.get(point)
            if main is None:
                # NodeResourcesFit scores for the plugins whose strategies it has, or not at all.
                there = name != FIT and point not in closed and name in _of_all(shall)
            else:
                there = name in shall[main] and (point == "preFilter" or point not in closed)
            if there:
                shall[point][name] = Entry(name, weight)
    return shall, [] if MULTI in closed else off


def _unwanted_limit(name: str, now: str, point: str, old: OldProfile) -> bool:
    """True for a limit of cloud volumes that only ran by default beside a NodeVolumeLimits off."""
    if name not in CLOUD_LIMITS or name == now or not old.turned_off(point, now):
        return False
    return all(item.name != name for item in old.written.get(point, Written()).enabled)


def chosen_strategy(ran: Lists) -> str | None:
    """The score plugin whose strategy NodeResourcesFit gets: the one with the largest weight."""
    candidates = [entry for entry in ran.get("score", ()) if entry.name in STRATEGIES]
    if not candidates:
        return None
    return max(candidates, key=lambda entry: entry.weight or 1).name


def _translated(
    point: str,
    item: Written,
    old: OldProfile,
    shall: Mapping[str, Mapping[str, Entry]],
    known: Mapping[str, Plugin],
    gates: Gates,
    report: Report,
) -> dict[str, Any]:
    """One point's lists under today's names, without what does not exist any more."""
    enabled: dict[str, dict[str, Any]] = {}
    repeated: list[dict[str, Any]] = []
    for listed in item.enabled:
        name = successor(listed.name, point, known)
        if name != listed.name:
            _tell(listed, name, point, old, gates, report)
        if name is None or (point != MULTI and name in PLUGINS and name not in shall[point]):
            continue
        entry: dict[str, Any] = {"name": name}
        if listed.weight:
            entry["weight"] = listed.weight
        if name not in enabled:
            enabled[name] = entry
        elif name == listed.name and name in (other.name for other in _earlier(item, listed)):
            repeated.append(entry)  # kube-scheduler refuses this, then and now
        elif name == listed.name:
            enabled[name] = entry
    defaults = {name for name, _weight in default_plugins(gates)}
    disabled: dict[str, dict[str, Any]] = {}
    for listed in item.disabled:
        name = successor(listed.name, point, known)
        if listed.name == EVERYTHING or not is_own(listed.name):
            disabled[listed.name] = {"name": listed.name}
        elif name in defaults and (point == MULTI or known[name].implements(point, _minor(gates))):
            moved = name == listed.name and (point == MULTI or name in enabled)
            if moved or point == MULTI or name not in shall[point]:
                disabled[name] = {"name": name}
                if name != listed.name:
                    why = f"{name} does today what it did"
                    report.same(listed.path, f"{listed.name}: {name} disabled", why)
            else:
                what = f"{listed.name} left out of the disabled plugins"
                why = f"{name} does today what it did, and something else that is wanted"
                report.same(listed.path, what, why)
        else:
            report.same(
                listed.path,
                f"{listed.name} left out of the disabled plugins",
                f"kube-scheduler {gates.version.short} has nothing of it at {point}",
            )
    sets = {"enabled": [*enabled.values(), *repeated], "disabled": list(disabled.values())}
    return {key: value for key, value in sets.items() if value}


def _tell_defaults(old: OldProfile, report: Report) -> None:
    """Plugins that ran by default, so that the document does not name them, and that are gone."""
    named = {item.name for written in old.written.values() for item in written.enabled}
    for entry in old.ran.get("score", ()):
        path = (*old.path, "plugins", "score")
        if entry.name in named:
            continue
        if entry.name == AVOID:
            what = f"{AVOID}, a default of {old.source}, left out"
            report.differs(path, what, GONE[AVOID])
        elif entry.name in SPREADING:
            what = f"PodTopologySpread is in the place of {entry.name}, a default of {old.source}"
            report.differs(path, what, _SPREADS[0])


def _earlier(item: Written, listed: Listed) -> Sequence[Listed]:
    return item.enabled[: item.enabled.index(listed)]


def _tell(
    listed: Listed, name: str | None, point: str, old: OldProfile, gates: Gates, report: Report
) -> None:
    """Say what became of a plugin that somebody had written down."""
    if listed.name in STRATEGIES:
        if name is None:
            report.lost(listed.path, f"{listed} left out", f"it never was a {point} plugin")
        elif listed.name == chosen_strategy(old.ran):
            report.same(
                listed.path,
                f"{listed} is {name}",
                f"its scoringStrategy {STRATEGIES[listed.name]} does what the plugin did",
            )
        else:
            report.lost(
                listed.path,
                f"{listed} left out",
                f"{name} has one scoringStrategy per profile, and {chosen_strategy(old.ran)} has "
                "the larger weight; use a second profile",
            )
    elif name is not None:
        why, differs = _SUCCESSION.get((listed.name, point), _LIMITS_NOW)
        say = report.differs if differs else report.same
        say(listed.path, f"{listed} is {name}", why)
    elif listed.name == "VolumeBinding":
        report.same(listed.path, f"VolumeBinding left out of {point}", "preBind does all of it")
    elif listed.name == NODE_LABEL or listed.name not in GONE:
        report.lost(
            listed.path,
            f"{listed} left out",
            f"kube-scheduler {gates.version.short} has no such plugin at {point}",
        )
    elif listed.name == SERVICE_AFFINITY and point == "preFilter":
        report.same(listed.path, f"{listed} left out", "it only prepared its filter")
    else:
        report.lost(listed.path, f"{listed} left out", GONE[listed.name])


_SPREADS: Final = (
    "its System constraints spread the pods of a Service or ReplicaSet that have none of their own",
    True,
)
_SUCCESSION: Final = {
    **{(name, point): _SPREADS for name in SPREADING for point in ("preScore", "score", MULTI)},
    (NODE_LABEL, "filter"): ("its addedAffinity asks for the labels", False),
    (NODE_LABEL, "score"): ("its addedAffinity prefers the labels, with the larger weight", True),
    (SERVICE_AFFINITY, "score"): ("its defaultConstraints spread over the labels", True),
}
"""(Plugin, point) -> (why its successor is one, whether it does something else)."""
_LIMITS_NOW: Final = ("CSI drivers attach these volumes, and it counts what they attach", False)


def _correct(
    lists: dict[str, dict[str, Any]],
    old: OldProfile,
    shall: Mapping[str, Mapping[str, Entry]],
    gates: Gates,
    report: Report,
) -> None:
    """Add to the lists what makes them do what shall be done."""
    runs = effective_plugins({"plugins": lists}, gates)
    anywhere = _of_all(shall)
    weights: list[str] = []
    added: dict[str, list[str]] = {}
    removed: dict[str, list[str]] = {}
    for point, entries in runs.points.items():
        here = {entry.name: entry for entry in entries if entry.name in PLUGINS}
        for name in here.keys() - shall[point].keys():
            where = point if name in anywhere else MULTI
            if _add_disabled(lists, where, name):
                removed.setdefault(where, []).append(name)
        for name, entry in shall[point].items():
            if name not in PLUGINS:
                continue
            if name not in here:
                _set_enabled(lists, point, entry)
                added.setdefault(point, []).append(name)
            elif point == "score" and (here[name].weight or 1) != (entry.weight or 1):
                _set_enabled(lists, point, Entry(name, entry.weight or 1))
                weights.append(f"{name} {entry.weight or 1}")
    _keep_order(lists, old, shall, gates, report)
    _tell_corrections(old, gates, sorted(weights), added, removed, report)


def _tell_corrections(
    old: OldProfile,
    gates: Gates,
    weights: Sequence[str],
    added: Mapping[str, Sequence[str]],
    removed: Mapping[str, Sequence[str]],
    report: Report,
) -> None:
    path, version = (*old.path, "plugins"), gates.version.short
    if weights:
        report.same(
            (*path, "score"),
            f"weights written down: {', '.join(weights)}",
            f"without them kube-scheduler {version} has other ones than {old.source} had",
        )
    for point, names in added.items():
        report.same(
            (*path, point),
            f"{', '.join(sorted(names))} enabled at {point}",
            f"kube-scheduler {version} has it there, and {old.source} ran it",
        )
    for point, names in removed.items():
        report.same(
            (*path, point),
            f"{', '.join(sorted(names))} disabled at {point}",
            f"nothing of it ran there with {old.source}, and kube-scheduler {version} would run it",
        )


def _keep_order(
    lists: dict[str, dict[str, Any]],
    old: OldProfile,
    shall: Mapping[str, Mapping[str, Entry]],
    gates: Gates,
    report: Report,
) -> None:
    """Where the order of plugins matters and would be another one, list all of them in order."""
    runs = effective_plugins({"plugins": lists}, gates).points
    for point in _ORDERED:
        before = {entry.name for entry in old.ran.get(point, ())}
        now = [entry.name for entry in runs[point] if entry.name in before]
        wanted = [name for name in shall[point] if name in before]
        if now == wanted or sorted(now) != sorted(wanted):
            continue
        lists[point] = {
            "enabled": [{"name": name} for name in shall[point]],
            "disabled": [{"name": EVERYTHING}],
        }
        why = f"kube-scheduler {gates.version.short} would run them in another order"
        where = (*old.path, "plugins", point)
        report.same(where, f"all plugins of {point} written down in their order", why)
        for item in old.written.get(point, Written()).disabled:
            report.same(item.path, f'{item} is part of "*"', "the whole list is written down")


def _put_in_default_order(here: dict[str, Entry], entry: Entry) -> None:
    """Insert a plugin before the first one that comes after it by default."""
    order = list(PLUGINS)
    items = list(here.items())
    later = [
        index
        for index, (name, _entry) in enumerate(items)
        if name in PLUGINS and order.index(name) > order.index(entry.name)
    ]
    items.insert(later[0] if later else len(items), (entry.name, entry))
    here.clear()
    here.update(items)


def _of_all(shall: Mapping[str, Iterable[str]]) -> set[str]:
    return {name for names in shall.values() for name in names}


def _add_disabled(lists: dict[str, dict[str, Any]], point: str, name: str) -> bool:
    """Disable a plugin at a point; False if it is disabled there already."""
    entries = lists.setdefault(point, {}).setdefault("disabled", [])
    if any(entry["name"] == name for entry in entries):
        return False
    entries.append({"name": name})
    return True


def _set_enabled(lists: dict[str, dict[str, Any]], point: str, entry: Entry) -> None:
    entries = lists.setdefault(point, {}).setdefault("enabled", [])
    for item in entries:
        if item["name"] == entry.name:
            item["weight"] = entry.weight
            return
    entries.append(
        {"name": entry.name, "weight": entry.weight}
        if point == "score" and entry.weight
        else {"name": entry.name}
    )


def _minor(gates: Gates) -> int:
    return gates.version.minor

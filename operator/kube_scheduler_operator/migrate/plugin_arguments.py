"""Plugin arguments: those of plugins that are gone become arguments of what replaces them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.findings import Path
from ..schedulerconfig.catalogue import listable
from ..schedulerconfig.feature_gates import Gates
from .changes import Report
from .old_defaults import (
    CLOUD_LIMITS,
    FIT,
    GONE,
    LEAST,
    NODE_LABEL,
    SERVICE_AFFINITY,
    SPREAD,
    STRATEGIES,
    Lists,
)
from .old_schema import GROUP, is_own
from .plugin_lists import chosen_strategy

_ALL_OF_A_TERM: Final = 100
"""The largest weight of a preferred term; the labels of NodeLabel share it evenly."""
_SYSTEM: Final = (
    {"maxSkew": 3, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"},
    {
        "maxSkew": 5,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
    },
)
"""What defaultingType System stands for in PodTopologySpread."""


@dataclass(frozen=True, slots=True)
class Argument:
    """The arguments of one plugin, None if there are none, and where they are in the document."""

    name: str
    args: Any
    path: Path


def read_arguments(entries: list[dict[str, Any]], path: Path) -> list[Argument]:
    """`pluginConfig` of a profile that has the right shape."""
    return [
        Argument(entry.get("name", ""), entry.get("args"), (*path, index, "args"))
        for index, entry in enumerate(entries)
    ]


def convert_arguments(
    arguments: list[Argument], ran: Lists, gates: Gates, report: Report
) -> list[dict[str, Any]]:
    """`pluginConfig` for a profile of the new version.

    Args:
        arguments: of the old profile.
        ran: per point what the old scheduler ran, under its own names.
        gates: of the scheduler that will read the result.
        report: where the changes go.
    """
    kept: list[dict[str, Any]] = []
    former: dict[str, Argument] = {}
    known = listable(gates.version)
    for argument in arguments:
        if argument.name in (*STRATEGIES, NODE_LABEL, SERVICE_AFFINITY):
            former[argument.name] = argument
        elif is_own(argument.name) and argument.name not in known:
            _tell_gone(argument, gates, report)
        else:
            kept.append(_entry(argument, report))
    _strategy(kept, former, ran, report)
    _labels(kept, former.get(NODE_LABEL), ran, report)
    _services(kept, former.get(SERVICE_AFFINITY), ran, report)
    _constraints(kept, arguments, report)
    return kept


def set_argument(entries: list[dict[str, Any]], plugin: str, name: str, value: Any) -> None:
    """Set one argument of a plugin in `pluginConfig`."""
    _of(entries, plugin)[name] = value


def has_argument(entries: list[dict[str, Any]], plugin: str, name: str) -> bool:
    """True if an argument of a plugin is set in `pluginConfig`."""
    return any(entry["name"] == plugin and name in (entry.get("args") or {}) for entry in entries)


def _entry(argument: Argument, report: Report) -> dict[str, Any]:
    if argument.args is None:
        return {"name": argument.name}
    if not isinstance(argument.args, Mapping):  # it is for the plugin to read, if any does
        return {"name": argument.name, "args": argument.args}
    args = dict(argument.args)
    version = args.get("apiVersion", "")
    if version.startswith(f"{GROUP}/") and version != f"{GROUP}/v1":
        where = (*argument.path, "apiVersion")
        if is_own(argument.name):
            args["apiVersion"] = f"{GROUP}/v1"
            report.same(where, f"{version} is {args['apiVersion']}", "the fields are the same")
        else:
            report.differs(
                where,
                f"{version} stays",
                f"{argument.name} is not kube-scheduler's own; its image must read these arguments "
                "in a configuration of v1",
            )
    return {"name": argument.name, "args": args}


def _tell_gone(argument: Argument, gates: Gates, report: Report) -> None:
    name, version = argument.name, gates.version.short
    if name in CLOUD_LIMITS or not argument.args:
        why = f"kube-scheduler {version} has no plugin {name}, and it took no arguments"
        report.same(argument.path, f"arguments of {name} left out", why)
    else:
        why = GONE.get(name, f"kube-scheduler {version} has no plugin {name}")
        report.lost(argument.path, f"arguments of {name} left out", why)


def _strategy(
    kept: list[dict[str, Any]], former: Mapping[str, Argument], ran: Lists, report: Report
) -> None:
    """Arguments of the three old score plugins of resources become one scoringStrategy."""
    chosen = chosen_strategy(ran)
    scored = {entry.name for entry in ran.get("score", ())}
    for name, argument in former.items():
        if name in STRATEGIES and name not in scored:
            report.same(argument.path, f"arguments of {name} left out", "it was not enabled")
        elif name in STRATEGIES and name != chosen:
            why = f"{FIT} has one scoringStrategy per profile; use a second profile"
            report.lost(argument.path, f"arguments of {name} left out", why)
    own = former.get(chosen or "")
    args = dict(own.args or {}) if own else {}
    if chosen is None or (chosen == LEAST and not args.get("resources")):
        return  # which is the default
    strategy: dict[str, Any] = {"type": STRATEGIES[chosen]}
    if args.get("resources"):
        strategy["resources"] = args["resources"]
    if "shape" in args:
        strategy["requestedToCapacityRatio"] = {"shape": args["shape"]}
    set_argument(kept, FIT, "scoringStrategy", strategy)
    if own:
        why = f"{STRATEGIES[chosen]} is a scoringStrategy of {FIT}"
        report.same(own.path, f"arguments of {chosen} are scoringStrategy of {FIT}", why)


def _labels(
    kept: list[dict[str, Any]], argument: Argument | None, ran: Lists, report: Report
) -> None:
    """Labels that nodes must or should have become an affinity of all pods."""
    if argument is None:
        return
    args = argument.args or {}
    requirements = [
        {"key": label, "operator": operator}
        for name, operator in (("presentLabels", "Exists"), ("absentLabels", "DoesNotExist"))
        for label in args.get(name) or ()
    ]
    preferences = [
        (name, label, operator)
        for name, operator in (
            ("presentLabelsPreference", "Exists"),
            ("absentLabelsPreference", "DoesNotExist"),
        )
        for label in args.get(name) or ()
    ]
    where = argument.path
    if requirements and _runs(ran, "filter", NODE_LABEL):
        added = _added_affinity(kept)
        required = added.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
        terms = required.setdefault("nodeSelectorTerms", [{}])
        for term in terms:  # one of them has to hold, so each gets the labels
            term.setdefault("matchExpressions", []).extend(dict(each) for each in requirements)
        if _runs(ran, "filter", "NodeAffinity"):
            why = "it asks every pod's node for the same labels"
            report.same(where, "labels are required by addedAffinity of NodeAffinity", why)
        else:
            why = "NodeAffinity has to filter for it, which minds the pods' own affinities too"
            report.differs(where, "labels are required by addedAffinity of NodeAffinity", why)
    elif requirements:
        report.same(where, "required labels left out", f"{NODE_LABEL} was no enabled filter")
    if preferences and _runs(ran, "score", NODE_LABEL):
        weight = max(1, _ALL_OF_A_TERM // len(preferences))
        added = _added_affinity(kept)
        added.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).extend(
            {
                "weight": weight,
                "preference": {"matchExpressions": [{"key": label, "operator": operator}]},
            }
            for _name, label, operator in preferences
        )
        report.differs(
            where,
            "labels are preferred by addedAffinity of NodeAffinity",
            "they share the score and the weight of the pods' own preferences, and the best node "
            "gets the full score",
        )
    elif preferences:
        report.same(where, "preferred labels left out", f"{NODE_LABEL} was no enabled score")


def _services(
    kept: list[dict[str, Any]], argument: Argument | None, ran: Lists, report: Report
) -> None:
    """Labels over which the pods of a Service are spread become default constraints."""
    args = (argument.args or {}) if argument else {}
    if argument is None:
        return
    if args.get("affinityLabels"):
        what = f"affinity by {', '.join(args['affinityLabels'])} left out"
        report.lost(argument.path, what, GONE[SERVICE_AFFINITY])
    labels = args.get("antiAffinityLabelsPreference", [])
    if labels and not _runs(ran, "score", SERVICE_AFFINITY):
        what = f"anti-affinity by {', '.join(labels)} left out"
        report.same(argument.path, what, f"{SERVICE_AFFINITY} was no enabled score")
    elif labels:
        spread = _of(kept, SPREAD)
        constraints = spread.get("defaultConstraints") or []
        if spread.get("defaultingType", "List" if constraints else "System") == "System":
            constraints = [dict(each) for each in _SYSTEM]
        taken = {(each.get("topologyKey"), each.get("whenUnsatisfiable")) for each in constraints}
        for label in labels:
            if (label, "ScheduleAnyway") not in taken:
                constraints.append(
                    {"maxSkew": 1, "topologyKey": label, "whenUnsatisfiable": "ScheduleAnyway"}
                )
        spread |= {"defaultingType": "List", "defaultConstraints": constraints}
        report.differs(
            argument.path,
            f"{', '.join(labels)}: defaultConstraints of {SPREAD}",
            "they hold for pods of Services, ReplicaSets and StatefulSets without constraints of "
            "their own, and share the weight of its other constraints",
        )


def _constraints(kept: list[dict[str, Any]], arguments: list[Argument], report: Report) -> None:
    """v1beta1 and before took constraints without a type for a List; v1 refuses that."""
    for argument in arguments:
        args = argument.args or {}
        if argument.name != SPREAD or not args.get("defaultConstraints"):
            continue
        if "defaultingType" not in args:
            set_argument(kept, SPREAD, "defaultingType", "List")
            why = "old versions took it from the constraints, v1 does not"
            report.same(argument.path, "defaultingType List is written down", why)


def _added_affinity(entries: list[dict[str, Any]]) -> dict[str, Any]:
    args = _of(entries, "NodeAffinity")
    added: dict[str, Any] = args.setdefault("addedAffinity", {})
    return added


def _of(entries: list[dict[str, Any]], plugin: str) -> dict[str, Any]:
    """The arguments of a plugin, to be changed."""
    for entry in entries:
        if entry["name"] == plugin:
            args: dict[str, Any] = entry.setdefault("args", {})
            return args
    args = {}
    entries.append({"name": plugin, "args": args})
    return args


def _runs(ran: Lists, point: str, name: str) -> bool:
    return any(entry.name == name for entry in ran.get(point, ()))

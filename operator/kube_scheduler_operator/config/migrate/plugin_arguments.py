"""Plugin arguments: those of removed plugins become arguments of their replacements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...base.findings import Path
from ..language.feature_gates import Gates
from ..language.plugins.in_tree_plugins import listable_plugins
from ..language.schema import GROUP
from .changes import ConversionLog
from .old_defaults import (
    CLOUD_LIMITS,
    FIT,
    LEAST,
    NODE_LABEL,
    SERVICE_AFFINITY,
    SPREAD,
    STRATEGIES,
    WITHOUT_REPLACEMENT,
    PointPlugins,
)
from .old_schema import is_in_tree
from .plugin_lists import chosen_strategy

_ALL_OF_A_TERM: Final = 100
"""The maximum weight of a preferred term, shared evenly by the labels of NodeLabel."""
_ANYWAY: Final = "ScheduleAnyway"


def _constraint(skew: int, label: str) -> dict[str, Any]:
    return {"maxSkew": skew, "topologyKey": label, "whenUnsatisfiable": _ANYWAY}


_SYSTEM: Final = (
    _constraint(3, "kubernetes.io/hostname"),
    _constraint(5, "topology.kubernetes.io/zone"),
)
"""The constraints of defaultingType System in PodTopologySpread."""


@dataclass(frozen=True, slots=True)
class Argument:
    """The arguments of one plugin, if any, and their path in the document."""

    name: str
    args: Any
    path: Path


def read_arguments(entries: list[dict[str, Any]], path: Path) -> list[Argument]:
    """Read `pluginConfig` of a profile with valid types."""
    return [
        Argument(entry.get("name", ""), entry.get("args"), (*path, index, "args"))
        for index, entry in enumerate(entries)
    ]


def convert_arguments(
    arguments: list[Argument], ran: PointPlugins, gates: Gates, report: ConversionLog
) -> list[dict[str, Any]]:
    """Convert to `pluginConfig` of v1; `ran` is as in OldProfile."""
    converted: list[dict[str, Any]] = []
    former: dict[str, Argument] = {}
    known = listable_plugins(gates.version)
    for argument in arguments:
        if not argument.name:
            _report_unnamed(argument, report)
        elif argument.name in (*STRATEGIES, NODE_LABEL, SERVICE_AFFINITY):
            former[argument.name] = argument
        elif is_in_tree(argument.name) and argument.name not in known:
            _report_removed(argument, gates, report)
        else:
            converted.append(_entry(argument, report))
    _strategy(converted, former, ran, report)
    _labels(converted, former.get(NODE_LABEL), ran, report)
    _services(converted, former.get(SERVICE_AFFINITY), ran, report)
    _constraints(converted, arguments, report)
    return converted


def set_argument(entries: list[dict[str, Any]], plugin: str, name: str, value: Any) -> None:
    _of(entries, plugin)[name] = value


def has_argument(entries: list[dict[str, Any]], plugin: str, name: str) -> bool:
    return any(entry["name"] == plugin and name in (entry.get("args") or {}) for entry in entries)


def _entry(argument: Argument, report: ConversionLog) -> dict[str, Any]:
    if argument.args is None:
        return {"name": argument.name}
    if not isinstance(argument.args, Mapping):  # an out-of-tree plugin may read it
        return {"name": argument.name, "args": argument.args}
    args = dict(argument.args)
    version = str(args.get("apiVersion") or "")
    if version.startswith(f"{GROUP}/") and version != f"{GROUP}/v1":
        where = (*argument.path, "apiVersion")
        if is_in_tree(argument.name):
            args["apiVersion"] = f"{GROUP}/v1"
            what = f"{version} changed to {args['apiVersion']}"
            report.same(where, what, "the fields are the same")
        else:
            why = (
                f"{argument.name} is not in-tree; its image must read these arguments in a v1 "
                "configuration"
            )
            report.differs(where, f"{version} kept", why)
    return {"name": argument.name, "args": args}


def _report_unnamed(argument: Argument, report: ConversionLog) -> None:
    inner = argument.args.get("name") if isinstance(argument.args, Mapping) else None
    where = ""
    if isinstance(inner, str) and inner:
        where = f' (name "{inner}" is inside of args, one level too deep: move it beside args)'
    why = f"the entry has no name, so kube-scheduler has always ignored it{where}"
    report.same(argument.path[:-1], "dropped", why)


def _report_removed(argument: Argument, gates: Gates, report: ConversionLog) -> None:
    name, version = argument.name, gates.version.short
    if name in CLOUD_LIMITS or not argument.args:
        why = f"kube-scheduler {version} has no plugin {name}, and it had no arguments"
        report.same(argument.path, f"arguments of {name} removed", why)
    else:
        why = WITHOUT_REPLACEMENT.get(name, f"kube-scheduler {version} has no plugin {name}")
        report.lost(argument.path, f"arguments of {name} removed", why)


def _strategy(
    converted: list[dict[str, Any]],
    former: Mapping[str, Argument],
    ran: PointPlugins,
    report: ConversionLog,
) -> None:
    """Convert the arguments of the three old resource score plugins to one scoringStrategy."""
    chosen = chosen_strategy(ran)
    scored = {entry.name for entry in ran.get("score", ())}
    for name, argument in former.items():
        if name in STRATEGIES and name not in scored:
            report.same(argument.path, f"arguments of {name} removed", "the plugin was not enabled")
        elif name in STRATEGIES and name != chosen:
            why = f"{FIT} has one scoringStrategy per profile; use a second profile"
            report.lost(argument.path, f"arguments of {name} removed", why)
    own = former.get(chosen or "")
    args = dict(own.args or {}) if own else {}
    if chosen is None or (chosen == LEAST and not args.get("resources")):
        return  # the default
    strategy: dict[str, Any] = {"type": STRATEGIES[chosen]}
    if args.get("resources"):
        strategy["resources"] = args["resources"]
    if "shape" in args:
        strategy["requestedToCapacityRatio"] = {"shape": args["shape"]}
    set_argument(converted, FIT, "scoringStrategy", strategy)
    if own:
        why = f"{STRATEGIES[chosen]} is a scoringStrategy of {FIT}"
        report.same(own.path, f"arguments of {chosen} moved to {FIT}", why)


def _labels(
    converted: list[dict[str, Any]],
    argument: Argument | None,
    ran: PointPlugins,
    report: ConversionLog,
) -> None:
    """Convert required and preferred node labels to an affinity of all pods."""
    if argument is None:
        return
    args, where = argument.args or {}, argument.path
    required = _expressions(args, "presentLabels", "absentLabels")
    preferred = _expressions(args, "presentLabelsPreference", "absentLabelsPreference")
    if required and _runs(ran, "filter", NODE_LABEL):
        affinity = _added_affinity(converted, "requiredDuringSchedulingIgnoredDuringExecution", {})
        for term in affinity.setdefault("nodeSelectorTerms", [{}]):  # terms are ORed
            term.setdefault("matchExpressions", []).extend(map(dict, required))
        what = "required labels moved to addedAffinity of NodeAffinity"
        if _runs(ran, "filter", "NodeAffinity"):
            report.same(where, what, "it requires the same labels for every pod")
        else:
            why = "NodeAffinity must filter for it, and then also applies the pods' own affinity"
            report.differs(where, what, why)
    elif required:
        report.same(where, "required labels removed", f"{NODE_LABEL} was not enabled at filter")
    if preferred and _runs(ran, "score", NODE_LABEL):
        weight = max(1, _ALL_OF_A_TERM // len(preferred))
        terms = _added_affinity(converted, "preferredDuringSchedulingIgnoredDuringExecution", [])
        for expression in preferred:
            terms.append({"weight": weight, "preference": {"matchExpressions": [expression]}})
        why = (
            "they share the score and the weight of the pods' own preferences, and the best node "
            "gets the full score"
        )
        report.differs(where, "preferred labels moved to addedAffinity of NodeAffinity", why)
    elif preferred:
        report.same(where, "preferred labels removed", f"{NODE_LABEL} was not enabled at score")


def _expressions(args: Mapping[str, Any], present: str, absent: str) -> list[dict[str, str]]:
    return [
        {"key": label, "operator": operator}
        for name, operator in ((present, "Exists"), (absent, "DoesNotExist"))
        for label in args.get(name) or ()
    ]


def _added_affinity(entries: list[dict[str, Any]], kind: str, default: Any) -> Any:
    """Return the terms of a kind in NodeAffinity's addedAffinity, created if missing."""
    return _of(entries, "NodeAffinity").setdefault("addedAffinity", {}).setdefault(kind, default)


def _services(
    converted: list[dict[str, Any]],
    argument: Argument | None,
    ran: PointPlugins,
    report: ConversionLog,
) -> None:
    """Convert the spreading of a Service's pods over labels to default constraints."""
    if argument is None:
        return
    args = argument.args or {}
    if args.get("affinityLabels"):
        what = f"affinity by {', '.join(args['affinityLabels'])} removed"
        report.lost(argument.path, what, WITHOUT_REPLACEMENT[SERVICE_AFFINITY])
    labels = args.get("antiAffinityLabelsPreference", [])
    what = f"anti-affinity by {', '.join(labels)}"
    if labels and not _runs(ran, "score", SERVICE_AFFINITY):
        why = f"{SERVICE_AFFINITY} was not enabled at score"
        report.same(argument.path, f"{what} removed", why)
    elif labels:
        _spread_over(labels, _of(converted, SPREAD))
        why = (
            "they apply to pods of Services, ReplicaSets and StatefulSets without their own "
            "constraints, and share the weight of its other constraints"
        )
        report.differs(argument.path, f"{what} moved to defaultConstraints of {SPREAD}", why)


def _spread_over(labels: list[str], spread: dict[str, Any]) -> None:
    """Add constraints for labels to the arguments of PodTopologySpread."""
    constraints = spread.get("defaultConstraints") or []
    if spread.get("defaultingType", "List" if constraints else "System") == "System":
        constraints = [dict(constraint) for constraint in _SYSTEM]
    taken = {(entry.get("topologyKey"), entry.get("whenUnsatisfiable")) for entry in constraints}
    for label in labels:
        if (label, _ANYWAY) not in taken:
            constraints.append(_constraint(1, label))
    spread |= {"defaultingType": "List", "defaultConstraints": constraints}


def _constraints(
    converted: list[dict[str, Any]], arguments: list[Argument], report: ConversionLog
) -> None:
    """Set defaultingType List, which versions up to v1beta1 inferred from constraints."""
    for argument in arguments:
        args = argument.args or {}
        if argument.name != SPREAD or not args.get("defaultConstraints"):
            continue
        if "defaultingType" not in args:
            set_argument(converted, SPREAD, "defaultingType", "List")
            why = "old versions inferred it from the constraints, v1 does not"
            report.same(argument.path, "defaultingType set to List", why)


def _of(entries: list[dict[str, Any]], plugin: str) -> dict[str, Any]:
    """Return the arguments of a plugin, created if missing."""
    for entry in entries:
        if entry["name"] == plugin:
            args: dict[str, Any] = entry.setdefault("args", {})
            return args
    args = {}
    entries.append({"name": plugin, "args": args})
    return args


def _runs(ran: PointPlugins, point: str, name: str) -> bool:
    return any(entry.name == name for entry in ran.get(point, ()))

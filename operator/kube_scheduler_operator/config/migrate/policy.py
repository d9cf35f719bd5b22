"""Conversion of a Policy's predicates and priorities to plugin lists and arguments.

As in kube-scheduler 1.19 to 1.22 (pkg/scheduler/framework/plugins/legacy_registry.go), an absent
list means the defaults, and any other list exactly its entries and the two mandatory predicates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ...base.findings import Path, did_you_mean
from .changes import ConversionError, ConversionLog, unreadable
from .old_defaults import (
    AVOID,
    FIT,
    LEAST,
    MOST,
    NODE_LABEL,
    RATIO,
    RESOURCE_LIMITS,
    SERVICE_AFFINITY,
    SPREAD,
)
from .old_profile import ListedPlugin, PluginLists
from .plugin_arguments import Argument

_BOTH: Final = ("preFilter", "filter")

_PREDICATES: Final[Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]]] = {
    "CheckNodeUnschedulable": (("NodeUnschedulable", ("filter",)),),
    "GeneralPredicates": (
        (FIT, _BOTH),
        ("NodeName", ("filter",)),
        ("NodePorts", _BOTH),
        ("NodeAffinity", _BOTH),
    ),
    "HostName": (("NodeName", ("filter",)),),
    "PodFitsHostPorts": (("NodePorts", _BOTH),),
    "MatchNodeSelector": (("NodeAffinity", _BOTH),),
    "PodFitsResources": ((FIT, _BOTH),),
    "NoDiskConflict": (("VolumeRestrictions", ("filter",)),),
    "PodToleratesNodeTaints": (("TaintToleration", ("filter",)),),
    "CheckNodeLabelPresence": ((NODE_LABEL, ("filter",)),),
    "CheckServiceAffinity": ((SERVICE_AFFINITY, _BOTH),),
    "MaxEBSVolumeCount": (("EBSLimits", ("filter",)),),
    "MaxGCEPDVolumeCount": (("GCEPDLimits", ("filter",)),),
    "MaxCSIVolumeCountPred": (("NodeVolumeLimits", ("filter",)),),
    "MaxAzureDiskVolumeCount": (("AzureDiskLimits", ("filter",)),),
    "MaxCinderVolumeCount": (("CinderLimits", ("filter",)),),
    "CheckVolumeBinding": (("VolumeBinding", _BOTH),),
    "NoVolumeZoneConflict": (("VolumeZone", ("filter",)),),
    "EvenPodsSpread": ((SPREAD, _BOTH),),
    "MatchInterPodAffinity": (("InterPodAffinity", _BOTH),),
}
"""Predicate -> (plugin, its points), in the order of execution."""
_MANDATORY: Final = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
_OTHER_NAMES: Final = {
    "PodFitsPorts": "PodFitsHostPorts",
    "NoVolumeNodeConflict": "CheckVolumeBinding",
}
_TAINTS_NOW: Final = frozenset(
    f"CheckNode{what}" for what in ("Condition", "MemoryPressure", "DiskPressure", "PIDPressure")
)
"""Predicates that taints on nodes in such a condition have replaced since Kubernetes 1.18."""

_PRIORITIES: Final[Mapping[str, tuple[str, bool]]] = {
    "BalancedResourceAllocation": ("NodeResourcesBalancedAllocation", False),
    "EvenPodsSpreadPriority": (SPREAD, True),
    "ImageLocalityPriority": ("ImageLocality", False),
    "InterPodAffinityPriority": ("InterPodAffinity", True),
    "LeastRequestedPriority": (LEAST, False),
    "MostRequestedPriority": (MOST, False),
    "NodeAffinityPriority": ("NodeAffinity", True),
    "NodePreferAvoidPodsPriority": (AVOID, False),
    "ResourceLimitsPriority": (RESOURCE_LIMITS, True),
    "SelectorSpreadPriority": (SPREAD, True),
    "TaintTolerationPriority": ("TaintToleration", True),
}
"""Priority -> (plugin, whether it implements preScore), in the order in which they were added."""
_SPREADS_SERVICES: Final = "SelectorSpreadPriority"
_PREFERS_AFFINITY: Final = "InterPodAffinityPriority"
_EQUAL: Final = "EqualPriority"


Arguments = dict[str, Argument]
"""Plugin -> its arguments, with the path of the first entry of the Policy that has some."""


def read_policy(
    policy: Mapping[str, Any], report: ConversionLog
) -> tuple[dict[str, PluginLists], list[Argument]]:
    """Convert a Policy with valid types to plugin lists, by extension point, and arguments.

    Raises:
        ConversionError: a name is unknown, or a required value is missing.
    """
    written: dict[str, PluginLists] = {}
    arguments: Arguments = {}
    if "predicates" in policy:
        written |= _filters(_predicates(policy["predicates"], arguments, report))
    scores: Mapping[str, tuple[int, Path]] = {}
    if "priorities" in policy:
        scores = _priorities(policy["priorities"], arguments, report)
        written |= _scores(scores, arguments)
        if "EvenPodsSpreadPriority" in scores and _SPREADS_SERVICES not in scores:
            path = scores["EvenPodsSpreadPriority"][1]
            arguments[SPREAD] = Argument(SPREAD, {"defaultingType": "List"}, path)
            why = f"without {_SPREADS_SERVICES} only the pods' own constraints applied"
            report.same(path, f"defaultingType of {SPREAD} set to List", why)
    weight = policy.get("hardPodAffinitySymmetricWeight", 0)
    path = ("hardPodAffinitySymmetricWeight",)
    if weight and "priorities" in policy and _PREFERS_AFFINITY not in scores:
        report.same(path, "removed", f"the Policy does not list {_PREFERS_AFFINITY}, which read it")
    elif weight:
        args = {"hardPodAffinityWeight": weight}
        arguments["InterPodAffinity"] = Argument("InterPodAffinity", args, path)
        why = "v1 has it in the plugin's arguments"
        report.same(path, f"moved to hardPodAffinityWeight {weight} of InterPodAffinity", why)
    if "alwaysCheckAllPredicates" in policy:
        path, what = ("alwaysCheckAllPredicates",), "removed"
        if policy["alwaysCheckAllPredicates"]:
            why = "kube-scheduler stops at the first filter that rejects a node, and reports fewer "
            report.differs(path, what, why + "reasons for it")
        else:
            report.same(path, what, "it is the only behaviour now")
    return written, list(arguments.values())


def _predicates(
    predicates: list[dict[str, Any]], arguments: Arguments, report: ConversionLog
) -> dict[str, Path]:
    """Return canonical name of a predicate -> its path in the Policy."""
    path_of: dict[str, Path] = {}
    for index, predicate in enumerate(predicates):
        path: Path = ("predicates", index)
        original = predicate.get("name", "")
        name = _OTHER_NAMES.get(original, original)
        argument = _one_argument(predicate, path)
        if name in _TAINTS_NOW:
            why = "nodes in such a condition have a taint, which TaintToleration filters"
            report.same(path, f"{name} removed", why)
            continue
        if name not in _PREDICATES:
            if argument is None:
                raise _unknown(path, "predicate", name, _PREDICATES)
            kind, values = argument
            labels = values.get("labels", [])
            if kind == "serviceAffinity":
                name, plugin, field = "CheckServiceAffinity", SERVICE_AFFINITY, "affinityLabels"
            else:
                field = "presentLabels" if values.get("presence") else "absentLabels"
                name, plugin = "CheckNodeLabelPresence", NODE_LABEL
            _add(arguments, plugin, field, labels, (*path, "argument", kind))
        plugins = ", ".join(plugin for plugin, _points in _PREDICATES[name])
        if name not in ("CheckServiceAffinity", "CheckNodeLabelPresence"):
            report.same(
                path, f"{original} replaced by filter {plugins}", "predicates are filter plugins"
            )
        path_of.setdefault(name, path)
    for name in _MANDATORY:
        path_of.setdefault(name, ("predicates",))
    return path_of


def _add(arguments: Arguments, plugin: str, field: str, labels: list[str], path: Path) -> None:
    argument = arguments.setdefault(plugin, Argument(plugin, {}, path))
    argument.args.setdefault(field, []).extend(labels)


def _filters(names: Mapping[str, Path]) -> dict[str, PluginLists]:
    lists: dict[str, dict[str, ListedPlugin]] = {"preFilter": {}, "filter": {}}
    for predicate, plugins in _PREDICATES.items():
        for plugin, points in plugins if predicate in names else ():
            for point in points:
                lists[point].setdefault(
                    plugin, ListedPlugin(plugin, names[predicate], label=predicate)
                )
    path: Path = ("predicates",)
    written = {point: _exactly(list(items.values()), path) for point, items in lists.items()}
    if "CheckVolumeBinding" not in names:
        off = PluginLists(disabled=(ListedPlugin("VolumeBinding", path),))
        written |= {"reserve": off, "preBind": off}
    return written


def _priorities(
    priorities: list[dict[str, Any]], arguments: Arguments, report: ConversionLog
) -> dict[str, tuple[int, Path]]:
    """Return priority, or the plugin of one with arguments -> (weight, path)."""
    weights: dict[str, tuple[int, Path]] = {}
    for index, priority in enumerate(priorities):
        path: Path = ("priorities", index)
        original = priority.get("name", "")
        name = _SPREADS_SERVICES if original == "ServiceSpreadingPriority" else original
        weight = priority.get("weight", 0)
        if weight <= 0:
            message = f"{weight} is out of range; use 1 or more"
            raise unreadable((*path, "weight"), message)
        argument = _one_argument(priority, path)
        if name == _EQUAL:
            report.same(path, f"{name} removed", "it scored all nodes equally")
            continue
        if name in _PRIORITIES:
            plugin = _PRIORITIES[name][0]
            if plugin not in (AVOID, RESOURCE_LIMITS, LEAST, MOST):
                why = "priorities are score plugins"
                report.same(
                    path, f"{original} replaced by score {plugin} with weight {weight}", why
                )
        elif argument is None:
            raise _unknown(path, "priority", name, (*_PRIORITIES, _EQUAL))
        else:
            kind, values = argument
            name = _argued(kind, values, (*path, "argument", kind), arguments)
        weights[name] = (weight, path)  # the last entry counts, as in kube-scheduler
    return weights


def _argued(kind: str, values: Mapping[str, Any], path: Path, arguments: Arguments) -> str:
    """Add the argument of a priority to its plugin; return the plugin."""
    if kind == "requestedToCapacityRatioArguments":
        first = arguments.get(RATIO, Argument(RATIO, {}, path))
        arguments[RATIO] = replace(first, args=dict(values))
        return RATIO
    if kind == "serviceAntiAffinity":
        plugin, field = SERVICE_AFFINITY, "antiAffinityLabelsPreference"
    elif values.get("presence"):
        plugin, field = NODE_LABEL, "presentLabelsPreference"
    else:
        plugin, field = NODE_LABEL, "absentLabelsPreference"
    _add(arguments, plugin, field, [values.get("label", "")], path)
    return plugin


def _scores(scores: Mapping[str, tuple[int, Path]], arguments: Arguments) -> dict[str, PluginLists]:
    """Return the score and preScore lists; a plugin of two priorities keeps the first weight.

    kube-scheduler iterated by name: EvenPodsSpreadPriority before SelectorSpreadPriority.
    Priorities with labels counted their weight once per label.
    """
    listed: dict[str, ListedPlugin] = {}
    before: dict[str, ListedPlugin] = {}
    for name in sorted(scores):
        weight, path = scores[name]
        plugin, prepares = _PRIORITIES.get(name, (name, False))
        args = arguments[plugin].args if plugin in arguments else {}
        if plugin == NODE_LABEL:
            names = ("presentLabelsPreference", "absentLabelsPreference")
            weight *= sum(len(args.get(field, ())) for field in names)
        elif plugin == SERVICE_AFFINITY:
            weight *= len(args.get("antiAffinityLabelsPreference", ()))
        listed.setdefault(plugin, ListedPlugin(plugin, path, weight, name))
        if prepares:
            before.setdefault(plugin, ListedPlugin(plugin, path, label=name))
    path = ("priorities",)
    return {
        "preScore": _exactly(list(before.values()), path),
        "score": _exactly(list(listed.values()), path),
    }


def _exactly(listed: list[ListedPlugin], path: Path) -> PluginLists:
    return PluginLists(tuple(listed), (ListedPlugin("*", path),))


def _one_argument(entry: Mapping[str, Any], path: Path) -> tuple[str, Mapping[str, Any]] | None:
    arguments = entry.get("argument")
    if arguments is None:
        return None
    if len(arguments) != 1:
        message = f"{len(arguments)} arguments are set, and exactly one is required; keep one"
        raise unreadable((*path, "argument"), message)
    kind, values = next(iter(arguments.items()))
    return str(kind), values


def _unknown(path: Path, kind: str, name: str, known: Any) -> ConversionError:
    hint = did_you_mean(name, known) or "; remove it, or set the argument that defines it"
    message = f'unknown {kind} "{name}"{hint}'
    return unreadable((*path, "name"), message)

"""A Policy (up to Kubernetes 1.22): predicates and priorities as plugin lists and arguments.

The mapping is the one by which kube-scheduler 1.19 to 1.22 itself ran a Policy on plugins
(pkg/scheduler/framework/plugins/legacy_registry.go): a list that is absent means the defaults, one
that is there means exactly its entries, and for predicates the two mandatory ones beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.findings import Path, Problem, did_you_mean
from .changes import ConversionError, Report
from .expansion import Listed, Written
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
from .old_schema import UNREADABLE
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
"""Predicate -> (plugin, its points), in the order in which predicates ran."""
_MANDATORY: Final = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
_OTHER_NAMES: Final = {
    "PodFitsPorts": "PodFitsHostPorts",
    "NoVolumeNodeConflict": "CheckVolumeBinding",
}
_TAINTS_NOW: Final = frozenset(
    f"CheckNode{what}" for what in ("Condition", "MemoryPressure", "DiskPressure", "PIDPressure")
)
"""Predicates of Kubernetes before 1.18: nodes in such a condition have a taint instead."""

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
"""Priority -> (plugin, whether it prepares at preScore), in the order in which they were added."""
_SPREADS_SERVICES: Final = "SelectorSpreadPriority"
_EQUAL: Final = "EqualPriority"


@dataclass(frozen=True, slots=True)
class PolicyProfile:
    """What a Policy says about a profile.

    Attributes:
        written: plugin lists, per point.
        arguments: of plugins.
    """

    written: Mapping[str, Written]
    arguments: list[Argument]


def read_policy(policy: Mapping[str, Any], report: Report) -> PolicyProfile:
    """The plugin lists and arguments of a Policy whose fields have the right types.

    Raises:
        ConversionError: it names what no kube-scheduler had, or leaves out what it needs.
    """
    written: dict[str, Written] = {}
    arguments: dict[str, dict[str, Any]] = {}
    paths: dict[str, Path] = {}
    if "predicates" in policy:
        names = _predicates(policy["predicates"], arguments, paths, report)
        written |= _filters(names)
    scores: dict[str, tuple[int, Path]] | None = None
    if "priorities" in policy:
        scores = _priorities(policy["priorities"], arguments, paths, report)
        written |= _scores(scores, arguments)
        if "EvenPodsSpreadPriority" in scores and _SPREADS_SERVICES not in scores:
            arguments[SPREAD] = {"defaultingType": "List"}
            paths[SPREAD] = scores["EvenPodsSpreadPriority"][1]
            why = f"without {_SPREADS_SERVICES} only the pods' own constraints counted"
            report.same(paths[SPREAD], f"defaultingType List for {SPREAD}", why)
    weight = policy.get("hardPodAffinitySymmetricWeight", 0)
    if weight:
        path = ("hardPodAffinitySymmetricWeight",)
        arguments["InterPodAffinity"] = {"hardPodAffinityWeight": weight}
        paths["InterPodAffinity"] = path
        report.same(path, f"hardPodAffinityWeight {weight} of InterPodAffinity", "it moved there")
    if "alwaysCheckAllPredicates" in policy:
        path, what = ("alwaysCheckAllPredicates",), "left out"
        if policy["alwaysCheckAllPredicates"]:
            why = "the first filter that rejects a node ends its checks; only the reasons that "
            report.differs(path, what, why + "are told about a node get fewer")
        else:
            report.same(path, what, "it is never done any more")
    return PolicyProfile(
        written, [Argument(name, args, paths.get(name, ())) for name, args in arguments.items()]
    )


def _predicates(
    predicates: list[dict[str, Any]],
    arguments: dict[str, dict[str, Any]],
    paths: dict[str, Path],
    report: Report,
) -> dict[str, Path]:
    """The predicates by the names that kube-scheduler gave them, and where each is asked for."""
    found: dict[str, Path] = {}
    for index, predicate in enumerate(predicates):
        path: Path = ("predicates", index)
        given = predicate.get("name", "")
        name = _OTHER_NAMES.get(given, given)
        argument = _one_argument(predicate, path)
        if name in _TAINTS_NOW:
            why = "nodes in such a condition have a taint, which TaintToleration looks at"
            report.same(path, f"{name} left out", why)
            continue
        if name not in _PREDICATES:
            if argument is None:
                raise _unknown(path, "predicate", name, _PREDICATES)
            kind, values = argument
            labels = values.get("labels", [])
            if kind == "serviceAffinity":
                name, field = "CheckServiceAffinity", (SERVICE_AFFINITY, "affinityLabels")
            else:
                present = "presentLabels" if values.get("presence") else "absentLabels"
                name, field = "CheckNodeLabelPresence", (NODE_LABEL, present)
            arguments.setdefault(field[0], {}).setdefault(field[1], []).extend(labels)
            paths.setdefault(field[0], (*path, "argument", kind))
        plugins = ", ".join(plugin for plugin, _points in _PREDICATES[name])
        if name not in ("CheckServiceAffinity", "CheckNodeLabelPresence"):
            report.same(path, f"{given} is filter {plugins}", "predicates are filter plugins")
        found.setdefault(name, path)
    for name in _MANDATORY:
        found.setdefault(name, ("predicates",))
    return found


def _filters(names: Mapping[str, Path]) -> dict[str, Written]:
    lists: dict[str, dict[str, Listed]] = {"preFilter": {}, "filter": {}}
    for predicate, plugins in _PREDICATES.items():
        for plugin, points in plugins if predicate in names else ():
            for point in points:
                lists[point].setdefault(plugin, Listed(plugin, names[predicate], label=predicate))
    path: Path = ("predicates",)
    written = {point: _exactly(list(items.values()), path) for point, items in lists.items()}
    if "CheckVolumeBinding" not in names:
        off = Written(disabled=(Listed("VolumeBinding", path),))
        written |= {"reserve": off, "preBind": off}
    return written


def _priorities(
    priorities: list[dict[str, Any]],
    arguments: dict[str, dict[str, Any]],
    paths: dict[str, Path],
    report: Report,
) -> dict[str, tuple[int, Path]]:
    """Weight and place by priority; those with arguments by the plugin that they stand for."""
    found: dict[str, tuple[int, Path]] = {}
    for index, priority in enumerate(priorities):
        path: Path = ("priorities", index)
        given = priority.get("name", "")
        name = _SPREADS_SERVICES if given == "ServiceSpreadingPriority" else given
        weight = priority.get("weight", 0)
        if weight <= 0:
            message = f"{weight} is no weight of a priority; set it to 1 or more"
            raise ConversionError([Problem(UNREADABLE, (*path, "weight"), message)])
        argument = _one_argument(priority, path)
        if name == _EQUAL:
            report.same(path, f"{name} left out", "it gave every node the same")
            continue
        if name in _PRIORITIES:
            plugin = _PRIORITIES[name][0]
            if plugin not in (AVOID, RESOURCE_LIMITS, LEAST, MOST):
                why = "priorities are score plugins"
                report.same(path, f"{given} is score {plugin} with weight {weight}", why)
        elif argument is None:
            raise _unknown(path, "priority", name, (*_PRIORITIES, _EQUAL))
        else:
            name = _argued(argument, arguments)
            paths.setdefault(name, (*path, "argument", argument[0]))
        found[name] = (weight, path)  # the last one counts, as it did
    return found


def _argued(argument: tuple[str, Mapping[str, Any]], arguments: dict[str, dict[str, Any]]) -> str:
    """Take over the argument of a priority; returns the plugin that it stands for."""
    kind, values = argument
    if kind == "requestedToCapacityRatioArguments":
        arguments[RATIO] = dict(values)
        return RATIO
    label = values.get("label", "")
    if kind == "serviceAntiAffinity":
        plugin, field = SERVICE_AFFINITY, "antiAffinityLabelsPreference"
    elif values.get("presence"):
        plugin, field = NODE_LABEL, "presentLabelsPreference"
    else:
        plugin, field = NODE_LABEL, "absentLabelsPreference"
    arguments.setdefault(plugin, {}).setdefault(field, []).append(label)
    return plugin


def _scores(
    scores: Mapping[str, tuple[int, Path]], arguments: Mapping[str, Mapping[str, Any]]
) -> dict[str, Written]:
    """Lists of score and preScore; a plugin that two priorities stand for keeps the first weight.

    That is what kube-scheduler did, which went through them by name: EvenPodsSpreadPriority before
    SelectorSpreadPriority. Several priorities with labels counted their weight once per label.
    """
    listed: dict[str, Listed] = {}
    before: dict[str, Listed] = {}
    for name in sorted(scores):
        weight, path = scores[name]
        plugin, prepares = _PRIORITIES.get(name, (name, False))
        args = arguments.get(plugin, {})
        if plugin == NODE_LABEL:
            names = ("presentLabelsPreference", "absentLabelsPreference")
            weight *= sum(len(args.get(each, ())) for each in names)
        elif plugin == SERVICE_AFFINITY:
            weight *= len(args.get("antiAffinityLabelsPreference", ()))
        listed.setdefault(plugin, Listed(plugin, path, weight, name))
        if prepares:
            before.setdefault(plugin, Listed(plugin, path, label=name))
    path = ("priorities",)
    return {
        "preScore": _exactly(list(before.values()), path),
        "score": _exactly(list(listed.values()), path),
    }


def _exactly(listed: list[Listed], path: Path) -> Written:
    return Written(tuple(listed), (Listed("*", path),))


def _one_argument(entry: Mapping[str, Any], path: Path) -> tuple[str, Mapping[str, Any]] | None:
    arguments = entry.get("argument")
    if arguments is None:
        return None
    if len(arguments) != 1:
        message = f"there are {len(arguments)} arguments and one is needed; keep one"
        raise ConversionError([Problem(UNREADABLE, (*path, "argument"), message)])
    kind, values = next(iter(arguments.items()))
    return str(kind), values


def _unknown(path: Path, kind: str, name: str, known: Any) -> ConversionError:
    hint = did_you_mean(name, known) or "; remove it, or give the argument that defines it"
    message = f'there is no {kind} "{name}"{hint}'
    return ConversionError([Problem(UNREADABLE, (*path, "name"), message)])

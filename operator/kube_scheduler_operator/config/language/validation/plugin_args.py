"""Rules for the arguments of in-tree plugins, for arguments with valid types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ....base.findings import Path, Problem, did_you_mean, listing
from ....base.go_values import integer, is_label_value, is_qualified_name, nanoseconds
from ..feature_gates import Gates

REASON: Final = "InvalidPluginArgs"

_RATIO: Final = "RequestedToCapacityRatio"
_RATIO_ALONE: Final = 36
"""The minor from which a shape is rejected with another strategy; before, it was ignored."""
_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", _RATIO)
_FIELD_OPERATORS: Final = ("In", "NotIn")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def validate_args(
    plugin: str, args: Mapping[str, Any], path: Path, gates: Gates
) -> Iterator[Problem]:
    """Yield problems of one plugin's arguments; out-of-tree plugins have no rules."""
    rule = _RULES.get(plugin)
    if rule is not None:
        yield from rule(args, path, gates)


def _problem(path: Path, message: str) -> Problem:
    return Problem(REASON, path, message)


def _between(
    args: Mapping[str, Any], path: Path, name: str, low: int, high: int | None
) -> Iterator[Problem]:
    value = args.get(name)
    if value is None or (value >= low and (high is None or value <= high)):
        return
    allowed = f"{low} or more" if high is None else f"from {low} to {high}"
    yield _problem((*path, name), f"{value} is out of range; use {allowed}")


def _one_of(value: str, choices: Sequence[str], path: Path) -> Iterator[Problem]:
    if not value:
        yield _problem(path, f"is required; use {listing(choices)}")
    elif value not in choices:
        hint = did_you_mean(value, choices) or f"; use {listing(choices)}"
        yield _problem(path, f'"{value}" is not supported{hint}')


def _default_preemption(args: Mapping[str, Any], path: Path, _: Gates) -> Iterator[Problem]:
    percentage, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    yield from _between(args, path, percentage, 0, 100)
    yield from _between(args, path, absolute, 0, None)
    if args.get(percentage, 10) == 0 and args.get(absolute, 100) == 0:
        message = f"{percentage} and {absolute} are both 0; raise one of them"
        yield _problem((*path, percentage), message)


def _inter_pod_affinity(args: Mapping[str, Any], path: Path, _: Gates) -> Iterator[Problem]:
    yield from _between(args, path, "hardPodAffinityWeight", 0, 100)


def _node_resources_fit(args: Mapping[str, Any], path: Path, gates: Gates) -> Iterator[Problem]:
    for index, name in enumerate(args.get("ignoredResources", ())):
        if not is_qualified_name(name):
            message = f'"{name}" is not a resource name; write one such as example.com/gpu'
            yield _problem((*path, "ignoredResources", index), message)
    for index, name in enumerate(args.get("ignoredResourceGroups", ())):
        if "/" in name or not is_qualified_name(name):
            message = f'"{name}" is not a resource group; write what comes before the "/"'
            yield _problem((*path, "ignoredResourceGroups", index), message)
    strategy = args.get("scoringStrategy")
    if strategy is not None:
        yield from _scoring_strategy(strategy, (*path, "scoringStrategy"), gates)


def _scoring_strategy(strategy: Mapping[str, Any], where: Path, gates: Gates) -> Iterator[Problem]:
    kind = strategy.get("type", "")
    yield from _one_of(kind, _STRATEGIES, (*where, "type"))
    for index, resource in enumerate(strategy.get("resources", ())):
        weight = resource.get("weight", 0)
        if weight and not 1 <= weight <= 100:
            message = f"{weight} is out of range; use from 1 to 100"
            yield _problem((*where, "resources", index, "weight"), message)
    ratio = strategy.get("requestedToCapacityRatio")
    if ratio is not None and kind != _RATIO and gates.version.minor >= _RATIO_ALONE:
        message = f"only type {_RATIO} allows this in {gates.version.short}; remove it"
        yield _problem((*where, "requestedToCapacityRatio"), message)
    elif ratio is not None:
        yield from _shape(ratio.get("shape", ()), (*where, "requestedToCapacityRatio", "shape"))
    elif kind == _RATIO:
        message = f"is required for type {kind}; set requestedToCapacityRatio.shape"
        yield _problem((*where, "requestedToCapacityRatio"), message)


def _shape(shape: Sequence[Mapping[str, Any]], path: Path) -> Iterator[Problem]:
    if not shape:
        yield _problem(path, "the shape is empty; add at least one point")
    previous: int | None = None
    for index, point in enumerate(shape):
        utilization = point.get("utilization", 0)
        if previous is not None and previous >= utilization:
            message = f"{utilization} is not greater than {previous}; sort the points"
            yield _problem((*path, index, "utilization"), message)
        previous = utilization
        yield from _between(point, (*path, index), "utilization", 0, 100)
        yield from _between(point, (*path, index), "score", 0, 10)


def _balanced_allocation(args: Mapping[str, Any], path: Path, _: Gates) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, resource in enumerate(args.get("resources", ())):
        name = resource.get("name", "")
        if name in seen:
            yield _problem(
                (*path, "resources", index, "name"), f'"{name}" is listed twice; remove one'
            )
        seen.add(name)
        weight = resource.get("weight", 0)
        if weight not in (0, 1):
            message = f"{weight} is not supported; set 1 or remove it"
            yield _problem((*path, "resources", index, "weight"), message)


def _pod_topology_spread(args: Mapping[str, Any], path: Path, _: Gates) -> Iterator[Problem]:
    constraints = args.get("defaultConstraints", ())
    defaulting = args.get("defaultingType") or "System"
    yield from _one_of(defaulting, ("System", "List"), (*path, "defaultingType"))
    if defaulting == "System" and constraints:
        yield _problem(
            (*path, "defaultingType"), "System does not allow defaultConstraints; set List"
        )
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        where = (*path, "defaultConstraints", index)
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        when = constraint.get("whenUnsatisfiable", "")
        if skew <= 0:
            yield _problem((*where, "maxSkew"), f"{skew} is out of range; use 1 or more")
        if not is_qualified_name(key):
            message = f'"{key}" is not a label key; write one such as example.com/rack'
            yield _problem((*where, "topologyKey"), message)
        yield from _one_of(when, ("DoNotSchedule", "ScheduleAnyway"), (*where, "whenUnsatisfiable"))
        if "labelSelector" in constraint:
            yield _problem(
                (*where, "labelSelector"), "is not allowed in a default constraint; remove it"
            )
        if (key, when) in seen:
            yield _problem(where, f"{key} with {when} is listed twice; remove one")
        seen.add((key, when))


def _volume_binding(args: Mapping[str, Any], path: Path, gates: Gates) -> Iterator[Problem]:
    yield from _between(args, path, "bindTimeoutSeconds", 0, None)
    gate = "StorageCapacityScoring" if gates.version.minor >= 33 else "VolumeCapacityPriority"
    scoring = gates.enabled(gate)
    shape = args.get("shape")
    if shape is not None and scoring is False:
        yield _problem((*path, "shape"), f"requires feature gate {gate}; enable it or remove shape")
    elif shape and scoring:
        yield from _shape(shape, (*path, "shape"))


def _dynamic_resources(args: Mapping[str, Any], path: Path, gates: Gates) -> Iterator[Problem]:
    needs = {
        "filterTimeout": ("DRASchedulerFilterTimeout",),
        "bindingTimeout": ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    }
    for name, least in (("filterTimeout", 0), ("bindingTimeout", 1)):
        if name not in args:
            continue
        off = [gate for gate in needs[name] if gates.enabled(gate) is False]
        if off:
            yield _problem(
                (*path, name), f"requires feature gate {off[0]}; enable it or remove {name}"
            )
        elif nanoseconds(args[name]) < least * 10**9:
            yield _problem((*path, name), f"{args[name]} is too short; use {least}s or more")


def _node_affinity(args: Mapping[str, Any], path: Path, _: Gates) -> Iterator[Problem]:
    added = args.get("addedAffinity") or {}
    where = (*path, "addedAffinity")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for index, term in enumerate((added.get(required) or {}).get("nodeSelectorTerms", ())):
        yield from _selector_term(term, (*where, required, "nodeSelectorTerms", index))
    for index, weighted in enumerate(added.get(preferred, ())):
        if weighted.get("weight", 0) != 0:  # kube-scheduler ignores the others
            term = weighted.get("preference") or {}
            yield from _selector_term(term, (*where, preferred, index, "preference"))


def _selector_term(term: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    for index, requirement in enumerate(term.get("matchExpressions", ())):
        yield from _requirement(requirement, (*path, "matchExpressions", index))
    for index, requirement in enumerate(term.get("matchFields", ())):
        where = (*path, "matchFields", index)
        operator = requirement.get("operator", "")
        if operator not in _FIELD_OPERATORS:
            yield from _one_of(operator, _FIELD_OPERATORS, (*where, "operator"))
        elif len(requirement.get("values", ())) != 1:
            yield _problem(
                (*where, "values"), "a field is compared with exactly one value; set one"
            )


def _requirement(requirement: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    values = requirement.get("values", ())
    if operator not in _OPERATORS:
        yield from _one_of(operator, _OPERATORS, (*path, "operator"))
        return
    if not is_qualified_name(key):
        yield _problem(
            (*path, "key"), f'"{key}" is not a label key; write one such as example.com/rack'
        )
    if operator in ("In", "NotIn") and not values:
        yield _problem((*path, "values"), f"{operator} requires values; add at least one")
    if operator in ("Exists", "DoesNotExist") and values:
        yield _problem((*path, "values"), f"{operator} does not allow values; remove them")
    if operator in ("Gt", "Lt"):
        yield from _compared_number(operator, values, (*path, "values"))
    for index, value in enumerate(values):
        if not is_label_value(value):
            message = f'"{value}" is not a label value; use letters, digits, -, _ and .'
            yield _problem((*path, "values", index), message)


def _compared_number(operator: str, values: Sequence[Any], path: Path) -> Iterator[Problem]:
    """Yield errors of the number with which the label is compared."""
    if len(values) != 1:
        yield _problem(path, f"{operator} requires exactly one value; set one")
    for index, value in enumerate(values):
        try:
            fits = -(2**63) <= integer(value) < 2**63
        except ValueError as error:
            yield _problem((*path, index), f"{error}; write one, as operator {operator} requires")
        else:
            if not fits:
                message = f"{value} does not fit into 64 bits; use a smaller number"
                yield _problem((*path, index), message)


_RULES: Final[Mapping[str, Callable[[Mapping[str, Any], Path, Gates], Iterator[Problem]]]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _node_resources_fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
}

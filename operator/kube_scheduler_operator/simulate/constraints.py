"""The constraints of a pod, each of which can be removed from it.

A constraint is the smallest part that a user can change: the request of one resource, one entry of
the nodeSelector, one affinity term, one volume. Removing it and trying the pod again shows whether
it is what keeps the pod from a node.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from ..kube.label_selector import matches, requirements, written
from ..scheduling.policies.pods import Demand
from .constraint import Constraint, Remove, containers, removing
from .kinds import NAMESPACES, NODES, PODS, Object
from .volume_constraints import device_constraints, volume_constraints
from .world import World


class Family(NamedTuple):
    plugins: tuple[str, ...]  # the filter plugins that look at them
    size: int  # how much a pod loses without one of them; 0: nothing


FAMILIES: Final = {
    "requests": Family(("NodeResourcesFit",), 1),
    "node affinity": Family(("NodeAffinity",), 4),
    "cordon": Family(("NodeUnschedulable",), 0),
    "taints": Family(("TaintToleration",), 3),
    "ports": Family(("NodePorts",), 6),
    "pod affinity": Family(("InterPodAffinity",), 5),
    "spread": Family(("PodTopologySpread",), 2),
    "volumes": Family(("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"), 7),
    "devices": Family(("DynamicResources",), 7),
}
FAMILY_OF: Final = {plugin: name for name, family in FAMILIES.items() for plugin in family.plugins}

UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
_BLOCKING: Final = ("NoSchedule", "NoExecute")
_MOST_TAINTS: Final = 20
"""Taints that are tried one by one; clusters rarely have more than five."""
MOST_TRIED: Final = 50
"""Constraints of a family that are tried one by one, each without all others: a pod may have
thousands of its own, and in the anti-affinity of others."""


def constraints_of(pod: Mapping[str, Any], world: World) -> list[Constraint]:
    """Return all constraints of a pod, in the order in which kube-scheduler's filters run."""
    spec = pod["spec"]
    return [
        Constraint(
            "cordon",
            "the node is cordoned (spec.unschedulable)",
            "uncordon the node",
            _tolerate({"key": UNSCHEDULABLE_TAINT, "operator": "Exists"}),
        ),
        *_taints(world),
        *_selectors(spec),
        *_ports(spec),
        *_requests(spec),
        *volume_constraints(pod, world),
        *device_constraints(pod, world),
        *_spread(spec),
        *_pod_affinity(spec, world),
        *_existing_anti_affinity(pod, world),
    ]


def tried(constraints: Iterable[Constraint]) -> tuple[list[Constraint], int]:
    """Return the first MOST_TRIED constraints of each family, and how many others there are."""
    chosen: list[Constraint] = []
    of_family: Counter[str] = Counter()
    for constraint in constraints:
        of_family[constraint.family] += 1
        if of_family[constraint.family] <= MOST_TRIED:
            chosen.append(constraint)
    return chosen, of_family.total() - len(chosen)


def without(pod: Object, constraints: Iterable[Constraint]) -> Object:
    changed = copy.deepcopy(pod)
    for constraint in constraints:
        constraint.remove(changed)
    return changed


# --- nodes ----------------------------------------------------------------------------------------


def _tolerate(toleration: Object) -> Remove:
    def remove(pod: Object) -> None:
        pod["spec"].setdefault("tolerations", []).append(toleration)

    return remove


def _taints(world: World) -> Iterator[Constraint]:
    nodes_by_taint: Counter[tuple[str, str, str]] = Counter()
    for node in world.all(NODES):
        for taint in node["spec"].get("taints") or ():
            if taint.get("effect") in _BLOCKING and taint.get("key") != UNSCHEDULABLE_TAINT:
                key = (taint["key"], taint.get("value") or "", taint["effect"])
                nodes_by_taint[key] += 1
    often = sorted(nodes_by_taint, key=lambda key: (-nodes_by_taint[key], key))[:_MOST_TAINTS]
    for name, value, effect in often:
        taint = f"{name}={value}:{effect}" if value else f"{name}:{effect}"
        toleration = {"key": name, "operator": "Equal", "value": value, "effect": effect}
        yield Constraint(
            "taints",
            f"the node has the taint {taint}, which the pod does not tolerate",
            f"tolerate {taint}",
            _tolerate(toleration),
        )


def _selectors(spec: Mapping[str, Any]) -> Iterator[Constraint]:
    for key, value in (spec.get("nodeSelector") or {}).items():
        yield Constraint(
            "node affinity",
            f"the pod's nodeSelector demands the label {key}={value}",
            f"remove {key}={value} from the nodeSelector",
            partial(_remove_selector, key=key),
        )
    terms = (_required(spec, "nodeAffinity") or {}).get("nodeSelectorTerms") or []
    expressions = [
        [(field, entry) for field in _EXPRESSIONS for entry in term.get(field) or ()]
        for term in terms
    ]
    if len(terms) == 1:
        for field, entry in expressions[0]:
            label = _expression(entry)
            yield Constraint(
                "node affinity",
                f"the pod's node affinity demands {label}",
                f"remove {label} from the node affinity",
                partial(_remove_expression, field=field, expression=entry),
            )
    elif terms:
        texts = (" and ".join(_expression(entry) for _, entry in term) for term in expressions)
        yield Constraint(
            "node affinity",
            f"the pod's node affinity demands {' or '.join(texts)}",
            "remove the required node affinity",
            _remove_node_affinity,
        )


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_EXPRESSIONS: Final = ("matchExpressions", "matchFields")


def _required(spec: Mapping[str, Any], kind: str) -> Any:
    return ((spec.get("affinity") or {}).get(kind) or {}).get(_REQUIRED)


def _remove_selector(pod: Object, key: str) -> None:
    del pod["spec"]["nodeSelector"][key]


def _remove_node_affinity(pod: Object) -> None:
    pod["spec"]["affinity"]["nodeAffinity"].pop(_REQUIRED)


def _remove_expression(pod: Object, field: str, expression: Object) -> None:
    (term,) = _required(pod["spec"], "nodeAffinity")["nodeSelectorTerms"]
    term[field] = [other for other in term[field] if other != expression]
    if not any(term.get(name) for name in _EXPRESSIONS):
        _remove_node_affinity(pod)


def _expression(expression: Mapping[str, Any]) -> str:
    key, operator = expression.get("key", ""), expression.get("operator", "")
    values = ", ".join(map(str, expression.get("values") or ()))
    words = {"In": "in", "NotIn": "not in", "Gt": "greater than", "Lt": "less than"}
    if operator == "Exists":
        return f"the label {key}"
    if operator == "DoesNotExist":
        return f"no label {key}"
    return f"{key} {words.get(operator, operator)} {values}"


def _ports(spec: Mapping[str, Any]) -> Iterator[Constraint]:
    ports = (_host_port(port) for holder in containers(spec) for port in holder.get("ports") or ())
    for host_port in dict.fromkeys(filter(None, ports)):
        yield Constraint(
            "ports",
            f"another pod on the node uses the host port {host_port}",
            f"remove the hostPort {host_port}",
            partial(_remove_port, host_port=host_port),
        )


def _host_port(port: Mapping[str, Any]) -> str:
    number = port.get("hostPort")
    return f"{number}/{port.get('protocol') or 'TCP'}" if number else ""


def _remove_port(pod: Object, host_port: str) -> None:
    for holder in containers(pod["spec"]):
        ports = holder.get("ports") or ()
        holder["ports"] = [port for port in ports if _host_port(port) != host_port]


def remove_request(pod: Object, resource: str) -> None:
    """Remove the requests and limits of one resource from all containers."""
    spec = pod["spec"]
    for holder in (*containers(spec), spec):
        for field in ("requests", "limits"):
            ((holder.get("resources") or {}).get(field) or {}).pop(resource, None)
    (spec.get("overhead") or {}).pop(resource, None)


def _requests(spec: Mapping[str, Any]) -> Iterator[Constraint]:
    for resource, amount in Demand(spec).requests.items():
        if amount:
            yield Constraint(
                "requests",
                f"less than {quantity_text(resource, amount)} of {resource} is free",
                f"request less {resource}",
                partial(remove_request, resource=resource),
                resource,
            )


def quantity_text(resource: str, amount: float) -> str:
    """Return an amount of `Demand` as users write it: 1500m, 2, 4Gi."""
    if resource == "cpu":
        return f"{amount / 1000:g}" if amount % 1000 == 0 else f"{amount:.0f}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for power, unit in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
            if amount >= 1024**power and amount % 1024**power == 0:
                return f"{amount / 1024**power:.0f}{unit}"
    return f"{amount:.0f}"


# --- other pods -----------------------------------------------------------------------------------


def _spread(spec: Mapping[str, Any]) -> Iterator[Constraint]:
    for rule in spec.get("topologySpreadConstraints") or ():
        if rule.get("whenUnsatisfiable") != "DoNotSchedule":
            continue
        key, skew = rule.get("topologyKey"), rule.get("maxSkew")
        yield Constraint(
            "spread",
            f"pods would differ by more than {skew} between values of {key} "
            "(topologySpreadConstraints), or the node has no such label",
            f"use ScheduleAnyway for the spread over {key}",
            removing(rule, "spec", "topologySpreadConstraints"),
        )


def _pod_affinity(spec: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    labels = {key for node in world.all(NODES) for key in node["metadata"].get("labels") or ()}
    words = {
        "podAffinity": ("no pod {selector} runs in the node's {key}", "pod affinity"),
        "podAntiAffinity": ("a pod {selector} runs in the node's {key}", "pod anti-affinity"),
    }
    for kind, (text, verb) in words.items():
        for term in _required(spec, kind) or ():
            selector = written(term.get("labelSelector")) or "any labels"
            key = term.get("topologyKey", "")
            described = text.format(selector=f"with {selector}", key=key)
            if kind == "podAffinity" and key not in labels:
                described = f"no node has the label {key}, the topologyKey for pods with {selector}"
            yield Constraint(
                "pod affinity",
                f"{described} ({verb})",
                f"remove the {verb} to pods with {selector} per {key}",
                removing(term, "spec", "affinity", kind, _REQUIRED),
            )


def _existing_anti_affinity(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    """Yield the labels of this pod that running pods keep away by a required anti-affinity."""
    labels = pod["metadata"].get("labels") or {}
    if not labels:
        return
    seen: dict[tuple[str, ...], str] = {}
    for entry in world.objects[PODS].values():
        if not entry.node or b"podAntiAffinity" not in entry.content:
            continue
        other = entry.object()
        for term in _required(other["spec"], "podAntiAffinity") or ():
            selector = term.get("labelSelector")
            keys = tuple(sorted({rule.key for rule in requirements(selector)} & set(labels)))
            if keys and keys not in seen and _concerns(term, other, pod, world):
                seen[keys] = f"{other['metadata']['namespace']}/{other['metadata']['name']}"
    for keys, name in seen.items():
        named = ",".join(f"{key}={labels[key]}" for key in keys)
        yield Constraint(
            "pod affinity",
            f"a pod there has anti-affinity to pods with {named}, e.g. pod {name}",
            f"change the label {named} of the pod",
            partial(_remove_labels, keys=keys),
        )


def _remove_labels(pod: Object, keys: Iterable[str]) -> None:
    for key in keys:
        pod["metadata"]["labels"].pop(key, None)


def _concerns(
    term: Mapping[str, Any], holder: Mapping[str, Any], pod: Mapping[str, Any], world: World
) -> bool:
    namespace = pod["metadata"]["namespace"]
    namespaces = set(term.get("namespaces") or ())
    chosen = term.get("namespaceSelector")
    if not namespaces and chosen is None:
        namespaces = {holder["metadata"]["namespace"]}
    if namespace not in namespaces:
        namespace_object = world.get(NAMESPACES, namespace) or {"metadata": {}}
        if chosen is None or not matches(chosen, namespace_object["metadata"].get("labels") or {}):
            return False
    return matches(term.get("labelSelector"), pod["metadata"].get("labels") or {})

"""Which nodes a pod's nodeSelector, node affinity and tolerations admit.

kube-scheduler decides; these rules find the figures that explain its decision. Sources:
component-helpers/scheduling/corev1 of Kubernetes 1.35 (nodeaffinity.go, helpers.go), with the
operators Gt and Lt of tolerations of 1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..base.objects import entries, mapping
from ..kube.label_selector import matches
from .kinds import HOSTNAME

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
BLOCKING: Final = ("NoSchedule", "NoExecute")
_COMPARED: Final = ("Gt", "Lt")
NAME: Final = "metadata.name"


def admits(spec: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Return whether nodeSelector and required node affinity of a pod admit a node."""
    labels = mapping(node["metadata"].get("labels"))
    wanted = mapping(spec.get("nodeSelector"))
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    if affinity.get(REQUIRED) is None:
        return True
    terms = mapping(affinity[REQUIRED]).get("nodeSelectorTerms") or ()
    return any(meets(term, node) for term in terms)


def topology_keys(spec: Mapping[str, Any]) -> set[str]:
    """Return the labels by which the rules of a pod about other pods group nodes."""
    affinity = mapping(spec.get("affinity"))
    rules = [
        *entries(spec.get("topologySpreadConstraints")),
        *entries(mapping(affinity.get("podAffinity")).get(REQUIRED)),
        *entries(mapping(affinity.get("podAntiAffinity")).get(REQUIRED)),
    ]
    return {str(mapping(rule).get("topologyKey")) for rule in rules}


def meets(term: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Return whether a node meets all of a term; no node meets an empty one."""
    labels = mapping(node["metadata"].get("labels"))
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    numbers = [one for one in expressions if one.get("operator") in _COMPARED]
    others = [one for one in expressions if one.get("operator") not in _COMPARED]
    return (
        matches({"matchExpressions": others}, labels)
        and matches({"matchExpressions": fields}, {NAME: node["metadata"]["name"]})
        and all(_is_beyond(one, labels.get(str(one.get("key")))) for one in numbers)
    )


def _is_beyond(expression: Mapping[str, Any], value: str | None) -> bool:
    """Return whether the integer `value` is greater or less than that of an expression."""
    try:
        found, limit = int(value or ""), int((expression.get("values") or ("",))[0])
    except ValueError:
        return False
    return found > limit if expression.get("operator") == "Gt" else found < limit


def untolerated(spec: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the taints of a node that keep a pod from it."""
    tolerations = spec.get("tolerations") or ()
    for taint in mapping(node.get("spec")).get("taints") or ():
        if taint.get("effect") in BLOCKING and not any(
            tolerates(toleration, taint) for toleration in tolerations
        ):
            yield taint


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator in _COMPARED:
        return _is_beyond(
            {"operator": operator, "values": [toleration.get("value")]}, taint.get("value")
        )
    if operator == "Exists":
        return True
    return bool(toleration.get("key")) and (
        (toleration.get("value") or "") == (taint.get("value") or "")
    )


def written_taint(taint: Mapping[str, Any]) -> str:
    """Write a taint as kubectl does."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def place(key: str, domain: str, node: str) -> str:
    """Return where a pod of a node's domain is, as a part of a sentence."""
    return f"on node {node}" if key == HOSTNAME else f"in {key} {domain}"

"""What a profile demands of every pod: the rules of a pod that are not in the pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..base.objects import mapping
from .node_rules import REQUIRED
from .selector_constraints import written_expression


def profile_rules(profile: Mapping[str, Any]) -> dict[str, str]:
    """Return what a profile adds to each pod, as a sentence by family."""
    name = str(profile.get("schedulerName") or "")
    arguments = {
        entry.get("name"): mapping(entry.get("args")) for entry in profile.get("pluginConfig") or ()
    }
    rules = {}
    if affinity := list(_affinity(arguments.get("NodeAffinity", {}))):
        rules["node affinity"] = (
            f"the profile {name} demands {' or '.join(affinity)} of each pod (addedAffinity of "
            "NodeAffinity)"
        )
    if spread := [
        f"maxSkew {rule.get('maxSkew')} over {rule.get('topologyKey')}"
        for rule in default_constraints(profile)
    ]:
        rules["spread"] = (
            f"the profile {name} spreads the pods of a workload: {', '.join(spread)} "
            "(defaultConstraints of PodTopologySpread)"
        )
    return rules


def demanded_labels(profile: Mapping[str, Any]) -> dict[str, str]:
    """Return labels with which a node meets addedAffinity, if these are all that it demands."""
    for entry in profile.get("pluginConfig") or ():
        if entry.get("name") == "NodeAffinity":
            required = mapping(
                mapping(mapping(entry.get("args")).get("addedAffinity")).get(REQUIRED)
            )
            for term in required.get("nodeSelectorTerms") or ():
                rules = term.get("matchExpressions") or ()
                if not term.get("matchFields") and all(map(_chooses, rules)):
                    return {str(rule["key"]): str(rule["values"][0]) for rule in rules}
    return {}


def _chooses(rule: Mapping[str, Any]) -> bool:
    return rule.get("operator") == "In" and bool(rule.get("values"))


def _affinity(arguments: Mapping[str, Any]) -> Iterator[str]:
    required = mapping(mapping(arguments.get("addedAffinity")).get(REQUIRED))
    for term in required.get("nodeSelectorTerms") or ():
        expressions = (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ()))
        yield " and ".join(map(written_expression, expressions))


def default_constraints(profile: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the spreads that kube-scheduler must keep for pods without their own."""
    for entry in profile.get("pluginConfig") or ():
        arguments = mapping(entry.get("args"))
        if entry.get("name") == "PodTopologySpread" and arguments.get("defaultingType") != "System":
            return [
                rule
                for rule in arguments.get("defaultConstraints") or ()
                if rule.get("whenUnsatisfiable") == "DoNotSchedule"
            ]
    return []

"""The counts of the spreads that a profile adds to the pods of a workload.

Source: buildDefaultConstraints of the plugin podtopologyspread, and DefaultSelector in
plugins/helper/spread.go, Kubernetes 1.35.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from ..base.objects import controller_of, mapping
from ..config.language.feature_gates import Gates
from ..kube.label_selector import matches
from .constraint import Constraint
from .kinds import CONTROLLERS, REPLICA_SETS, SERVICES, STATEFUL_SETS, Object
from .profile_rules import default_constraints
from .spread_constraints import spread_constraints
from .world import World

_OF_POD: Final = "a topologySpreadConstraint of the pod"
_OF_PROFILE: Final = "one of them"
_FIELD: Final = " (topologySpreadConstraints)"
_PLAIN: Final = (CONTROLLERS,)
"""Controllers whose selector is labels alone."""


def default_spread(
    pod: Object, world: World, profile: Mapping[str, Any], text: str, gates: Gates
) -> Callable[[str], str]:
    """Return `text`, the rule of a profile, with the counts that keep the pod from a node."""

    @cache
    def constraints() -> list[Constraint]:
        rules = [
            {**rule, "labelSelector": _selector(pod, world)}
            for rule in default_constraints(profile)
        ]
        spec = {**pod["spec"], "topologySpreadConstraints": rules}
        return list(spread_constraints({**pod, "spec": spec}, world, gates))

    def fact(node: str) -> str:
        for constraint in constraints():
            if constraint.on is not None and (found := constraint.on(node)):
                return f"{text}: {found.replace(_OF_POD, _OF_PROFILE).replace(_FIELD, '')}"
        return ""

    return fact


def _selector(pod: Mapping[str, Any], world: World) -> Mapping[str, Any]:
    """Return the labels of the pod's Services and of its controller."""
    labels = mapping(pod["metadata"].get("labels"))
    namespace = pod["metadata"]["namespace"]
    chosen: dict[str, str] = {}
    for service in world.all(SERVICES):
        selector = mapping(mapping(service.get("spec")).get("selector"))
        own = service["metadata"]["namespace"] == namespace
        if own and selector and matches({"matchLabels": selector}, labels):
            chosen |= selector
    expressions: list[Any] = []
    for selector in _of_controller(pod, world):
        chosen |= mapping(selector.get("matchLabels"))
        expressions += selector.get("matchExpressions") or ()
    return {"matchLabels": chosen, "matchExpressions": expressions}


def _of_controller(pod: Mapping[str, Any], world: World) -> Iterator[Mapping[str, Any]]:
    owner, namespace = controller_of(pod) or {}, pod["metadata"]["namespace"]
    for resource in (CONTROLLERS, REPLICA_SETS, STATEFUL_SETS):
        if owner.get("kind") == resource.kind:
            found = world.get(resource, str(owner.get("name")), namespace) or {}
            selector = mapping(mapping(found.get("spec")).get("selector"))
            yield {"matchLabels": selector} if resource in _PLAIN else selector

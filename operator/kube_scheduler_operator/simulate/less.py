"""Smaller requests of a pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.quantities import amounts
from ..scheduling.policies.pods import Demand
from .constraint import containers, different_texts, quantity_text
from .kinds import Object


def reduce_request(spec: Object, resource: str, to: float) -> bool:
    """Reduce requests, the largest first, until the pod demands `to`; False if that is impossible.

    An init container that runs before the others counts only if it needs more than they do.
    """
    holders = [spec, *containers(spec)]
    for _ in holders:
        excess = Demand(spec).requests[resource] - to
        if excess <= 0:
            return True
        requests = [(_requested(holder, resource), at) for at, holder in enumerate(holders)]
        for amount, at in sorted(requests, reverse=True):
            if amount > excess and _lowered(spec, holders[at], resource, amount - excess):
                break
        else:
            return False
    return Demand(spec).requests[resource] <= to


def reduction(before: Mapping[str, Any], after: Mapping[str, Any], resource: str) -> str:
    """Return which requests are smaller after `reduce_request`, in the imperative.

    A pod with one container, which alone requests the resource, has no other request to mean.
    """
    parts = []
    for (who, old), (_, new) in zip(_holders(before), _holders(after), strict=True):
        if new == old:
            continue
        less, asked = different_texts(
            resource, _requested(new, resource), _requested(old, resource)
        )
        parts.append((f"request {less} of {resource} instead of {asked}", who))
    alone = len(list(containers(before))) == 1 and not amounts(before.get("overhead")).get(resource)
    if alone and len(parts) == 1:
        return parts[0][0]
    return ", and ".join(f"{text}{who}" for text, who in parts)


def _holders(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what has requests, with its name in a sentence."""
    yield " in spec.resources", {"resources": spec.get("resources")}
    for field, kind in (("initContainers", "init container"), ("containers", "container")):
        for one in spec.get(field) or ():
            sidecar = field == "initContainers" and one.get("restartPolicy") == "Always"
            name = foreign(str(one.get("name")), FOREIGN_NAME)
            yield f" in {'sidecar' if sidecar else kind} {name}", one


def _requested(holder: Mapping[str, Any], resource: str) -> float:
    return amounts((holder.get("resources") or {}).get("requests")).get(resource, 0.0)


def _lowered(spec: Mapping[str, Any], holder: Object, resource: str, amount: float) -> bool:
    """Lower one request; return False and change nothing if that lowers no demand of the pod."""
    before = Demand(spec).requests[resource]
    requests = holder["resources"]["requests"]
    kept = requests[resource]
    requests[resource] = quantity_text(resource, amount)
    if Demand(spec).requests[resource] >= before:
        requests[resource] = kept
        return False
    (holder["resources"].get("limits") or {}).pop(resource, None)
    return True

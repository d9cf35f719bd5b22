"""Smaller requests of a pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.quantities import amounts
from ..scheduling.policies.pods import Demand
from .constraint import containers, quantity_text
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

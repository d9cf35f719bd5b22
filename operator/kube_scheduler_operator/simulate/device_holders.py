"""For what a ResourceClaim is reserved, which keeps its devices allocated.

Source: the resourceclaim controller of Kubernetes 1.36: it removes the reservations of pods that
have ended, but none of a claim that is also reserved for another object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import entries, mapping
from .kinds import PODS
from .world import World

_NAMED: Final = 3


def idle_holders(claim: Mapping[str, Any], world: World) -> str:
    """Return for what a claim is reserved if none of it is an existing pod; else empty."""
    namespace = claim["metadata"]["namespace"]
    users = list(map(mapping, entries(mapping(claim.get("status")).get("reservedFor"))))
    if any(_exists(user, namespace, world) for user in users):
        return ""
    more = f" and {len(users) - _NAMED} more" if len(users) > _NAMED else ""
    return ", ".join(map(_written, users[:_NAMED])) + more


def _exists(user: Mapping[str, Any], namespace: str, world: World) -> bool:
    if user.get("apiGroup") or user.get("resource") != PODS.plural:
        return False
    pod = world.get(PODS, str(user.get("name")), namespace)
    return pod is not None and user.get("uid") in (None, pod["metadata"].get("uid"))


def _written(user: Mapping[str, Any]) -> str:
    """Return one entry of `reservedFor`: `pods/web-1`, `trainings.example.com/a`."""
    group = f".{user['apiGroup']}" if user.get("apiGroup") else ""
    return foreign(f"{user.get('resource')}{group}/{user.get('name')}", FOREIGN_NAME)

"""The ResourceClaims of pods, and what becomes of them when a pod is gone."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ..base.objects import entries, mapping
from .kinds import Object


def claims_of(pod: Mapping[str, Any]) -> list[str]:
    """Return the names of a pod's claims: its own, of its templates, of its extended resources."""
    status = mapping(pod.get("status"))
    generated = {
        claim.get("name"): claim.get("resourceClaimName")
        for claim in map(mapping, entries(status.get("resourceClaimStatuses")))
    }
    names = [
        claim.get("resourceClaimName") or generated.get(claim.get("name"))
        for claim in map(mapping, entries(mapping(pod.get("spec")).get("resourceClaims")))
    ]
    names.append(mapping(status.get("extendedResourceClaimStatus")).get("resourceClaimName"))
    return [str(name) for name in names if name]


def is_deleted_with(claim: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether a claim was made for a pod."""
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == pod["metadata"].get("uid") for owner in owners)


def without_users(claim: Object, pods: Iterable[Mapping[str, Any]]) -> Object | None:
    """Return the claim without the reservations of pods; without any left, it is not allocated.

    None: none of them has reserved it.
    """
    names = {pod["metadata"]["name"] for pod in pods}
    status = mapping(claim.get("status"))
    users = entries(status.get("reservedFor"))
    left = [user for user in users if not _is_one_of(mapping(user), names)]
    if len(left) == len(users):
        return None
    freed = {**status, "reservedFor": left}
    if not left:
        freed.pop("reservedFor")
        freed.pop("allocation", None)
    return {**copy.deepcopy(claim), "status": freed}


def _is_one_of(user: Mapping[str, Any], pods: Collection[str]) -> bool:
    return user.get("resource", "pods") == "pods" and user.get("name") in pods


def users_of_claims(pods: Iterable[Object]) -> Iterator[tuple[str, str, list[Object]]]:
    """Yield (namespace, claim, the pods that name it)."""
    users: dict[tuple[str, str], list[Object]] = {}
    for pod in pods:
        for name in claims_of(pod):
            users.setdefault((pod["metadata"]["namespace"], name), []).append(pod)
    for (namespace, name), own in users.items():
        yield namespace, name, own

"""Delegated authentication and authorization of bearer tokens, with a cache.

TokenReview and SubjectAccessReview decide. A client that scrapes metrics needs the verb "get" on
the nonResourceURL "/metrics".
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from ..kube.resource import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource

ALLOWED_SECONDS: Final = 35.0
REFUSED_SECONDS: Final = 10.0
_CACHE_SIZE: Final = 1024  # any client that reaches the port can send tokens


@dataclass(frozen=True, slots=True)
class AuthorizationResult:
    """The result for one token and path.

    Attributes:
        authenticated: whether the token is valid.
        allowed: whether its user may read the path.
        reason: why access is denied; empty if allowed.
    """

    authenticated: bool
    allowed: bool
    reason: str = ""


Authorize: TypeAlias = Callable[[str, str], Awaitable[AuthorizationResult]]
"""(token, path) -> result. Raises the errors of the API client."""


class Reviewer(Protocol):
    """The part of `kube.api.Api` that is used here."""

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object and return the server's version of it."""


def delegated(api: Reviewer) -> Authorize:
    """An `Authorize` that requests both reviews for every call."""

    async def authorize(token: str, path: str) -> AuthorizationResult:
        review = await api.create(TOKEN_REVIEWS, _object(TOKEN_REVIEWS, {"token": token}))
        status = review.get("status") or {}
        if not status.get("authenticated"):
            return AuthorizationResult(
                authenticated=False,
                allowed=False,
                reason="the bearer token is not valid in this cluster: create a new one, for "
                "example with kubectl create token",
            )
        user = status.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            "groups": user.get("groups") or [],
            "uid": user.get("uid", ""),
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        access = await api.create(SUBJECT_ACCESS_REVIEWS, _object(SUBJECT_ACCESS_REVIEWS, spec))
        if (access.get("status") or {}).get("allowed"):
            return AuthorizationResult(authenticated=True, allowed=True)
        return AuthorizationResult(
            authenticated=True,
            allowed=False,
            reason=f'user "{spec["user"]}" may not read {path}: bind it to a ClusterRole that '
            f'grants the verb "get" on the nonResourceURL "{path}"',
        )

    return authorize


def cached(authorize: Authorize, clock: Callable[[], float] = time.monotonic) -> Authorize:
    """`authorize` with a cache by token and path.

    A result is valid for ALLOWED_SECONDS or REFUSED_SECONDS. Errors are not cached. The cache has
    hashes of tokens only.
    """
    results: OrderedDict[tuple[bytes, str], tuple[float, AuthorizationResult]] = OrderedDict()

    async def lookup(token: str, path: str) -> AuthorizationResult:
        key = (hashlib.sha256(token.encode()).digest(), path)
        entry = results.get(key)
        if entry and clock() < entry[0]:
            return entry[1]
        result = await authorize(token, path)
        seconds = ALLOWED_SECONDS if result.allowed else REFUSED_SECONDS
        results[key] = (clock() + seconds, result)
        results.move_to_end(key)
        while len(results) > _CACHE_SIZE:
            results.popitem(last=False)
        return result

    return lookup


def _object(resource: Resource, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}

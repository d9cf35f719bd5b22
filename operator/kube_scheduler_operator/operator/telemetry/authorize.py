"""Delegated authentication and authorization of clients, with a cache.

A client has a bearer token, which TokenReview decides on, or a certificate, which TLS has verified.
SubjectAccessReview decides what it may read: one that scrapes metrics needs the verb "get" on the
nonResourceURL "/metrics".
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from ...base.bounded_cache import Recent
from ...kube.resource import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource

ALLOWED_SECONDS: Final = 35.0
REFUSED_SECONDS: Final = 10.0
_CACHE_SIZE: Final = 1024  # any client that reaches the port can send tokens


@dataclass(frozen=True, slots=True)
class User:
    """The user of a client certificate: its common name and organizations."""

    name: str
    groups: tuple[str, ...]

    @classmethod
    def of_certificate(cls, certificate: Mapping[str, Any] | None) -> User | None:
        """Return the user of a verified certificate, as `ssl` returns it; None without one."""
        subject = [pair for part in (certificate or {}).get("subject", ()) for pair in part]
        name = next((value for key, value in subject if key == "commonName"), "")
        groups = tuple(value for key, value in subject if key == "organizationName")
        return cls(name, (*groups, "system:authenticated")) if name else None


@dataclass(frozen=True, slots=True)
class AuthorizationResult:
    """The result for one client and path."""

    authenticated: bool  # whether the token is valid
    allowed: bool  # whether its user may read the path
    reason: str = ""  # why access is denied; empty if allowed


Client: TypeAlias = str | User
"""A bearer token, or the user of a client certificate."""

Authorize: TypeAlias = Callable[[Client, str], Awaitable[AuthorizationResult]]
"""(client, path) -> result. Raises the errors of the API client."""


class Reviewer(Protocol):
    """The part of `kube.api.Api` that is used here."""

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object and return the server's version of it."""


def delegated(api: Reviewer) -> Authorize:
    """Return an `Authorize` that requests both reviews for every call."""

    async def authorize(client: Client, path: str) -> AuthorizationResult:
        if isinstance(client, User):
            user: Mapping[str, Any] = {"username": client.name, "groups": list(client.groups)}
        else:
            review = await api.create(TOKEN_REVIEWS, _object(TOKEN_REVIEWS, {"token": client}))
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
    """Cache `authorize` by client and path.

    A result is valid for ALLOWED_SECONDS or REFUSED_SECONDS. Errors are not cached. The cache has
    hashes of tokens only.
    """
    results: Recent[tuple[bytes | User, str], tuple[float, AuthorizationResult]]
    results = Recent(_CACHE_SIZE)

    async def lookup(client: Client, path: str) -> AuthorizationResult:
        hashed = hashlib.sha256(client.encode()).digest() if isinstance(client, str) else client
        key = (hashed, path)
        entry = results.get(key)
        if entry and clock() < entry[0]:
            return entry[1]
        result = await authorize(client, path)
        seconds = ALLOWED_SECONDS if result.allowed else REFUSED_SECONDS
        results.keep(key, (clock() + seconds, result))
        return result

    return lookup


def _object(resource: Resource, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}

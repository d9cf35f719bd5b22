"""Delegated authentication and authorization of clients, with a cache and a limit.

A client has a bearer token, which TokenReview decides on, or a certificate, which TLS has verified.
SubjectAccessReview decides what it may read: one that scrapes metrics needs the verb "get" on the
nonResourceURL "/metrics".

Any client that reaches the port can send tokens without end, and each unknown one is a request to
the API server. So reviews are limited, for each address and for all together; addresses that come
seldom, as one with a new token does, do not share the limit of those that come often. A client that
was allowed before is always reviewed, and no other one displaces it from the cache.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from ...base.bounded_cache import Recent
from ...kube.resource import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from ...serving.sharing import AddressRate

ALLOWED_SECONDS: Final = 35.0
REFUSED_SECONDS: Final = 10.0
_CACHE_SIZE: Final = 1024  # results, of those that are allowed and of the others

REVIEWS: Final = 1.0  # reviews a second for one address, in the long run
REVIEWS_AT_ONCE: Final = 10
ALL_REVIEWS: Final = 10.0  # the same for all addresses together
ALL_REVIEWS_AT_ONCE: Final = 50
SELDOM: Final = 60.0  # seconds between reviews of an address that comes seldom
_PATIENCE: Final = 0.001  # seconds: rounding errors of the limits


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

Review: TypeAlias = Callable[[Client, str], Awaitable[AuthorizationResult]]
"""(client, path) -> result. Raises the errors of the API client."""

Authorize: TypeAlias = Callable[[Client, str, str], Awaitable[AuthorizationResult]]
"""(client, path, address of the client) -> result. Raises TooManyReviewsError, and the errors of
the API client."""


class TooManyReviewsError(Exception):
    """The client, or all clients together, need more reviews than the API server is asked for."""


_Question: TypeAlias = tuple[bytes | User, str]
_Results: TypeAlias = Recent[_Question, tuple[float, AuthorizationResult]]


class Reviewer(Protocol):
    """The part of `kube.api.Api` that is used here."""

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object and return the server's version of it."""


def delegated(api: Reviewer) -> Review:
    """Return a `Review` that requests both reviews for every call."""

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


class CachedReviews:
    """An `Authorize` with results that are valid for ALLOWED_SECONDS or REFUSED_SECONDS.

    Errors are not cached. The cache has hashes of tokens only.
    """

    def __init__(self, review: Review, clock: Callable[[], float] = time.monotonic) -> None:
        self._review, self._clock = review, clock
        self._allowed = _Results(_CACHE_SIZE)
        self._refused = _Results(_CACHE_SIZE)
        self._running: dict[_Question, asyncio.Future[AuthorizationResult]] = {}
        self._by_address = AddressRate(REVIEWS, REVIEWS_AT_ONCE, _PATIENCE, clock)
        self._seldom = AddressRate(1.0 / SELDOM, 1, _PATIENCE, clock)
        self._all_seldom, self._all_often = (
            AddressRate(ALL_REVIEWS, ALL_REVIEWS_AT_ONCE, _PATIENCE, clock) for _ in range(2)
        )

    async def __call__(self, client: Client, path: str, address: str) -> AuthorizationResult:
        hashed = hashlib.sha256(client.encode()).digest() if isinstance(client, str) else client
        question = (hashed, path)
        entry = self._allowed.get(question) or self._refused.get(question)
        if entry and self._clock() < entry[0]:
            return entry[1]
        running = self._running.get(question)
        if running is None:
            if question not in self._allowed and not self._has_room(address):
                raise TooManyReviewsError
            running = asyncio.ensure_future(self._review(client, path))
            self._running[question] = running
            running.add_done_callback(lambda done: self._ended(question, done))
        return await asyncio.shield(running)

    def _has_room(self, address: str) -> bool:
        if self._by_address.wait(address) is None:
            return False
        seldom = self._seldom.wait(address) is not None
        return (seldom and self._all_seldom.wait("") is not None) or (
            self._all_often.wait("") is not None
        )

    def _ended(self, question: _Question, done: asyncio.Future[AuthorizationResult]) -> None:
        del self._running[question]
        if done.cancelled() or done.exception() is not None:  # each waiting request receives it
            return
        result = done.result()
        for results in (self._allowed, self._refused):
            results.pop(question, None)
        results = self._allowed if result.allowed else self._refused
        seconds = ALLOWED_SECONDS if result.allowed else REFUSED_SECONDS
        results.keep(question, (self._clock() + seconds, result))


def _object(resource: Resource, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}

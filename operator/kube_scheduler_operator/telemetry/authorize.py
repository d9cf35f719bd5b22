"""May the bearer of this token read this path? Asks the API server, and remembers for a while.

The operator has no users of its own: a token is worth what TokenReview and SubjectAccessReview say.
Whoever scrapes needs the verb "get" on the nonResourceURL "/metrics".
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
_CACHE_SIZE: Final = 1024  # tokens are sent by anybody who can reach the port


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer.

    Attributes:
        authenticated: whether the token is somebody's.
        allowed: whether that somebody may.
        reason: one sentence for whoever is refused; empty if allowed.
    """

    authenticated: bool
    allowed: bool
    reason: str = ""


Authorize: TypeAlias = Callable[[str, str], Awaitable[Decision]]
"""(token, path) -> Decision. Raises whatever the API client raises when it cannot tell."""


class Reviewer(Protocol):
    """The one method of `kube.api.Api` that is needed here."""

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object and return what the server made of it."""


def delegated(api: Reviewer) -> Authorize:
    """An `Authorize` that lets the API server decide, every time anew."""

    async def authorize(token: str, path: str) -> Decision:
        review = await api.create(TOKEN_REVIEWS, _object(TOKEN_REVIEWS, {"token": token}))
        status = review.get("status") or {}
        if not status.get("authenticated"):
            return Decision(
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
            return Decision(authenticated=True, allowed=True)
        return Decision(
            authenticated=True,
            allowed=False,
            reason=f'user "{spec["user"]}" may not read {path}: bind a ClusterRole to it that '
            f'grants the verb "get" on the nonResourceURL "{path}"',
        )

    return authorize


def cached(authorize: Authorize, clock: Callable[[], float] = time.monotonic) -> Authorize:
    """`authorize`, asked once per token and path while its answer is fresh.

    Yes holds for ALLOWED_SECONDS, no for REFUSED_SECONDS. Errors are not remembered. Only hashes of
    tokens are kept.
    """
    answers: OrderedDict[tuple[bytes, str], tuple[float, Decision]] = OrderedDict()

    async def remember(token: str, path: str) -> Decision:
        key = (hashlib.sha256(token.encode()).digest(), path)
        known = answers.get(key)
        if known and clock() < known[0]:
            return known[1]
        decision = await authorize(token, path)
        seconds = ALLOWED_SECONDS if decision.allowed else REFUSED_SECONDS
        answers[key] = (clock() + seconds, decision)
        answers.move_to_end(key)
        while len(answers) > _CACHE_SIZE:
            answers.popitem(last=False)
        return decision

    return remember


def _object(resource: Resource, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}

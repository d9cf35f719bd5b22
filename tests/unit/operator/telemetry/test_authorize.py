"""Access to metrics, as the API server authorizes it; results are cached."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.kube.resource import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from kube_scheduler_operator.operator.telemetry import authorize
from kube_scheduler_operator.operator.telemetry.authorize import (
    ALL_REVIEWS_AT_ONCE,
    REVIEWS_AT_ONCE,
    AuthorizationResult,
    CachedReviews,
    TooManyReviewsError,
    User,
    delegated,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDRESS = "10.0.0.1"
PROMETHEUS = "system:serviceaccount:monitoring:prometheus"


class FakeApi:
    """Knows the tokens "good" (allowed) and "poor" (known, not allowed)."""

    def __init__(self) -> None:
        self.created: list[tuple[Resource, dict[str, Any]]] = []

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> dict[str, Any]:
        self.created.append((resource, dict(obj)))
        spec = obj["spec"]
        if resource == TOKEN_REVIEWS:
            user = {"username": PROMETHEUS, "groups": ["g"], "uid": "u", "extra": {"k": ["v"]}}
            if spec["token"] == "poor":
                user = {"username": "poor"}
            known = spec["token"] in ("good", "poor")
            return {**obj, "status": {"authenticated": known, "user": user} if known else {}}
        return {**obj, "status": {"allowed": spec["user"] == PROMETHEUS}}


async def test_access_review_has_all_attributes_of_the_user() -> None:
    api = FakeApi()
    decision = await delegated(api)("good", "/metrics")
    assert decision == AuthorizationResult(authenticated=True, allowed=True)
    (_, token_review), (resource, access_review) = api.created
    assert token_review == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "good"},
    }
    assert resource == SUBJECT_ACCESS_REVIEWS
    assert access_review["spec"] == {
        "user": PROMETHEUS,
        "groups": ["g"],
        "uid": "u",
        "extra": {"k": ["v"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


async def test_denied_user_gets_the_missing_rule() -> None:
    decision = await delegated(FakeApi())("poor", "/metrics")
    assert (decision.authenticated, decision.allowed) == (True, False)
    assert 'user "poor" may not read /metrics' in decision.reason
    assert 'verb "get" on the nonResourceURL "/metrics"' in decision.reason


async def test_invalid_token_needs_no_access_review() -> None:
    api = FakeApi()
    decision = await delegated(api)("forged", "/metrics")
    assert (decision.authenticated, decision.allowed) == (False, False)
    assert [resource for resource, _ in api.created] == [TOKEN_REVIEWS]


class Counting:
    def __init__(self, *, allowed: bool) -> None:
        self.calls: list[tuple[str | User, str]] = []
        self.allowed = allowed
        self.error: Exception | None = None

    async def __call__(self, client: str | User, path: str) -> AuthorizationResult:
        self.calls.append((client, path))
        if self.error:
            raise self.error
        return AuthorizationResult(authenticated=True, allowed=self.allowed)


@pytest.mark.parametrize(
    ("allowed", "seconds"), [pytest.param(True, 35, id="yes"), pytest.param(False, 10, id="no")]
)
async def test_result_is_cached_for_its_lifetime(allowed: bool, seconds: int) -> None:
    asked = Counting(allowed=allowed)
    now = 0.0
    ask = CachedReviews(asked, lambda: now)
    await ask("t", "/metrics", ADDRESS)
    now = seconds - 0.1
    await ask("t", "/metrics", ADDRESS)
    assert len(asked.calls) == 1
    now = seconds
    await ask("t", "/metrics", ADDRESS)
    assert len(asked.calls) == 2


async def test_each_token_and_path_has_its_own_result() -> None:
    asked = Counting(allowed=True)
    ask = CachedReviews(asked, lambda: 0.0)
    for token, path in [("a", "/x"), ("b", "/x"), ("a", "/y"), ("a", "/x")]:
        await ask(token, path, ADDRESS)
    assert asked.calls == [("a", "/x"), ("b", "/x"), ("a", "/y")]


async def test_error_is_not_cached() -> None:
    asked = Counting(allowed=True)
    ask = CachedReviews(asked, lambda: 0.0)
    asked.error = ConnectionError("no API server")
    with pytest.raises(ConnectionError):
        await ask("t", "/metrics", ADDRESS)
    asked.error = None
    assert (await ask("t", "/metrics", ADDRESS)).allowed


async def test_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorize, "_CACHE_SIZE", 2)
    asked = Counting(allowed=True)
    ask = CachedReviews(asked, lambda: 0.0)
    for token in ("a", "b", "c"):
        await ask(token, "/", ADDRESS)
    await ask("c", "/", ADDRESS)
    await ask("a", "/", ADDRESS)
    assert [token for token, _ in asked.calls] == ["a", "b", "c", "a"]


async def test_one_address_cannot_flood_the_api_server_with_reviews() -> None:
    asked = Counting(allowed=False)
    now = 0.0
    ask = CachedReviews(asked, lambda: now)

    async def flood(address: str) -> int:
        """Send new tokens until they are refused; return how many were reviewed."""
        before = len(asked.calls)
        for number in range(1000):
            try:
                await ask(f"{now} {address} {number}", "/metrics", address)
            except TooManyReviewsError:
                break
        return len(asked.calls) - before

    assert await flood("10.0.0.9") == REVIEWS_AT_ONCE
    assert (await ask("other", "/metrics", ADDRESS)).authenticated, "others are not affected"
    now = 3.0
    assert await flood("10.0.0.9") == 3
    now = 100.0
    all_reviews = sum([await flood(f"10.1.0.{number}") for number in range(99)])
    assert all_reviews == 2 * ALL_REVIEWS_AT_ONCE, "of those that come seldom, and often"


async def test_a_flood_of_many_addresses_refuses_no_client_that_comes_seldom() -> None:
    """A new token of Prometheus, while a tenant floods from all of its Pods."""
    now = 0.0
    ask = CachedReviews(Counting(allowed=False), lambda: now)
    refused = 0
    for now in range(120):
        for pod in range(60):
            try:
                await ask(f"forged {now} {pod}", "/metrics", f"10.1.0.{pod}")
            except TooManyReviewsError:
                refused += 1
    assert refused > 0
    assert (await ask("new", "/metrics", ADDRESS)).authenticated


async def test_a_flood_neither_refuses_nor_forgets_a_client_that_was_allowed() -> None:
    asked = Counting(allowed=True)
    now = 0.0
    ask = CachedReviews(asked, lambda: now)
    await ask("prometheus", "/metrics", ADDRESS)
    asked.allowed = False
    for step in range(3000):
        now = step / 10
        with contextlib.suppress(TooManyReviewsError):
            await ask(f"forged {step}", "/metrics", ADDRESS)
    asked.allowed = True
    assert (await ask("prometheus", "/metrics", ADDRESS)).allowed


async def test_requests_of_one_client_share_a_review() -> None:
    begun, answer = asyncio.Event(), asyncio.Event()
    calls = 0

    async def slow(_client: str | User, _path: str) -> AuthorizationResult:
        nonlocal calls
        calls += 1
        begun.set()
        await answer.wait()
        return AuthorizationResult(authenticated=True, allowed=True)

    ask = CachedReviews(slow, lambda: 0.0)
    requests = [asyncio.create_task(ask("t", "/metrics", ADDRESS)) for _ in range(20)]
    await begun.wait()
    requests[0].cancel()
    answer.set()
    results = await asyncio.gather(*requests[1:])
    assert all(result.allowed for result in results)
    assert calls == 1


async def test_the_user_of_a_certificate_needs_no_token_review() -> None:
    api = FakeApi()
    user = User(PROMETHEUS, ("system:authenticated",))
    decision = await CachedReviews(delegated(api))(user, "/metrics", ADDRESS)
    assert decision == AuthorizationResult(authenticated=True, allowed=True)
    ((resource, review),) = api.created
    assert resource == SUBJECT_ACCESS_REVIEWS
    assert (review["spec"]["user"], review["spec"]["groups"]) == (
        PROMETHEUS, ["system:authenticated"],
    )  # fmt: skip
    other = await delegated(api)(User("other", ()), "/metrics")
    assert (other.authenticated, other.allowed) == (True, False)


@pytest.mark.parametrize(
    ("certificate", "user"),
    [
        (None, None),
        ({}, None),
        ({"subject": ((("organizationName", "g"),),)}, None),
        (
            {
                "subject": (
                    (("organizationName", "g"), ("organizationName", "h")),
                    (("commonName", "u"),),
                )
            },
            User("u", ("g", "h", "system:authenticated")),
        ),
    ],
)
def test_the_subject_of_a_certificate_is_the_user(certificate: Any, user: User | None) -> None:
    assert User.of_certificate(certificate) == user

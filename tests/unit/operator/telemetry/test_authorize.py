"""Access to metrics, as the API server authorizes it; results are cached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.kube.resource import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from kube_scheduler_operator.operator.telemetry import authorize
from kube_scheduler_operator.operator.telemetry.authorize import (
    AuthorizationResult,
    User,
    cached,
    delegated,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    ask = cached(asked, lambda: now)
    await ask("t", "/metrics")
    now = seconds - 0.1
    await ask("t", "/metrics")
    assert len(asked.calls) == 1
    now = seconds
    await ask("t", "/metrics")
    assert len(asked.calls) == 2


async def test_each_token_and_path_has_its_own_result() -> None:
    asked = Counting(allowed=True)
    ask = cached(asked, lambda: 0.0)
    for token, path in [("a", "/x"), ("b", "/x"), ("a", "/y"), ("a", "/x")]:
        await ask(token, path)
    assert asked.calls == [("a", "/x"), ("b", "/x"), ("a", "/y")]


async def test_error_is_not_cached() -> None:
    asked = Counting(allowed=True)
    ask = cached(asked, lambda: 0.0)
    asked.error = ConnectionError("no API server")
    with pytest.raises(ConnectionError):
        await ask("t", "/metrics")
    asked.error = None
    assert (await ask("t", "/metrics")).allowed


async def test_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorize, "_CACHE_SIZE", 2)
    asked = Counting(allowed=True)
    ask = cached(asked, lambda: 0.0)
    for token in ("a", "b", "c"):
        await ask(token, "/")
    await ask("c", "/")
    await ask("a", "/")
    assert [token for token, _ in asked.calls] == ["a", "b", "c", "a"]


async def test_the_user_of_a_certificate_needs_no_token_review() -> None:
    api = FakeApi()
    user = User(PROMETHEUS, ("system:authenticated",))
    decision = await cached(delegated(api))(user, "/metrics")
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

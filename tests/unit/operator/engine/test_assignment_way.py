"""What applies assignments: looked up by name, and only if something is to be assigned."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.errors import (
    ApiError,
    ApiRequest,
    Forbidden,
    NotFound,
    Unavailable,
)
from kube_scheduler_operator.kube.resource import SERVICES, ObjectRef
from kube_scheduler_operator.operator.engine import assignment
from kube_scheduler_operator.operator.engine.assignment import WayPoller
from kube_scheduler_operator.operator.model.snapshot import AssignmentWay

POLICY, BINDING = "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"
WEBHOOK = "mutatingwebhookconfigurations"


class Api:
    """An API server with some of the objects."""

    def __init__(self, *found: str, serves: bool = True, trusted: bool = True) -> None:
        self.found = found
        self.trusted = trusted
        self.serves = serves
        self.error: type[ApiError] | None = None
        self.service: type[ApiError] | None = None  # the answer to who reads the webhook's Service

    async def get_path(self, path: str) -> Any:
        assert path == "/apis/admissionregistration.k8s.io/v1"
        kinds = [WEBHOOK, POLICY, BINDING] if self.serves else [WEBHOOK]
        return {"resources": [{"name": kind} for kind in kinds]}

    async def get(self, ref: ObjectRef) -> Any:
        request = ApiRequest("get", ref.path)
        if ref.resource == SERVICES:
            return self._service(request)
        assert ref.name == names.ASSIGNMENT
        if self.error is not None:
            raise self.error(request, status=403)
        assert self.serves or ref.resource.plural == WEBHOOK, "a kind that is not served"
        if ref.resource.plural not in self.found:
            raise NotFound(request, status=404)
        client: dict[str, Any] = {"service": {"name": names.WEBHOOK, "namespace": "operators"}}
        if self.trusted:
            client["caBundle"] = "x"
        return {"metadata": {"name": ref.name}, "webhooks": [{"clientConfig": client}]}

    def _service(self, request: ApiRequest) -> Any:
        if self.service is not None:
            raise self.service(request, status=404)
        return {"metadata": {"name": names.WEBHOOK}}


class Changes:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.mark.parametrize(
    ("api", "expected"),
    [
        (Api(POLICY, BINDING), AssignmentWay.POLICY),
        (Api(POLICY, BINDING, WEBHOOK), AssignmentWay.POLICY),
        (Api(POLICY), AssignmentWay.NONE_POLICY),
        (Api(POLICY, WEBHOOK), AssignmentWay.WEBHOOK),
        (Api(WEBHOOK), AssignmentWay.WEBHOOK),
        (Api(WEBHOOK, serves=False), AssignmentWay.WEBHOOK),
        (Api(), AssignmentWay.NONE_POLICY),
        (Api(serves=False), AssignmentWay.NONE_WEBHOOK),
    ],
)
async def test_what_exists_decides(api: Any, expected: AssignmentWay) -> None:
    changes = Changes()
    poller = WayPoller(lambda: True, changes)
    await poller.poll(api)
    assert poller.way is expected
    assert (poller.configuration is not None) is (WEBHOOK in api.found)
    await poller.poll(api)
    assert changes.count == 1


async def polled(api: Any) -> WayPoller:
    poller = WayPoller(lambda: True, lambda: None)
    await poller.poll(api)
    return poller


async def test_a_webhook_that_is_not_trusted_yet_is_not_known() -> None:
    api: Any = Api(WEBHOOK, trusted=False)
    poller = await polled(api)
    assert poller.way is None
    assert poller.configuration is not None
    api.trusted = True
    await poller.poll(api)
    assert poller.way is AssignmentWay.WEBHOOK


async def test_a_webhook_without_its_service_applies_nothing() -> None:
    api: Any = Api(WEBHOOK)
    api.service = NotFound
    poller = await polled(api)
    assert poller.way is AssignmentWay.NO_SERVICE
    assert poller.configuration is not None, "its process listens all the same"
    api.service = Forbidden
    await poller.poll(api)
    assert poller.way is AssignmentWay.WEBHOOK, "that the Service is gone is not known"


async def test_an_error_leaves_the_last_result() -> None:
    api: Any = Api(WEBHOOK)
    poller = await polled(api)
    api.error = Unavailable
    await poller.poll(api)
    assert poller.way is AssignmentWay.WEBHOOK
    assert poller.configuration is not None


async def test_an_operator_that_may_not_look_reports_that() -> None:
    api: Any = Api(WEBHOOK)
    api.error = Forbidden
    poller = await polled(api)
    assert poller.way is AssignmentWay.UNREADABLE
    assert poller.configuration is None


async def test_what_was_served_is_served_on_without_the_right_to_look() -> None:
    """An upgrade may replace the rights before the Pods."""
    api: Any = Api(WEBHOOK)
    poller = await polled(api)
    api.error = Forbidden
    await poller.poll(api)
    assert poller.way is AssignmentWay.UNREADABLE
    assert poller.configuration is not None
    api.error = NotFound
    await poller.poll(api)
    assert poller.configuration is None, "it was deleted"


async def test_a_process_that_starts_looks_as_soon_as_something_is_assigned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assignment, "FIRST_INTERVAL", 0.01)
    assigned: list[str] = []
    poller, api = WayPoller(lambda: bool(assigned), lambda: None), Api(WEBHOOK)
    running = asyncio.create_task(poller.run(api))  # type: ignore[arg-type] # the API is played
    try:
        await asyncio.sleep(0.05)
        assert poller.way is None
        assigned.append("packed")
        async with asyncio.timeout(assignment.INTERVAL - 1):
            while poller.way is None:  # noqa: ASYNC110 - it depends on another task's progress
                await asyncio.sleep(0.01)
    finally:
        running.cancel()

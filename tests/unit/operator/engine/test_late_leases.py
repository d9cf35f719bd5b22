"""Leases are read when the watch does not show their renewals."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from kube_scheduler_operator.kube.api import Api
from kube_scheduler_operator.kube.errors import ApiRequest, from_response
from kube_scheduler_operator.kube.resource import LEASES, ObjectRef, Resource
from kube_scheduler_operator.operator.engine import late_leases
from kube_scheduler_operator.operator.engine.late_leases import read_late_leases

REF = ObjectRef(LEASES, "kube-system", "kube-scheduler")
LEASE = {"metadata": {"name": REF.name, "namespace": REF.namespace, "resourceVersion": "7"}}


class Answers:
    """An API server that fails, then hangs, then answers."""

    def __init__(self) -> None:
        self.requests = 0

    async def get(self, ref: ObjectRef) -> Mapping[str, Any]:
        self.requests += 1
        if self.requests == 1:
            request = ApiRequest("get", ref.path, ref.resource, ref.namespace, ref.name)
            raise from_response(request, 503, "no")
        if self.requests == 2:
            await asyncio.sleep(3600)
        return LEASE


async def test_a_late_lease_is_read_until_an_api_server_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(late_leases, "INTERVAL", 0.0)
    monkeypatch.setattr(late_leases, "LONGEST_READ", 0.01)
    answers, read = Answers(), list[tuple[Resource, str | None, Mapping[str, Any]]]()
    done = asyncio.Event()

    def event(resource: Resource, kind: str | None, obj: Mapping[str, Any]) -> None:
        read.append((resource, kind, obj))
        done.set()

    reading = asyncio.create_task(
        read_late_leases(cast("Api", answers), lambda: [] if read else [REF], event)
    )
    await asyncio.wait_for(done.wait(), 10)
    reading.cancel()
    assert read == [(LEASES, None, LEASE)]
    assert answers.requests == 3

"""Polls of a cluster in which a tenant fills the lists."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.errors import ApiRequest, from_response
from kube_scheduler_operator.kube.resource import EVENTS_V1, PODS
from kube_scheduler_operator.operator.diagnostics import (
    unknown_scheduler_names,
    unmanaged_schedulers,
    waiting_pods,
)
from kube_scheduler_operator.operator.engine.polling import FAILURES, WAITING, Poller

from ...kube.conftest import FakeApi
from ...kube.conftest import api as api

CREATED = "2026-11-27T12:00:00Z"


def put_pod(api: FakeApi, name: str, namespace: str, scheduler: str, **fields: Any) -> None:
    spec = {"schedulerName": scheduler, **fields.pop("spec", {})}
    api.put(PODS, name, namespace, spec=spec, status=fields.pop("status", {"phase": "Pending"}))
    (obj,) = [
        each
        for each in api.objects[PODS].values()
        if (each["metadata"]["namespace"], each["metadata"]["name"]) == (namespace, name)
    ]
    obj["metadata"].update({"creationTimestamp": CREATED, **fields.pop("metadata", {})})


ATTEMPTED = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}
OTHERS: dict[str, dict[str, Any]] = {
    "gated": {"spec": {"schedulingGates": [{"name": "a.b/c"}]}},
    "deleted": {"metadata": {"deletionTimestamp": CREATED, "finalizers": ["a.b/c"]}},
    "attempted": {"status": ATTEMPTED},
}


@pytest.mark.parametrize("fields", OTHERS.values(), ids=OTHERS)
async def test_pods_that_do_not_count_hide_no_others(api: FakeApi, fields: dict[str, Any]) -> None:
    api.served |= {PODS}
    for number in range(600):
        put_pod(api, f"g{number:03}", "atk", "x", **fields)
    put_pod(api, "victim", "shop", "misspelt")
    poller = Poller(60, lambda: None)
    async with ApiClient(api.credentials(), field_manager="test") as client:
        await poller.poll_pods(client)
    assert [pod.name for pod in poller.pods.values] == ["victim"]
    assert not poller.pods.unread


async def test_the_next_poll_continues_where_a_list_was_cut(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown_scheduler_names, "MOST_READ", 100)
    api.served |= {PODS}
    for number in range(150):
        put_pod(api, f"g{number:03}", "atk", "x", spec={"schedulingGates": [{"name": "a.b/c"}]})
    put_pod(api, "victim", "shop", "misspelt")
    wakes: list[int] = []
    poller = Poller(60, lambda: wakes.append(1))
    async with ApiClient(api.credentials(), field_manager="test") as client:
        await poller.poll_pods(client)
        assert (poller.pods.values, poller.pods.unread, len(wakes)) == ((), True, 1)
        await poller.poll_pods(client)
        assert [pod.name for pod in poller.pods.values] == ["victim"]
        assert not poller.pods.unread
        await poller.poll_pods(client)
        assert [pod.name for pod in poller.pods.values] == ["victim"], "it stays in the next round"


def put_binding(api: FakeApi, number: int, namespace: str, host: str) -> None:
    """An event, and the Pod that it is about."""
    name = f"p{number:04}"
    put_pod(api, name, namespace, "packed", spec={"nodeName": "a"})
    regarding = {
        "kind": "Pod",
        "name": name,
        "uid": api.objects[PODS][namespace, name]["metadata"]["uid"],
    }
    api.put(
        EVENTS_V1, f"e{number:04}", namespace, reason="Scheduled", reportingController="packed",
        reportingInstance=f"packed-{host}", regarding=regarding,
    )  # fmt: skip
    event = api.objects[EVENTS_V1][namespace, f"e{number:04}"]
    event["metadata"]["creationTimestamp"] = CREATED


async def test_forged_events_hide_no_scheduler_forever(api: FakeApi) -> None:
    api.served |= {EVENTS_V1, PODS}
    for number in range(1300):
        put_binding(api, number, "atk", f"forged-{number}")
    for namespace in ("shop", "team"):
        put_binding(api, 0, namespace, "real")
    poller = Poller(60, lambda: None)
    async with ApiClient(api.credentials(), field_manager="test") as client:
        await poller.poll_bindings(client)
        assert poller.claims.unread
        await poller.poll_bindings(client)
        await poller.poll_bindings(client)
    assert [binding.host for binding in poller.bindings] == ["real"]
    assert not poller.claims.unread


async def test_events_of_one_scheduler_do_not_hide_another(api: FakeApi) -> None:
    api.served |= {EVENTS_V1, PODS}
    for number in range(700):
        put_binding(api, number, "atk", "forged" if number < 699 else "real")
    put_binding(api, 0, "shop", "real")
    poller = Poller(60, lambda: None)
    async with ApiClient(api.credentials(), field_manager="test") as client:
        await poller.poll_bindings(client)
    assert [binding.host for binding in poller.bindings] == ["real"]
    assert unmanaged_schedulers.MOST_READ > 700


async def test_a_list_that_takes_longer_than_its_snapshot_is_read_to_its_end(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Etcd forgets a snapshot after five minutes, in which a tenant can fill all polls."""
    monkeypatch.setattr(unknown_scheduler_names, "MOST_READ", 100)
    api.served |= {PODS}
    for number in range(250):
        put_pod(api, f"g{number:03}", "atk", "x", spec={"schedulingGates": [{"name": "a.b/c"}]})
    put_pod(api, "victim", "shop", "misspelt")
    poller = Poller(60, lambda: None)
    async with ApiClient(api.credentials(), field_manager="test") as client:
        select, continued = client.select, set[str]()

        async def forgetful(*arguments: Any, **options: Any) -> Any:
            token = options["token"]
            if token and token not in continued:
                continued.add(token)
                status = {"kind": "Status", "metadata": {"continue": token}}
                raise from_response(ApiRequest("list", "/api/v1/pods"), 410, status)
            return await select(*arguments, **options)

        monkeypatch.setattr(client, "select", forgetful)
        for _ in range(3):
            await poller.poll_pods(client)
    assert [pod.name for pod in poller.pods.values] == ["victim"]
    assert not poller.pods.unread


async def test_a_token_that_is_too_old_begins_again(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown_scheduler_names, "MOST_READ", 100)
    api.served |= {PODS}
    for number in range(250):
        put_pod(api, f"g{number:03}", "atk", "x", spec={"schedulingGates": [{"name": "a.b/c"}]})
    poller = Poller(60, lambda: None)
    async with ApiClient(api.credentials(), field_manager="test") as client:
        await poller.poll_pods(client)
        select, tokens = client.select, []

        async def refusing(*arguments: Any, **options: Any) -> Any:
            tokens.append(options["token"])
            if tokens[0] and len(tokens) == 1:
                raise from_response(ApiRequest("list", "/api/v1/pods"), 410, {"kind": "Status"})
            return await select(*arguments, **options)

        monkeypatch.setattr(client, "select", refusing)
        await poller.poll_pods(client)
        assert (tokens[0] != "", tokens[1], poller.pods.unread) == (True, "", True)
        await poller.poll_pods(client)
        await poller.poll_pods(client)
    assert not poller.pods.unread


async def test_waiting_pods_are_counted_by_cause_over_several_polls(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_pods, "MOST_READ", 2)
    api.served |= {PODS}
    put_pod(api, "a", "shop", "default-scheduler")
    put_pod(api, "b", "shop", "default-scheduler", **OTHERS["gated"])
    put_pod(api, "c", "shop", "misspelt", **OTHERS["attempted"])
    put_pod(api, "d", "shop", "default-scheduler", spec={"nodeName": "there"})
    poller = Poller(60, lambda: None)
    poller.served = frozenset({"default-scheduler"})
    async with ApiClient(api.credentials(), field_manager="test") as client:
        await poller.poll_waiting(client)
        assert poller.waiting == {}, "the list was not read to its end"
        await poller.poll_waiting(client)
    counts = poller.waiting["waiting_pods"]
    assert {key: number for key, number in counts.items() if number} == {
        ("not_attempted", "default-scheduler"): 1,
        ("gated", "default-scheduler"): 1,
        ("unschedulable", ""): 1,
    }


async def test_waiting_pods_are_not_known_while_they_cannot_be_listed(api: FakeApi) -> None:
    api.served |= {PODS}
    poller = Poller(60, lambda: None)
    async with ApiClient(api.credentials(), field_manager="test") as client:
        await poller._try(WAITING, poller.poll_waiting, client)
        assert poller.waiting
        api.served -= {PODS}
        for _ in range(FAILURES):
            await poller._try(WAITING, poller.poll_waiting, client)
    assert poller.waiting == {}

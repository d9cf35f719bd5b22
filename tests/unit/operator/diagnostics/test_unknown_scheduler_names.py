"""Pods with an unknown schedulerName, and Leases of other owners."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.api import ListResult
from kube_scheduler_operator.kube.errors import ApiRequest, from_response
from kube_scheduler_operator.kube.resource import SECONDARY_SCHEDULERS
from kube_scheduler_operator.operator.diagnostics import waiting_pods
from kube_scheduler_operator.operator.diagnostics.unknown_scheduler_names import (
    SHOWN,
    condition,
    event_message,
    field_selector,
    not_attempted,
    without_scheduler,
)
from kube_scheduler_operator.operator.engine.polling import (
    NOT_ALLOWED,
    PENDING,
    REMEMBERED,
    Poller,
)
from kube_scheduler_operator.operator.engine.steps import diagnose
from kube_scheduler_operator.operator.model.snapshot import PendingPod

from .... import builders
from ....imitation.clock import BEGIN
from ..secondary.world import NAME, NAMESPACE, World, stamp


def pod(name: str = "p", scheduler: str = "unknown", **fields: Any) -> dict[str, Any]:
    metadata = {"creationTimestamp": stamp(BEGIN), **fields.pop("metadata", {})}
    status = {"phase": "Pending", **fields.pop("status", {})}
    made = {"namespace": "n", "schedulerName": scheduler, "metadata": metadata, "status": status}
    return builders.pod(name, **{**made, **fields})


def pending(scheduler: str, name: str = "p", age: float = 60.0) -> PendingPod:
    return PendingPod("n", name, f"uid-{name}", scheduler, BEGIN - timedelta(seconds=age))


def test_pods_that_no_scheduler_attempted_are_listed() -> None:
    assert not_attempted([pod()]) == (PendingPod("n", "p", "uid-p", "unknown", BEGIN),)


ATTEMPTED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


@pytest.mark.parametrize(
    "other",
    [
        pod(status=ATTEMPTED),
        pod(node="a"),
        pod(schedulingGates=[{"name": "wait"}]),
        pod(metadata={"deletionTimestamp": stamp(BEGIN)}),
    ],
    ids=["attempted", "bound", "gated", "terminating"],
)
def test_other_pending_pods_are_not_listed(other: dict[str, Any]) -> None:
    assert not_attempted([other]) == ()


@pytest.mark.parametrize(
    ("scheduler", "age", "found"),
    [("unknown", 31, True), ("unknown", 29, False), ("default-scheduler", 3600, False)],
)
def test_an_unknown_scheduler_name_is_reported_after_a_grace_period(
    scheduler: str, age: float, *, found: bool
) -> None:
    pods = without_scheduler([pending(scheduler, age=age)], {"default-scheduler"}, BEGIN)
    assert bool(pods) is found


def test_the_condition_does_not_change_with_every_pod() -> None:
    one, two = pending("x", "a"), pending("x", "b")
    assert condition([one]) == condition([one, two])
    reported = condition([pending("y"), one])
    assert (reported.type, reported.status) == (names.PODS_WITHOUT_SCHEDULER, "True")
    assert 'schedulerName "x", "y",' in reported.message
    assert condition([]).status == "False"


@pytest.mark.parametrize("text", [event_message(pending("x")), condition([pending("x")]).message])
@pytest.mark.parametrize(
    "way",
    [
        "correct the name",
        "a SchedulerProfile with spec.schedulerName (spec.scheduler is the SecondaryScheduler",
        "a SecondaryScheduler with spec.profiles[].schedulerName",
    ],
)
def test_every_way_out_is_named_with_its_fields(text: str, way: str) -> None:
    assert way in text


def test_a_profile_is_a_way_out(world: World) -> None:
    world.put()
    world.pending = (pending("dense"),)
    assert world.plan().pods_without_scheduler == (pending("dense"),)
    world.profile("new", scheduler=NAME, schedulerName="dense")
    assert world.plan().pods_without_scheduler == ()


def test_the_names_of_a_tenant_hide_no_others_in_the_message() -> None:
    flood = [replace(pending(f"a-{n:03}"), namespace="atk") for n in range(100)]
    reported = condition([*flood, replace(pending("misspelt"), namespace="shop")])
    assert '"a-000", "misspelt", "a-001"' in reported.message
    assert f"and {101 - SHOWN} more, and Pods" in reported.message


def test_what_was_not_read_is_not_known(world: World) -> None:
    found = condition([], unread="there are too many")
    assert (found.status, found.reason) == ("Unknown", "NotAllRead")
    assert "not all Pending Pods were read, because there are too many" in found.message
    assert condition([pending("x")], unread="so") == condition([pending("x")])
    world.put()
    snapshot = replace(world.snapshot(), pending_unread="so", bindings_unread="so")
    diagnosed = diagnose(snapshot, world.secondary())
    statuses = {one.type: one.status for one in diagnosed.conditions}
    assert statuses[names.PODS_WITHOUT_SCHEDULER] == "Unknown"
    assert statuses[names.UNKNOWN_SCHEDULER] == "Unknown"


def test_pods_of_a_deleted_scheduler_are_reported(world: World) -> None:
    world.put()
    world.pending = (pending(NAME),)
    assert world.plan().pods_without_scheduler == ()
    world.cluster.remove(SECONDARY_SCHEDULERS, NAME)
    assert world.plan().pods_without_scheduler == (pending(NAME),)


# --- polling --------------------------------------------------------------------------------------


class Api:
    """Answers the polls of Pods without a scheduler and of events, and finds no other Pod."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requested: list[Any] = []

    async def select(self, resource: Any, fields: Any, **selection: Any) -> Any:
        if fields is waiting_pods.FIELDS:
            return ListResult()
        self.requested.append(selection)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return ListResult(answer)


class Recorder:
    def __init__(self) -> None:
        self.reported: list[str] = []

    def event(self, severity: str, reason: str, message: str, about: Any) -> None:
        self.reported.append(f"{severity} {reason} {about.kind} {about.namespace}/{about.name}")


async def test_a_poll_lists_one_page_and_wakes_on_changes() -> None:
    wakes = []
    found = Poller(60, lambda: wakes.append(1))
    api: Any = Api([], [pod()], [], [])
    await found.poll_pods(api)
    assert wakes == []
    await found.poll_pods(api)
    assert len(wakes) == 1
    assert [one.name for one in found.pods.values] == ["p"]
    await found.poll_pods(api)
    assert len(wakes) == 2, "a deletion counts as a change"
    await found.poll_pods(api)
    assert len(wakes) == 2
    assert [
        (one["field_selector"], one["at_most"], one["kept"].most_read, one["token"])
        for one in api.requested
    ] == 4 * [(field_selector(), 500, 10_000, "")]


async def test_a_poll_omits_pods_of_known_schedulers() -> None:
    """Thousands of pods that wait for a node would fill the page, and hide the others."""
    found = Poller(60, lambda: None)
    found.served = frozenset({"default-scheduler", "batch"})
    api: Any = Api([])
    await found.poll_pods(api)
    (requested,) = api.requested
    for name in found.served:
        assert f",spec.schedulerName!={name}" in requested["field_selector"]


def test_the_selector_of_a_poll_is_bounded_and_has_no_special_characters() -> None:
    served = {"a,b", "c=d", "e f", "g&limit=1", *(f"team-{number:04}" for number in range(1000))}
    selector = field_selector(served)
    assert len(selector) < 4100
    assert "team-0000" in selector
    for odd in ("a,b", "c=d", "e f"):
        assert odd not in selector


def test_a_plan_has_the_names_that_are_served(world: World) -> None:
    world.put()
    assert world.plan().served == {"default-scheduler", NAME}


async def test_a_failed_poll_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    refused = from_response(ApiRequest("list", "/api/v1/pods"), 403, {"kind": "Status"})
    away = from_response(ApiRequest("list", "/api/v1/pods"), 503, {"kind": "Status"})
    found = Poller(0.001, lambda: None, clock=lambda: 0.0)
    end = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await found.run(Api(refused, refused, refused, refused, away, away, end))  # type: ignore[arg-type]
    output = [record.getMessage() for record in caplog.records]
    for what in ("pending Pods", "events of bindings"):
        mine = [line for line in output if line.startswith(f"Listing {what}")]
        assert len([line for line in mine if "is forbidden" in line]) == 1, "logged once"
        assert len([line for line in mine if "failed" in line]) == 1
    assert found.pods.values == ()


async def test_what_cannot_be_listed_is_not_known() -> None:
    refused = from_response(ApiRequest("list", "/api/v1/pods"), 403, {"kind": "Status"})
    away = from_response(ApiRequest("list", "/api/v1/pods"), 503, {"kind": "Status"})
    wakes: list[str] = []
    found = Poller(0.001, lambda: wakes.append(found.unread(PENDING)), clock=lambda: 0.0)
    answers = [refused, [], [], [], away, [], away, [], away, [], [], []]
    with pytest.raises(asyncio.CancelledError):
        await found.run(Api(*answers, asyncio.CancelledError()))  # type: ignore[arg-type]
    assert wakes == [NOT_ALLOWED, "", "listing them fails", ""]
    assert Poller(0, lambda: None).unread(PENDING)


async def test_polling_continues_after_an_answer_that_it_cannot_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = Poller(0.001, lambda: None, clock=lambda: 0.0)
    end = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await found.run(Api(["not a Pod"], ["not an event"], [pod()], [], end))  # type: ignore[arg-type]
    assert [one.name for one in found.pods.values] == ["p"]


async def test_a_slow_list_is_requested_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an index for events, the API server may read 100,000 of them for one page."""
    now, polls = 0.0, []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if now > 3600:
            raise asyncio.CancelledError

    class Slow(Api):
        async def select(self, resource: Any, fields: Any, **selection: Any) -> Any:
            nonlocal now
            polls.append(resource.plural)
            now += 30.0 if resource.plural == "events" else 0.1
            return ListResult()

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await Poller(60, lambda: None, clock=lambda: now).run(Slow())  # type: ignore[arg-type]
    assert polls.count("events") == 6, "every ten minutes"
    assert polls.count("pods") >= 55, "the other list does not wait"


async def test_polling_that_is_off_sends_no_request() -> None:
    api: Any = Api()
    await Poller(0, lambda: None).run(api)
    assert api.requested == []


def test_a_pod_with_an_unknown_scheduler_name_gets_one_event() -> None:
    found, recorder = Poller(60, lambda: None), Recorder()
    for _ in range(3):
        found.report(recorder, [pending("x", "a"), pending("x", "b")])  # type: ignore[arg-type]
    assert recorder.reported == [
        "Warning NoSuchScheduler Pod n/a",
        "Warning NoSuchScheduler Pod n/b",
    ]
    assert '"x"' in event_message(pending("x"))
    found.report(recorder, [pending("x", str(k)) for k in range(3 * REMEMBERED)])  # type: ignore[arg-type]
    assert len(found._reported) == REMEMBERED


# --- the Lease ------------------------------------------------------------------------------------


def hold(world: World, holder: str) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    world.leases[NAMESPACE, NAME] = {"metadata": {"name": NAME}, "spec": spec}
    world.leases_seen[NAMESPACE, NAME] = world.cluster.now


def test_another_holder_of_the_lease_is_reported(world: World) -> None:
    world.installed()
    hold(world, "other_1")
    for _ in range(3):
        world.run()
        status, reason, message = world.condition(names.DEGRADED)
        assert (status, reason) == ("True", "LeaseShared")
        assert "other_1 holds the Lease" in message
        world.cluster.now += timedelta(seconds=5)
        world.leases_seen[NAMESPACE, NAME] = world.cluster.now
    hold(world, f"{NAME}-{world.running()}-1_x")
    world.run()
    assert world.condition(names.DEGRADED)[0] == "False"


def test_a_leader_whose_pod_was_just_deleted_is_not_another_holder(world: World) -> None:
    hash_ = world.installed()
    world.no_pods()
    world.pod(hash_, 1)
    world.run()
    assert world.status()["leaseHolder"] == f"{NAME}-{hash_}-0_x"
    assert world.condition(names.DEGRADED)[0] == "False"


def test_a_holder_that_does_not_renew_is_not_reported(world: World) -> None:
    world.installed()
    hold(world, "other_1")
    world.cluster.now += timedelta(seconds=30)
    world.run()
    assert world.condition(names.DEGRADED)[0] == "False"
    assert world.condition(names.AVAILABLE)[1] == "LeaseNotRenewed"

"""Pods that ask for a scheduler that there is none of, and a Lease that is somebody else's, too."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.diagnostics.unknown_scheduler_names import (
    PATH,
    condition,
    sentence,
    unserved,
    untouched,
)
from kube_scheduler_operator.engine.polling import REMEMBERED, Looks
from kube_scheduler_operator.kube.errors import Request, from_response
from kube_scheduler_operator.model.snapshot import PendingPod

from ..secondary.world import BEGIN, NAME, NAMESPACE, World, stamp


def pod(name: str = "p", asks: str = "nobody", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}", **fields.pop("metadata", {})}
    metadata.setdefault("creationTimestamp", stamp(BEGIN))
    spec = {"schedulerName": asks, **fields.pop("spec", {})}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}, **fields}


def pending(asks: str, name: str = "p", age: float = 60.0) -> PendingPod:
    return PendingPod("n", name, f"uid-{name}", asks, BEGIN - timedelta(seconds=age))


def test_of_a_pod_a_few_words_are_kept() -> None:
    assert untouched([pod()]) == (PendingPod("n", "p", "uid-p", "nobody", BEGIN),)


TRIED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


@pytest.mark.parametrize(
    "other",
    [
        pod(status=TRIED),
        pod(spec={"nodeName": "a"}),
        pod(spec={"schedulingGates": [{"name": "wait"}]}),
        pod(metadata={"deletionTimestamp": stamp(BEGIN)}),
    ],
    ids=["a scheduler tried it", "bound", "gated", "going"],
)
def test_a_pod_that_waits_for_something_else_is_let_be(other: dict[str, Any]) -> None:
    assert untouched([other]) == ()


@pytest.mark.parametrize(
    ("asks", "age", "found"),
    [("nobody", 31, True), ("nobody", 29, False), ("default-scheduler", 3600, False)],
)
def test_who_asks_for_nobody_is_found_after_a_while(asks: str, age: float, *, found: bool) -> None:
    pods = unserved([pending(asks, age=age)], {"default-scheduler"}, BEGIN)
    assert bool(pods) is found


def test_the_condition_does_not_change_with_every_pod() -> None:
    one, two = pending("x", "a"), pending("x", "b")
    assert condition([one]) == condition([one, two])
    told = condition([pending("y"), one])
    assert (told.type, told.status) == (names.PODS_WITHOUT_SCHEDULER, "True")
    assert "none of: x, y;" in told.message
    assert condition([]).status == "False"


def test_a_scheduler_that_is_deleted_leaves_pods_that_are_told_of(world: World) -> None:
    world.put()
    world.pending = (pending(NAME),)
    assert world.plan().unserved == ()
    world.objects.clear()
    assert world.plan().unserved == (pending(NAME),)


# --- looking --------------------------------------------------------------------------------------


class Api:
    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def get_path(self, path: str) -> Any:
        self.asked.append(path)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"items": answer}


class Recorder:
    def __init__(self) -> None:
        self.told: list[str] = []

    def event(self, severity: str, reason: str, message: str, about: Any) -> None:
        self.told.append(f"{severity} {reason} {about.kind} {about.namespace}/{about.name}")


async def test_one_page_is_listed_and_news_wake() -> None:
    wakes = []
    found = Looks(60, lambda: wakes.append(1))
    api: Any = Api([], [pod()], [], [])
    await found.look_at_pods(api)
    assert wakes == []
    await found.look_at_pods(api)
    assert len(wakes) == 1
    assert [one.name for one in found.pods] == ["p"]
    await found.look_at_pods(api)
    assert len(wakes) == 2, "gone is news, too"
    await found.look_at_pods(api)
    assert len(wakes) == 2
    assert set(api.asked) == {PATH}
    assert "limit=500" in PATH


async def test_what_cannot_be_listed_is_not_known(caplog: pytest.LogCaptureFixture) -> None:
    refused = from_response(Request("list", "/api/v1/pods"), 403, {"kind": "Status"})
    away = from_response(Request("list", "/api/v1/pods"), 503, {"kind": "Status"})
    found = Looks(0.001, lambda: None)
    with pytest.raises(IndexError):
        await found.run(Api(refused, refused, refused, refused, away, away))  # type: ignore[arg-type]
    said = [record.getMessage() for record in caplog.records]
    for what in ("Pods without a scheduler", "Schedulers that nobody knows"):
        mine = [line for line in said if line.startswith(what)]
        assert len([line for line in mine if "are not looked for" in line]) == 1, "said once"
        assert len([line for line in mine if "were not looked for" in line]) == 1
    assert found.pods == ()


async def test_who_does_not_want_it_asks_for_nothing() -> None:
    api: Any = Api()
    await Looks(0, lambda: None).run(api)
    assert api.asked == []


def test_a_pod_that_asks_for_nobody_is_told() -> None:
    found, recorder = Looks(60, lambda: None), Recorder()
    for _ in range(3):
        found.tell(recorder, [pending("x", "a"), pending("x", "b")])  # type: ignore[arg-type]
    assert recorder.told == ["Warning NoSuchScheduler Pod n/a", "Warning NoSuchScheduler Pod n/b"]
    assert '"x"' in sentence(pending("x"))
    found.tell(recorder, [pending("x", str(k)) for k in range(3 * REMEMBERED)])  # type: ignore[arg-type]
    assert len(found._told) == REMEMBERED


# --- the Lease ------------------------------------------------------------------------------------


def hold(world: World, holder: str) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    world.leases[NAMESPACE, NAME] = {"metadata": {"name": NAME}, "spec": spec}
    world.leases_seen[NAMESPACE, NAME] = world.now


def test_somebody_else_who_holds_the_lease_is_named(world: World) -> None:
    world.installed()
    hold(world, "stranger_1")
    for _ in range(3):
        world.run()
        status, reason, message = world.condition(names.DEGRADED)
        assert (status, reason) == ("True", "LeaseShared")
        assert "stranger_1 holds the Lease" in message
        world.now += timedelta(seconds=5)
        world.leases_seen[NAMESPACE, NAME] = world.now
    hold(world, f"{NAME}-{world.running()}-1_x")
    world.run()
    assert world.condition(names.DEGRADED)[0] == "False"


def test_a_leader_whose_pod_has_just_gone_is_no_stranger(world: World) -> None:
    hash_ = world.installed()
    world.no_pods()
    world.pod(hash_, 1)
    world.run()
    assert world.status()["leaseHolder"] == f"{NAME}-{hash_}-0_x"
    assert world.condition(names.DEGRADED)[0] == "False"


def test_a_stranger_who_does_not_renew_is_gone(world: World) -> None:
    world.installed()
    hold(world, "stranger_1")
    world.now += timedelta(seconds=30)
    world.run()
    assert world.condition(names.DEGRADED)[0] == "False"
    assert world.condition(names.AVAILABLE)[1] == "LeaseNotRenewed"

"""Schedulers that nobody told the operator about, for names that are served."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.diagnostics.unmanaged_schedulers import PATH, RECENT, binders
from kube_scheduler_operator.engine.polling import Looks
from kube_scheduler_operator.model.snapshot import Binder

from ..secondary.world import BEGIN, NAME, World

MAIN = "default-scheduler"


def event(name: str, host: str, ago: float = 0.0, **fields: Any) -> dict[str, Any]:
    """As a real kube-scheduler leaves it with each binding."""
    at = (BEGIN - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "reason": "Scheduled",
        "reportingController": name,
        "reportingInstance": f"{name}-{host}",
        "eventTime": at,
        **fields,
    }


def said(world: World) -> tuple[str, str]:
    """The condition's status and message."""
    found = {one.type: one for one in world.secondary().conditions}[names.UNKNOWN_SCHEDULER]
    return found.status, found.message


@pytest.fixture
def world() -> World:
    """A control-plane node, and a further scheduler."""
    world = World()
    labels = {"kubernetes.io/hostname": "a-host"}
    world.nodes = {"a": {"metadata": {"name": "a", "labels": labels}}}
    world.put()
    return world


def test_of_events_who_binds_is_kept_and_when_it_last_did() -> None:
    found = binders([event(MAIN, "a", 9), event(MAIN, "b"), event(MAIN, "a", 3), event("x", "a")])
    assert found == (
        Binder(MAIN, "a", BEGIN - timedelta(seconds=3)),
        Binder(MAIN, "b", BEGIN),
        Binder("x", "a", BEGIN),
    )


@pytest.mark.parametrize(
    "other",
    [
        {},
        event("", "a"),
        event(MAIN, "a", eventTime=None),
        event(MAIN, "a", eventTime="yesterday"),
        event(MAIN, "a", reportingInstance=""),
        event(MAIN, "a", reportingInstance=None, reportingController=None),
    ],
)
def test_events_of_another_form_are_passed_over(other: dict[str, Any]) -> None:
    assert binders([other]) == ()


@pytest.mark.parametrize(
    ("name", "host"),
    [
        (MAIN, "a"),
        (MAIN, "A.example.com"),
        (MAIN, "a-host"),
        (NAME, f"{NAME}-7d9c5b6f4-x2x4z"),
        ("nobodys", "stranger"),
    ],
)
def test_who_is_known_or_serves_a_name_of_its_own_is_let_be(
    world: World, name: str, host: str
) -> None:
    world.binders = (Binder(name, host, BEGIN),)
    assert said(world) == ("False", "")


def test_who_binds_for_a_name_that_is_served_is_named(world: World) -> None:
    world.binders = (Binder(MAIN, "mine-7d9-x", BEGIN), Binder(NAME, "a-pod", BEGIN))
    status, message = said(world)
    assert status == "True"
    assert f'a-pod serves "{NAME}"' in message
    assert f'mine-7d9-x serves "{MAIN}"' in message
    assert "another schedulerName" in message
    world.binders = tuple(Binder(MAIN, f"p-{k}", BEGIN) for k in range(9))
    assert "and 4 more" in said(world)[1]


def test_who_has_stopped_is_forgotten_and_so_is_who_was_on_a_node_that_left(world: World) -> None:
    world.binders = (Binder(MAIN, "b", BEGIN),)
    world.now = BEGIN + timedelta(seconds=RECENT - 1)
    assert said(world)[0] == "True"
    world.node_left = BEGIN + timedelta(seconds=1)
    assert said(world)[0] == "False"
    world.node_left = BEGIN - timedelta(seconds=1)
    assert said(world)[0] == "True", "it binds although its node has left"
    world.now = BEGIN + timedelta(seconds=RECENT)
    assert said(world)[0] == "False"


def test_without_a_node_nothing_is_said_of_the_control_planes_names(world: World) -> None:
    world.nodes = {}
    world.binders = (Binder(MAIN, "b", BEGIN),)
    assert said(world)[0] == "False"
    world.binders = (Binder(NAME, "b", BEGIN),)
    assert said(world)[0] == "True"


def test_on_openshift_a_bootstrap_machine_binds_first(world: World) -> None:
    world.platform = replace(OPENSHIFT, target_namespace=world.platform.target_namespace)
    world.binders = (Binder(MAIN, "bootstrap", BEGIN),)
    assert said(world)[0] == "False"


async def test_another_one_is_news_and_another_binding_is_none() -> None:
    answers = [[event(MAIN, "a", 9)], [event(MAIN, "a", 3)], [event(MAIN, "b")]]
    asked: list[str] = []

    class Api:
        async def get_path(self, path: str) -> dict[str, Any]:
            asked.append(path)
            return {"items": answers.pop(0)}

    wakes: list[int] = []
    looks = Looks(60, lambda: wakes.append(1))
    api: Any = Api()
    for expected in (1, 1, 2):
        await looks.look_at_binders(api)
        assert len(wakes) == expected
    assert [each.host for each in looks.binders] == ["b"]
    assert set(asked) == {PATH}
    assert "limit=500" in PATH

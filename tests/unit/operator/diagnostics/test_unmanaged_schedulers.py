"""Unmanaged schedulers that bind Pods of a served schedulerName."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.kube.api import ListResult
from kube_scheduler_operator.operator.diagnostics.unmanaged_schedulers import (
    AT_MOST,
    FIELD_SELECTOR,
    RECENT,
    Changes,
    binding_schedulers,
    condition,
    unmanaged,
)
from kube_scheduler_operator.operator.engine.polling import Poller
from kube_scheduler_operator.operator.model.snapshot import BindingScheduler

from ....imitation.clock import BEGIN
from ..secondary.world import NAME, World

MAIN = "default-scheduler"


def event(name: str, host: str, ago: float = 0.0, **fields: Any) -> dict[str, Any]:
    """The event that kube-scheduler creates for each binding."""
    at = (BEGIN - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "reason": "Scheduled",
        "reportingController": name,
        "reportingInstance": f"{name}-{host}",
        "metadata": {"creationTimestamp": at},
        "eventTime": "2020-01-01T00:00:00Z",  # by the clock of the scheduler's machine
        **fields,
    }


def reported(world: World) -> tuple[str, str]:
    """The condition's status and message."""
    found = condition(unmanaged(world.snapshot(), world.secondary().served))
    return found.status, found.message


@pytest.fixture
def world() -> World:
    """A control-plane node, and a secondary scheduler."""
    world = World()
    labels = {"kubernetes.io/hostname": "a-host"}
    world.nodes = {"a": {"metadata": {"name": "a", "labels": labels}}}
    world.put()
    return world


def test_binding_schedulers_are_read_from_events_with_their_last_binding() -> None:
    found = binding_schedulers(
        [event(MAIN, "a", 9), event(MAIN, "b"), event(MAIN, "a", 3), event("x", "a")]
    )
    assert found == (
        BindingScheduler(MAIN, "a", BEGIN - timedelta(seconds=3)),
        BindingScheduler(MAIN, "b", BEGIN),
        BindingScheduler("x", "a", BEGIN),
    )


@pytest.mark.parametrize(
    "other",
    [
        {},
        event("", "a"),
        event(MAIN, "a", metadata=None),
        event(MAIN, "a", metadata={"creationTimestamp": "yesterday"}),
        event(MAIN, "a", reportingInstance=""),
        event(MAIN, "a", reportingInstance=None, reportingController=None),
    ],
)
def test_other_events_are_ignored(other: dict[str, Any]) -> None:
    assert binding_schedulers([other]) == ()


@pytest.mark.parametrize(
    ("name", "host"),
    [
        (MAIN, "a"),
        (MAIN, "A.example.com"),
        (MAIN, "a-host"),
        (NAME, f"{NAME}-7d9c5b6f4-x2x4z"),
        ("other-scheduler", "other"),
    ],
)
def test_managed_schedulers_and_unshared_names_are_not_reported(
    world: World, name: str, host: str
) -> None:
    world.binders = (BindingScheduler(name, host, BEGIN),)
    assert reported(world) == ("False", "")


def test_an_unmanaged_scheduler_of_a_served_name_is_reported(world: World) -> None:
    world.binders = (
        BindingScheduler(MAIN, "mine-7d9-x", BEGIN),
        BindingScheduler(NAME, "a-pod", BEGIN),
    )
    status, message = reported(world)
    assert status == "True"
    assert f'for schedulerName "{MAIN}", "{NAME}";' in message
    assert "another schedulerName" in message


def test_an_event_is_a_claim_and_what_it_names_is_not_repeated(world: World) -> None:
    """Who may create events writes any text in them, and a pod may have any name."""
    forged = "your-cluster-is-compromised-call-555"
    world.binders = binding_schedulers([event(NAME, forged)])
    status, message = reported(world)
    assert status == "True"
    assert message.startswith("events report that ")
    assert "another client may have written them" in message
    assert "compromised" not in message


def test_of_many_names_some_are_shown() -> None:
    found = [BindingScheduler(f"s-{number}", "a", BEGIN) for number in range(9)]
    assert '"s-4" and 4 more;' in condition(found).message


def test_events_of_one_scheduler_count_once() -> None:
    keep = Changes()
    ages = (9, 3, 5, 3)
    assert [keep(event(MAIN, "a", ago)) for ago in ages] == [True, True, False, False]
    assert keep(event(MAIN, "b", 9))
    assert not keep({})


def test_a_stopped_scheduler_and_one_of_a_removed_node_are_not_reported(world: World) -> None:
    world.binders = (BindingScheduler(MAIN, "b", BEGIN),)
    world.cluster.now = BEGIN + timedelta(seconds=RECENT - 1)
    assert reported(world)[0] == "True"
    world.node_left = BEGIN + timedelta(seconds=1)
    assert reported(world)[0] == "False"
    world.node_left = BEGIN - timedelta(seconds=1)
    assert reported(world)[0] == "True", "it bound after the node left"
    world.cluster.now = BEGIN + timedelta(seconds=RECENT)
    assert reported(world)[0] == "False"


def test_without_nodes_names_of_the_control_plane_are_not_checked(world: World) -> None:
    world.nodes = {}
    world.binders = (BindingScheduler(MAIN, "b", BEGIN),)
    assert reported(world)[0] == "False"
    world.binders = (BindingScheduler(NAME, "b", BEGIN),)
    assert reported(world)[0] == "True"


def test_the_bootstrap_machine_of_openshift_is_not_reported(world: World) -> None:
    world.platform = replace(OPENSHIFT, target_namespace=world.platform.target_namespace)
    world.binders = (BindingScheduler(MAIN, "bootstrap", BEGIN),)
    assert reported(world)[0] == "False"


async def test_a_new_scheduler_wakes_and_a_new_binding_does_not() -> None:
    answers = [[event(MAIN, "a", 9)], [event(MAIN, "a", 3)], [event(MAIN, "b")]]
    requested: list[Any] = []

    class Api:
        async def select(self, resource: Any, fields: Any, **selection: Any) -> Any:
            requested.append(selection)
            return ListResult(answers.pop(0))

    wakes: list[int] = []
    poller = Poller(60, lambda: wakes.append(1))
    api: Any = Api()
    for expected in (1, 1, 2):
        await poller.poll_bindings(api)
        assert len(wakes) == expected
    assert [each.host for each in poller.bindings.values] == ["b"]
    assert [(one["field_selector"], one["at_most"]) for one in requested] == 3 * [
        (FIELD_SELECTOR, AT_MOST)
    ]

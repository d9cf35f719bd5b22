"""Unmanaged schedulers that bind Pods of a served schedulerName, by Pods that they bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.kube.api import ListResult
from kube_scheduler_operator.operator.diagnostics.unmanaged_schedulers import (
    AT_MOST,
    FIELD_SELECTOR,
    LOOK_UPS,
    RECENT,
    BindingClaim,
    Changes,
    binding_schedulers,
    claims,
    condition,
    to_look_up,
    unmanaged,
)
from kube_scheduler_operator.operator.engine.polling import Poller
from kube_scheduler_operator.operator.model.snapshot import BindingScheduler

from ....imitation.clock import BEGIN
from ..secondary.world import NAME, World

MAIN = "default-scheduler"


def event(
    name: str, host: str, ago: float = 0.0, namespace: str = "shop", **fields: Any
) -> dict[str, Any]:
    """The event that kube-scheduler creates for each binding."""
    at = (BEGIN - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "reason": "Scheduled",
        "reportingController": name,
        "reportingInstance": f"{name}-{host}",
        "metadata": {"namespace": namespace, "creationTimestamp": at},
        "eventTime": "2020-01-01T00:00:00Z",  # by the clock of the scheduler's machine
        "regarding": {"kind": "Pod", "name": f"pod-of-{host}", "uid": f"{namespace}-{host}"},
        **fields,
    }


def bound_pod(claim: BindingClaim, **spec: Any) -> dict[str, Any]:
    """The pod that a claim is about, as its scheduler bound it."""
    return {
        "metadata": {"name": claim.pod, "namespace": claim.namespace, "uid": claim.uid},
        "spec": {"nodeName": "a", "schedulerName": claim.scheduler, **spec},
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


def test_claims_are_read_from_events_with_their_last_binding() -> None:
    read = claims(
        [event(MAIN, "a", 9), event(MAIN, "b"), event(MAIN, "a", 3), event(MAIN, "a", 5, "x")]
    )
    assert [(claim.key, claim.at) for claim in read] == [
        ((MAIN, "a", "shop"), BEGIN - timedelta(seconds=3)),
        ((MAIN, "a", "x"), BEGIN - timedelta(seconds=5)),
        ((MAIN, "b", "shop"), BEGIN),
    ]


def test_a_process_counts_by_bound_pods_of_several_namespaces() -> None:
    known = claims([event(MAIN, "a", 9), event(MAIN, "a", 3, "team"), event(MAIN, "b")])
    keys = [claim.key for claim in known]
    assert binding_schedulers(known, keys) == (
        BindingScheduler(MAIN, "a", BEGIN - timedelta(seconds=3)),
    )
    for key in keys:
        assert binding_schedulers(known, {key}) == (), "one namespace may be a tenant's"


def test_what_a_tenant_claims_in_its_namespace_is_not_even_looked_up() -> None:
    forged = [event(MAIN, f"forged-{number}", namespace="atk") for number in range(400)]
    real = [event(MAIN, "real", 9, namespace) for namespace in ("shop", "team", "web")]
    known = claims([*forged, *real])
    assert [claim.key[1:] for claim in to_look_up(known, ())] == [
        ("real", "shop"),
        ("real", "team"),
    ]
    proven = {(MAIN, "real", "shop"), (MAIN, "real", "web")}
    assert list(to_look_up(known, proven)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"name": "pod-of-a", "namespace": "shop", "uid": "another"}},
        {"spec": {"schedulerName": MAIN}},
        {"spec": {"schedulerName": "another", "nodeName": "a"}},
        {"spec": None, "metadata": None},
    ],
)
def test_a_claim_about_another_pod_or_one_that_is_not_bound_proves_nothing(
    changes: dict[str, Any],
) -> None:
    (claim,) = claims([event(MAIN, "a")])
    assert claim.is_about(bound_pod(claim))
    assert not claim.is_about({**bound_pod(claim), **changes})


@pytest.mark.parametrize(
    "other",
    [
        {},
        event("", "a"),
        event(MAIN, "a", metadata=None),
        event(MAIN, "a", regarding=None),
        event(MAIN, "a", regarding={"kind": "Node", "name": "a", "uid": "u"}),
        event(MAIN, "a", regarding={"kind": "Pod", "name": "a,metadata.name=b", "uid": "u"}),
        event(MAIN, "a", metadata={"creationTimestamp": "yesterday"}),
        event(MAIN, "a", reportingInstance=""),
        event(MAIN, "a", reportingInstance=None, reportingController=None),
    ],
)
def test_other_events_are_ignored(other: dict[str, Any]) -> None:
    assert claims([other]) == ()


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


def test_what_an_event_names_is_not_repeated(world: World) -> None:
    """The author of an event writes any host into it, and a pod may have any name."""
    world.binders = (BindingScheduler(NAME, "your-cluster-is-compromised-call-555", BEGIN),)
    status, message = reported(world)
    assert status == "True"
    assert "compromised" not in message


def test_of_many_names_some_are_shown() -> None:
    found = [BindingScheduler(f"s-{number}", "a", BEGIN) for number in range(9)]
    assert '"s-4" and 4 more;' in condition(found).message


def test_events_of_one_scheduler_count_once() -> None:
    keep = Changes()
    ages = (9, 3, 5, 3)
    assert [keep(event(MAIN, "a", ago)) for ago in ages] == [True, True, False, False]
    assert keep(event(MAIN, "b", 9))
    assert keep(event(MAIN, "a", 9, "another-namespace"))
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


class Api:
    """Answers polls in turn, and has the Pods of all claims except those of `unbound`."""

    def __init__(self, *answers: list[dict[str, Any]], unbound: str = "") -> None:
        self.answers = list(answers)
        self.pods = {
            (claim.namespace, f"metadata.name={claim.pod}"): bound_pod(claim)
            for answer in answers
            for claim in claims(answer)
            if claim.namespace != unbound
        }
        self.selected: list[Any] = []
        self.looked_up: list[str] = []

    async def select(self, resource: Any, fields: Any, **selection: Any) -> Any:
        self.selected.append(selection)
        return ListResult(self.answers.pop(0))

    async def list(self, resource: Any, namespace: str, *, field_selector: str) -> Any:
        self.looked_up.append(namespace)
        pod = self.pods.get((namespace, field_selector))
        return ListResult([pod] if pod else [])


def in_two(host: str, ago: float = 0.0) -> Iterator[dict[str, Any]]:
    for namespace in ("shop", "team"):
        yield event(MAIN, host, ago, namespace)


async def test_a_new_scheduler_wakes_and_a_new_binding_does_not() -> None:
    wakes: list[int] = []
    poller = Poller(60, lambda: wakes.append(1))
    api: Any = Api([*in_two("a", 9)], [*in_two("a", 3)], [*in_two("b")])
    for expected in (1, 1, 2):
        await poller.poll_bindings(api)
        assert len(wakes) == expected
    assert [binding.host for binding in poller.bindings] == ["b"]
    assert [(one["field_selector"], one["at_most"]) for one in api.selected] == 3 * [
        (FIELD_SELECTOR, AT_MOST)
    ]
    assert len(api.looked_up) == 4, "once for each process and namespace"


@pytest.mark.parametrize("namespaces", [("atk",), ("atk", "shop")])
async def test_no_event_of_a_tenant_reports_a_scheduler(namespaces: tuple[str, ...]) -> None:
    """Its own bound Pods prove nothing, nor do events about Pods that do not exist."""
    wakes: list[int] = []
    poller = Poller(60, lambda: wakes.append(1))
    forged = [event(MAIN, "forged", namespace=namespace) for namespace in namespaces]
    api: Any = Api(forged, unbound="shop")
    await poller.poll_bindings(api)
    assert (poller.bindings, wakes) == ((), [])
    assert api.looked_up == (["atk", "shop"] if "shop" in namespaces else [])


async def test_a_poll_looks_up_a_limited_number_of_pods() -> None:
    answer = [one for number in range(30) for one in in_two(f"h-{number}", number)]
    api: Any = Api(answer, [], [])
    poller = Poller(60, lambda: None)
    await poller.poll_bindings(api)
    assert len(api.looked_up) == LOOK_UPS
    assert len(poller.bindings) == LOOK_UPS / 2

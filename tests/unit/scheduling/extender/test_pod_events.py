"""Events on rejected Pods, and their rate limits."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.kube.events import Involved
from kube_scheduler_operator.scheduling.extender.pod_events import (
    BURST,
    PAUSE,
    REASON,
    PodEventRecorder,
    message,
)
from kube_scheduler_operator.scheduling.extender.wire import Args, ArgsReader
from kube_scheduler_operator.scheduling.policies.policy import Rejections

from .conftest import POD, names_body


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, Involved]] = []

    def event(self, severity: str, reason: str, message: str, involved: Involved) -> None:
        self.events.append((severity, reason, message, involved))


class World:
    def __init__(self) -> None:
        self.now = 0.0
        self.recorder = Recorder()
        recorder: Any = self.recorder
        self.teller = PodEventRecorder(recorder, lambda: self.now)

    def rejected(self, args: Args, agent: str = "x") -> None:
        self.teller.rejected(agent, args, Rejections(dict.fromkeys(range(len(args.names)), "hot")))

    @property
    def count(self) -> int:
        return len(self.recorder.events)


def args_of(name: str, uid: str = "u") -> Args:
    pod = {"metadata": {"name": name, "namespace": "shop", "uid": uid}}
    return ArgsReader().read(names_body("a", "b", pod=pod))


def test_an_event_refers_to_the_pod() -> None:
    world = World()
    world.rejected(ArgsReader().read(names_body("a", "b", pod=POD)))
    ((severity, reason, text, involved),) = world.recorder.events
    assert (severity, reason) == ("Warning", REASON)
    assert text == "extender x rejected all 2 candidate nodes: 2 hot"
    assert involved == Involved("v1", "Pod", "web", "shop", "u-1")


def test_events_of_a_pod_are_rate_limited() -> None:
    world = World()
    for world.now in (0.0, 1.0, PAUSE - 1, PAUSE + 1, PAUSE + 2):
        world.rejected(args_of("p"))
    assert world.count == 2
    world.rejected(args_of("p", uid="another"))
    world.rejected(args_of("p"), agent="y")
    assert world.count == 4


def test_events_of_all_pods_are_rate_limited() -> None:
    world = World()
    for number in range(1000):
        world.rejected(args_of(f"p{number}"))
    assert world.count == BURST == world.teller.sent
    assert world.teller.withheld == 1000 - BURST
    world.now = 5.0
    for number in range(1000):
        world.rejected(args_of(f"q{number}"))
    assert world.count == BURST + 5


def test_a_pod_without_a_name_has_no_events() -> None:
    world = World()
    world.rejected(ArgsReader().read(names_body("a", pod={})))
    world.rejected(ArgsReader().read(names_body(pod=POD)))
    assert world.count == 0


def test_the_most_frequent_reasons_come_first() -> None:
    reasons = ["hot"] * 5 + ["full"] * 3 + ["old"] * 2 + ["a", "b"]
    assert message("x", Rejections(dict(enumerate(reasons)))) == (
        "extender x rejected all 12 candidate nodes: 5 hot; 3 full; 2 old; "
        "2 for other reasons (kubectl scheduler why)"
    )
    assert "rejected the only candidate node" in message("x", Rejections({0: "hot"}))

"""Ready, Reconciling and Stalled in a cluster that lives: what tools for GitOps wait for."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import OPERATOR_SETTINGS, SCHEDULER_PROFILES, ObjectRef

from ..expect import condition_of
from ..imitation.apiserver import Change
from .scheduler import REFUSAL, Behavior
from .world import World

pytestmark = pytest.mark.presubmit_first

GOOD = {"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}}
BETTER = {"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 8}]}}}
BAD = {"plugins": {"score": {"enabled": [{"name": "ImageLocalty"}]}}}
REFUSED = 41
TYPES = (names.READY, names.RECONCILING, names.STALLED)


class Watcher:
    """What a client sees of the SchedulerProfiles and OperatorSettings.

    Attributes:
        seen: the states that each object went through, by name.
        writes: how often the operator wrote each status, by name.
    """

    def __init__(self, world: World) -> None:
        self.seen: dict[str, list[str]] = {}
        self.writes: dict[str, int] = {}
        self._world = world
        world.server.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        obj = change.new
        if change.ref.resource not in (SCHEDULER_PROFILES, OPERATOR_SETTINGS) or not obj:
            return
        name = change.ref.name
        status = obj.get("status") or {}
        if change.actor != "user":
            self.writes[name] = self.writes.get(name, 0) + 1
        if status.get("observedGeneration") != obj["metadata"]["generation"]:
            return
        true = [type_ for type_ in TYPES if condition_of(obj, type_)[0] == "True"]
        assert len(true) == 1, f"{name}: {true}"
        states = self.seen.setdefault(name, [])
        if states[-1:] != true:
            states += true
        if true == [names.READY]:
            self._schedules(name, obj["spec"])

    def _schedules(self, name: str, spec: dict[str, Any]) -> None:
        """Every node runs a revision with this spec."""
        if name == names.CLUSTER:
            return
        for number in self._world.current().values():
            assert self._world.revision(number).status["data"]["inputs"].find(name) > 0
            weight = str(spec["plugins"]["score"]["enabled"][0]["weight"])
            assert f'"weight":{weight}' in self._world.config(number)


def settled(nodes: int = 3, *profiles: str) -> World:
    world = World(nodes=nodes, script={REFUSED: Behavior(refused=REFUSAL)})
    world.settle(90)
    for name in profiles:
        world.offer(name, **GOOD)
    world.run(2.0)
    world.settle(200)
    return world


def of(world: World, name: str, type_: str = names.READY) -> tuple[str, str, str]:
    return condition_of(world.server.get(ObjectRef(SCHEDULER_PROFILES, None, name)), type_)


@pytest.mark.parametrize("nodes", [3, 1])  # the first one is in presubmit, and finds more
def test_an_edit_is_ready_once_every_node_has_it_and_no_other_object_changes(nodes: int) -> None:
    world = settled(nodes, "a")
    world.server.put("user", OPERATOR_SETTINGS, names.CLUSTER, {"pods": {}})
    world.run(2.0)
    world.settle(100)
    watcher = Watcher(world)
    world.offer("b", **BETTER)
    world.run(2.0)
    world.settle(200)
    assert watcher.seen == {"b": [names.RECONCILING, names.READY]}
    assert watcher.writes == {"b": 2}
    world.tune(10)
    world.run(2.0)
    world.settle(200)
    assert watcher.writes == {"b": 2}, "the edit of another object concerns no profile"


def test_settings_are_ready_once_every_node_has_them() -> None:
    world = settled(3, "a")
    watcher = Watcher(world)
    spec: dict[str, Any] = {"pods": {"resources": {"requests": {"cpu": "200m"}}}}
    world.server.put("user", OPERATOR_SETTINGS, names.CLUSTER, spec)
    world.run(2.0)
    world.settle(200)
    assert watcher.seen == {names.CLUSTER: [names.RECONCILING, names.READY]}
    spec["placementCheck"] = {"mode": "Warn"}
    world.server.put("user", OPERATOR_SETTINGS, names.CLUSTER, spec)
    world.run(10.0)
    assert watcher.seen[names.CLUSTER][-1] == names.READY
    assert names.STALLED not in watcher.seen[names.CLUSTER]


def test_a_refused_edit_is_stalled_with_its_field_until_it_is_mended() -> None:
    world = settled(3, "a")
    watcher = Watcher(world)
    world.offer("a", **BAD)
    world.run(5.0)
    status, reason, message = of(world, "a", names.STALLED)
    assert (status, reason) == ("True", "LastAcceptedInUse")
    assert "spec.plugins.score.enabled[0].name: " in message
    assert of(world, "a") == ("False", reason, message)
    world.offer("a", **BETTER)
    world.run(2.0)
    world.settle(200)
    assert watcher.seen["a"] == [names.STALLED, names.RECONCILING, names.READY]


def test_what_kube_scheduler_refuses_is_stalled_and_what_runs_stays_ready() -> None:
    world = settled(3, "a")
    watcher = Watcher(world)
    world.offer("b", **BETTER)
    world.tune(REFUSED)
    world.run(60.0)
    assert of(world, "b", names.STALLED)[:2] == ("True", "RevisionRefused")
    assert "a" not in watcher.seen, "it runs in the revision before"
    world.tune(None)
    world.run(2.0)
    world.settle(200)
    assert of(world, "b")[0] == "True"
    assert "a" not in watcher.seen


def test_without_a_scheduler_nothing_is_ready() -> None:
    world = settled(1, "a")
    watcher = Watcher(world)
    (machine,) = world.machines.values()
    machine.process = None
    world.run(40.0)
    assert watcher.seen == {"a": [names.RECONCILING]}
    assert of(world, "a")[1] == "LeaseNotRenewed"


def test_an_upgrade_writes_each_status_once_and_makes_no_revision() -> None:
    """The operator of before has written every condition but these three."""
    world = settled(3, "a", "b")
    world.offer("b", **BAD)
    world.server.put("user", OPERATOR_SETTINGS, names.CLUSTER, {"pods": {}})
    world.run(5.0)
    world.settle(100)
    world.operator.kill()
    before = world.revisions[-1].number
    for resource, name in (
        (SCHEDULER_PROFILES, "a"),
        (SCHEDULER_PROFILES, "b"),
        (OPERATOR_SETTINGS, names.CLUSTER),
    ):
        world.server.edit("user", resource, name, _as_before, subresource="status")
    watcher = Watcher(world)
    world.operator.start()
    world.run(60.0)
    assert watcher.writes == {"a": 1, "b": 1, names.CLUSTER: 1}
    assert watcher.seen == {
        "a": [names.READY], "b": [names.STALLED], names.CLUSTER: [names.READY],
    }  # fmt: skip
    assert world.revisions[-1].number == before


def _as_before(obj: dict[str, Any]) -> None:
    conditions = obj["status"]["conditions"]
    obj["status"]["conditions"] = [c for c in conditions if c["type"] not in TYPES]

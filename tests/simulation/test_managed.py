"""A cluster whose control plane's scheduler is the provider's, with kills and upgrades."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import MANAGED
from kube_scheduler_operator.base.recognition import PlatformDecision, Recognition
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    KUBE_SCHEDULERS,
    PODS,
    SECONDARY_SCHEDULERS,
)

from ..expect import condition_of, has_conditions
from .secondary import BAD, PlayedSecondaries
from .world import World

pytestmark = pytest.mark.presubmit_first

NAME = "managed-scheduler"
EKS = PlatformDecision(Recognition(MANAGED, "EKS", "so it is"), remember=True)
OLD, NEW = (f"registry.k8s.io/kube-scheduler:v1.{minor}" for minor in ("35.4", "36.1"))


class ManagedWorld:
    """A cluster of EKS.

    Attributes:
        world: the cluster.
        played: its SecondarySchedulers.
    """

    def __init__(self, seed: int = 1) -> None:
        self.world = World(nodes=0, seed=seed, secondary=True, platform=MANAGED, start=False)
        self.played = PlayedSecondaries(self.world)
        self.world.operator.decision = EKS
        self.world.operator.server_version = "v1.35.4-eks-1"
        definition = self.world.server.put(
            "user", CUSTOM_RESOURCE_DEFINITIONS, SECONDARY_SCHEDULERS.name, {}
        )
        self.world.operator.secondary_kind_uid = definition["metadata"]["uid"]

    def begin(self) -> None:
        self.world.operator.start()
        self.world.run_until(lambda: self.exists, 60, "made")
        self.played.renew(NAME)
        self.settle()

    @property
    def exists(self) -> bool:
        return self.world.server.find(SECONDARY_SCHEDULERS, NAME) is not None

    @property
    def images(self) -> set[str]:
        pods = self.world.server.list(PODS, MANAGED.target_namespace)
        return {pod["spec"]["containers"][0]["image"] for pod in pods}

    @property
    def owners(self) -> list[str]:
        obj = self.world.server.get(SECONDARY_SCHEDULERS.named(NAME))
        return [owner["kind"] for owner in obj["metadata"].get("ownerReferences") or ()]

    @property
    def uid(self) -> str:
        """Of the object, which another one of its name does not have."""
        return str(self.world.server.get(SECONDARY_SCHEDULERS.named(NAME))["metadata"]["uid"])

    def settle(self) -> None:
        self.world.run_until(lambda: self.settled, 300, "settled")
        self.world.run(60)

    @property
    def settled(self) -> bool:
        found = self.world.server.find(CLUSTER_OPERATORS, "kube-scheduler") or {}
        return (
            has_conditions(found, Available="True", Progressing="False")
            and f"{NAME} (profile" in condition_of(found, "Available")[2]
        )

    def override(self, **overrides: object) -> None:
        self.world.server.edit(
            "user",
            KUBE_SCHEDULERS,
            "cluster",
            lambda obj: obj["spec"].update(unsupportedConfigOverrides=overrides),
        )


def test_an_hour_without_a_change_is_an_hour_without_a_write() -> None:
    found = ManagedWorld()
    found.begin()
    world = found.world
    assert found.images == {OLD}
    assert world.condition(names.SECONDARY_DEGRADED) == "False"
    writes, events = world.operator.connection.writes, len(world.operator.recorder.events)
    world.run(3600)
    assert world.operator.connection.writes == writes
    assert len(world.operator.recorder.events) == events


def test_a_restart_writes_nothing() -> None:
    found = ManagedWorld()
    found.begin()
    writes = found.world.operator.connection.writes
    for _ in range(3):
        found.world.operator.kill()
        found.world.run(7)
        found.world.operator.start()
        found.world.run(60)
    assert found.world.operator.connection.writes == writes


@pytest.mark.parametrize("number", range(1, 22))
def test_a_kill_at_any_write_ends_in_the_same_state(number: int) -> None:
    found = ManagedWorld(seed=number)
    operator = found.world.operator
    operator.connection.kill_at = number
    operator.start()
    found.world.run(30)
    operator.connection.kill_at = None
    if not operator.alive:
        operator.start()
    found.world.run_until(lambda: found.exists, 60, "made")
    found.played.renew(NAME)
    found.settle()
    assert found.images == {OLD}
    record = found.world.server.find(CONFIG_MAPS, "platform", MANAGED.target_namespace)
    assert record is not None
    assert record["data"]["provider"] == "EKS"


BOTH = ["KubeScheduler", "CustomResourceDefinition"]


@pytest.mark.parametrize("alive", [True, False], ids=["running", "stopped"])
def test_a_deleted_kubescheduler_stops_no_scheduler(alive: bool) -> None:
    """An accident, or a tool that prunes: the object and its Pods stay, until it is back."""
    found = ManagedWorld()
    found.begin()
    world, uid = found.world, found.uid
    assert found.owners == BOTH
    pods = {one["metadata"]["uid"] for one in world.server.list(PODS, MANAGED.target_namespace)}
    if not alive:
        world.operator.kill()
    world.server.delete("user", KUBE_SCHEDULERS.named("cluster"))
    world.run(300)
    assert (found.uid, found.owners) == (uid, ["CustomResourceDefinition"])
    if not alive:
        world.operator.start()
    world.server.put("user", KUBE_SCHEDULERS, "cluster", {})
    world.run(120)
    assert (found.uid, found.owners) == (uid, BOTH)
    after = {one["metadata"]["uid"] for one in world.server.list(PODS, MANAGED.target_namespace)}
    assert after == pods, "no Pod was replaced"
    assert found.settled


def test_owners_that_an_upgrade_adds_restart_nothing() -> None:
    """An operator without the right to read the definition behaves as one of before."""
    found = ManagedWorld()
    operator, known = found.world.operator, found.world.operator.secondary_kind_uid
    operator.secondary_kind_uid = ""
    found.begin()
    assert found.owners == []
    pods = found.world.server.list(PODS, MANAGED.target_namespace)
    writes = operator.connection.writes
    for seen in (known, "", known):  # there, back, and there again
        operator.kill()
        found.world.run(7)
        operator.secondary_kind_uid = seen
        operator.start()
        found.world.run(60)
        assert found.owners == BOTH
    assert found.world.server.list(PODS, MANAGED.target_namespace) == pods
    assert operator.connection.writes == writes + 1


def test_a_definition_that_was_applied_again_replaces_the_owner() -> None:
    found = ManagedWorld()
    found.begin()
    found.world.operator.secondary_kind_uid = "of the new one"
    found.world.operator.wake()
    found.world.run(1)
    obj = found.world.server.get(SECONDARY_SCHEDULERS.named(NAME))
    uids = [owner["uid"] for owner in obj["metadata"]["ownerReferences"]]
    assert (len(uids), uids[1]) == (2, "of the new one")


def test_what_users_set_outlives_the_removal_of_the_scheduler() -> None:
    found = ManagedWorld()
    found.begin()
    world, assign = found.world, {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    world.server.edit(
        "user", SECONDARY_SCHEDULERS, NAME, lambda obj: obj["spec"].update(assign=assign)
    )
    world.operator.kill()  # it has not observed the edit when it starts again
    world.spec(managementState="Removed")
    world.operator.start()
    world.run_until(lambda: not found.exists, 60, "removed")
    world.run(30)
    writes = world.operator.connection.writes
    world.run(600)
    assert world.operator.connection.writes == writes
    world.spec(managementState="Managed")
    world.run_until(lambda: found.exists, 60, "made again")
    obj = world.server.find(SECONDARY_SCHEDULERS, NAME) or {}
    assert obj["spec"]["assign"] == assign


def test_the_scheduler_is_left_alone_and_observed_while_unmanaged() -> None:
    found = ManagedWorld()
    found.begin()
    world = found.world
    world.spec(managementState="Unmanaged", logLevel="Debug")
    world.run(60)
    writes = world.operator.connection.writes
    world.run(3600)
    assert world.operator.connection.writes == writes
    assert (world.server.find(SECONDARY_SCHEDULERS, NAME) or {})["spec"]["logLevel"] == "Normal"
    found.played.lose_pods(NAME)
    world.run(30)
    assert found.played.condition(NAME, names.AVAILABLE) == "False"
    assert world.condition(names.SCHEDULERS_AVAILABLE) == "False"
    world.spec(managementState="Managed")
    world.run(30)
    assert (world.server.find(SECONDARY_SCHEDULERS, NAME) or {})["spec"]["logLevel"] == "Debug"


def test_an_upgrade_of_the_control_plane_replaces_the_schedulers() -> None:
    found = ManagedWorld()
    found.begin()
    found.world.operator.server_version = "v1.36.1-eks-1"
    found.world.run_until(lambda: found.images == {NEW}, 300, "new version")
    found.settle()


def test_a_version_that_refuses_the_configuration_leaves_the_old_one_running() -> None:
    found = ManagedWorld()
    found.begin()
    found.played.refused_images = {NEW}
    found.world.operator.server_version = "v1.36.1-eks-1"
    found.world.run(300)
    assert found.images == {OLD}
    assert found.played.condition(NAME, names.AVAILABLE) == "True"
    assert found.played.condition(NAME, names.DEGRADED) == "True"
    assert found.world.condition(names.SECONDARY_DEGRADED) == "True"
    assert found.world.condition(names.SCHEDULERS_AVAILABLE) == "True"


def test_an_override_that_kube_scheduler_refuses_leaves_the_old_one_running() -> None:
    found = ManagedWorld()
    found.begin()
    before = found.played.status(NAME)["configHash"]
    found.override(parallelism=BAD)
    found.world.run(300)
    assert found.played.status(NAME)["configHash"] == before
    assert found.played.condition(NAME, names.AVAILABLE) == "True"
    found.override(parallelism=3)
    found.world.run(300)
    assert found.played.condition(NAME, names.DEGRADED) == "False"
    assert found.played.status(NAME)["configHash"] != before


def test_while_an_upgrade_waits_for_a_correction_other_edits_take_effect() -> None:
    """Kubernetes 1.36 has no feature gate MemoryManager."""
    found = ManagedWorld()
    found.begin()
    gates = {"feature-gates": ["MemoryManager=true"]}
    found.override(arguments=gates)
    found.settle()
    found.world.operator.server_version = "v1.36.1-eks-1"
    found.world.run(300)
    assert found.images == {OLD}
    kubescheduler = found.world.server.get(KUBE_SCHEDULERS.named("cluster"))
    message = next(
        one["message"]
        for one in kubescheduler["status"]["conditions"]
        if one["type"] == names.OVERRIDES_DEGRADED
    )
    assert "kube-scheduler 1.36 has no feature gate MemoryManager, which was removed in" in message
    assert f"; the schedulers stay at {OLD} until this is corrected)" in message
    found.override(arguments=gates, parallelism=3)
    found.world.run(300)
    spec = found.world.server.get(SECONDARY_SCHEDULERS.named(NAME))["spec"]
    assert (spec["config"]["parallelism"], spec["image"]) == (3, OLD)
    assert found.images == {OLD}
    found.override(parallelism=3)
    found.world.run_until(lambda: found.images == {NEW}, 300, "new version")
    found.settle()
    assert "image" not in found.world.server.get(SECONDARY_SCHEDULERS.named(NAME))["spec"]
    assert found.world.condition(names.OVERRIDES_DEGRADED) == "False"


def test_a_scheduler_two_minor_versions_behind_is_reported() -> None:
    found = ManagedWorld()
    found.begin()
    found.override(arguments={"feature-gates": ["MemoryManager=true"]})
    found.settle()
    found.world.operator.server_version = "v1.37.2-eks-1"
    found.world.run(300)
    assert found.world.condition(names.VERSION_SKEW) == "True"
    assert found.world.condition(names.SCHEDULERS_AVAILABLE) == "True"

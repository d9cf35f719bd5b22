"""`rollout undo --scheduler`: the spec that led to an older configuration."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, SECONDARY_SCHEDULERS

from ...fake_cluster import FakeCluster
from ..conftest import Cluster, Done, content
from ..published import publish

NAME = "packed"
FEW, MANY = 5, 50


def profiles(percentage: int) -> list[dict[str, Any]]:
    return [{"schedulerName": NAME, "percentageOfNodesToScore": percentage}]


class Edited:
    """A SecondaryScheduler that ran two configurations; both were installed."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.operators = FakeCluster()
        self.hashes = [
            self.use(profiles=profiles(FEW), replicas=1),
            self.use(profiles=profiles(MANY), replicas=3, assign={}),
        ]
        publish(self.operators, cluster)
        cluster.kubescheduler({"a": 1})
        cluster.revision(1, content())

    def use(self, **spec: Any) -> str:
        """Run a spec; returns the hash of its configuration."""
        self.operators.secondary(NAME, **spec)
        self.operators.settle()
        return str(self.operators.get(SECONDARY_SCHEDULERS, NAME)["status"]["configHash"])

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self.cluster.api.objects[SECONDARY_SCHEDULERS][None, NAME]["spec"])

    async def run(self, *arguments: str) -> Done:
        return await self.cluster.run(*arguments, "--scheduler", NAME, "--platform", "kubeadm")


@pytest.fixture
def edited(cluster: Cluster) -> Edited:
    return Edited(cluster)


async def test_undo_restores_the_spec_and_so_the_configuration(edited: Edited) -> None:
    done = await edited.run("rollout", "undo", "--yes")
    assert done.code == 0, done.err
    assert f"-  - percentageOfNodesToScore: {MANY}" in done.out
    assert f"+  - percentageOfNodesToScore: {FEW}" in done.out
    assert f"follow the rollout: kubectl scheduler rollout watch --scheduler {NAME}" in done.out
    assert edited.spec["profiles"] == profiles(FEW)
    assert (edited.spec["replicas"], edited.spec["assign"]) == (3, {}), "they decide no content"
    restored = {key: value for key, value in edited.spec.items() if key != "namespace"}
    assert edited.use(**restored) == edited.hashes[0]


async def test_undo_names_the_profile_that_causes_a_difference(edited: Edited) -> None:
    edited.operators.profile("team", scheduler=NAME)
    last = edited.use(profiles=profiles(MANY), replicas=3)
    publish(edited.operators, edited.cluster)
    edited.cluster.kubescheduler({"a": 1})
    edited.cluster.revision(1, content())
    done = await edited.run("rollout", "undo", "--to-revision", edited.hashes[1], "--yes")
    assert last not in edited.hashes
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[1:] == [
        "Objects that undo does not write, edited since configuration "
        f"{edited.hashes[1]} of SecondaryScheduler {NAME}:",
        "  - SchedulerProfile team is new",
        "      - profile team added",
        "      To revert it: kubectl delete schedulerprofile team",
        "",
    ]


async def test_a_configuration_is_chosen_by_its_hash(edited: Edited) -> None:
    done = await edited.run("rollout", "undo", "--to-revision", edited.hashes[1], "--yes")
    assert done.code == 0, done.err
    assert "already in use" in done.out
    unknown = await edited.run("rollout", "undo", "--to-revision", "0000")
    assert unknown.code == 1


async def test_history_names_the_edited_field(edited: Edited) -> None:
    done = await edited.run("history")
    assert "by: SecondaryScheduler: spec.profiles" in done.out


async def test_a_configuration_of_an_older_operator_has_no_spec(edited: Edited) -> None:
    key = next(key for key in edited.cluster.api.objects[CONFIG_MAPS] if edited.hashes[0] in key[1])
    obj = edited.cluster.api.objects[CONFIG_MAPS][key]
    obj["metadata"]["annotations"].pop(names.ACCEPTED_SETTINGS_ANNOTATION)
    done = await edited.run("rollout", "undo", "--to-revision", edited.hashes[0])
    assert done.code == 1
    assert "has no recorded spec" in done.err
    assert "by: not recorded" in (await edited.run("history")).out

"""Agents beside SecondarySchedulers are found by the owners and the programs of their Pods."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.cluster.scheduler_contents import list_scheduler_pods
from kube_scheduler_operator.cli.console.errors import CommandError
from kube_scheduler_operator.cli.simulation.agent_endpoints import LocatedAgents, find_agents
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.credentials import find
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    PODS,
    SCHEDULER_EXTENDERS,
    SECONDARY_SCHEDULERS,
)
from kube_scheduler_operator.simulate.kinds import REPLICA_SETS

from ...fake_cluster import FakeCluster
from ..conftest import Cluster

NAME, SPACE = "mine", KUBEADM.target_namespace
Objects = dict[str, Any]


class Played:
    """What the operator makes of a SecondaryScheduler with an agent, with controllers' objects."""

    def __init__(self, cluster: Cluster) -> None:
        operator = FakeCluster()
        operator.secondary(NAME)
        operator.extender("calm", scheduler=NAME, agent={"policies": [{"name": "foo"}]})
        operator.settle()
        self.cluster = cluster
        cluster.api.served |= {
            CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, PODS, REPLICA_SETS, SCHEDULER_EXTENDERS,
            SECONDARY_SCHEDULERS,
        }  # fmt: skip
        self.scheduler: Any = operator.get(SECONDARY_SCHEDULERS, NAME)
        self.deployment = copy.deepcopy(dict(operator.get(DEPLOYMENTS, NAME, SPACE)))
        self.deployment["metadata"] = {**self.deployment["metadata"], "uid": "d"}
        for resource in (SCHEDULER_EXTENDERS, SECONDARY_SCHEDULERS, CONFIG_MAPS):
            for obj in operator.list(resource):
                cluster.put(resource, copy.deepcopy(dict(obj)))
        cluster.put(DEPLOYMENTS, self.deployment)
        cluster.put(REPLICA_SETS, self.replica_set("mine-1", "rs", "d"))
        cluster.put(PODS, self.pod("mine-1-a", "rs"))

    def replica_set(self, name: str, uid: str, owner: str) -> Objects:
        labels = self.deployment["spec"]["template"]["metadata"]["labels"]
        return {
            "metadata": {
                "name": name,
                "namespace": SPACE,
                "uid": uid,
                "labels": labels,
                "ownerReferences": [
                    {"kind": "Deployment", "name": NAME, "uid": owner, "controller": True}
                ],
            }
        }

    def pod(self, name: str, owner: str, namespace: str = SPACE) -> Objects:
        template = copy.deepcopy(self.deployment["spec"]["template"])
        controller = {"kind": "ReplicaSet", "name": "mine-1", "uid": owner, "controller": True}
        return {
            "metadata": {
                **template["metadata"],
                "name": name,
                "namespace": namespace,
                "ownerReferences": [controller] if owner else [],
            },
            "spec": {**template["spec"], "nodeName": "n1"},
            "status": {"phase": "Running"},
        }

    async def agents(self) -> LocatedAgents:
        async with ApiClient(find(str(self.cluster.kubeconfig)), field_manager="test") as api:
            return await find_agents(api, KUBEADM)

    async def pods(self) -> list[str]:
        async with ApiClient(find(str(self.cluster.kubeconfig)), field_manager="test") as api:
            found = await list_scheduler_pods(api, self.scheduler)
            return [pod["metadata"]["name"] for pod in found]


@pytest.fixture
def played(cluster: Cluster) -> Played:
    return Played(cluster)


async def test_agents_are_in_the_pods_of_the_deployment(played: Played) -> None:
    found = await played.agents()
    port = played.cluster.api.objects[SCHEDULER_EXTENDERS][None, "calm"]["status"]["agent"]["port"]
    assert [(each.extender, each.pod, each.port) for each in found.agents] == [
        ("calm", "mine-1-a", port)
    ]
    assert found.notes == []


@pytest.mark.parametrize("owner", ["", "another", "d", "uid-of-mine"])
@pytest.mark.parametrize("namespace", [SPACE, "tenant"])
async def test_a_pod_that_no_replica_set_of_it_made_is_not_asked(
    played: Played, owner: str, namespace: str
) -> None:
    played.cluster.put(PODS, played.pod("forged", owner, namespace))
    assert [each.pod for each in (await played.agents()).agents] == ["mine-1-a"]
    assert await played.pods() == ["mine-1-a"]


async def test_owners_of_another_namespace_do_not_count(played: Played) -> None:
    played.cluster.put(PODS, played.pod("forged", "rs", "tenant"))
    assert await played.pods() == ["mine-1-a"]


async def test_a_replica_set_of_a_tenant_makes_no_scheduler_pods(played: Played) -> None:
    played.cluster.put(REPLICA_SETS, played.replica_set("forged", "forged", "another"))
    played.cluster.put(PODS, played.pod("forged-a", "forged"))
    assert await played.pods() == ["mine-1-a"]


async def test_a_deployment_of_the_name_with_another_owner_has_no_scheduler_pods(
    played: Played,
) -> None:
    metadata = {**played.deployment["metadata"], "ownerReferences": []}
    played.cluster.put(DEPLOYMENTS, {**played.deployment, "metadata": metadata})
    assert await played.pods() == []


def other_image(container: Objects) -> None:
    container["image"] = "registry.invalid/forged:v1"


def other_command(container: Objects) -> None:
    container["command"] = ["sh", "-c", "forge"]


def other_arguments(container: Objects) -> None:
    container["args"] = ["--config=/tmp/forged"]


@pytest.mark.parametrize("change", [other_image, other_command, other_arguments])
async def test_a_pod_with_another_program_is_a_note(
    played: Played, change: Callable[[Objects], None]
) -> None:
    forged = played.pod("mine-1-b", "rs")
    change(next(each for each in forged["spec"]["containers"] if each["name"] == "extender-calm"))
    played.cluster.put(PODS, forged)
    found = await played.agents()
    assert [each.pod for each in found.agents] == ["mine-1-a"]
    (note,) = found.notes
    assert note.startswith(
        f"the agent calm in pod {SPACE}/mine-1-b is left out: its image, command"
    )


async def test_what_cannot_be_read_is_a_note_and_hides_no_other(played: Played) -> None:
    played.cluster.api.fail(403, path="/daemonsets", reason="Forbidden")
    found = await played.agents()
    assert [each.pod for each in found.agents] == ["mine-1-a"]
    (note,) = found.notes
    assert note.startswith("agents of the control plane's scheduler are left out: ")
    played.cluster.api.fail(403, path="/replicasets", reason="Forbidden")
    with pytest.raises(CommandError, match="agents of SecondaryScheduler mine are left out: "):
        await played.agents()

"""Node groups: whose nodes they are, whether they grow, and what a node of them is like."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.autoscaler_status import autoscaler_status
from kube_scheduler_operator.simulate.new_nodes import NodeMaker
from kube_scheduler_operator.simulate.node_groups import coming_nodes, has_groups, node_groups
from kube_scheduler_operator.simulate.world import World

from ...new_nodes import (
    DEDICATED,
    POOL,
    SINCE,
    Object,
    autoscaler,
    group,
    machine_deployment,
    node,
    pod,
)

UID = "1ec52a33-9bd1-4d0f-8a3c-5f9f2d1c7b11"
BOUNDS = "machine.openshift.io/cluster-api-autoscaler-node-group"


def world_of(*objects: Object) -> World:
    world = World()
    for obj in objects:
        world.add(obj)
    return world


def sources(*objects: Object) -> dict[str, NodeMaker]:
    return {one.title: one for one in node_groups(world_of(*objects), pod("waiting"))}


@pytest.mark.parametrize(
    ("name", "member", "label"),
    [
        (f"eks-workers-{UID}", "ip-10-0-0-1", "eks.amazonaws.com/nodegroup"),
        (
            "eksctl-shop-nodegroup-workers-NodeGroup-1ABC",
            "ip-10-0-0-1",
            "alpha.eksctl.io/nodegroup-name",
        ),
        (
            "https://c/instanceGroups/gke-shop-workers-1a2b-grp",
            "gke-shop-workers-1a2b-x7k2",
            "cloud.google.com/gke-nodepool",
        ),
        (
            "aks-workers-12345678-vmss",
            "aks-workers-12345678-vmss00000a",
            "kubernetes.azure.com/agentpool",
        ),
        ("workers.k8s.example.com", "i-0123", "kops.k8s.io/instancegroup"),
        ("workers", "pool-x", "doks.digitalocean.com/node-pool"),
        (
            "shoot--p--c.shoot--p--c-workers-z1",
            "shoot--p--c-workers-z1-5d4f8-abcde",
            "worker.gardener.cloud/pool",
        ),
    ],
)
def test_the_names_of_clouds_lead_to_their_nodes(name: str, member: str, label: str) -> None:
    found = sources(node(member, **{label: "workers"}), autoscaler(group(name)))
    assert list(found) == [f"node group {name}"]
    (template,) = found[f"node group {name}"].templates
    assert (template.like, template.copied) == (f"node {member}", member)


def test_groups_of_zones_that_share_their_label_are_distinguished() -> None:
    label = {"cloud.google.com/gke-nodepool": "pool"}
    nodes = [node(f"gke-c-pool-{part}-x7k2", part[0], **label) for part in ("a111", "b222")]
    found = sources(*nodes, autoscaler(group("gke-c-pool-a111-grp"), group("gke-c-pool-b222-grp")))
    assert [one.templates[0].copied for one in found.values()] == [
        "gke-c-pool-a111-x7k2",
        "gke-c-pool-b222-x7k2",
    ]


def test_nodes_of_karpenter_are_of_no_group() -> None:
    assert sources(node("n", **{"eks.amazonaws.com/nodegroup": "w", POOL: "general"})) == {}


def test_a_template_leaves_out_what_is_of_one_node() -> None:
    member = node("n1", **{"eks.amazonaws.com/nodegroup": "w", "node-name": "n1"})
    member["spec"] = {
        "unschedulable": True,
        "taints": [
            DEDICATED,
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"},
            {"key": "startup-taint.cluster-autoscaler.kubernetes.io/x", "effect": "NoSchedule"},
        ],
    }
    (found,) = sources(member).values()
    (template,) = found.templates
    assert template.node["spec"] == {"taints": [DEDICATED]}
    assert "node-name" not in template.node["metadata"]["labels"]
    assert found.command == "kubectl get nodes -l eks.amazonaws.com/nodegroup=w"


def test_a_group_that_cannot_grow_states_why() -> None:
    backoff = group(
        "b",
        status="Backoff",
        lastTransitionTime=SINCE,
        backoffInfo={"errorCode": "OutOfResource", "errorMessage": "no\ncapacity"},
    )
    unhealthy = group("u")
    unhealthy["health"]["status"] = "Unhealthy"
    found = sources(autoscaler(group("full", 3, 3), backoff, unhealthy))
    assert found["node group full"].obstacles == ("it has 3 of at most 3 nodes (maxSize)",)
    assert found["node group b"].obstacles == (
        f"cluster-autoscaler backs off since {SINCE} after an attempt that failed: "
        "OutOfResource: no\\ncapacity",
    )
    assert "Unhealthy" in found["node group u"].obstacles[0]
    assert "it has no node" in found["node group full"].unknown
    assert "node-template/label" not in found["node group full"].unknown
    of_eks = sources(autoscaler(group(f"eks-win-{UID}", 0)))[f"node group eks-win-{UID}"]
    assert of_eks.unknown.endswith("such as k8s.io/cluster-autoscaler/node-template/label/NAME")


def test_an_autoscaler_that_does_nothing_states_why() -> None:
    member = node("n1", **{"eks.amazonaws.com/nodegroup": "w"})
    waits = autoscaler(group("w"), autoscalerStatus="Initializing", message="no leader")
    (found,) = sources(member, waits).values()
    assert found.obstacles == ("cluster-autoscaler is Initializing: no leader",)


@pytest.mark.parametrize(
    "text", ["", "{", "a: &a [*a]", "- x", "Cluster-autoscaler status at 2024", "[" * 5000]
)
def test_a_status_that_cannot_be_read_has_no_groups(text: str) -> None:
    status = autoscaler_status(world_of(autoscaler(text=text)))
    assert status is not None
    assert "from version 1.30 on" in status.unreadable
    assert status.groups == ()


@pytest.mark.parametrize("damaged", [None, 3, {"name": "g"}, {"name": "g", "health": "x"}])
def test_damaged_groups_are_read(damaged: Any) -> None:
    status = autoscaler_status(world_of(autoscaler(damaged)))
    assert status is not None
    assert [(one.target, one.is_full) for one in status.groups] in ([], [(None, False)])


def test_only_the_config_map_of_kube_system_is_read() -> None:
    spoofed = autoscaler(group("g"))
    spoofed["metadata"]["namespace"] = "tenant"
    assert autoscaler_status(world_of(spoofed)) is None
    other = autoscaler(group("g"))
    other["metadata"]["name"] = "another"
    world = World()
    assert not world.add(other)


def test_cluster_api_finds_its_nodes_by_their_machine_set() -> None:
    machine_set = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineSet",
        "metadata": {
            "name": "md-x7k2p",
            "namespace": "clusters",
            "ownerReferences": [
                {"kind": "MachineDeployment", "name": "md", "controller": True, "uid": "u"}
            ],
        },
    }
    member = node("n1")
    member["metadata"]["annotations"] = {
        "cluster.x-k8s.io/owner-kind": "MachineSet",
        "cluster.x-k8s.io/owner-name": "md-x7k2p",
    }
    found = sources(member, machine_set, machine_deployment("md"))
    assert list(found) == ["MachineDeployment clusters/md"]
    one = found["MachineDeployment clusters/md"]
    assert [template.copied for template in one.templates] == ["n1"]
    assert one.command == "kubectl -n clusters describe machinedeployment.cluster.x-k8s.io md"
    name = "MachineDeployment/clusters/md"
    found = sources(member, machine_set, machine_deployment("md"), autoscaler(group(name)))
    assert list(found) == [f"node group {name}"]
    assert [template.copied for template in found[f"node group {name}"].templates] == ["n1"]


def test_annotations_are_a_template_without_nodes() -> None:
    deployment = machine_deployment(
        "md",
        cpu="4",
        memory="8Gi",
        maxPods="30",
        gpu_type="amd.com/gpu",
        gpu_count="2",
        labels="team=ml,disk=ssd",
        taints="dedicated=ml:NoSchedule,broken",
    )
    deployment["spec"]["template"]["metadata"] = {
        "labels": {"node-role.kubernetes.io/gpu": "", "ignored": "x"}
    }
    (found,) = sources(deployment).values()
    (template,) = found.templates
    labels, status = template.node["metadata"]["labels"], template.node["status"]
    assert (
        labels.items() >= {"team": "ml", "disk": "ssd", "node-role.kubernetes.io/gpu": ""}.items()
    )
    assert "ignored" not in labels
    assert template.node["spec"]["taints"] == [DEDICATED]
    assert status["allocatable"] == {
        "cpu": "4", "memory": "8Gi", "pods": "30", "amd.com/gpu": "2",
    }  # fmt: skip


def test_annotations_without_a_size_give_no_template() -> None:
    (found,) = sources(machine_deployment("md", cpu="4")).values()
    assert found.templates == ()
    assert "it has no node" in found.unknown


def test_openshifts_machine_sets_have_annotations_of_their_own() -> None:
    machine_set = {
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": {
            "name": "workers",
            "namespace": "openshift-machine-api",
            "annotations": {
                f"{BOUNDS}-max-size": "2",
                "machine.openshift.io/vCPU": "8",
                "machine.openshift.io/memoryMb": "16384",
                "machine.openshift.io/GPU": "0",
            },
        },
        "spec": {
            "replicas": 2,
            "template": {"spec": {"metadata": {"labels": {"team": "ml"}}, "taints": [DEDICATED]}},
        },
    }
    (found,) = sources(machine_set).values()
    (template,) = found.templates
    assert template.node["status"]["allocatable"]["memory"] == "16384Mi"
    assert template.node["metadata"]["labels"]["team"] == "ml"
    assert template.node["spec"]["taints"] == [DEDICATED]
    assert found.obstacles[0].startswith("it has 2 of at most 2 nodes")
    member = node("n1")
    member["metadata"]["annotations"] = {
        "machine.openshift.io/machine": "openshift-machine-api/workers-x7k2p"
    }
    (found,) = sources(machine_set, member).values()
    assert [one.copied for one in found.templates] == ["n1"]


def test_nodes_that_were_asked_for_and_those_not_ready_are_coming() -> None:
    label = {"eks.amazonaws.com/nodegroup": "w"}
    late = node("n1", **label)
    late["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    asked = group("w", 3, registered=1, status="InProgress", lastTransitionTime=SINCE)
    found = list(coming_nodes(world_of(late, autoscaler(asked))))
    assert [(one.title, one.since, one.node) for one in found] == [
        ("2 nodes of node group w", SINCE, ""),
        ("node n1 of node group w", SINCE, "n1"),
    ]


def test_groups_are_known_by_nodes() -> None:
    assert not has_groups(world_of(node("n1")))
    assert has_groups(world_of(node("n1", **{"eks.amazonaws.com/nodegroup": "w"})))


def test_hostile_names_are_bounded() -> None:
    (one,) = sources(autoscaler(group("x\n" * 1000)))
    assert "\n" not in one
    assert len(one) < 300


def test_a_pod_that_is_expendable_gets_no_node_of_cluster_autoscaler() -> None:
    member = node("n1", **{"eks.amazonaws.com/nodegroup": "w"})
    world = world_of(member, autoscaler(group("w")))
    (found,) = node_groups(world, pod("p", priority=-100))
    assert "priority -100" in found.obstacles[0]
    (found,) = node_groups(world, pod("p", priority=-10))
    assert found.obstacles == ()

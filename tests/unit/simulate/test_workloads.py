"""The pods of workloads, as their controllers and the API server make them."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from kube_scheduler_operator.simulate.kinds import CLAIMS, REPLICA_SETS
from kube_scheduler_operator.simulate.workloads import (
    SimulatedWorkload,
    WorkloadError,
    existing,
    pinned,
    read_workloads,
)
from kube_scheduler_operator.simulate.world import World

CONTAINER: dict[str, Any] = {"name": "c", "image": "i"}


def workload(kind: str, spec: dict[str, Any], **fields: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [dict(CONTAINER)]}}
    obj = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "namespace": "shop"}}
    return {**obj, "spec": {"template": template, **spec}, **fields}


def read(obj: dict[str, Any]) -> SimulatedWorkload:
    (found,), others = read_workloads([obj], "file")
    assert others == []
    return found


@pytest.mark.parametrize(
    ("obj", "count"),
    [
        (workload("Deployment", {"replicas": 3}), 3),
        (workload("Deployment", {}), 1),
        (workload("ReplicaSet", {"replicas": 0}), 0),
        (workload("StatefulSet", {"replicas": 2}), 2),
        (workload("Job", {"parallelism": 5, "completions": 3}), 3),
        (workload("Job", {"completions": 3}), 1),
        (workload("Rollout", {"replicas": 4}), 4),
        (workload("CronJob", {"jobTemplate": {"spec": {"parallelism": 2,
         "template": {"spec": {"containers": [CONTAINER]}}}}}), 2),
        (workload("Pod", {"containers": [CONTAINER]}), 1),
        (workload("PodTemplate", {}, template={"spec": {"containers": [CONTAINER]}}), 1),
    ],
)  # fmt: skip
def test_a_workload_has_the_pods_that_its_controller_creates(
    obj: dict[str, Any], count: int
) -> None:
    assert read(obj).replicas == count


def test_pods_of_a_deployment_belong_to_a_replica_set_that_selects_them() -> None:
    found = read(workload("Deployment", {}))
    (pod,) = found.pods(["a"])
    world = World()
    for obj in found.objects:
        world.add(obj)
    (owner,) = pod["metadata"]["ownerReferences"]
    replica_set = world.get(REPLICA_SETS, owner["name"], "shop")
    assert replica_set is not None
    selected = replica_set["spec"]["selector"]["matchLabels"]
    assert selected.items() <= pod["metadata"]["labels"].items()


def test_pods_of_a_stateful_set_are_numbered_and_have_claims_of_their_own() -> None:
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    found = read(workload("StatefulSet", {"replicas": 2, "volumeClaimTemplates": [template]}))
    world = World()
    world.add(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "namespace": "shop"}}
    )
    world.add({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
               "metadata": {"name": "fast", "annotations": {
                   "storageclass.kubernetes.io/is-default-class": "true"}}})  # fmt: skip
    names = list(islice(found.names(world), 2))
    assert names == ["web-1", "web-2"]
    (pod, _) = found.pods(names)
    assert pod["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}
    ]
    (claim,) = found.claims_of("web-1", world)
    assert claim["spec"]["storageClassName"] == "fast"
    world.add(claim)
    assert world.get(CLAIMS, "data-web-1", "shop") is not None
    assert list(found.claims_of("web-1", world)) == []


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"kind": "Deployment", "metadata": {"name": "web"}, "spec": {}},
         "file: Deployment web: spec.template.spec.containers is missing"),
        (workload("Deployment", {"replicas": "3"}), "spec.replicas '3' is not a number of pods"),
        ({"kind": "Deployment", "metadata": {"name": "web"},
          "spec": {"template": {"spec": {"containers": [{}], "nodeName": "n"}}}},
         "file: Deployment web: spec.template.spec.nodeName is 'n': its pods are created on that "
         "node, and no scheduler places them"),
        ({**workload("Deployment", {}), "metadata": {}},
         "file: Deployment without a name: metadata.name is missing"),
        ({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "resources": {"requests": {"cpu": "one"}}}]}},
         'file: Pod p: spec.containers[0].resources.requests.cpu: "one" is not a quantity'),
        ("text", "file: a document is not an object"),
    ],
)  # fmt: skip
def test_a_malformed_object_is_an_error_that_names_the_field(obj: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        read_workloads([obj], "file")
    assert message in str(error.value)


def test_objects_without_a_pod_template_are_returned_as_they_are() -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}}
    assert read_workloads([claim], "file") == ([], [claim])


def test_pods_of_a_daemon_set_tolerate_cordons_and_are_pinned_to_their_node() -> None:
    found = read(workload("DaemonSet", {}))
    keys = {each["key"] for each in found.template["spec"]["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in keys
    (pod,) = found.pods(["a"])
    affinity = pinned(pod, "worker-1")["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == ["worker-1"]


def test_pods_that_exist_already_are_counted() -> None:
    world = World()
    for name, deployment in (("web-5d4f", "web"), ("web-shop-77", "web-shop")):
        owner = {"kind": "Deployment", "name": deployment, "controller": True}
        metadata = {"name": name, "namespace": "shop", "ownerReferences": [owner]}
        world.add({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata})
        owner = {"kind": "ReplicaSet", "name": name, "controller": True}
        pod = {"name": f"{name}-x", "namespace": "shop", "ownerReferences": [owner]}
        world.add({"apiVersion": "v1", "kind": "Pod", "metadata": pod})
    assert existing(read(workload("Deployment", {})), world) == 1

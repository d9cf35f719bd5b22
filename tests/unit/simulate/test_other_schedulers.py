"""Schedulers that only their Pods and workloads show."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.other_schedulers import (
    found_group,
    found_scheduler,
    merged,
    where_to_look,
)

Object = dict[str, Any]


def pod(name: str = "p", image: str = "i", phase: str = "Running", **container: Any) -> Object:
    spec = {"containers": [{"name": "c", "image": image, **container}]}
    metadata = {"name": name, "namespace": "ns"}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def deployment(name: str, image: str, ready: int = 1, **spec: Any) -> Object:
    template = {"spec": {"containers": [{"name": "c", "image": image}], **spec}}
    metadata = {"name": name, "namespace": "ns"}
    status = {"readyReplicas": ready, "observedGeneration": 1}
    made = {"kind": "Deployment", "metadata": metadata, "status": status}
    return {**made, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("obj", "served"),
    [
        (pod(image="docker.io/volcanosh/vc-scheduler:v1.11.0"), "volcano"),
        (pod(image="x/koord-scheduler:v1.6.0"), "koord-scheduler"),
        (pod(image="own/program:v1", args=["--scheduler-name=mine"]), "mine"),
        (pod("mine-abc", "own/mine-scheduler:v1"), "mine-scheduler"),
        (deployment("mine", "own/scheduler:v1"), "mine"),
        (deployment("mine-scheduler", "own/scheduler:v1"), "mine"),
    ],
)
def test_a_scheduler_serves_the_names_of_its_flags_its_product_and_itself(
    obj: Object, served: str
) -> None:
    found = found_scheduler(obj)
    assert found is not None
    assert served in found.names
    assert not found.names & {"default-scheduler", "kube-scheduler", "scheduler"}


@pytest.mark.parametrize(
    "obj",
    [
        pod("web", "nginx"),
        pod("x", "registry.k8s.io/descheduler/descheduler:v0.34.0"),
        {"kind": "ConfigMap", "metadata": {"name": "scheduler"}},
        {"kind": "Pod", "spec": {"containers": "scheduler"}},
        {"kind": "Pod", "spec": None},
    ],
)
def test_other_objects_run_none(obj: Object) -> None:
    assert found_scheduler(obj) is None


def test_a_name_is_that_of_the_workload_whose_pods_are_ready() -> None:
    objects = [pod("mine", "x/scheduler"), deployment("mine-scheduler", "x/scheduler")]
    found = [one for one in map(found_scheduler, objects) if one is not None]
    (chosen, *_) = merged(found, {})
    assert chosen.title == "Deployment ns/mine-scheduler"
    assert "none of its Pods is ready" not in chosen.problem
    late = found_scheduler(deployment("mine", "x/scheduler", ready=0))
    assert late is not None
    assert "none of its Pods is ready" in late.problem


def test_the_configuration_that_it_mounts_has_its_names() -> None:
    volumes = [{"name": "c", "configMap": {"name": "config"}}]
    found = found_scheduler(deployment("second", "x/kube-scheduler:v1.35.4", volumes=volumes))
    assert found is not None
    (one,) = merged([found], {("ns", "config"): ["batch", "default-scheduler"]})
    assert "batch" in one.names
    assert "default-scheduler" not in one.names


def test_the_group_of_a_pod_shows_what_it_waits_for() -> None:
    condition = {
        "type": "Unschedulable",
        "reason": "NotEnoughResources",
        "message": "1/0\x1b tasks",
    }
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "job", "namespace": "ml"},
        "spec": {"queue": "test", "minMember": 2},
        "status": {"phase": "Pending", "conditions": [condition]},
    }
    found = found_group(group)
    assert found is not None
    waiting = {"metadata": {"namespace": "ml", "annotations": {
        "scheduling.k8s.io/group-name": "job"}}}  # fmt: skip
    assert where_to_look(waiting, dict([found])) == (
        "; its PodGroup ml/job has phase Pending, queue test, minMember 2, Unschedulable: "
        "NotEnoughResources: 1/0\\u001b tasks"
    )
    assert "kubectl -n ml describe podgroups.scheduling.volcano.sh job" in where_to_look(
        waiting, {}
    )
    assert where_to_look({"metadata": {}}, {}) == ""
    assert found_group({**group, "apiVersion": "scheduling.x-k8s.io/v1alpha1"}) is None

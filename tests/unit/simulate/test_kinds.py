"""What enters a world."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.kube.resource import Resource
from kube_scheduler_operator.simulate.autoscaling_kinds import (
    AUTOSCALER_STATUS,
    MACHINE_DEPLOYMENTS,
    STATUS_KEY,
)
from kube_scheduler_operator.simulate.kinds import (
    CLAIMS,
    CSI_DRIVERS,
    DAEMON_SETS,
    KINDS,
    NAMES_ITS_NODE,
    NODES,
    PODS,
    VOLUMES,
    strip,
)
from kube_scheduler_operator.simulate.kinds import RESOURCE_CLAIMS as CLAIMS_OF_DEVICES
from kube_scheduler_operator.simulate.world import World

from ...new_nodes import daemon_set, machine_deployment

SECRET = "do-not-copy"

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "labels": {"app": "web"},
        "annotations": {"note": SECRET, "kubernetes.io/config.mirror": "hash"},
        "managedFields": [{"manager": SECRET}],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "x",
             "controller": True, "blockOwnerDeletion": True}
        ],
    },
    "spec": {
        "nodeName": "a",
        "serviceAccountName": SECRET,
        "imagePullSecrets": [{"name": SECRET}],
        "schedulerName": "default-scheduler",
        "priority": 7,
        "containers": [
            {
                "name": "c",
                "image": "registry/web:v1",
                "args": [SECRET],
                "command": [SECRET],
                "env": [{"name": "PASSWORD", "value": SECRET}],
                "envFrom": [{"secretRef": {"name": SECRET}}],
                "ports": [{"containerPort": 1, "hostPort": 2}, {"containerPort": 3}],
                "resources": {"requests": {"cpu": "1"}},
                "volumeMounts": [{"name": "v", "mountPath": SECRET}],
                "livenessProbe": {"exec": {"command": [SECRET]}},
            }
        ],
        "ephemeralContainers": [{"name": "e", "env": [{"name": "X", "value": SECRET}]}],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "s", "secret": {"secretName": SECRET}},
            {"name": "m", "configMap": {"name": SECRET}},
            {"name": "i", "csi": {"driver": "d", "volumeAttributes": {"token": SECRET}}},
            {"name": "o", "image": {"reference": "registry/model:v1", "pullPolicy": SECRET}},
        ],
    },
    "status": {
        "phase": "Running",
        "podIP": SECRET,
        "conditions": [{"type": "Ready", "status": "True", "message": SECRET}],
        "containerStatuses": [{"name": "c", "image": SECRET, "imageID": SECRET}],
    },
}  # fmt: skip


def test_a_pod_keeps_only_what_scheduling_reads() -> None:
    kept = strip(KINDS[PODS], POD)
    assert SECRET not in json.dumps(kept)
    assert kept == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "n",
            "uid": "u",
            "labels": {"app": "web"},
            "annotations": {"kubernetes.io/config.mirror": "hash"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "x",
                 "controller": True}
            ],
        },
        "spec": {
            "nodeName": "a",
            "schedulerName": "default-scheduler",
            "priority": 7,
            "containers": [
                {
                    "name": "c",
                    "image": "registry/web:v1",
                    "resources": {"requests": {"cpu": "1"}},
                    "ports": [{"hostPort": 2, "containerPort": 1}],
                }
            ],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "i", "csi": {"driver": "d"}},
                {"name": "o", "image": {"reference": "registry/model:v1"}},
            ],
        },
        "status": {"phase": "Running"},
    }  # fmt: skip


def test_a_pod_keeps_that_its_creator_set_its_node_and_not_who_it_was() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:nodeName": {}, "f:containers": {SECRET: {}}}}
    own = {**POD["metadata"], "managedFields": [{"manager": SECRET, "fieldsV1": fields}]}
    kept = strip(KINDS[PODS], {**POD, "metadata": own})
    assert kept["metadata"]["managedFields"] == NAMES_ITS_NODE
    assert strip(KINDS[PODS], kept) == kept
    labels: list[Any] = [{"fieldsV1": {"f:metadata": {"f:labels": {"f:nodeName": {}}}}}]
    own = {**POD["metadata"], "managedFields": labels}
    assert "managedFields" not in strip(KINDS[PODS], {**POD, "metadata": own})["metadata"]


def test_a_container_for_debugging_keeps_the_mounts_that_a_node_has_to_know() -> None:
    mount = {"name": "v", "bindMountOptions": ["noexec"], "mountPath": SECRET}
    debugger = {"name": "d", "image": SECRET, "volumeMounts": [mount, {"name": "w"}]}
    spec = {**POD["spec"], "ephemeralContainers": [debugger, {"name": "e"}]}
    kept = strip(KINDS[PODS], {**POD, "spec": spec})["spec"]["ephemeralContainers"]
    mounts = [{"name": "v", "bindMountOptions": ["noexec"]}]
    assert kept == [{"name": "d", "volumeMounts": mounts}]


def test_a_resized_pod_keeps_what_its_containers_have_got() -> None:
    resources = {"requests": {"cpu": "2"}}
    reported = {"name": "c", "resources": resources, "containerID": SECRET}
    pod = {**POD, "status": {"phase": "Running", "containerStatuses": [reported]}}
    (status,) = strip(KINDS[PODS], pod)["status"]["containerStatuses"]
    assert status["resources"] == resources
    assert SECRET not in json.dumps(status)


def test_a_node_keeps_its_load_only_where_policies_read_it() -> None:
    node = {"metadata": {"name": "a", "annotations": {"cpu_usage_avg_5m": "0.5"}}}
    assert "annotations" not in strip(KINDS[NODES], node)["metadata"]
    kept = strip(KINDS[NODES], node, annotations=True)
    assert kept["metadata"]["annotations"] == {"cpu_usage_avg_5m": "0.5"}


def test_a_volume_loses_what_its_driver_needs() -> None:
    source = {"driver": "d", "volumeHandle": "h", "nodeStageSecretRef": {"name": SECRET}}
    volume = {"metadata": {"name": "v"}, "spec": {"csi": source, "storageClassName": "s"}}
    kept = strip(KINDS[VOLUMES], volume)
    assert kept["spec"] == {"storageClassName": "s", "csi": {"driver": "d", "volumeHandle": "h"}}


@pytest.mark.parametrize("kind", ["Secret", "ServiceAccount", "Event"])
def test_kinds_that_scheduling_does_not_read_never_enter(kind: str) -> None:
    assert kind not in {resource.kind for resource in KINDS}


def test_a_claim_keeps_its_binding() -> None:
    claim: dict[str, Any] = {
        "metadata": {"name": "c", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v", "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Bound"},
    }
    kept = strip(KINDS[CLAIMS], claim)
    assert kept["spec"] == claim["spec"]
    assert kept["metadata"]["annotations"] == claim["metadata"]["annotations"]


@pytest.mark.parametrize("place", [("kube-system", "app"), ("tenant", STATUS_KEY[1])])
def test_no_config_map_enters_but_the_status_of_cluster_autoscaler(place: tuple[str, str]) -> None:
    world = World()
    for namespace, name in (place, STATUS_KEY):
        metadata = {"namespace": namespace, "name": name}
        data = {"status": "autoscalerStatus: Running", "other": SECRET}
        world.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    (kept,) = world.all(AUTOSCALER_STATUS)
    assert (kept["metadata"]["namespace"], kept["metadata"]["name"]) == STATUS_KEY
    assert kept["data"] == {"status": "autoscalerStatus: Running"}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_machine_deployment_of_any_version_keeps_what_scaling_reads(version: str) -> None:
    deployment = machine_deployment("md", cpu="4")
    deployment["apiVersion"] = f"cluster.x-k8s.io/{version}"
    deployment["metadata"]["annotations"]["secret"] = SECRET
    world = World()
    assert world.add(deployment)
    (kept,) = world.all(MACHINE_DEPLOYMENTS)
    assert SECRET not in json.dumps(kept)
    assert kept["nodeGroup"]["capacity.cluster-autoscaler.kubernetes.io/cpu"] == "4"


def test_a_logskeeps_what_scheduling_reads_of_its_pods() -> None:
    logs = daemon_set("logs", "250m", hostNetwork=True)
    container = logs["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "TOKEN", "value": SECRET}]
    world = World()
    assert world.add(logs)
    (kept,) = world.all(DAEMON_SETS)
    assert SECRET not in json.dumps(kept)
    assert kept["spec"]["template"]["spec"]["hostNetwork"]
    assert kept["spec"]["template"]["spec"]["containers"][0]["resources"] == container["resources"]


@pytest.mark.parametrize(
    ("resource", "part", "value"),
    [
        (PODS, "spec", {"hostUsers": False}),
        (PODS, "spec", {"containers": [{"name": "c", "restartPolicyRules": [{"action": "x"}]}]}),
        (PODS, "spec", {"volumes": [{"name": "v", "vsphereVolume": {"volumePath": "p"}}]}),
        (PODS, "spec", {"volumes": [{"name": "v", "image": {"reference": "i:1"}}]}),
        (PODS, "status", {"allocatedResources": {"cpu": "1"}}),
        (PODS, "status", {"conditions": [{"type": "DisruptionTarget", "status": "True",
                                          "reason": "PreemptionByScheduler"}]}),
        (NODES, "spec", {"podPreemptionPolicy": {"disableResizePreemption": ["x"]}}),
        (VOLUMES, "spec", {"azureFile": {"shareName": "s"}}),
        (CSI_DRIVERS, "spec", {"preventPodSchedulingIfMissing": True}),
        (CLAIMS_OF_DEVICES, "status", {"devices": [{"driver": "d", "pool": "p", "device": "x",
                                                    "conditions": [{"type": "Bound"}]}]}),
    ],
)  # fmt: skip
def test_what_a_plugin_reads_is_kept(resource: Resource, part: str, value: dict[str, Any]) -> None:
    """Each is read by a plugin of kube-scheduler 1.37, as its sources show."""
    assert strip(KINDS[resource], {"metadata": {"name": "a"}, part: value})[part] == value


def test_the_data_of_drivers_is_not_kept() -> None:
    device = {"driver": "d", "device": "x", "data": {"note": SECRET}, "networkData": {"x": SECRET}}
    claim = {"metadata": {}, "status": {"devices": [{**device, "conditions": [{"type": "A"}]}]}}
    assert SECRET not in json.dumps(strip(KINDS[CLAIMS_OF_DEVICES], claim))

"""Objects of files have the defaults that a real API server sets."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.simulate.kinds import BY_KIND, strip
from kube_scheduler_operator.simulate.world import World

from .conftest import ApiServer

pytestmark = pytest.mark.presubmit

SELECTOR = {"matchLabels": {"app": "a"}}
TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
DEVICES = {
    "requests": [
        {"name": "one", "exactly": {"deviceClassName": "a"}},
        {"name": "all", "exactly": {"deviceClassName": "a", "allocationMode": "All"}},
        {"name": "any", "firstAvailable": [{"name": "x", "deviceClassName": "a"}]},
    ]
}
OBJECTS: dict[str, dict[str, Any]] = {
    "v1 Namespace": {},
    "v1 Node": {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
    "v1 Pod": {
        "spec": {
            "hostNetwork": True,
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "1"}},
                }
            ],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": SELECTOR,
                }
            ],
        }
    },
    "v1 Service": {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}},
    "v1 ReplicationController": {"spec": {"selector": {"app": "a"}, "template": TEMPLATE}},
    "apps/v1 ReplicaSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "apps/v1 StatefulSet": {
        "spec": {"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"}
    },
    "policy/v1 PodDisruptionBudget": {"spec": {"selector": SELECTOR, "minAvailable": 1}},
    "v1 PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "d", "volumeHandle": "v"},
        }
    },
    "v1 PersistentVolumeClaim": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "s",
        }
    },
    "storage.k8s.io/v1 StorageClass": {"provisioner": "p"},
    "storage.k8s.io/v1 CSIDriver": {"spec": {}},
    "storage.k8s.io/v1 CSINode": {"spec": {"drivers": [{"name": "d", "nodeID": "n"}]}},
    "storage.k8s.io/v1 CSIStorageCapacity": {"storageClassName": "s", "capacity": "1Gi"},
    "resource.k8s.io/v1 ResourceClaim": {"spec": {"devices": DEVICES}},
    "resource.k8s.io/v1 ResourceClaimTemplate": {"spec": {"spec": {"devices": DEVICES}}},
    "resource.k8s.io/v1 ResourceSlice": {
        "spec": {
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0", "attributes": {"model": {"string": "a"}}}],
        }
    },
    "resource.k8s.io/v1 DeviceClass": {
        "spec": {"selectors": [{"cel": {"expression": "device.driver == 'd.example.com'"}}]}
    },
    "scheduling.k8s.io/v1 PriorityClass": {"value": 1},
    "v1 ResourceQuota": {"spec": {"hard": {"pods": "1"}}},
    "node.k8s.io/v1 RuntimeClass": {"handler": "h", "overhead": {"podFixed": {"cpu": "1"}}},
}
OF_ADMISSION = {"Node": ("taints",), "Pod": ("priority", "preemptionPolicy", "tolerations")}
"""Fields that admission plugins set as well; `simulate/admission.py` sets those of new Pods."""

OF_KUBELETS = ("restartPolicy", "terminationGracePeriodSeconds")
"""Fields of a Pod that decide nothing before it has a node; 30,000 Pods need not have them."""


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_of_a_file_is_as_the_api_server_completes_it(
    api_server: ApiServer, kind: str
) -> None:
    api_version, _, name = kind.partition(" ")
    served = BY_KIND[api_version, name].resource
    written = {
        "apiVersion": api_version,
        "kind": name,
        "metadata": {"name": f"defaults-{name.lower()}"},
        **copy.deepcopy(OBJECTS[kind]),
    }
    if served.namespaced:
        written["metadata"]["namespace"] = "default"
    base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    place = "/namespaces/default" if served.namespaced else ""
    path = f"{base}{place}/{served.plural}?dryRun=All"
    real = strip(BY_KIND[api_version, name], api_server.request("POST", path, written))
    world = World()
    assert world.add(written)
    own = world.get(served, written["metadata"]["name"], written["metadata"].get("namespace", ""))
    assert own is not None
    for obj in (real, own):
        for field in ("uid", "creationTimestamp", "resourceVersion", "generation"):
            obj["metadata"].pop(field, None)
        obj.pop("status", None)
        for field in (*OF_ADMISSION.get(name, ()), *OF_KUBELETS):
            obj.get("spec", {}).pop(field, None)
        if name != "Namespace":
            obj["metadata"].pop("labels", None)
    assert _lines(own) == _lines(real)


def _lines(obj: Any) -> list[str]:
    return yaml.safe_dump(_without_nulls(obj)).splitlines()


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value

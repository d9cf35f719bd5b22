"""The version of a cluster's kube-scheduler, from what shows it best."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.cluster_version import cluster_version
from kube_scheduler_operator.simulate.world import World


def node(version: str, name: str = "n") -> dict[str, Any]:
    status = {"nodeInfo": {"kubeletVersion": version}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def component(name: str, image: str, namespace: str = "kube-system") -> dict[str, Any]:
    metadata = {"name": f"{name}-cp", "namespace": namespace}
    spec = {"containers": [{"name": name, "image": image}], "nodeName": "cp"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


SCHEDULER = component("kube-scheduler", "registry.k8s.io/kube-scheduler:v1.35.4")
SERVER = component("kube-apiserver", "registry.k8s.io/kube-apiserver:v1.36.3")
KUBELETS = [node("v1.34.1-eks-1234567"), node("v1.33.9", "old")]


@pytest.mark.parametrize(
    ("objects", "server", "image", "version", "origin"),
    [
        ([*KUBELETS, SERVER, SCHEDULER], "v1.36.3", "x/kube-scheduler:v1.37.2", "v1.37.2",
         "the scheduler's image x/kube-scheduler:v1.37.2"),
        ([*KUBELETS, SERVER, SCHEDULER], "v1.36.3", "own/scheduler:v2.1.0", "v1.35.4",
         "the scheduler's image registry.k8s.io/kube-scheduler:v1.35.4"),
        ([*KUBELETS, component("kube-scheduler", "rancher/hardened-kubernetes:v1.35.2-rke2r1")], "",
         "", "v1.35.2", "the scheduler's image rancher/hardened-kubernetes:v1.35.2-rke2r1"),
        ([component("kube-scheduler", "x/kube-scheduler:v1.20.0", "tenant"), *KUBELETS], "", "",
         "v1.34.1", "kubeletVersion of the nodes"),
        ([*KUBELETS, SERVER], "v1.37.2+k3s1", "", "v1.37.2", "the API server"),
        ([*KUBELETS, SERVER], "", "", "v1.36.3",
         "the API server's image registry.k8s.io/kube-apiserver:v1.36.3"),
        (KUBELETS, "", "", "v1.34.1", "kubeletVersion of the nodes"),
        ([node("nonsense")], "", "", "None", ""),
    ],
)  # fmt: skip
def test_the_scheduler_comes_before_the_api_server_and_the_nodes(
    objects: list[dict[str, Any]], server: str, image: str, version: str, origin: str
) -> None:
    world = World(version=server)
    for obj in objects:
        world.add(obj)
    found = cluster_version(world, image)
    assert (str(found.version), found.origin) == (version, origin)
    assert cluster_version(world.copy(), image) == found


def test_an_image_of_another_product_shows_the_version_that_it_is_based_on() -> None:
    found = cluster_version(World(), "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.34.7")
    assert found.version is not None
    assert found.version.short == "1.34"

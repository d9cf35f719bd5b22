"""A manifest from a file has the inventory of its mirror Pod."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.operator.controlplane.adoption.api_defaults import (
    as_mirror_pod,
    is_scheduler,
)
from kube_scheduler_operator.operator.controlplane.adoption.inventory import take_inventory

from .....customised import CUSTOMISED, customised

STOCK: dict[str, Any] = json.loads(Path(__file__).with_name("kubeadm-mirror-pod.json").read_text())


def manifest(*names: str) -> dict[str, Any]:
    """What kubeadm writes: without everything that the API server and the kubelet add."""
    pod = deepcopy(customised(STOCK, *names))
    pod["metadata"] = {
        "labels": pod["metadata"]["labels"],
        "name": "kube-scheduler",
        **({"annotations": found} if (found := _users(pod["metadata"]["annotations"])) else {}),
    }
    spec = pod["spec"]
    for key, value in {
        "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
    }.items():  # fmt: skip
        if spec[key] == value:
            del spec[key]
    for key in (
        "enableServiceLinks", "nodeName", "preemptionPolicy", "priority", "restartPolicy",
        "schedulerName", "tolerations",
    ):  # fmt: skip
        del spec[key]
    container = spec["containers"][0]
    for key in ("terminationMessagePath", "terminationMessagePolicy"):
        del container[key]
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        for key, value in {"successThreshold": 1, "periodSeconds": 10}.items():
            if container[probe].get(key) == value:
                del container[probe][key]
    for one in container.get("env", ()):
        one.get("valueFrom", {}).get("fieldRef", {}).pop("apiVersion", None)
        one.get("valueFrom", {}).get("resourceFieldRef", {}).pop("divisor", None)
    return pod


def _users(annotations: dict[str, str]) -> dict[str, str]:
    return {k: v for k, v in annotations.items() if not k.startswith("kubernetes.io/config.")}


@pytest.mark.parametrize("names", [(), *((name,) for name in CUSTOMISED)], ids=str)
def test_a_manifest_and_its_mirror_pod_have_the_same_settings(names: tuple[str, ...]) -> None:
    made = as_mirror_pod(manifest(*names), "a", KUBEADM)
    mirror = customised(STOCK, *names)
    resources = mirror["spec"]["containers"][0]["resources"]
    resources["requests"] = {**resources.get("limits", {}), **resources["requests"]}
    expected = take_inventory(mirror, KUBEADM)
    assert take_inventory(made, KUBEADM) == expected
    assert (made["metadata"]["name"], made["spec"]["nodeName"]) == ("kube-scheduler-a", "a")


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("registry.k8s.io/kube-scheduler:v1.35.4", {}),
        ("localhost:5000/kube-scheduler", {"imagePullPolicy": "Always"}),
        ("kube-scheduler:latest", {"imagePullPolicy": "Always"}),
        ("kube-scheduler@sha256:0", {}),
    ],
)
def test_the_pull_policy_follows_from_the_image(image: str, policy: dict[str, str]) -> None:
    pod = manifest()
    container = pod["spec"]["containers"][0]
    container["image"] = image
    del container["imagePullPolicy"]
    found = take_inventory(as_mirror_pod(pod, "a", KUBEADM), KUBEADM)
    assert found.settings.container == policy


def test_a_zero_in_a_probe_is_unset() -> None:
    pod = manifest()
    unset = {"failureThreshold": 0, "periodSeconds": 0, "successThreshold": 0, "timeoutSeconds": 0}
    pod["spec"]["containers"][0]["livenessProbe"] |= {**unset, "initialDelaySeconds": 0}
    (container,) = as_mirror_pod(pod, "a", KUBEADM)["spec"]["containers"]
    defaults = {
        "failureThreshold": 3,
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    }
    found = {key: container["livenessProbe"][key] for key in (*unset, "initialDelaySeconds")}
    assert found == {**defaults, "initialDelaySeconds": 0}


def test_limits_are_requests_that_are_not_set() -> None:
    pod = manifest()
    pod["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    found = take_inventory(as_mirror_pod(pod, "a", KUBEADM), KUBEADM)
    assert found.settings.container["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    "document", [None, 7, {}, {"kind": "Pod"}, {"kind": "Pod", "spec": {"containers": 7}},
                 {"kind": "Pod", "spec": {"containers": [None, {"name": "etcd"}]}}],
)  # fmt: skip
def test_other_documents_are_not_schedulers(document: Any) -> None:
    assert not is_scheduler(document)
    assert is_scheduler(STOCK)

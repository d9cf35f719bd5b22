"""Every field of an adopted static Pod is kept, replaced by an equal, or named."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.environment import holds_credentials
from kube_scheduler_operator.base.platform import KUBEADM, RKE2, Platform
from kube_scheduler_operator.operator.controlplane.adoption.inventory import (
    Inventory,
    take_inventory,
)
from kube_scheduler_operator.operator.controlplane.adoption.pod_settings import (
    NO_SETTINGS,
    PodSettings,
    apply_settings,
    parse_settings,
    settings_text,
)
from kube_scheduler_operator.operator.controlplane.node_pods import render_static_pod

from .....customised import CUSTOMISED, customised

STOCK: dict[str, Any] = json.loads(Path(__file__).with_name("kubeadm-mirror-pod.json").read_text())
"""The mirror Pod of kubeadm's manifest, as the API server of Kubernetes 1.35 shows it."""


def inventory(pod: dict[str, Any], platform: Platform = KUBEADM) -> Inventory:
    return take_inventory(pod, platform)


def changed(pod: Any = None, container: Any = None, **metadata: Any) -> dict[str, Any]:
    """The stock Pod with other fields."""
    made = deepcopy(STOCK)
    made["spec"] |= pod or {}
    made["spec"]["containers"][0] |= container or {}
    made["metadata"] |= metadata
    return made


def rendered(pod: dict[str, Any]) -> dict[str, Any]:
    """The operator's Pod with the settings of `pod`, through the text that a revision has."""
    own = render_static_pod(KUBEADM, "image", ["--config=x"], ("127.0.0.1", 10259))
    return apply_settings(own, parse_settings(settings_text(inventory(pod).settings)))


def test_the_pod_that_kubeadm_writes_has_no_settings() -> None:
    found = inventory(STOCK)
    assert found == Inventory(NO_SETTINGS)
    assert not found.settings
    assert settings_text(found.settings) == ""


@pytest.mark.parametrize("name", CUSTOMISED)
def test_each_customisation_is_kept(name: str) -> None:
    found = inventory(customised(STOCK, name))
    pod_settings = {n for n in CUSTOMISED[name].kept if not n.startswith("flags.")}
    assert {setting for setting, _ in found.settings.names()} == pod_settings
    assert found.not_kept == ()


def test_all_customisations_together_are_kept() -> None:
    names = [name for name in CUSTOMISED if name != "references"]
    found = inventory(customised(STOCK, *names))
    kept = frozenset().union(*(CUSTOMISED[name].kept for name in names))
    assert {f"{n}" for n, _ in found.settings.names()} == {
        n for n in kept if not n.startswith("flags.")
    }
    assert found.not_kept == ()


def test_the_operators_pod_has_all_of_it() -> None:
    names = [name for name in CUSTOMISED if name != "references"]
    pod = rendered(customised(STOCK, *names))
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert [one["name"] for one in container["env"]] == ["GOGC", "HTTPS_PROXY", "NO_PROXY"]
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    assert pod["metadata"]["annotations"]["example.com/team"] == "platform"
    assert pod["metadata"]["labels"]["example.com/tier"] == "gold"
    assert pod["metadata"]["labels"]["component"] == "kube-scheduler"
    assert spec["priorityClassName"] == "system-cluster-critical"
    assert spec["priority"] == 2000000000
    assert spec["securityContext"]["seccompProfile"] == {"type": "Unconfined"}
    assert container["securityContext"]["capabilities"] == {
        "add": ["NET_BIND_SERVICE"],
        "drop": ["ALL"],
    }
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["startupProbe"]["failureThreshold"] == 480
    assert container["startupProbe"]["periodSeconds"] == 1
    assert container["livenessProbe"]["timeoutSeconds"] == 30
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert "/etc/ssl/certs" in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert "/etc/kubernetes/scheduler.conf" in [m["mountPath"] for m in container["volumeMounts"]]


def test_the_operators_own_pod_with_settings_gives_the_same_settings_again() -> None:
    """What the API server would show of it, as far as the tables of the inventory matter."""
    names = [name for name in CUSTOMISED if name != "probes"]
    wanted = inventory(customised(STOCK, *names)).settings
    pod = rendered(customised(STOCK, *names))
    pod["metadata"]["labels"].pop("revision")
    container = pod["spec"]["containers"][0]
    container["volumeMounts"] = [
        mount for mount in container["volumeMounts"] if mount["name"] != "resource-dir"
    ]
    container["securityContext"].pop("readOnlyRootFilesystem")
    found = inventory(pod)
    assert found.not_kept == ()
    kept = dict(found.settings.names())
    kept.pop("startupProbe", None)
    assert kept == dict(wanted.names())


NOT_KEPT = [
    (changed(pod={"initContainers": [{"name": "x"}]}), "pod.initContainers"),
    (changed(pod={"hostPID": True}), "pod.hostPID"),
    (changed(pod={"nodeSelector": {"a": "b"}}), "pod.nodeSelector"),
    (changed(pod={"restartPolicy": "OnFailure"}), "pod.restartPolicy"),
    (changed(pod={"aFieldOfKubernetes": {"1.40": True}}), "pod.aFieldOfKubernetes"),
    (changed(container={"lifecycle": {"preStop": {}}}), "lifecycle"),
    (changed(container={"envFrom": [{"configMapRef": {"name": "x"}}]}), "envFrom"),
    (changed(container={"workingDir": "/x"}), "workingDir"),
    (changed(container={"securityContext": {"privileged": True}}), "securityContext.privileged"),
    (
        changed(container={"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}),
        "securityContext.capabilities",
    ),
    (changed(pod={"securityContext": {"runAsUser": 1000}}), "pod.securityContext.runAsUser"),
    (changed(pod={"securityContext": {"fsGroup": 1000}}), "pod.securityContext.fsGroup"),
    (changed(container={"command": ["sh", "-c", "exec kube-scheduler"]}), "command"),
    (
        changed(container={"livenessProbe": {"exec": {"command": ["true"]}}}),
        "livenessProbe",
    ),
    (
        changed(container={"readinessProbe": {"httpGet": {"path": "/x", "scheme": "HTTPS"}}}),
        "readinessProbe",
    ),
    *(
        (
            changed(container={"startupProbe": {
                "httpGet": {"path": "/readyz", "scheme": "HTTPS"}, key: value,
            }}),
            f"startupProbe.{key}",
        )
        for key, value in (
            ("failureThreshold", {"a": 1}), ("periodSeconds", "x"), ("initialDelaySeconds", True),
        )
    ),
    (changed(container={"env": [{"name": "API_TOKEN", "value": "x"}]}), "env.API_TOKEN"),
    (
        changed(container={"env": [{"name": "P", "value": "http://a:b@proxy"}]}),
        "env.P",
    ),
    (
        changed(
            container={"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s"}}}]}
        ),
        "env.X",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "name"), NOT_KEPT, ids=[name for _, name in NOT_KEPT])
def test_what_cannot_be_kept_is_named_with_a_way(pod: dict[str, Any], name: str) -> None:
    (lost,) = inventory(pod).not_kept
    assert lost.name == name
    assert "; " in lost.message, "the problem, then the way to keep its effect"


@pytest.mark.parametrize("label", ["app", "revision", "component"])
def test_a_label_of_the_operator_neither_blocks_nor_is_kept(label: str) -> None:
    found = take_inventory(changed(labels={label: "7"}), KUBEADM)
    assert (found.not_kept, found.settings.labels) == ((), {})


def test_the_operators_own_labels_and_annotations_stay() -> None:
    own = {"metadata": {"labels": {"a": "own"}}, "spec": {"containers": [{}]}}
    adopted = PodSettings({"c": "adopted"}, {"a": "adopted", "b": "adopted"}, {}, {})
    assert apply_settings(own, adopted)["metadata"] == {
        "labels": {"a": "own", "b": "adopted"},
        "annotations": {"c": "adopted"},
    }


def test_a_second_container_is_named() -> None:
    pod = deepcopy(STOCK)
    pod["spec"]["containers"].append({"name": "sidecar", "image": "x"})
    assert [one.name for one in inventory(pod).not_kept] == ["containers.sidecar"]


def with_mount(path: str, at: str, name: str = "extra", **volume: Any) -> dict[str, Any]:
    pod = deepcopy(STOCK)
    source = volume or {"hostPath": {"path": path, "type": "File"}}
    pod["spec"]["volumes"].append({"name": name, **source})
    pod["spec"]["containers"][0]["volumeMounts"].append({"name": name, "mountPath": at})
    return pod


@pytest.mark.parametrize(
    "at", ["/", "/etc", "/etc/kubernetes", "/etc/kubernetes/static-pod-resources"]
)
def test_a_mount_that_would_hide_the_operators_files_is_named(at: str) -> None:
    assert [one.name for one in inventory(with_mount("/x", at)).not_kept] == ["volumes.extra"]


def test_credentials_stay_where_they_are_by_path() -> None:
    key = "/etc/kubernetes/pki/extender-client.key"
    found = inventory(with_mount(key, key))
    assert found.not_kept == ()
    (volume,) = found.settings.spec["volumes"]
    assert volume["hostPath"]["path"] == key


def test_a_volume_with_the_name_of_the_operators_gets_another() -> None:
    found = inventory(with_mount("/a", "/a", name="resource-dir"))
    assert [one["name"] for one in found.settings.spec["volumes"]] == ["adopted-resource-dir"]
    assert [one["name"] for one in found.settings.container["volumeMounts"]] == [
        "adopted-resource-dir"
    ]


def test_a_volume_that_a_static_pod_cannot_have_is_named() -> None:
    pod = with_mount("", "/x", configMap={"name": "x"})
    assert [one.name for one in inventory(pod).not_kept] == ["volumes.extra"]


def test_a_volume_without_a_mount_has_no_effect() -> None:
    pod = deepcopy(STOCK)
    pod["spec"]["volumes"].append({"name": "x", "hostPath": {"path": "/x"}})
    assert inventory(pod) == Inventory(NO_SETTINGS)


def test_files_of_rke2_are_not_settings_and_extra_mounts_are() -> None:
    tls = "/var/lib/rancher/rke2/server/tls/kube-scheduler/kube-scheduler.crt"
    pod = with_mount(tls, tls)
    pod["spec"]["volumes"].append({"name": "user", "hostPath": {"path": "/opt/x"}})
    container = pod["spec"]["containers"][0]
    container["volumeMounts"].append({"name": "user", "mountPath": "/opt/x"})
    container["env"] = [{"name": "FILE_HASH", "value": "abc"}, {"name": "GOGC", "value": "50"}]
    found = inventory(pod, RKE2)
    kept = dict(found.settings.names())
    assert kept.keys() == {"env.GOGC", "volumes.user", "volumeMounts./opt/x"} | {
        # Not a file of RKE2: kubeadm's kubeconfig, which the fixture has.
        "volumes.adopted-kubeconfig", "volumeMounts./etc/kubernetes/scheduler.conf",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("HTTPS_PROXY", "http://proxy:3128", False),
        ("HTTPS_PROXY", "http://me:pass@proxy:3128", True),
        ("HTTPS_PROXY", "http://token@proxy:3128", True),
        ("NO_PROXY", "a@b", False),
        ("DB_PASSWORD", "x", True),
        ("TOKEN_FILE", "/etc/token", False),
        ("AWS_SECRET_ACCESS_KEY", "x", True),
        ("GODEBUG", "x509ignoreCN=0", False),
        ("CA", "-----BEGIN CERTIFICATE-----", True),
        ("EMPTY_SECRET", "", False),
    ],
)
def test_credentials_in_variables_are_recognised(name: str, value: str, *, expected: bool) -> None:
    assert holds_credentials(name, value) is expected


@pytest.mark.parametrize("noise", [None, "text", [], 7, {"containers": None}])
def test_a_pod_without_a_usable_spec_has_no_settings(noise: Any) -> None:
    assert inventory({"metadata": {"name": "x"}, "spec": noise}) == Inventory(NO_SETTINGS)

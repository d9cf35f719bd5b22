"""Revisions are inserted into declared fields only; other manifests are recognized."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kube_scheduler_operator.node.static_pod import manifest
from kube_scheduler_operator.node.static_pod.manifest import (
    ManifestError,
    Probe,
    static_pod_for_revision,
)

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "kube-scheduler",
        "namespace": "kube-system",
        "labels": {"component": "kube-scheduler", "revision": "REVISION"},
    },
    "spec": {
        "containers": [
            {
                "name": "kube-scheduler",
                "image": "example.com/REVISION:1",
                "args": ["--config=/x/REVISION"],
                "readinessProbe": {
                    "httpGet": {"host": "127.0.0.1", "port": 10259, "path": "/readyz"}
                },
            }
        ],
        "volumes": [
            {"name": "kubeconfig", "hostPath": {"path": "/etc/kubernetes/REVISION.conf"}},
            {"name": "resource-dir", "hostPath": {"path": "/r/kube-scheduler-pod-REVISION"}},
        ],
    },
}

KUBEADM = b"""apiVersion: v1
kind: Pod
metadata:
  labels:
    component: kube-scheduler
    tier: control-plane
  name: kube-scheduler
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-scheduler
    - --bind-address=127.0.0.1
    - --kubeconfig=/etc/kubernetes/scheduler.conf
"""


def changed(path: Any, value: Any) -> Any:
    pod = copy.deepcopy(POD)
    *parents, last = path
    place: Any = pod
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return pod


def test_revision_is_inserted_into_label_and_volume_only() -> None:
    pod = static_pod_for_revision(POD, 12)
    expected = copy.deepcopy(POD)
    expected["metadata"]["labels"]["revision"] = "12"
    expected["spec"]["volumes"][1]["hostPath"]["path"] = "/r/kube-scheduler-pod-12"
    assert pod == expected


def test_input_pod_is_not_modified() -> None:
    before = copy.deepcopy(POD)
    static_pod_for_revision(POD, 12, "sha256:x")
    assert before == POD


def test_kubeconfig_and_its_expiry_become_annotations() -> None:
    pod = static_pod_for_revision(POD, 1, "", "abc", "2027-01-02T03:04:05Z")
    assert pod["metadata"]["annotations"] == {
        "kube-scheduler-operator.dev/kubeconfig": "abc",
        "kube-scheduler-operator.dev/kubeconfig-expires": "2027-01-02T03:04:05Z",
    }


def test_content_hash_becomes_an_annotation() -> None:
    pod = static_pod_for_revision(POD, 1, "sha256:x")
    assert pod["metadata"]["annotations"] == {
        "kube-scheduler-operator.dev/content-hash": "sha256:x"
    }


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        pytest.param(changed(["metadata", "labels"], None), "metadata.labels", id="no labels"),
        pytest.param(
            changed(["metadata", "labels", "revision"], "3"), "metadata.labels.revision", id="done"
        ),
        pytest.param(changed(["spec", "volumes"], []), "resource-dir", id="no volume"),
        pytest.param(changed(["spec", "volumes"], None), "resource-dir", id="no volumes"),
        pytest.param(
            changed(["spec", "volumes", 1, "hostPath"], None), "resource-dir", id="no hostPath"
        ),
        pytest.param(
            changed(["spec", "volumes", 1, "hostPath", "path"], "/r"),
            "resource-dir",
            id="no placeholder",
        ),
        pytest.param(
            changed(["spec", "volumes", 1, "hostPath", "path"], "/REVISION/REVISION"),
            "resource-dir",
            id="two placeholders",
        ),
        pytest.param({"kind": "Pod"}, "metadata", id="no metadata"),
    ],
)
def test_missing_placeholder_is_reported_with_its_field(pod: Any, field: Any) -> None:
    with pytest.raises(ManifestError, match=field):
        static_pod_for_revision(pod, 1)


def parsed(pod: Any) -> Any:
    return manifest.parse(manifest.serialise(pod), "kube-scheduler")


def test_own_manifest_is_recognized() -> None:
    found = parsed(static_pod_for_revision(POD, 12))
    assert found.revision == 12
    assert found.probe == Probe("127.0.0.1", 10259, "/readyz")


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(POD, id="a template"),
        pytest.param(changed(["metadata", "name"], "other"), id="another name"),
        pytest.param(changed(["metadata", "labels", "revision"], "12"), id="another directory"),
        pytest.param({"kind": "Pod"}, id="nothing in it"),
        pytest.param({"kind": "Deployment"}, id="another kind"),
    ],
)
def test_other_json_has_no_revision(pod: Any) -> None:
    assert parsed(pod).revision is None


def test_kubeadms_manifest_has_a_probe_but_no_revision() -> None:
    found = manifest.parse(KUBEADM, "kube-scheduler")
    assert found.revision is None
    assert found.probe == Probe("127.0.0.1", 10259, "/healthz")


@pytest.mark.parametrize(
    ("flags", "probe"),
    [
        ("--bind-address=0.0.0.0", Probe("127.0.0.1", 10259, "/healthz")),
        ("--bind-address=::", Probe("127.0.0.1", 10259, "/healthz")),
        (
            "--bind-address=10.0.0.5\n    - --secure-port=11259",
            Probe("10.0.0.5", 11259, "/healthz"),
        ),
        ("", Probe("127.0.0.1", 10259, "/healthz")),
    ],
)
def test_probe_of_another_manifest_comes_from_its_flags(flags: Any, probe: Any) -> None:
    data = KUBEADM.replace(b"--bind-address=127.0.0.1", flags.encode())
    assert manifest.parse(data, "kube-scheduler").probe == probe


def test_a_relative_path_of_a_probe_is_read_as_by_the_kubelet() -> None:
    get = ["spec", "containers", 0, "readinessProbe", "httpGet", "path"]
    assert parsed(changed(get, "healthz")).probe == Probe("127.0.0.1", 10259, "/healthz")


def test_named_probe_port_is_resolved() -> None:
    pod = static_pod_for_revision(POD, 1)
    container = pod["spec"]["containers"][0]
    container["ports"] = [{"name": "probe-port", "containerPort": 4711}]
    container["readinessProbe"]["httpGet"]["port"] = "probe-port"
    assert parsed(pod).probe.port == 4711


@pytest.mark.parametrize(
    ("data", "plausible"),
    [
        pytest.param(KUBEADM, True, id="kubeadm"),
        pytest.param(json.dumps(POD).encode(), True, id="ours"),
        pytest.param(b"", False, id="empty"),
        pytest.param(KUBEADM[:40], False, id="cut off"),
        pytest.param(b"kind: ConfigMap\nspec:\n", False, id="another kind"),
        pytest.param(b"\xff\x00", False, id="not text"),
    ],
)
def test_only_a_pod_is_plausible(data: Any, plausible: Any) -> None:
    assert manifest.is_plausible(data) is plausible


def test_serialised_manifests_are_byte_stable() -> None:
    shuffled = dict(reversed(list(POD.items())))
    assert manifest.serialise(POD) == manifest.serialise(shuffled)


def test_log_directory_prefix() -> None:
    assert manifest.log_directory_prefix(POD, "cp-1") == "kube-system_kube-scheduler-cp-1_"

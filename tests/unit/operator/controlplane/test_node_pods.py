"""The Pods on a control-plane node: golden files, and the properties that they rely on."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, PLATFORMS, RKE2, Platform
from kube_scheduler_operator.base.templates import canonical_json, label_value
from kube_scheduler_operator.config.language.command_line import CONFIG_PATH
from kube_scheduler_operator.operator.controlplane.node_pods import (
    Attempt,
    InstalledScheduler,
    InstallerSettings,
    installer_pod_name,
    render_guard_pod,
    render_installer_pod,
    render_restore_pod,
    render_static_pod,
    stub_kubeconfig,
)

IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"
ARGUMENTS = [f"--config={CONFIG_PATH}", "--bind-address=127.0.0.1", "--v=2"]

each_with_static_pods = pytest.mark.parametrize(
    "platform",
    [platform for platform in PLATFORMS.values() if platform.owns_static_pods],
    ids=lambda platform: platform.name,
)

SCHEDULER = InstalledScheduler(IMAGE, ARGUMENTS)
SETTINGS = InstallerSettings()


def static_pod(**changes: Any) -> Any:
    return render_static_pod(KUBEADM, IMAGE, ARGUMENTS, ("127.0.0.1", 10259), **changes)


def installer_pod(
    platform: Platform = KUBEADM,
    retry: int = 0,
    scheduler: InstalledScheduler = SCHEDULER,
    owner_uid: str = "6f2c7d3e-0000-4000-8000-000000000007",
    settings: InstallerSettings = SETTINGS,
) -> Any:
    return render_installer_pod(
        platform,
        Attempt("cp-1", 7, retry),
        scheduler,
        "example.com/operator:1",
        owner_uid,
        settings,
    )


def as_text(pod: Any) -> str:
    return json.dumps(pod, indent=2, sort_keys=True) + "\n"


def test_static_pod(golden: Any) -> None:
    golden("kube-scheduler-pod.json", as_text(static_pod()))


def test_installer_pod(golden: Any) -> None:
    scheduler = InstalledScheduler(IMAGE, ARGUMENTS, "sha256:abc")
    golden("installer-pod.json", as_text(installer_pod(scheduler=scheduler)))


def test_installer_pod_of_a_retry_with_rollback(golden: Any) -> None:
    settings = InstallerSettings(health_timeout=90, settling_time=5, log_level=6, rollback=True)
    golden("installer-pod-retry.json", as_text(installer_pod(retry=2, settings=settings)))


def test_pods_with_managed_credentials(golden: Any) -> None:
    """Certificates come from a directory that all revisions share, the rest from the revision."""
    static = render_static_pod(OPENSHIFT, IMAGE, ARGUMENTS, ("", 10259))
    golden("openshift-kube-scheduler-pod.json", as_text(static))
    golden("openshift-installer-pod.json", as_text(installer_pod(platform=OPENSHIFT)))
    golden("openshift-guard-pod.json", as_text(guard_pod(platform=OPENSHIFT, known="")))


def test_restore_pod(golden: Any) -> None:
    golden("restore-pod.json", as_text(render_restore_pod(KUBEADM, "cp-1", 1, "operator:v1")))


def guard_pod(**changes: Any) -> Any:
    values = {
        "platform": KUBEADM,
        "node": "cp-1",
        "operator_image": "operator:v1",
        "probe": {"host": "127.0.0.1", "path": "/readyz", "port": 10259, "scheme": "HTTPS"},
        "known": "0123456789abcdef",
        "owner_uid": "6f2c7d3e-0000-4000-8000-000000000007",
    }
    return render_guard_pod(**{**values, **changes})


def test_guard_pod(golden: Any) -> None:
    golden("guard-pod.json", as_text(guard_pod()))


def test_guard_has_a_controller_so_that_kubectl_drain_evicts_it() -> None:
    owners = guard_pod()["metadata"]["ownerReferences"]
    assert [(o["kind"], o["name"], o["controller"]) for o in owners] == [
        ("KubeScheduler", "cluster", True)
    ]


def test_guard_has_no_write_access_and_no_api_access() -> None:
    spec = guard_pod()["spec"]
    host = {volume["name"] for volume in spec["volumes"] if "hostPath" in volume}
    containers = (*spec["initContainers"], *spec["containers"])
    mounts = [mount for c in containers for mount in c["volumeMounts"] if mount["name"] in host]
    assert len(mounts) == 2 * len(host)
    assert not any("emptyDir" in volume for volume in spec["volumes"]), "a drain would refuse it"
    assert all(mount["readOnly"] for mount in mounts)
    assert spec["automountServiceAccountToken"] is False
    assert "hostPID" not in spec


def pods_of_a_node(platform: Any) -> Any:
    return (
        render_static_pod(platform, IMAGE, ARGUMENTS, ("127.0.0.1", 10259)),
        installer_pod(platform=platform),
        render_restore_pod(platform, "cp-1", 1, "operator:v1"),
        guard_pod(platform=platform),
    )


@each_with_static_pods
def test_no_mount_creates_missing_paths(platform: Any) -> None:
    """A misspelt path must fail; the kubelet would make an empty file or folder in its place."""
    kinds = {
        volume["hostPath"].get("type", "")
        for pod in pods_of_a_node(platform)
        for volume in pod["spec"].get("volumes", ())
        if "hostPath" in volume and volume["hostPath"]["path"] != platform.upgrade_dir
    }
    assert {"Directory"} <= kinds <= {"Directory", "File"}


@each_with_static_pods
def test_a_guard_mounts_what_it_reads_and_no_directory_around_it(platform: Any) -> None:
    """The directory of a kubeconfig has an administrator's as well, and the keys of the cluster."""
    spec = guard_pod(platform=platform)["spec"]
    mounted = {v["hostPath"]["path"] for v in spec["volumes"] if "hostPath" in v}
    read = {platform.manifest_dir, platform.resource_dir, platform.upgrade_dir}
    read |= set() if platform.credentials else {platform.scheduler_kubeconfig}
    assert mounted == read - {""}
    for container in (*spec["containers"], *spec["initContainers"]):
        assert {m["mountPath"] for m in container["volumeMounts"]} == mounted | {"/operator"}


@each_with_static_pods
def test_what_may_have_private_keys_is_in_memory(platform: Any) -> None:
    """The preflight writes the keys of extenders; certificates are checked in files."""
    for pod in pods_of_a_node(platform):
        for volume in pod["spec"].get("volumes", ()):
            if "emptyDir" in volume and volume["name"] != "progress":
                assert volume["emptyDir"]["medium"] == "Memory", volume["name"]


def test_an_installer_that_checks_certificates_can_write_them() -> None:
    (installer,) = (
        container
        for container in installer_pod(platform=OPENSHIFT)["spec"]["containers"]
        if container["name"] == "installer"
    )
    assert installer["securityContext"]["readOnlyRootFilesystem"] is True
    assert "/tmp" in {mount["mountPath"] for mount in installer["volumeMounts"]}


@each_with_static_pods
def test_every_container_requests_cpu_and_memory(platform: Any) -> None:
    for pod in pods_of_a_node(platform):
        spec = pod["spec"]
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
            assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_on_openshift_schedulers_and_guards_run_on_the_cpus_reserved_for_management() -> None:
    management = (
        "target.workload.openshift.io/management",
        '{"effect": "PreferredDuringScheduling"}',
    )
    static = render_static_pod(OPENSHIFT, IMAGE, ARGUMENTS, ("", 10259))
    for pod in (static, guard_pod(platform=OPENSHIFT)):
        assert management in pod["metadata"]["annotations"].items()
    assert "annotations" not in guard_pod()["metadata"]


def test_the_static_pod_has_no_annotation_of_its_content() -> None:
    assert list(static_pod()["metadata"]["annotations"]) == [
        "kubectl.kubernetes.io/default-container"
    ]


def test_placeholder_is_in_the_two_declared_fields_only() -> None:
    assert as_text(static_pod()).count("REVISION") == 2


def test_static_pod_has_the_given_probe_address() -> None:
    pod = render_static_pod(KUBEADM, IMAGE, [], ("10.0.0.1", 12345))
    container = pod["spec"]["containers"][0]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        assert (get["host"], get["port"], get["scheme"]) == ("10.0.0.1", 12345, "HTTPS")


def test_startup_timeout_is_kubeadms() -> None:
    probe = static_pod()["spec"]["containers"][0]["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 24 * 10


def test_preflight_has_the_operands_arguments_and_exits() -> None:
    container = installer_pod()["spec"]["containers"][0]
    assert container["command"] == ["kube-scheduler"]
    assert container["args"][:-2] == static_pod()["spec"]["containers"][0]["args"]
    assert container["args"][-2:] == [
        "--write-config-to=/preflight/effective-config.yaml",
        "--secure-port=0",
    ]


def test_preflight_has_no_host_access() -> None:
    spec = installer_pod()["spec"]
    host_volumes = {volume["name"] for volume in spec["volumes"] if "hostPath" in volume}
    mounted = {mount["name"] for mount in spec["containers"][0]["volumeMounts"]}
    assert not mounted & host_volumes


def test_installer_needs_neither_scheduler_nor_api() -> None:
    spec = installer_pod()["spec"]
    assert spec["nodeName"] == "cp-1"
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["automountServiceAccountToken"] is False
    assert "activeDeadlineSeconds" not in spec


def test_manifest_and_resources_are_in_one_mount() -> None:
    spec = installer_pod()["spec"]
    (host,) = (volume for volume in spec["volumes"] if volume["name"] == "host")
    (mount,) = (m for m in spec["containers"][1]["volumeMounts"] if m["name"] == "host")
    assert host["hostPath"]["path"] == mount["mountPath"] == "/etc/kubernetes"
    assert KUBEADM.manifest_path.startswith("/etc/kubernetes/")
    assert KUBEADM.resource_dir.startswith("/etc/kubernetes/")


@pytest.mark.parametrize(
    ("node", "retry", "expected"),
    [
        pytest.param("cp-1", 0, "installer-7-cp-1", id="first attempt"),
        pytest.param("cp-1", 3, "installer-7-retry-3-cp-1", id="retry"),
        pytest.param("cp.example.com", 0, "installer-7-cp.example.com", id="dots"),
    ],
)
def test_installer_pod_name(node: Any, retry: Any, expected: Any) -> None:
    assert installer_pod_name(node, 7, retry) == expected


node_names = st.from_regex(r"\A[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?\Z")


@given(node=node_names, revision=st.integers(1, 10**9), retry=st.integers(0, 10**6))
def test_names_fit_for_every_node_name(node: Any, revision: Any, retry: Any) -> None:
    name = installer_pod_name(node, revision, retry)
    value = label_value(node)
    assert len(name) <= 253
    assert len(value) <= 63
    assert name[-1].isalnum()
    assert value[0].isalnum()
    assert value[-1].isalnum()


def test_long_node_names_stay_distinct() -> None:
    names = [f"{'a' * 240}-{i}" for i in range(20)]
    assert len({label_value(name) for name in names}) == len(names)
    assert len({installer_pod_name(name, 123456789, 5) for name in names}) == len(names)


hostile = st.text(st.characters(blacklist_categories=["Cs"]), max_size=60)


@given(image=hostile, arguments=st.lists(hostile, max_size=4), uid=hostile)
def test_no_value_can_change_the_structure_of_a_pod(image: Any, arguments: Any, uid: Any) -> None:
    pod = installer_pod(scheduler=InstalledScheduler(image, arguments), owner_uid=uid)
    assert pod["spec"]["containers"][0]["image"] == image
    assert pod["spec"]["containers"][0]["args"][:-2] == arguments
    assert pod["metadata"]["ownerReferences"][0]["uid"] == uid
    static = render_static_pod(KUBEADM, image, arguments, ("127.0.0.1", 1))
    assert static["spec"]["containers"][0]["args"] == arguments
    assert static["spec"]["hostNetwork"] is True


def test_rendering_is_deterministic() -> None:
    assert canonical_json(installer_pod()) == canonical_json(installer_pod())
    assert canonical_json(static_pod()) == canonical_json(static_pod())


def test_paths_follow_the_platform() -> None:
    other = dataclasses.replace(
        KUBEADM,
        static_pod_name="openshift-kube-scheduler",
        operand_namespace="openshift-kube-scheduler",
        operand_command=("hyperkube", "kube-scheduler"),
        scheduler_kubeconfig="/var/lib/x/scheduler.conf",
        resource_dir="/etc/kubernetes/r",
    )
    pod = render_static_pod(other, IMAGE, [], ("127.0.0.1", 10259))
    assert pod["metadata"]["name"] == "openshift-kube-scheduler"
    assert pod["spec"]["containers"][0]["command"] == ["hyperkube", "kube-scheduler"]
    paths = {v["name"]: v["hostPath"]["path"] for v in pod["spec"]["volumes"]}
    assert paths == {
        "kubeconfig": "/var/lib/x/scheduler.conf",
        "resource-dir": "/etc/kubernetes/r/kube-scheduler-pod-REVISION",
    }


def test_scheduler_mounts_the_files_of_its_kubeconfig_only() -> None:
    pod = render_static_pod(RKE2, IMAGE, [], ("127.0.0.1", 10259))
    (container,) = pod["spec"]["containers"]
    volumes = {volume["name"]: volume["hostPath"] for volume in pod["spec"]["volumes"]}
    seen = {
        mount["mountPath"]: (volumes[mount["name"]], mount["readOnly"])
        for mount in container["volumeMounts"]
    }
    for path in (RKE2.scheduler_kubeconfig, *RKE2.kubeconfig_files):
        assert seen[path] == ({"path": path, "type": "File"}, True)
    assert len(seen) == len(volumes) == len(RKE2.kubeconfig_files) + 2


@each_with_static_pods
def test_renamed_paths_share_a_directory_that_is_not_the_root(platform: Platform) -> None:
    pod = installer_pod(platform=platform)
    (host,) = (volume for volume in pod["spec"]["volumes"] if volume["name"] == "host")
    directory = host["hostPath"]["path"]
    assert platform.manifest_path.startswith(f"{directory}/")
    assert platform.resource_dir.startswith(f"{directory}/")
    assert directory.count("/") > 1
    assert not platform.resource_dir.startswith(platform.manifest_dir), "the kubelet would run them"


def test_stub_kubeconfig_is_complete_and_has_no_credentials() -> None:
    config = yaml.safe_load(stub_kubeconfig())
    (context,) = config["contexts"]
    assert config["current-context"] == context["name"]
    assert context["context"]["cluster"] == config["clusters"][0]["name"]
    assert context["context"]["user"] == config["users"][0]["name"]
    assert config["users"][0]["user"] == {}

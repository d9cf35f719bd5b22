"""`kubectl scheduler check --upgrade` before each step of kubeadm, and what happens then.

The configuration has a feature gate that each step removes. Of the devices, those of one pool have
a taint, which counts from 1.36 on (DRADeviceTaints), those of another one are tainted by a
DeviceTaintRule, which counts from 1.37 on (DRADeviceTaintRules), and those of the third one are an
extended resource, which is known from 1.36 on (DRAExtendedResource). The API server keeps these
fields before kube-scheduler reads them, because its gates are set. No driver runs here, so Pods get
a node and stay there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

import pytest
import yaml

from cluster import binaries, node_files, releases
from cluster.api import ApiError
from cluster.observe import KUBESCHEDULER, until

from ..conftest import MANIFEST, PODS_IN_DEFAULT
from ..workloads import apply, pod
from .conftest import Clusters, KubeadmCluster, image_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600, func_only=True)]

Object = dict[str, Any]
VERSIONS: Final = tuple(releases.PINNED[minor] for minor in sorted(releases.PINNED))
GONE: Final = {"1.35": "SizeMemoryBackedVolumes", "1.36": "CSIMigrationPortworx",
               "1.37": "SidecarContainers"}  # fmt: skip
"""By the version that removes it, a feature gate that the one before it has."""
SERVER_GATES: Final = ("DRADeviceTaints=true", "DRAExtendedResource=true")
RULES: Final = ("DRADeviceTaintRules=true",)
API: Final = "resource.k8s.io"
DRIVER: Final = "gpu.example"
TAINTED, RULED, EXTENDED = "tainted", "ruled", "extended"
RESOURCE: Final = "gpu.example/any"
CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
API_SERVER: Final = "etc/kubernetes/manifests/kube-apiserver.yaml"
DEVICES: Final = 8
TRIED: Final = 30.0
"""Seconds within which kube-scheduler has tried a Pod."""


@dataclass(frozen=True)
class Outcome:
    """What became of a Pod: its node, or the message of kube-scheduler."""

    node: str
    message: str


def short(version: str) -> str:
    return version.removeprefix("v").rpartition(".")[0]


def pool(name: str) -> Object:
    """A ResourceSlice for all nodes: the kubelet removes its own node's without a driver."""
    taints = [{"key": "gpu.example/worn", "effect": "NoSchedule"}] if name == TAINTED else []
    kind = {"kind": {"string": name}}
    devices = [{"name": f"{name}-{number}", "attributes": kind} for number in range(DEVICES)]
    return {
        "apiVersion": f"{API}/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "allNodes": True,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{**device, "taints": taints} for device in devices],
        },
    }


def device_class(name: str, **spec: Any) -> Object:
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].kind == '{name}'"
    selectors = [{"cel": {"expression": expression}}]
    return {
        "apiVersion": f"{API}/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, **spec},
    }


def claim(name: str, of: str) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": of}}
    return {
        "apiVersion": f"{API}/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def create(cluster: KubeadmCluster, version: str) -> dict[str, Outcome]:
    """Create a Pod of each kind at a version; kind -> what became of it."""
    tag = short(version).replace(".", "-")
    tolerations = [{"operator": "Exists"}]
    made = [pod(f"plain-{tag}", requests={"cpu": "1m"}, tolerations=tolerations)]
    extended = pod(f"{EXTENDED}-{tag}", requests={RESOURCE: "1"}, tolerations=tolerations)
    extended["spec"]["containers"][0]["resources"]["limits"] = {RESOURCE: "1"}
    made.append(extended)
    for kind in (TAINTED, RULED):
        name = f"{kind}-{tag}"
        apply(cluster, claim(name, kind))
        uses = [{"name": "gpu", "resourceClaimName": name}]
        made.append(pod(name, tolerations=tolerations, resourceClaims=uses))
    for each in made:
        cluster.api.request("POST", PODS_IN_DEFAULT, each)
    names = [each["metadata"]["name"] for each in made]
    until(lambda: all(is_tried(outcome(cluster, name)) for name in names), TRIED, "not all tried")
    return {name.removesuffix(f"-{tag}"): outcome(cluster, name) for name in names}


def outcome(cluster: KubeadmCluster, name: str) -> Outcome:
    found = cluster.api.request("GET", f"{PODS_IN_DEFAULT}/{name}")
    conditions = found.get("status", {}).get("conditions", ())
    messages = [each.get("message", "") for each in conditions if each["type"] == "PodScheduled"]
    return Outcome(found["spec"].get("nodeName", ""), "".join(messages))


def is_tried(found: Outcome) -> bool:
    return bool(found.node or found.message)


def set_server_flags(cluster: KubeadmCluster, flags: dict[str, str]) -> None:
    """Set flags of the API server, in its manifest and in what kubeadm writes the next one from."""
    config_map = cluster.api.request("GET", CONFIG_MAP)
    configuration = yaml.safe_load(config_map["data"]["ClusterConfiguration"])
    arguments = configuration["apiServer"].setdefault("extraArgs", [])
    arguments[:] = [each for each in arguments if each["name"] not in flags]
    arguments += [{"name": name, "value": value} for name, value in flags.items()]
    text = yaml.safe_dump(configuration)
    cluster.api.request("PATCH", CONFIG_MAP, {"data": {"ClusterConfiguration": text}})
    path = node_files.root(cluster.sandbox, cluster.node) / API_SERVER
    manifest = yaml.safe_load(path.read_text())
    command = manifest["spec"]["containers"][0]["command"]
    given = re.compile(f"--({'|'.join(map(re.escape, flags))})=")
    command[:] = [word for word in command if not given.match(word)]
    command += [f"--{name}={value}" for name, value in flags.items()]
    beside = path.with_name(".kube-apiserver.yaml")  # the kubelet ignores it
    beside.write_text(yaml.safe_dump(manifest))
    beside.replace(path)
    wanted = [f"--{name}={value}" for name, value in flags.items()]
    until(lambda: serves_with(cluster, wanted), 180, f"the API server has no {wanted}")
    cluster.schedules(180)


def serves_with(cluster: KubeadmCluster, wanted: list[str]) -> bool:
    path = f"/api/v1/namespaces/kube-system/pods/kube-apiserver-{cluster.node.name}"
    try:
        found = cluster.api.request("GET", path)
    except ApiError:
        return False
    statuses = found["status"].get("containerStatuses") or [{}]
    command = found["spec"]["containers"][0]["command"]
    return bool(statuses[0].get("ready")) and set(wanted) <= set(command)


def check(cluster: KubeadmCluster, version: str) -> dict[str, Any]:
    """The step of each version of `check --upgrade`, for the control plane's scheduler."""
    named = [f"--kube-scheduler={binaries.provide(['kube-scheduler'], one)['kube-scheduler']}"
             for one in VERSIONS]  # fmt: skip
    print(cluster.plugin("check", "--upgrade", short(version), *named).stdout)
    done = cluster.plugin("check", "--upgrade", short(version), *named, "-o", "json")
    assert done.returncode == 1, done.stderr
    return {one["version"]: one["schedulers"][0] for one in json.loads(done.stdout)["steps"]}


def reported_by(step: dict[str, Any]) -> tuple[dict[str, str], set[str]]:
    """(Pod -> why it would have no place, Pods that would get one), as the check reports."""
    (placements,) = step["placements"]
    assert not step["notKnown"], step
    worse = {
        name.removeprefix("default/"): each["reason"]
        for each in (*placements["lost"], *placements["newlyWaiting"])
        for name in each["pods"]
    }
    return worse, {name.removeprefix("default/") for name in placements["newlyFitting"]}


def test_each_step_of_kubeadm_does_what_the_check_reported_before(clusters: Clusters) -> None:
    cluster = clusters.get(1, VERSIONS[0])
    set_server_flags(cluster, {"feature-gates": ",".join(SERVER_GATES)})
    gates = [f"{gate}=true" for gate in GONE.values()]
    cluster.override({"arguments": {"feature-gates": gates}})
    classes = [device_class(TAINTED), device_class(RULED),
               device_class(EXTENDED, extendedResourceName=RESOURCE)]  # fmt: skip
    apply(cluster, *classes, *(pool(name) for name in (TAINTED, RULED, EXTENDED)))
    before = create(cluster, VERSIONS[0])
    assert {kind for kind, found in before.items() if not found.node} == {EXTENDED}

    whole = check(cluster, VERSIONS[-1])
    for version, gate in GONE.items():
        assert [gate in error for error in whole[version]["errors"]] == [True], whole[version]

    for version in VERSIONS[1:]:
        if version == VERSIONS[-1]:
            with_rules(cluster)
        step = check(cluster, version)[short(version)]
        gate = GONE[short(version)]
        assert step["errors"] == whole[short(version)]["errors"]
        cluster.upgrade(version)
        is_refused(cluster, version, gate)
        gates.remove(f"{gate}=true")
        cluster.api.request(
            "PATCH", KUBESCHEDULER,
            {"spec": {"unsupportedConfigOverrides": {"arguments": {"feature-gates": gates}}}},
        )  # fmt: skip
        cluster.follows(version)
        after = create(cluster, version)
        compare(cluster, step, before, after)
        before = after


def with_rules(cluster: KubeadmCluster) -> None:
    """Let the API server of 1.36 serve DeviceTaintRules, and taint the devices of a pool."""
    gates = ",".join((*SERVER_GATES, *RULES))
    set_server_flags(cluster, {"feature-gates": gates, "runtime-config": f"{API}/v1beta2=true"})
    taint = {"key": "gpu.example/recalled", "effect": "NoSchedule"}
    rule = {
        "apiVersion": f"{API}/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": RULED},
        "spec": {"deviceSelector": {"driver": DRIVER, "pool": RULED}, "taint": taint},
    }
    apply(cluster, rule)


def is_refused(cluster: KubeadmCluster, version: str, gate: str) -> None:
    """The operator leaves what kubeadm wrote, and names the gate, as the check did."""
    until(
        lambda: gate in cluster.cluster_operator("Degraded")[1],
        240,
        lambda: f"the refusal is not reported: {cluster.state()}",
    )
    assert cluster.cluster_operator("Degraded")[0] == "True"
    assert image_of(version) in cluster.on_node("cat", MANIFEST)
    assert "--config=" not in cluster.scheduler()[1]


def compare(
    cluster: KubeadmCluster,
    step: dict[str, Any],
    before: dict[str, Outcome],
    after: dict[str, Outcome],
) -> None:
    """Each kind of Pod has become what the check reported of those that were there before."""
    worse, better = reported_by(step)
    kinds = {name.rsplit("-", 2)[0]: reason for name, reason in worse.items()}
    better_kinds = {name.rsplit("-", 2)[0] for name in better}
    for kind, found in after.items():
        was = before[kind]
        print(f"{kind}: {was} -> {found}; reported: {kinds.get(kind)!r}, "
              f"{'fits' if kind in better_kinds else ''}")  # fmt: skip
        expected = kind in better_kinds or (bool(was.node) and kind not in kinds)
        assert bool(found.node) == expected, (kind, found, worse, better)
        if kind in kinds and was.node:
            assert kinds[kind] in found.message, (kind, found, worse)
    until(lambda: all(outcome(cluster, name).node for name in better), TRIED, f"{better} wait")

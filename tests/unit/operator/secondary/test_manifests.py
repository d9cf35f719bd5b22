"""The objects of a secondary scheduler: golden files, and the properties that they must have."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, RKE2, Platform
from kube_scheduler_operator.config.effective.secondary.compose import CONFIG_DIRECTORY
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS
from kube_scheduler_operator.operator.secondary.content import SecondaryContent, content_of
from kube_scheduler_operator.operator.secondary.desired import OperandDefaults

from ....conftest import Golden
from ....desired import desired_secondary
from .world import IMAGE, NAME, NAMESPACE, World

OPERAND = OperandDefaults(IMAGE, ("pull",))
EVERYTHING: dict[str, Any] = {
    "image": "example.com/scheduler-plugins:v0.31.8",
    "command": ["/bin/kube-scheduler"],
    "replicas": 3,
    "logLevel": "Debug",
    "config": {"extenders": [{"urlPrefix": "http://localhost:8888", "filterVerb": "filter"}]},
    "profiles": [{"schedulerName": "fast"}, {"schedulerName": "packed"}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "topologySpreadConstraints": [],
    "resources": {"limits": {"memory": "1Gi"}},
    "priorityClassName": "system-node-critical",
    "imagePullSecrets": [{"name": "own"}],
    "sidecars": [
        {"name": "extender", "image": "extender:1", "securityContext": {"runAsUser": 1000}}
    ],
    "volumes": [{"name": "data", "emptyDir": {}}],
}


def content(platform: Platform = KUBEADM, version: str = "1.35.4", **spec: Any) -> SecondaryContent:
    metadata = {"name": NAME, "uid": "u"}
    obj = {"metadata": metadata, "spec": {"namespace": platform.target_namespace, **spec}}
    desired = desired_secondary(obj, platform, OPERAND, Version.parse(version))
    assert desired.content is not None, desired.findings
    return desired.content


def pod(**arguments: Any) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(content(**arguments).data[names.POD_KEY])
    return spec


@pytest.mark.parametrize(("name", "spec"), [("least", {}), ("everything", EVERYTHING)])
def test_all_objects(name: str, spec: dict[str, Any], world: World, golden: Golden) -> None:
    world.put(**spec)
    world.run()
    objects = []
    for (kind, _, _), obj in world.objects.items():
        metadata = {k: v for k, v in obj["metadata"].items() if k not in VOLATILE}
        if kind == CONFIG_MAPS:
            obj = {**obj, "data": {k: parsed(k, text) for k, text in obj["data"].items()}}
        objects.append({**obj, "metadata": metadata})
    golden(f"{name}.yaml", yaml.safe_dump_all(objects, sort_keys=True, width=100))


VOLATILE = ("resourceVersion", "uid", "creationTimestamp", "generation")


def parsed(key: str, text: str) -> Any:
    return json.loads(text) if key.endswith(".yaml") else text


def test_the_preflight_has_the_image_and_flags_of_the_scheduler() -> None:
    spec = pod(extraArguments={"vmodule": "a=3"}, image="example.com/mine:v1")
    (preflight,), (operand,) = spec["initContainers"], spec["containers"]
    for key in ("image", "command", "securityContext", "resources"):
        assert preflight[key] == operand[key]
    added = ["--write-config-to=/preflight/effective-config.yaml", "--secure-port=0"]
    assert preflight["args"] == [*operand["args"], *added]
    for container in (preflight, operand):
        assert container["terminationMessagePolicy"] == "FallbackToLogsOnError", (
            "the last log lines are its termination message"
        )
        paths = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert CONFIG_DIRECTORY in paths


def test_every_container_is_restricted_unless_a_sidecar_overrides_it() -> None:
    spec = pod(**EVERYTHING)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*spec["initContainers"], *spec["containers"]):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
    assert spec["containers"][1]["securityContext"]["runAsUser"] == 1000
    assert "hostNetwork" not in spec


def test_its_pods_are_scheduled_by_default_scheduler() -> None:
    spec = pod()
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["priorityClassName"] == "system-cluster-critical"


def test_replicas_are_spread_and_tolerate_control_plane_nodes() -> None:
    spec = pod()
    keys = [one["topologyKey"] for one in spec["topologySpreadConstraints"]]
    assert keys == ["kubernetes.io/hostname"], (
        "a constraint whose label is missing disables all soft constraints"
    )
    (preferred,) = spec["affinity"]["podAntiAffinity"].values()
    assert preferred[0]["podAffinityTerm"]["topologyKey"] == "topology.kubernetes.io/zone"
    assert {one["key"] for one in spec["tolerations"]} == set(KUBEADM.node_selectors)
    bare = pod(tolerations=[], topologySpreadConstraints=[])
    assert (bare["tolerations"], bare["topologySpreadConstraints"]) == ([], [])
    assert "affinity" not in bare
    own: dict[str, Any] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}
    assert pod(affinity=own)["affinity"] == own


@pytest.mark.parametrize(
    ("version", "image", "path"),
    [
        ("1.35.4", "", "/readyz"),
        ("1.32.0", "", "/readyz"),
        ("1.31.9", "", "/healthz"),
        ("1.35.4", "example.com/mine:v1.35.4", "/healthz"),
        ("1.35.4", "example.com/kube-scheduler:v1.35.4", "/readyz"),
    ],
)
def test_readiness_probes_depend_on_the_version(version: str, image: str, path: str) -> None:
    (operand,) = pod(version=version, **({"image": image} if image else {}))["containers"]
    assert operand["readinessProbe"]["httpGet"] == {
        "path": path, "port": 10259, "scheme": "HTTPS",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("platform", "image", "command"),
    [
        (KUBEADM, "", ["kube-scheduler"]),
        (OPENSHIFT, "", ["hyperkube", "kube-scheduler"]),
        (OPENSHIFT, "example.com/mine:v1", ["kube-scheduler"]),
    ],
)
def test_the_command_of_the_image(platform: Platform, image: str, command: list[str]) -> None:
    spec = pod(platform=platform, **({"image": image} if image else {}))
    assert spec["containers"][0]["command"] == command


def test_pull_secrets_of_the_operator_are_used_in_its_namespace_only() -> None:
    assert pod()["imagePullSecrets"] == [{"name": "pull"}]
    assert "imagePullSecrets" not in pod(imagePullSecrets=[])
    assert "imagePullSecrets" not in pod(namespace="kube-system")


def test_the_hash_identifies_the_content() -> None:
    assert content().hash == content().hash
    assert content(platform=RKE2).hash == content().hash, "the platform does not matter"
    changes: list[dict[str, Any]] = [
        {}, {"config": {"parallelism": 3}}, {"image": "example.com/mine:v1"},
        {"logLevel": "Debug"}, {"nodeSelector": {"a": "b"}}, {"forceRedeploymentReason": "x"},
    ]  # fmt: skip
    assert len({content(**change).hash for change in changes}) == len(changes)
    assert content(replicas=7).hash == content().hash


def test_a_config_map_has_the_complete_content(world: World) -> None:
    world.put()
    world.run()
    found = world.get(CONFIG_MAPS, f"{NAME}-config-{world.running()}")
    assert found["immutable"] is True
    assert content_of(found).hash == world.running()
    assert content_of(found).image == IMAGE


def test_a_rollout_removes_a_pod_only_after_its_successor_is_ready(world: World) -> None:
    world.put()
    world.run()
    spec = world.get(DEPLOYMENTS)["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert labels["app"] == labels["component"] == names.SECONDARY, (
        "the watches select by these labels"
    )
    (volume,) = (v for v in spec["template"]["spec"]["volumes"] if v["name"] == "config")
    assert volume["configMap"]["name"] == f"{NAME}-config-{world.running()}"
    assert world.get(DEPLOYMENTS)["metadata"]["namespace"] == NAMESPACE

"""What is made for a further scheduler, as golden files and as the promises behind them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, RKE2, Platform
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS
from kube_scheduler_operator.schedulerconfig.versions import Version
from kube_scheduler_operator.secondary.content import CONFIG_DIRECTORY, Content, content_of
from kube_scheduler_operator.secondary.desired import Operand, want

from ...conftest import Golden
from .world import IMAGE, NAME, NAMESPACE, World

OPERAND = Operand(IMAGE, ("pull",))
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


def content(platform: Platform = KUBEADM, version: str = "1.35.4", **spec: Any) -> Content:
    metadata = {"name": NAME, "uid": "u"}
    obj = {"metadata": metadata, "spec": {"namespace": platform.target_namespace, **spec}}
    wanted = want(obj, platform, OPERAND, Version.parse(version))
    assert wanted.content is not None, wanted.findings
    return wanted.content


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


VOLATILE = ("resourceVersion", "uid")


def parsed(key: str, text: str) -> Any:
    return json.loads(text) if key.endswith(".yaml") else text


def test_the_check_is_of_the_very_program_with_the_very_flags() -> None:
    spec = pod(extraArguments={"vmodule": "a=3"}, image="example.com/mine:v1")
    (preflight,), (operand,) = spec["initContainers"], spec["containers"]
    for key in ("image", "command", "securityContext", "resources"):
        assert preflight[key] == operand[key]
    added = ["--write-config-to=/preflight/effective-config.yaml", "--secure-port=0"]
    assert preflight["args"] == [*operand["args"], *added]
    for container in (preflight, operand):
        assert container["terminationMessagePolicy"] == "FallbackToLogsOnError", "its last words"
        paths = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert CONFIG_DIRECTORY in paths


def test_every_container_is_confined_unless_a_sidecar_says_otherwise() -> None:
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


def test_it_is_scheduled_by_the_control_plane_and_not_by_itself() -> None:
    spec = pod()
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["priorityClassName"] == "system-cluster-critical"


def test_it_is_spread_and_may_be_on_control_plane_nodes() -> None:
    spec = pod()
    keys = [one["topologyKey"] for one in spec["topologySpreadConstraints"]]
    assert keys == ["kubernetes.io/hostname"], "one whose label nodes lack spoils the others"
    (preferred,) = spec["affinity"]["podAntiAffinity"].values()
    assert preferred[0]["podAffinityTerm"]["topologyKey"] == "topology.kubernetes.io/zone"
    assert {one["key"] for one in spec["tolerations"]} == set(KUBEADM.node_selectors)
    bare = pod(tolerations=[], topologySpreadConstraints=[])
    assert (bare["tolerations"], bare["topologySpreadConstraints"]) == ([], [])
    assert "affinity" not in bare
    own = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}
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
def test_probes_are_those_that_the_program_has_for_sure(
    version: str, image: str, path: str
) -> None:
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
def test_how_the_image_is_started(platform: Platform, image: str, command: list[str]) -> None:
    spec = pod(platform=platform, **({"image": image} if image else {}))
    assert spec["containers"][0]["command"] == command


def test_pull_secrets_of_the_operator_are_good_in_its_own_namespace_only() -> None:
    assert pod()["imagePullSecrets"] == [{"name": "pull"}]
    assert "imagePullSecrets" not in pod(imagePullSecrets=[])
    assert "imagePullSecrets" not in pod(namespace="kube-system")


def test_the_same_gives_the_same_hash_and_anything_else_another() -> None:
    assert content().hash == content().hash
    assert content(platform=RKE2).hash == content().hash, "where it comes from does not matter"
    changes: list[dict[str, Any]] = [
        {}, {"config": {"parallelism": 3}}, {"image": "example.com/mine:v1"},
        {"logLevel": "Debug"}, {"nodeSelector": {"a": "b"}}, {"forceRedeploymentReason": "x"},
    ]  # fmt: skip
    assert len({content(**change).hash for change in changes}) == len(changes)
    assert content(replicas=7).hash == content().hash


def test_what_is_in_a_config_map_is_what_was_put_there(world: World) -> None:
    world.put()
    world.run()
    found = world.get(CONFIG_MAPS, f"{NAME}-config-{world.running()}")
    assert found["immutable"] is True
    assert content_of(found).hash == world.running()
    assert content_of(found).image == IMAGE


def test_nothing_that_runs_is_taken_away_before_its_successor_is_ready(world: World) -> None:
    world.put()
    world.run()
    spec = world.get(DEPLOYMENTS)["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert labels["app"] == labels["component"] == names.SECONDARY, "what the watches select by"
    (volume,) = (v for v in spec["template"]["spec"]["volumes"] if v["name"] == "config")
    assert volume["configMap"]["name"] == f"{NAME}-config-{world.running()}"
    assert world.get(DEPLOYMENTS)["metadata"]["namespace"] == NAMESPACE

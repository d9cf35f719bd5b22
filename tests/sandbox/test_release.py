"""A release of an OpenShift sandbox: its payload, and what the version operator does with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import payload
from cluster.version_operator import is_overridden, missing, with_tls

from ..unit.deploy.overlays import DEPLOY, build

CRDS = [
    yaml.safe_load(path.read_text())
    for path in sorted((DEPLOY.parent / "crds").glob("*.yaml"))
    if path.name != "kustomization.yaml"
]
MANIFESTS = [*CRDS, *build(DEPLOY / "openshift"), *build(DEPLOY / "monitoring/openshift")]


IMAGES = {"cluster-kube-scheduler-operator": "quay.example/o@sha256:1", "hyperkube": "q.example/h"}
RELEASE = payload.Release("4.20.0", "v1.35.4", IMAGES)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    (tmp_path / "0000_25_of-an-earlier-release.json").write_text("{}")
    payload.write(tmp_path, MANIFESTS, RELEASE)
    return tmp_path


def test_every_object_is_in_a_file_of_its_own_and_part_of_the_payload(written: Path) -> None:
    found = payload.read(written)
    assert len(found) == len(MANIFESTS) == len(list(written.iterdir()))


def test_an_object_comes_after_what_it_needs(written: Path) -> None:
    kinds = [one["kind"] for one in payload.read(written)]
    order = ["CustomResourceDefinition", "Namespace", "KubeScheduler", "ConfigMap",
             "ClusterRoleBinding", "Deployment", "ClusterOperator", "ServiceMonitor"]  # fmt: skip
    assert [kinds.index(kind) for kind in order] == sorted(kinds.index(kind) for kind in order)
    last = max(i for i, kind in enumerate(kinds) if kind == "CustomResourceDefinition")
    assert last < kinds.index("Namespace")


def test_placeholders_of_versions_are_replaced(written: Path) -> None:
    (operator,) = (one for one in payload.read(written) if one["kind"] == "ClusterOperator")
    versions = {one["name"]: one["version"] for one in operator["status"]["versions"]}
    assert versions == {"operator": "4.20.0", "raw-internal": "4.20.0", "kube-scheduler": "1.35.4"}
    assert not any("snapshot" in path.read_text() for path in written.iterdir())


def test_the_operator_gets_versions_and_images_of_the_release(written: Path) -> None:
    """As OpenShift's operator has them; installers have the image of the Deployment."""
    name = "openshift-kube-scheduler-operator"
    (deployment,) = (
        one
        for one in payload.read(written)
        if (one["kind"], one["metadata"]["name"]) == ("Deployment", name)
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    own = IMAGES["cluster-kube-scheduler-operator"]
    assert container["image"] == own
    values = {one["name"]: one.get("value") for one in container["env"]}
    assert {name: value for name, value in values.items() if value} == {
        "IMAGE": IMAGES["hyperkube"],
        "OPERATOR_IMAGE_VERSION": "4.20.0",
        "OPERAND_IMAGE_VERSION": "1.35.4",
    }
    assert not any("localhost/" in path.read_text() for path in written.iterdir())


def test_a_release_without_an_image_of_the_manifests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="hyperkube"):
        payload.write(tmp_path, MANIFESTS, payload.Release("1", "1", {
            "cluster-kube-scheduler-operator": "x"}))  # fmt: skip


def test_an_object_without_the_annotation_of_the_profile_is_left_out(tmp_path: Path) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    payload.write(tmp_path, [manifest], RELEASE)
    assert payload.read(tmp_path) == []


DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "n", "namespace": "ns"},
}  # fmt: skip
OVERRIDE = {
    "kind": "Deployment", "group": "apps", "namespace": "ns", "name": "n", "unmanaged": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "overridden"),
    [
        ({}, True),
        ({"unmanaged": False}, False),
        ({"name": "other"}, False),
        ({"namespace": ""}, False),
        ({"group": ""}, False),
        ({"kind": "DaemonSet"}, False),
    ],
)
def test_an_override_takes_exactly_one_object_out_of_management(
    change: dict[str, Any], overridden: bool
) -> None:
    assert is_overridden(DEPLOYMENT, [{**OVERRIDE, **change}]) is overridden


def test_the_tls_profile_is_written_into_configurations_only() -> None:
    config = {"kind": "GenericOperatorConfig", "servingInfo": {"bindAddress": "x"}}
    data = {"config.yaml": yaml.safe_dump(config), "text": "just a text"}
    found = with_tls({"data": data}, {"minTLSVersion": "VersionTLS13"})["data"]
    serving = {"bindAddress": "x", "minTLSVersion": "VersionTLS13"}
    assert yaml.safe_load(found["config.yaml"]) == {**config, "servingInfo": serving}
    assert found["text"] == "just a text"


def test_an_upgrade_ends_with_the_versions_of_the_release_and_good_conditions() -> None:
    versions = [{"name": "operator", "version": "2"}, {"name": "kube-scheduler", "version": "1.36"}]
    conditions = [{"type": "Available", "status": "True"}, {"type": "Degraded", "status": "False"}]
    expected = {"metadata": {"name": "kube-scheduler"}, "status": {"versions": versions}}
    found = {"status": {"versions": versions, "conditions": conditions}}
    assert missing(expected, found) == []
    old = [{"name": "operator", "version": "1"}, versions[1]]
    (version,) = missing(expected, {"status": {"versions": old, "conditions": conditions}})
    assert version == 'kube-scheduler: version operator is "1", not "2"'
    assert len(missing(expected, {})) == 4

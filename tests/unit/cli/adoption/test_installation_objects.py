"""What an installation creates, as `check --pre` reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import KUBEADM, MANAGED, OPENSHIFT, PLATFORMS, Platform
from kube_scheduler_operator.cli.adoption.installation_objects import (
    AccessRequest,
    account_rights,
    images_of,
    installation_objects,
    installation_pods,
    own_crds,
)
from kube_scheduler_operator.kube.resource import CONFIGURED

from ...deploy.overlays import DEPLOY, build


def by_key(objects: Any) -> dict[Any, Any]:
    return {
        (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]): obj
        for obj in objects
    }


@pytest.mark.parametrize("platform", [KUBEADM, MANAGED, OPENSHIFT], ids=lambda one: one.name)
def test_the_recorded_installation_is_what_deploy_installs(platform: Platform) -> None:
    recorded, built = installation_objects(platform), build(DEPLOY / platform.name)
    assert by_key(recorded) == by_key(built), "run hack/installation"


def test_rke2_has_kubeadms_objects_except_an_argument_of_the_operator() -> None:
    kubeadm, rke2 = by_key(build(DEPLOY / "kubeadm")), by_key(build(DEPLOY / "rke2"))
    different = {key for key in kubeadm if kubeadm[key] != rke2.get(key)}
    assert kubeadm.keys() == rke2.keys()
    assert {kind for kind, _, _ in different} == {"Deployment"}


def test_files_come_in_the_place_of_the_recorded_installation(tmp_path: Path) -> None:
    file = tmp_path / "install.yaml"
    file.write_text(yaml.safe_dump_all([{"kind": "A"}, {"kind": "B"}]))
    assert [obj["kind"] for obj in installation_objects(KUBEADM, [str(file)])] == ["A", "B"]


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda one: one.name)
def test_the_operators_pod_and_an_installer_are_tried(platform: Platform) -> None:
    pods = dict(installation_pods(platform, installation_objects(platform)))
    volumes = [str(pod["spec"].get("volumes")) for pod in pods.values()]
    assert any("hostPath" in one for one in volumes) or not platform.owns_static_pods
    assert all(pod["metadata"]["generateName"] for pod in pods.values())
    assert all(pod["metadata"]["namespace"] for pod in pods.values())
    assert images_of(installation_objects(platform))


def test_the_kinds_of_users_are_among_the_own_ones() -> None:
    names = {crd["metadata"]["name"] for crd in own_crds()}
    assert {resource.name for resource in CONFIGURED.values()} <= names


def test_rights_of_an_account_are_those_of_the_roles_bound_to_it() -> None:
    rules = [
        {"apiGroups": ["", "apps"], "resources": ["x", "y/status"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["z"], "resourceNames": ["a", "b"], "verbs": ["update"]},
    ]
    subject = {"kind": "ServiceAccount", "namespace": "ns", "name": "own"}
    objects: list[dict[str, Any]] = [
        {"kind": "Role", "metadata": {"name": "r", "namespace": "t"}, "rules": rules},
        {
            "kind": "ClusterRole",
            "metadata": {"name": "c"},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        },
        {
            "kind": "RoleBinding",
            "metadata": {"name": "b", "namespace": "t"},
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [subject],
        },
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": "c"},
            "subjects": [subject],
        },
        {
            "kind": "RoleBinding",
            "metadata": {"name": "other", "namespace": "u"},
            "roleRef": {"kind": "ClusterRole", "name": "c"},
            "subjects": [{**subject, "name": "another"}],
        },
    ]
    found = account_rights(objects, "ns", "own")
    assert sorted(map(str, found)) == [
        "get /metrics",
        "get x in namespace t",
        "get x.apps in namespace t",
        "get y.apps/status in namespace t",
        "get y/status in namespace t",
        'update z "a" in namespace t',
        'update z "b" in namespace t',
    ]


def test_a_review_has_the_subresource_apart_from_the_resource() -> None:
    assert AccessRequest("get", "apps", "deployments/scale", "n").attributes() == {
        "resourceAttributes": {
            "verb": "get",
            "group": "apps",
            "resource": "deployments",
            "subresource": "scale",
            "namespace": "n",
        }
    }

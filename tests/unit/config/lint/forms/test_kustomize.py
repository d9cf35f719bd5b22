"""ConfigMaps that are made of files: by Kustomize, or by a command that is not among the files."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate

from .....expect import findings

OPTIONS = CheckOptions(Gates(Version(1, 35)))
CONFIG = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "leaderElection: {leaderElect: false}\n"
    "profiles: [{schedulerName: gang, plugins: {multiPoint: {enabled: [{name: Coscheduling}], "
    "disabled: [{name: PrioritySort}]}}}]\n"
)
"""kube-scheduler of scheduler-plugins reads it, Kubernetes' own refuses it."""


def deployment(file: str = "config.yaml", name: str = "gang-config") -> str:
    container = {
        "name": "s",
        "image": "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.31.8",
        "command": ["kube-scheduler", f"--config=/etc/gang/{file}"],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/gang"}],
    }
    pod = {
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": name}}],
    }
    metadata = {"name": "gang", "namespace": "scheduling"}
    kind: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    return json.dumps({**kind, "spec": {"template": {"spec": pod}}})


def kustomization(*files: str, typed: bool = True, **fields: Any) -> str:
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    generator = {"name": "gang-config", "files": list(files), **fields}
    return json.dumps({**(head if typed else {}), "configMapGenerator": [generator]})


def reasons(files: dict[str, str]) -> list[tuple[str, str]]:
    return findings(validate(list(files.items()), OPTIONS), "file", "reason")


@pytest.mark.parametrize("entry", ["config.yaml", "config.yaml=config.yaml", "./config.yaml"])
@pytest.mark.parametrize("typed", [True, False])
def test_a_file_of_a_generator_is_that_of_the_scheduler_that_mounts_it(
    entry: str, typed: bool
) -> None:
    files = {
        "a/kustomization.yaml": kustomization(entry, typed=typed),
        "a/deployment.yaml": deployment(),
        "a/config.yaml": CONFIG,
    }
    assert reasons(files) == []


def test_a_kustomization_that_is_found_in_a_directory_is_read_without_the_word_scheduler() -> None:
    files = {
        "kustomization.yaml": kustomization("config.yaml=gang.yaml"),
        "deployment.yaml": deployment(),
        "gang.yaml": CONFIG,
    }
    assert validate(list(files.items()), OPTIONS, found=list(files)).findings == ()


def test_a_generator_names_files_relative_to_its_own() -> None:
    files = {
        "a/overlay/kustomization.yaml": kustomization("config.yaml=../base/gang.yaml"),
        "a/base/deployment.yaml": deployment(),
        "a/base/gang.yaml": CONFIG,
        "a/overlay/gang.yaml": CONFIG,  # no scheduler reads this one
    }
    assert reasons(files) == [("a/overlay/gang.yaml", "UnknownPlugin")]


def test_a_key_that_the_generator_does_not_make_is_missing() -> None:
    files = {
        "kustomization.yaml": kustomization("gang.yaml=config.yaml"),
        "deployment.yaml": deployment(),
        "config.yaml": CONFIG,
    }
    assert reasons(files) == [("deployment.yaml", "MissingKey")]


def test_a_file_with_the_name_of_a_key_is_that_of_a_config_map_that_the_files_do_not_have() -> None:
    assert reasons({"d.yaml": deployment(), "config.yaml": CONFIG}) == []
    other = {"d.yaml": deployment("another.yaml"), "config.yaml": CONFIG}
    assert reasons(other) == [("config.yaml", "UnknownPlugin")]


@pytest.mark.parametrize(
    "fields", [{"files": "config.yaml"}, {"files": [1, None, {}]}, {"literals": ["a", 1, None]}]
)
def test_generators_of_other_shapes_generate_nothing(fields: dict[str, Any]) -> None:
    files = {"kustomization.yaml": kustomization(**{"files": [], **fields}), "c.yaml": CONFIG}
    assert reasons(files) == [("c.yaml", "UnknownPlugin")]


def with_images(*resources: str, **change: str) -> str:
    images = [{"name": "registry.k8s.io/kube-scheduler", **change}] if change else []
    return yaml.safe_dump({"resources": list(resources), "images": images})


def pod(image: str = "registry.k8s.io/kube-scheduler:v1.31.0") -> str:
    container = {"name": "s", "image": image, "command": ["kube-scheduler"]}
    metadata = {"name": "own", "namespace": "scheduling"}
    kind: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    return json.dumps({**kind, "spec": {"containers": [container]}})


def readers(files: dict[str, str], found: bool = False) -> tuple[str, ...]:
    names = list(files) if found else []
    return validate(list(files.items()), OPTIONS, found=names).readers


@pytest.mark.parametrize("found", [False, True])
def test_the_image_that_a_kustomization_sets_decides_the_version(found: bool) -> None:
    files = {"d/pod.yaml": pod(), "d/kustomization.yaml": with_images("pod.yaml", newTag="v1.36.2")}
    assert readers(files, found) == ("kube-scheduler 1.36",)
    assert readers({"d/pod.yaml": pod()}, found) == ("kube-scheduler 1.31",)


@pytest.mark.parametrize("found", [False, True])
def test_an_overlay_changes_the_image_after_its_bases(found: bool) -> None:
    files = {
        "overlays/new/kustomization.yaml": with_images("../../base", newTag="v1.36.2"),
        "base/kustomization.yaml": with_images("pods", newTag="v1.33.0"),
        "base/pods/kustomization.yaml": with_images("pod.yaml"),
        "base/pods/pod.yaml": pod(),
    }
    assert readers(files, found) == ("kube-scheduler 1.36",)
    del files["overlays/new/kustomization.yaml"]
    assert readers(files, found) == ("kube-scheduler 1.33",)


def test_an_image_that_overlays_change_to_several_versions_stays_as_it_is() -> None:
    files = {
        "old/kustomization.yaml": with_images("../base", newTag="v1.33.0"),
        "new/kustomization.yaml": with_images("../base", newTag="v1.36.2"),
        "base/kustomization.yaml": with_images("pod.yaml"),
        "base/pod.yaml": pod(),
    }
    assert readers(files) == ("kube-scheduler 1.31",)


def test_kustomizations_that_are_resources_of_each_other_change_nothing() -> None:
    files = {
        "a/kustomization.yaml": with_images("../b", "pod.yaml", newTag="v1.33.0"),
        "b/kustomization.yaml": with_images("../a", newTag="v1.33.0"),
        "a/pod.yaml": pod(),
    }
    assert readers(files) == ("kube-scheduler 1.31",)


@pytest.mark.parametrize("images", [None, {}, ["a"], [{"name": 1, "newTag": []}], [{}]])
@pytest.mark.parametrize("resources", [None, "pod.yaml", [1, None], [""]])
def test_images_and_resources_of_other_shapes_change_nothing(images: Any, resources: Any) -> None:
    value = {"kind": "Kustomization", "apiVersion": "kustomize.config.k8s.io/v1beta1"}
    value |= {"images": images, "resources": resources}
    files = {"kustomization.yaml": json.dumps(value), "pod.yaml": pod()}
    assert readers(files) == ("kube-scheduler 1.31",)

"""ConfigMaps that are made of files: by Kustomize, or by a command that is not among the files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.offline.checks import CheckOptions
from kube_scheduler_operator.offline.validate import validate
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.versions import Version

OPTIONS = CheckOptions(Gates(Version(1, 35)))
CONFIG = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "leaderElection: {leaderElect: false}\n"
    "profiles: [{schedulerName: gang, plugins: {multiPoint: {enabled: [{name: Coscheduling}]}}}]\n"
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
    return [(each.file, each.reason) for each in validate(list(files.items()), OPTIONS).findings]


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

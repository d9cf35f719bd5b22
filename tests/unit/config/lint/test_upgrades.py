"""What newer versions of kube-scheduler refuse of files, whatever version the files show."""

from __future__ import annotations

from typing import Any

import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.upgrades import FilesUpgrade

from ....builders import secondary

V35, V36 = Version(1, 35, 4), Version(1, 36)
LOCKED_IN_36 = "CSIServiceAccountTokenSecrets"
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "mine"}],
}
CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "mine", "namespace": "kube-system"},
    "data": {"config.yaml": yaml.safe_dump(CONFIG)},
}


def deployment(image: str, *flags: str) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": image,
        "command": ["kube-scheduler", "--config=/etc/s/config.yaml", *flags],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/s"}],
    }
    pod = {
        "serviceAccountName": "mine",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "mine"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "mine", "namespace": "kube-system"},
        "spec": {"template": {"spec": pod}},
    }


def upgrade(*documents: Any) -> FilesUpgrade:
    options = CheckOptions(Gates(V35))
    return FilesUpgrade((("files.yaml", yaml.safe_dump_all(documents)),), options)


def test_the_image_shows_the_version_that_runs_and_hides_no_newer_one() -> None:
    gates = f"--feature-gates={LOCKED_IN_36}=false"
    files = upgrade(CONFIG_MAP, deployment("registry.k8s.io/kube-scheduler:v1.35.4", gates))
    assert (files.shown, files.stock) == (V35, True)
    (step,) = files.steps(V36)
    (text,) = step.refused
    assert text.startswith("files.yaml: spec.template.spec.containers[0].command[2]: ")
    assert f"feature gate {LOCKED_IN_36} is locked to true in 1.36" in text


def test_what_the_present_version_refuses_of_files_is_named_once() -> None:
    gates = "--feature-gates=NoSuchGate=true"
    files = upgrade(CONFIG_MAP, deployment("registry.k8s.io/kube-scheduler:v1.35.4", gates))
    first, second = files.steps(Version(1, 37))
    (text,) = first.refused
    assert "kube-scheduler 1.36 has no feature gate NoSuchGate" in text
    assert text.endswith("; 1.35 refuses it as well")
    assert second.refused == ()


def test_a_configuration_has_the_flags_of_the_scheduler_that_reads_it() -> None:
    files = upgrade(CONFIG_MAP, deployment("registry.k8s.io/kube-scheduler:v1.35.4", "--v=3"))
    (content,) = files.contents(V36)
    assert content.config == CONFIG
    assert "-v=3" in content.arguments


def test_of_an_image_with_plugins_of_its_own_nothing_is_known() -> None:
    files = upgrade(CONFIG_MAP, deployment("registry.example/mine:v1.35.4"))
    assert not files.stock
    (step,) = files.steps(V36)
    assert step.unknown == "an image in the files may have plugins of its own"


def test_a_secondary_scheduler_is_checked_as_if_its_image_were_of_the_version() -> None:
    obj = secondary(
        image="registry.k8s.io/kube-scheduler:v1.35.4", featureGates={LOCKED_IN_36: False}
    )
    whole = {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "SecondaryScheduler",
        "metadata": {"name": "mine"},
        "spec": dict(obj["spec"]),
    }
    (step,) = upgrade(whole).steps(V36)
    assert LOCKED_IN_36 in step.refused[0]


def test_files_without_anything_of_kube_scheduler_are_its_defaults() -> None:
    files = upgrade({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    assert files.shown is None
    (content,) = files.contents(V36)
    assert content.config == {key: CONFIG[key] for key in ("apiVersion", "kind")}
    assert files.steps(V36)[0].refused == ()

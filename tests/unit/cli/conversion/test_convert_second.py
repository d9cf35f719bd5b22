"""`convert --to second` of a scheduler with its Deployment: what its Pods had stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate

MOUNTED = "/etc/kubernetes/my-scheduler"
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: my-scheduler
leaderElection:
  leaderElect: true
"""
MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "my-scheduler-config", "namespace": "kube-system"},
    "data": {"my-scheduler-config.yaml": CONFIG},
}
ACCOUNT = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "my-scheduler", "namespace": "kube-system"},
}


def deployment(*others: dict[str, Any], replicas: int = 3, **pod: Any) -> dict[str, Any]:
    """The Deployment of Kubernetes' page about multiple schedulers."""
    scheduler = {
        "name": "kube-second-scheduler",
        "image": "registry.k8s.io/kube-scheduler:v1.29.1",
        "command": [
            "/usr/local/bin/kube-scheduler",
            f"--config={MOUNTED}/my-scheduler-config.yaml",
        ],
        "resources": {"requests": {"cpu": "0.1"}},
        "volumeMounts": [{"name": "config-volume", "mountPath": MOUNTED}],
    }
    volumes = [{"name": "config-volume", "configMap": {"name": "my-scheduler-config"}}]
    scheduler |= pod.pop("scheduler", {})
    spec = {
        "serviceAccountName": "my-scheduler",
        "containers": [scheduler, *others],
        "volumes": [*volumes, *pod.pop("volumes", [])],
        **pod,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "my-scheduler", "namespace": "kube-system"},
        "spec": {"replicas": replicas, "template": {"spec": spec}},
    }


def flags(*words: str) -> dict[str, Any]:
    command = ["kube-scheduler", f"--config={MOUNTED}/my-scheduler-config.yaml", *words]
    return {"command": command}


@pytest.fixture
def convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return (spec of the SecondaryScheduler, the messages); the object is valid."""

    def run(workload: Any) -> tuple[dict[str, Any], str]:
        file = tmp_path / "my-scheduler.yaml"
        file.write_text(yaml.safe_dump_all([ACCOUNT, MAP, workload]))
        code = main(["convert", "-f", str(file), "--to", "second"])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        result = validate([("f", printed.out)], CheckOptions(Gates(Version(1, 35))))
        assert result.starts, result.findings
        (converted,) = yaml.safe_load_all(printed.out)
        assert converted["kind"] == "SecondaryScheduler"
        return converted["spec"], printed.err

    return run


def test_replicas_and_resources_stay_and_the_image_follows_the_control_plane(convert: Any) -> None:
    spec, messages = convert(deployment())
    assert spec["replicas"] == 3
    assert spec["resources"] == {"requests": {"cpu": "0.1"}}
    assert "image" not in spec
    assert "image registry.k8s.io/kube-scheduler:v1.29.1 of Deployment my-scheduler" in messages
    assert "skipped: document 1, ServiceAccount my-scheduler" in messages
    assert "Deployment my-scheduler\n" not in messages
    assert (
        "note: scale Deployment my-scheduler to 0 replicas (kubectl -n kube-system scale "
        "deployment my-scheduler --replicas=0) before you apply the result, because both would "
        "schedule the same Pods; delete Deployment my-scheduler only once the SecondaryScheduler "
        "is Available"
    ) in messages
    assert "ClusterRoleBinding" not in messages


def test_a_custom_image_and_its_program_stay(convert: Any) -> None:
    image = "registry.example.com/scheduler:1"
    spec, messages = convert(deployment(scheduler={"image": image}))
    assert (spec["image"], spec["command"]) == (image, ["/usr/local/bin/kube-scheduler"])
    assert "ALLOWED_IMAGES" in messages
    assert "set spec.image" not in messages


def test_an_old_scheduler_of_other_names_may_stay(tmp_path: Path, capsys: Any) -> None:
    text = CONFIG.replace("schedulerName: my-scheduler", "schedulerName: default-scheduler")
    other = {**MAP, "data": {"my-scheduler-config.yaml": text}}
    file = tmp_path / "default.yaml"
    file.write_text(yaml.safe_dump_all([other, deployment()]))
    assert main(["convert", "-f", str(file), "--to", "second"]) == 0
    messages = capsys.readouterr().err
    assert "default-scheduler renamed" in messages
    assert "note: scale" not in messages


def test_a_binding_of_a_name_that_the_operator_needs_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bindings = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
        }
        for name in ("my-scheduler-as-kube-scheduler", "my-scheduler-reader")
    ]
    file = tmp_path / "my-scheduler.yaml"
    file.write_text(yaml.safe_dump_all([MAP, deployment(), *bindings]))
    assert main(["convert", "-f", str(file), "--to", "second"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "before you apply" in line]
    assert len(notes) == 2
    assert "(kubectl delete clusterrolebinding my-scheduler-as-kube-scheduler)" in notes[1]


def test_a_custom_image_that_no_file_names_is_to_be_set(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "my-scheduler.yaml"
    plugins = "  plugins: {score: {enabled: [{name: MyCustomPluginA}]}}\n"
    file.write_text(CONFIG.replace("leaderElection", f"{plugins}leaderElection"))
    arguments = ["convert", "-f", str(file), "--custom-image"]
    assert main([*arguments, "--to", "second"]) == 0
    printed = capsys.readouterr()
    assert "MyCustomPluginA" in printed.out
    assert "note: SecondaryScheduler my-scheduler" in printed.err
    assert "spec.image" in printed.err
    assert main(arguments) == 0
    assert "spec.image" not in capsys.readouterr().err


def test_flags_become_fields_or_are_reported(convert: Any) -> None:
    words = (
        "--v=5", "--feature-gates=OpportunisticBatching=false", "--leader-elect=false",
        "--permit-port-sharing=true", "--client-ca-file=/ca.crt", "--secure-port=10260",
        "--profiling=false", "--port=0",
    )  # fmt: skip
    spec, messages = convert(deployment(scheduler=flags(*words)))
    assert spec["logLevel"] == "Trace"
    assert spec["featureGates"] == {"OpportunisticBatching": False}
    assert spec["extraArguments"] == {"permit-port-sharing": "true"}
    for name in ("leader-elect", "client-ca-file", "secure-port", "profiling", "port"):
        assert f"--{name} of Deployment my-scheduler removed" in messages


def test_placement_stays_without_what_selects_the_old_pods(convert: Any) -> None:
    tolerations = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    term = {
        "labelSelector": {"matchLabels": {"app": "old"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spec, messages = convert(
        deployment(
            tolerations=tolerations,
            nodeSelector={"pool": "infra"},
            affinity={"podAntiAffinity": {required: [term]}},
            hostNetwork=True,
        )
    )
    assert (spec["tolerations"], spec["nodeSelector"]) == (tolerations, {"pool": "infra"})
    assert "affinity" not in spec
    assert "affinity.podAntiAffinity of Deployment my-scheduler removed" in messages
    assert "hostNetwork of Deployment my-scheduler removed" in messages


def test_other_containers_become_sidecars_if_they_can(convert: Any) -> None:
    exporter = {
        "name": "exporter",
        "image": "registry.example.com/exporter:1",
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
    }
    privileged = {
        "name": "tuner",
        "image": "registry.example.com/tuner:1",
        "securityContext": {"privileged": True},
    }
    workload = deployment(exporter, privileged, volumes=[{"name": "cache", "emptyDir": {}}])
    spec, messages = convert(workload)
    assert spec["sidecars"] == [exporter]
    assert spec["volumes"] == [{"name": "cache", "emptyDir": {}}]
    assert 'container "exporter" of Deployment my-scheduler kept in spec.sidecars' in messages
    assert 'cannot be kept: container "tuner" of Deployment my-scheduler removed' in messages
    assert "privileged" in messages


@pytest.mark.parametrize(("old", "new"), [(0, 1), (1, 1), (25, 20)])
def test_replicas_are_those_that_a_secondary_scheduler_can_have(
    convert: Any, old: int, new: int
) -> None:
    spec, messages = convert(deployment(replicas=old))
    assert spec["replicas"] == new
    assert ("spec.replicas of Deployment my-scheduler" in messages) == (old != new)

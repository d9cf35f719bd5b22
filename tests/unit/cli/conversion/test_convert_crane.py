"""`convert` of a scheduler configuration that names crane's plugin Dynamic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import main

from ....builders import CRANE_POLICY, crane_configuration

CONFIG = crane_configuration()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "config.yaml", CONFIG)
    return tmp_path


def write(path: Path, *documents: Any) -> str:
    path.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    return str(path)


def run(*arguments: str) -> int:
    return main(["convert", *arguments])


def kinds(capsys: Any) -> list[str]:
    printed = capsys.readouterr()
    return [f"{o['kind']} {o['metadata']['name']}" for o in yaml.safe_load_all(printed.out)]


BOTH = ["LoadPolicy default", "SchedulerProfile default-scheduler", "SchedulerExtender load-aware"]


def test_policy_from_the_same_directory(folder: Path, capsys: Any) -> None:
    write(folder / "policy.yaml", CRANE_POLICY)
    assert run("-f", str(folder / "config.yaml")) == 0
    printed = capsys.readouterr()
    objects = list(yaml.safe_load_all(printed.out))
    assert [f"{o['kind']} {o['metadata']['name']}" for o in objects] == BOTH
    assert objects[0]["spec"]["predicates"] == [{"name": "cpu_usage_avg_5m", "maxLimit": "65%"}]
    assert "Dynamic replaced by SchedulerExtender load-aware with policy load-aware" in printed.err


def test_the_policy_from_the_same_file(folder: Path, capsys: Any) -> None:
    assert run("-f", write(folder / "all.yaml", CONFIG, CRANE_POLICY)) == 0
    assert kinds(capsys) == BOTH


def test_the_policy_from_the_config_map_that_has_the_name(folder: Path, capsys: Any) -> None:
    other = {**CRANE_POLICY, "spec": {**CRANE_POLICY["spec"], "predicate": []}}
    maps = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "scheduler-config"},
        "data": {
            "scheduler-config.yaml": json.dumps(CONFIG),
            "policy.yaml": json.dumps(CRANE_POLICY),
            "old.yaml": json.dumps(other),
            "README": "no document: {",
        },
    }
    assert run("-f", write(folder / "maps.yaml", maps), "-o", "json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert [item["kind"] for item in printed["items"]] == [each.split()[0] for each in BOTH]
    assert printed["items"][0]["spec"]["predicates"] != []


def test_the_policy_by_flag(folder: Path, capsys: Any) -> None:
    path = write(folder / "anything.yaml", CRANE_POLICY)
    assert run("-f", str(folder / "config.yaml"), "--load-policy", path) == 0
    assert kinds(capsys) == BOTH


def test_missing_policy_is_reported_with_its_path(folder: Path, capsys: Any) -> None:
    assert run("-f", str(folder / "config.yaml")) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert (
        "the plugin Dynamic reads /etc/kubernetes/policy.yaml on the node, but the file does "
        "not contain it; specify it with --load-policy" in printed.err
    )


def test_two_policies_are_rejected(folder: Path, capsys: Any) -> None:
    path = write(folder / "two.yaml", CONFIG, CRANE_POLICY, CRANE_POLICY)
    assert run("-f", path) == 1
    assert "the file contains several policies" in capsys.readouterr().err
    assert run("-f", str(folder / "config.yaml"), "--load-policy", path) == 1
    assert "contains 2 DynamicSchedulerPolicies" in capsys.readouterr().err


def test_a_policy_that_is_wrong(folder: Path, capsys: Any) -> None:
    wrong = {**CRANE_POLICY, "spec": {"hotValue": [{"timeRange": "5m", "count": 0}]}}
    path = write(folder / "policy.yaml", wrong)
    assert run("-f", str(folder / "config.yaml")) == 1
    output = capsys.readouterr().err
    assert f"error: {path}: spec.hotValue[0].count: 0 is less than 1" in output


def test_a_second_scheduler(folder: Path, capsys: Any) -> None:
    write(folder / "policy.yaml", CRANE_POLICY)
    path = str(folder / "config.yaml")
    assert run("-f", path, "--to", "second", "--namespace", "batch") == 0
    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    assert objects[1]["kind"] == "SecondaryScheduler"
    assert objects[1]["metadata"]["name"] == "crane-scheduler"
    assert objects[1]["spec"]["namespace"] == "batch"
    assert objects[2]["spec"]["scheduler"] == "crane-scheduler"

    assert run("-f", path, "--to", "second", "--name", "mine", "--quiet") == 0
    assert "SecondaryScheduler mine" in kinds(capsys)

    assert run("-f", path, "--to", "second", "--name", "Mine") == 1
    assert '"Mine" is not a valid name of a SecondaryScheduler' in capsys.readouterr().err


def test_a_second_scheduler_keeps_its_own_name(folder: Path, capsys: Any) -> None:
    own = {**CONFIG, "profiles": [{**CONFIG["profiles"][0], "schedulerName": "loaded"}]}
    assert run("-f", write(folder / "own.yaml", own, CRANE_POLICY), "--to", "second") == 0
    assert "SecondaryScheduler loaded" in kinds(capsys)


def test_a_second_scheduler_has_what_the_pod_of_cranes_had(folder: Path, capsys: Any) -> None:
    resources = {"requests": {"cpu": "400m", "memory": "200Mi"}}
    container = {
        "name": "crane-scheduler",
        "image": "docker.io/dongjiang1989/crane-scheduler:main",
        "command": ["/scheduler", "--config=/etc/kubernetes/config/scheduler-config.yaml"],
        "resources": resources,
        "volumeMounts": [{"name": "config", "mountPath": "/etc/kubernetes/config"}],
    }
    pod = {
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "scheduler-config"}}],
        "nodeSelector": {"pool": "system"},
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "crane-scheduler", "namespace": "crane-system"},
        "spec": {"replicas": 2, "template": {"spec": pod}},
    }
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "scheduler-config", "namespace": "crane-system"},
        "data": {
            "scheduler-config.yaml": json.dumps(CONFIG),
            "policy.yaml": json.dumps(CRANE_POLICY),
        },
    }
    path = write(folder / "deployment.yaml", deployment, config_map)
    assert run("-f", path, "--to", "second") == 0
    printed = capsys.readouterr()
    spec = list(yaml.safe_load_all(printed.out))[1]["spec"]
    assert (spec["replicas"], spec["resources"]) == (2, resources)
    assert spec["nodeSelector"] == {"pool": "system"}
    assert "image" not in spec  # the stock kube-scheduler replaces crane's
    assert "skipped" not in printed.err


def test_an_image_that_has_the_plugin_keeps_it(folder: Path, capsys: Any) -> None:
    assert run("-f", str(folder / "config.yaml"), "--custom-image") == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert printed["kind"] == "KubeSchedulerConfiguration"
    assert {"name": "Dynamic"} in printed["profiles"][0]["plugins"]["filter"]["enabled"]


def test_a_policy_alone(folder: Path, capsys: Any) -> None:
    assert run("-f", write(folder / "policy.yaml", CRANE_POLICY)) == 0
    assert kinds(capsys) == ["LoadPolicy default"]
    assert run("-f", write(folder / "bad.yaml", {**CRANE_POLICY, "spec": 7})) == 1
    assert "error: spec: this is required" in capsys.readouterr().err


def test_what_else_is_wrong_with_the_configuration(folder: Path, capsys: Any) -> None:
    write(folder / "policy.yaml", CRANE_POLICY)
    wrong = {**CONFIG, "parallelism": "many"}
    assert run("-f", write(folder / "wrong.yaml", wrong)) == 1
    assert "error: parallelism:" in capsys.readouterr().err

"""Conversion of kube-safe-scheduler's manifests to a SecondaryScheduler and SchedulerExtenders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate

from .... import builders

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
    "kind": "KubeSchedulerConfiguration",
    "schedulerName": "my-scheduler",
    "algorithmSource": {
        "policy": {"configMap": {"namespace": "kube-system", "name": "my-scheduler-policy"}}
    },
    "leaderElection": {
        "leaderElect": True,
        "lockObjectName": "my-scheduler",
        "lockObjectNamespace": "kube-system",
    },
}


def entry(port: int = 0, **verbs: Any) -> dict[str, Any]:
    host = f"localhost:{port}" if port else "localhost"
    return {
        "urlPrefix": f"http://{host}/scheduler",
        "enableHttps": False,
        "nodeCacheCapable": False,
        **verbs,
    }


SAFE = [
    entry(
        filterVerb="predicates/safe-overload",
        prioritizeVerb="priorities/safe-overload",
        weight=1,
    ),
    entry(prioritizeVerb="priorities/safe-balance", weight=10),
]


def config_map(name: str, key: str, value: Any) -> dict[str, Any]:
    return builders.config_map(name, "kube-system", **{key: json.dumps(value)})


def container(name: str, image: str, **env: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "env": [{"name": key, "value": value} for key, value in env.items()],
    }


def manifests(extenders: list[Any], *containers: Any) -> list[dict[str, Any]]:
    policy = {"kind": "Policy", "apiVersion": "v1", "extenders": extenders}
    scheduler = container("my-scheduler-ctr", "gcr.io/google_containers/hyperkube:v1.13.5") | {
        "args": ["kube-scheduler", "--config=/my-scheduler/config.yaml"],
        "volumeMounts": [{"name": "config", "mountPath": "/my-scheduler"}],
    }
    volumes = [{"name": "config", "configMap": {"name": "my-scheduler-config"}}]
    pod = {"spec": {"containers": [scheduler, *containers], "volumes": volumes}}
    return [
        config_map("my-scheduler-config", "config.yaml", CONFIG),
        config_map("my-scheduler-policy", "policy.cfg", policy),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "my-scheduler", "namespace": "kube-system"},
            "spec": {"template": pod},
        },
    ]


@pytest.fixture
def convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """The objects by kind and name, and the messages; all objects are valid."""

    def run(documents: Any, *options: str) -> tuple[dict[str, Any], str]:
        file = tmp_path / "in.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        code = main(["convert", "-f", str(file), *options])
        printed = capsys.readouterr()
        assert code == 0, printed.err
        found = [one for one in yaml.safe_load_all(printed.out) if one]
        result = validate([("f", printed.out)], CheckOptions(Gates(Version(1, 35))))
        assert result.starts, result.findings
        return {
            f"{o['kind']} {o.get('metadata', {}).get('name', '')}": o for o in found
        }, printed.err

    return run


def test_one_agent_with_two_policies(convert: Any) -> None:
    agent = container("ext-1", "kube-sched-ext-safe:0.0", LOG_LEVEL="TRACE", SAFEUTILIZATION="90")
    found, messages = convert(manifests(SAFE, agent))
    assert list(found) == ["SecondaryScheduler my-scheduler", "SchedulerExtender safe"]
    scheduler = found["SecondaryScheduler my-scheduler"]["spec"]
    assert scheduler["namespace"] == "kube-scheduler-operator"
    assert scheduler["profiles"][0]["schedulerName"] == "my-scheduler"
    assert "extenders" not in scheduler.get("config", {})
    assert found["SchedulerExtender safe"]["spec"] == {
        "scheduler": "my-scheduler",
        "agent": {
            "policies": [
                {"name": "safe-overload", "weight": 1, "arguments": {"annotations": "safe"}},
                {"name": "safe-balance", "weight": 10, "arguments": {"annotations": "safe"}},
            ],
            "logLevel": "TRACE",
            "env": {"SAFEUTILIZATION": "90"},
        },
        "weight": 11,
    }
    assert "weighted mean of its policies' scores with weight 11" in messages
    assert "ignorable: false" in messages
    assert "port 80 replaced" in messages


def test_two_agents_in_one_pod_on_two_ports(convert: Any) -> None:
    extenders = [
        entry(5401, filterVerb="predicates/safe-overload",
              prioritizeVerb="priorities/safe-overload", weight=1),
        entry(5402, prioritizeVerb="priorities/congestion", weight=1),
    ]  # fmt: skip
    agents = (
        container("ext-1", "safe:0", HTTP_PORT="5401", LOG_LEVEL="INFO"),
        container("ext-2", "congestion:0", HTTP_PORT="5402", CONGESTION_FACTOR_MAX="10"),
    )
    found, _ = convert(manifests(extenders, *agents))
    assert list(found)[1:] == ["SchedulerExtender safe", "SchedulerExtender congestion"]
    safe, congestion = (found[f"SchedulerExtender {n}"]["spec"] for n in ("safe", "congestion"))
    assert (safe["agent"]["port"], congestion["agent"]["port"]) == (5401, 5402)
    assert "logLevel" not in safe["agent"]
    assert congestion["agent"]["env"] == {"CONGESTION_FACTOR_MAX": "10"}
    assert "verbs" not in safe["agent"]


def test_a_policy_used_only_as_filter_does_not_score(convert: Any) -> None:
    agent = container("e", "safe:0", HTTP_PORT="5401")
    found, _ = convert(manifests([entry(5401, filterVerb="predicates/safe-overload")], agent))
    spec = found["SchedulerExtender safe"]["spec"]
    assert spec["agent"]["verbs"] == {"filter": True, "prioritize": False}
    assert spec["agent"]["policies"][0]["weight"] == 0
    assert "weight" not in spec


def test_a_policy_used_only_as_score_does_not_filter(convert: Any) -> None:
    agent = container("e", "safe:0", HTTP_PORT="5401")
    verbs = {"prioritizeVerb": "priorities/safe-overload", "weight": 3}
    found, _ = convert(manifests([entry(5401, **verbs)], agent))
    spec = found["SchedulerExtender safe"]["spec"]
    assert spec["agent"]["verbs"] == {"filter": False, "prioritize": True}
    assert spec["weight"] == 3


def test_unused_environment_variables_are_reported(convert: Any) -> None:
    agent = container("e", "pigeon:0", HTTP_PORT="5401", POLICY_OBJECTIVE="CONSOLIDATE", X="1")
    verbs = {"prioritizeVerb": "priorities/pigeon-holing", "weight": 1}
    found, messages = convert(manifests([entry(5401, **verbs)], agent))
    spec = found["SchedulerExtender pigeon"]["spec"]
    assert spec["agent"]["env"] == {"POLICY_OBJECTIVE": "CONSOLIDATE"}
    assert "environment variable X removed" in messages


def test_other_extenders_stay_with_their_scheduler(convert: Any) -> None:
    other = {"urlPrefix": "http://10.0.0.9/x", "filterVerb": "filter", "nodeCacheCapable": True}
    agent = container("e", "safe:0", HTTP_PORT="5401")
    own = entry(5401, filterVerb="predicates/safe-overload")
    found, _ = convert(manifests([other, own], agent))
    assert "extenders" not in found["SecondaryScheduler my-scheduler"]["spec"].get("config", {})
    assert found["SchedulerExtender extender"]["spec"] == {
        "scheduler": "my-scheduler",
        "url": "http://10.0.0.9/x",
        "verbs": {"filter": "filter"},
        "timeout": "5s",
        "ignorable": False,
        "nodeCacheCapable": True,
    }


def test_a_container_with_an_agent_of_another_name_is_kept(convert: Any) -> None:
    extenders = [
        entry(5401, filterVerb="predicates/safe-overload"),
        entry(5401, prioritizeVerb="priorities/mine", weight=1),
        entry(5402, prioritizeVerb="priorities/congestion", weight=1),
    ]
    agents = (container("ext-1", "all:0", HTTP_PORT="5401"),
              container("ext-2", "congestion:0", HTTP_PORT="5402"))  # fmt: skip
    found, messages = convert(manifests(extenders, *agents))
    sidecars = found["SecondaryScheduler my-scheduler"]["spec"]["sidecars"]
    assert [sidecar["name"] for sidecar in sidecars] == ["ext-1"]
    urls = {o["spec"].get("url") for o in found.values() if o["kind"] == "SchedulerExtender"}
    assert urls == {None, "http://localhost:5401/scheduler"}
    assert "extenders[0]: safe-overload not replaced by a policy" in messages


def test_what_an_extender_sets_is_kept(convert: Any) -> None:
    gpu = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    own = entry(5401, filterVerb="predicates/foo", managedResources=gpu, ignorable=True,
                httpTimeout=2_000_000_000)  # fmt: skip
    found, messages = convert(manifests([own], container("e", "foo:0", HTTP_PORT="5401")))
    spec = found["SchedulerExtender foo"]["spec"]
    assert (spec["managedResources"], spec["timeout"]) == (gpu, "2s")
    assert "set to" not in messages.replace("nodeCacheCapable: set to true", "")


def test_two_policies_of_an_agent_have_one_timeout_and_the_same_resources(convert: Any) -> None:
    first, second = ({**extender, "httpTimeout": seconds * 10**9}
                     for extender, seconds in zip(SAFE, (1, 3), strict=True))  # fmt: skip
    first["managedResources"] = [{"name": "example.com/gpu"}]
    agent = container("ext-1", "kube-sched-ext-safe:0.0")
    found, messages = convert(manifests([first, second], agent))
    spec = found["SchedulerExtender safe"]["spec"]
    assert (spec["timeout"], "managedResources" in spec) == ("3s", False)
    assert "managedResources: removed" in messages


def test_a_learning_agent_needs_its_monitor(convert: Any) -> None:
    own = entry(prioritizeVerb="priorities/rl-priority", weight=10)
    found, messages = convert(manifests([own], container("e", "sched-ext-rl:0")), "--quiet")
    assert "SchedulerExtender rl" in found
    assert "docs/examples/rl-priority.yaml" in messages


def test_name_and_namespace_can_be_set(convert: Any) -> None:
    agent = container("ext-1", "kube-sched-ext-safe:0.0")
    found, _ = convert(manifests(SAFE, agent), "--name", "safe-one", "--namespace", "batch")
    spec = found["SecondaryScheduler safe-one"]["spec"]
    assert (spec["namespace"], spec["profiles"][0]["schedulerName"]) == ("batch", "my-scheduler")
    assert found["SchedulerExtender safe"]["spec"]["scheduler"] == "safe-one"


@pytest.mark.parametrize(
    "extenders",
    [
        [entry(5401, filterVerb="predicates/mine")],
        [{**entry(filterVerb="filter"), "urlPrefix": "http://localhost:5401/scheduler"}],
        [{**entry(filterVerb="predicates/foo"), "urlPrefix": "http://10.0.0.1:5401/scheduler"}],
        [{**entry(filterVerb="predicates/foo"), "urlPrefix": "http://localhost:port/x"}],
    ],
)
def test_other_documents_are_converted_as_usual(convert: Any, extenders: list[Any]) -> None:
    agent = container("e", "x:0", HTTP_PORT="5401")
    found, _ = convert(manifests(extenders, agent))
    assert [name.split()[0] for name in found] == ["KubeSchedulerConfiguration"]


def test_without_the_deployment_agents_stay_extenders(convert: Any) -> None:
    found, _ = convert(manifests(SAFE)[:2])
    assert [name.split()[0] for name in found] == ["KubeSchedulerConfiguration"]

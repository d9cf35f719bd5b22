"""LoadPolicies, and crane's policies, in files that `validate` reads."""

from __future__ import annotations

from typing import Any

import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate

from ....builders import extender, load_policy

SETTING = CheckOptions(Gates(Version(1, 35, 0)))


def crane(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduler.policy.crane.io/v1alpha1",
        "kind": "DynamicSchedulerPolicy",
        "spec": {"syncPolicy": [{"name": "cpu_usage_avg_5m", "period": "3m"}], **spec},
    }


def reported(*documents: dict[str, Any]) -> list[str]:
    text = yaml.safe_dump_all(documents)
    result = validate([("f.yaml", text)], SETTING)
    return [f"{one.severity} {one.path}: {one.message}" for one in result.findings]


def test_good_ones() -> None:
    assert reported(load_policy(), crane()) == []


def test_error_is_reported_once_with_the_operators_message() -> None:
    limit: dict[str, Any] = {"predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": 65}]}
    (line,) = reported(load_policy(**limit))
    assert line.startswith("error spec.predicates[0].maxLimit: 65 is not a fraction")


def test_what_only_the_definition_knows() -> None:
    (line,) = reported(load_policy(annotator={"replicas": 0}))
    assert line.startswith("error spec.annotator.replicas: 0 is too small")


def test_second_load_policy_is_rejected() -> None:
    (line,) = reported(load_policy("a"), load_policy("b"))
    assert line.startswith(
        'error metadata.name: LoadPolicy "a" is also defined, and only the older'
    )


def test_the_load_policy_of_an_agent_that_no_file_has_is_a_warning() -> None:
    agent = {"policies": [{"name": "load-aware"}], "loadPolicy": "laod"}
    (line,) = reported(extender("load", agent=agent))
    assert line == (
        'warning spec.agent.loadPolicy: LoadPolicy "laod" is not among the files: unless the '
        "cluster has it, the agent uses the default rules"
    )
    text = yaml.safe_dump_all([extender("load", agent=agent), load_policy("load")])
    (finding,) = validate([("f.yaml", text)], SETTING).findings
    assert finding.fix == 'did you mean "load"?'
    assert reported(extender("load", agent=agent), load_policy("laod")) == []


def test_what_crane_passes_over_is_a_warning_and_what_ends_it_an_error() -> None:
    predicate = [{"name": "cpu_usage_avg_5m", "maxLimitPercent": 0.65}]
    assert [line.partition(" ")[0] for line in reported(crane(predicate=predicate))] == [
        "warning",
        "warning",
    ]
    (line,) = reported(crane(hotValue=[{"timeRange": "5m", "count": 0}]))
    assert line.startswith("error spec.hotValue[0].count: 0 is less than 1")


def test_every_warning_about_cranes_policy_has_a_fix() -> None:
    policy = crane(
        syncPolicy=[
            {"name": "cpu_usage_avg_5m", "period": "3m"},
            {"name": "mem_usage_avg_5m", "period": "0s"},
            {"name": "gpu_usage", "period": "3m"},
        ],
        predicate=[
            {"name": "cpu_usage_avg_5m", "maxLimitPecent": 65},
            {"name": "cpu_usage_avg_5m", "maxLimitPercent": 65},
            {"name": "cpu_usage_max_avg_1h", "maxLimitPecent": 75},
        ],
    )
    findings = validate([("f.yaml", yaml.safe_dump(policy))], SETTING).findings
    assert {finding.reason for finding in findings} == {"Percentages", "WithoutEffect"}
    assert len(findings) == 6
    assert not [finding for finding in findings if "as the message describes" in finding.fix]


def test_cranes_policy_in_a_config_map_is_checked_there() -> None:
    policy = crane(predicate=[{"name": "cpu_usage_avg_5m", "maxLimitPercent": 65}])
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "crane-controller-policy"},
        "data": {"policy.yaml": yaml.safe_dump(policy)},
    }
    lines = reported(config_map)
    assert any("maxLimitPercent: crane ignores this unknown field" in line for line in lines)

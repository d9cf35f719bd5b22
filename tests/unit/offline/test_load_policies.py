"""LoadPolicies, and crane's policies, in files that `validate` reads."""

from __future__ import annotations

from typing import Any

import yaml

from kube_scheduler_operator.offline.kinds import Setting
from kube_scheduler_operator.offline.secondary_schedulers import ALL_KINDS
from kube_scheduler_operator.offline.validate import validate
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.versions import Version

SETTING = Setting(Gates(Version(1, 35, 0)))


def policy(name: str = "default", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "LoadPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def crane(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduler.policy.crane.io/v1alpha1",
        "kind": "DynamicSchedulerPolicy",
        "spec": {"syncPolicy": [{"name": "cpu_usage_avg_5m", "period": "3m"}], **spec},
    }


def told(*documents: dict[str, Any]) -> list[str]:
    text = yaml.safe_dump_all(documents)
    verdict = validate([("f.yaml", text)], SETTING, ALL_KINDS)
    return [f"{one.severity} {one.path}: {one.message}" for one in verdict.findings]


def test_good_ones() -> None:
    assert told(policy(), crane()) == []


def test_a_mistake_is_told_once_and_in_the_operators_words() -> None:
    limit = {"predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": 65}]}
    (line,) = told(policy(**limit))
    assert line.startswith("error spec.predicates[0].maxLimit: 65 is not a fraction")


def test_what_only_the_definition_knows() -> None:
    (line,) = told(policy(annotator={"replicas": 0}))
    assert line.startswith("error spec.annotator.replicas: 0 is too small")


def test_a_second_one_is_one_too_many() -> None:
    (line,) = told(policy("a"), policy("b"))
    assert line.startswith('error metadata.name: there is LoadPolicy "a" as well')


def test_what_crane_passes_over_is_a_warning_and_what_ends_it_an_error() -> None:
    predicate = [{"name": "cpu_usage_avg_5m", "maxLimitPercent": 0.65}]
    assert [line.partition(" ")[0] for line in told(crane(predicate=predicate))] == [
        "warning",
        "warning",
    ]
    (line,) = told(crane(hotValue=[{"timeRange": "5m", "count": 0}]))
    assert line.startswith("error spec.hotValue[0].count: 0 pods cannot be counted by")

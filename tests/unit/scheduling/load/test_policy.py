"""The load policy: policy.json, the spec of a LoadPolicy, and crane's files."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.scheduling.load.policy import (
    METRICS,
    HotValue,
    LoadPolicy,
    LoadPolicyError,
    Predicate,
    Priority,
    Rules,
    SourceSpec,
    Sync,
    time_zone,
)
from kube_scheduler_operator.scheduling.load.policy_files import (
    from_document,
    read_policy,
    read_rules,
    read_spec,
)

CRANE = """
apiVersion: scheduler.policy.crane.io/v1alpha1
kind: DynamicSchedulerPolicy
spec:
  syncPolicy:
    ##cpu usage
    - name: cpu_usage_avg_5m
      period: 3m
    - name: cpu_usage_max_avg_1h
      period: 15m
    - name: cpu_usage_max_avg_1d
      period: 3h
    ##memory usage
    - name: mem_usage_avg_5m
      period: 3m
    - name: mem_usage_max_avg_1h
      period: 15m
    - name: mem_usage_max_avg_1d
      period: 3h
  predicate:
    - name: cpu_usage_avg_5m
      maxLimitPecent: 0.65
    - name: cpu_usage_max_avg_1h
      maxLimitPecent: 0.75
    - name: mem_usage_avg_5m
      maxLimitPecent: 0.65
    - name: mem_usage_max_avg_1h
      maxLimitPecent: 0.75
  priority:
    - name: cpu_usage_avg_5m
      weight: 0.2
    - name: cpu_usage_max_avg_1h
      weight: 0.3
    - name: cpu_usage_max_avg_1d
      weight: 0.5
    - name: mem_usage_avg_5m
      weight: 0.2
    - name: mem_usage_max_avg_1h
      weight: 0.3
    - name: mem_usage_max_avg_1d
      weight: 0.5
  hotValue:
    - timeRange: 5m
      count: 5
    - timeRange: 1m
      count: 2
"""


def crane(**spec: Any) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(CRANE)
    document["spec"] |= spec
    return document


def errors_of(document: Any) -> str:
    with pytest.raises(LoadPolicyError) as caught:
        from_document(document)
    return str(caught.value)


def own(**fields: Any) -> dict[str, Any]:
    return {**LoadPolicy().document(), **fields}


# --- crane ------------------------------------------------------------------------------------


def test_default_is_the_policy_of_crane() -> None:
    loaded = read_policy(CRANE)

    assert loaded.policy.rules == Rules()
    assert loaded.notes == ()


def test_policy_of_crane_scheduler_plus_has_percentages() -> None:
    text = CRANE.replace("0.65", "65").replace("0.75", "75")

    loaded = read_policy(text)

    assert loaded.policy.rules == Rules()
    (note,) = loaded.notes
    assert "percentages" in note.message


def test_json_is_accepted() -> None:
    assert read_policy(json.dumps(crane())).policy.rules == Rules()


@pytest.mark.parametrize(
    ("spec", "path", "text"),
    [
        (
            {"predicate": [{"name": "cpu_usage_avg_5m", "maxLimitPecent": 0}]},
            "maxLimitPecent",
            "turns the rule off",
        ),
        (
            {"predicate": [{"name": "cpu_usage_avg_5m"}]},
            "maxLimitPecent",
            "turns the rule off",
        ),
        (
            {
                "predicate": [
                    {"name": "cpu_usage_avg_5m", "maxLimitPecent": 0, "maxLimitPercent": 0.5}
                ]
            },
            "maxLimitPercent",
            'did you mean "maxLimitPecent"?',
        ),
        (
            {"predicate": [{"name": "disk_usage", "maxLimitPecent": 0.5}]},
            "name",
            "has no entry in syncPolicy: the rule never applies",
        ),
        ({"hotValues": []}, "hotValues", 'did you mean "hotValue"?'),
    ],
)
def test_values_ignored_by_crane_are_warnings(spec: dict[str, Any], path: str, text: str) -> None:
    loaded = from_document(crane(**spec))

    (note,) = [note for note in loaded.notes if note.path[-1] == path]
    assert text in note.message
    if "predicate" in spec:
        assert loaded.policy.rules.predicates == ()


def test_rules_of_a_disabled_or_unmeasured_metric_are_dropped() -> None:
    loaded = from_document(
        crane(
            syncPolicy=[
                {"name": "cpu_usage_avg_5m", "period": "0s"},
                {"name": "gpu_usage", "period": "3m"},
                {"name": "mem_usage_avg_5m", "period": "3m"},
            ]
        )
    )

    rules = loaded.policy.rules
    assert rules.sync == (Sync("mem_usage_avg_5m", 180.0),)
    assert rules.predicates == (Predicate("mem_usage_avg_5m", 0.65),)
    assert rules.priorities == (Priority("mem_usage_avg_5m", 0.2),)
    assert {note.path[1] for note in loaded.notes} == {"syncPolicy", "predicate", "priority"}


def test_absent_lists_of_crane_are_empty() -> None:
    document = {
        "apiVersion": "scheduler.policy.crane.io/v1alpha1",
        "kind": "DynamicSchedulerPolicy",
        "spec": {"syncPolicy": [{"name": "cpu_usage_avg_5m", "period": "3m"}]},
    }

    rules = from_document(document).policy.rules

    assert (rules.predicates, rules.priorities, rules.hot_values) == ((), (), ())


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"predicate": [{"name": "cpu_usage_avg_5m", "maxLimitPecent": -0.5}]},
            "spec.predicate[0].maxLimitPecent: -0.5 is not a fraction between 0 and 1; use 0..1",
        ),
        (
            {
                "predicate": [
                    {"name": "cpu_usage_avg_5m", "maxLimitPecent": 0.65},
                    {"name": "mem_usage_avg_5m", "maxLimitPecent": 75},
                ]
            },
            "spec.predicate[0].maxLimitPecent: other limits are greater than 1, so 0.65 would mean "
            "0.65 %; write all limits as fractions, or all as percentages",
        ),
        (
            {"predicate": [{"name": "cpu_usage_avg_5m", "maxLimitPecent": 165}]},
            "spec.predicate[0].maxLimitPecent: 165 is not a fraction between 0 and 1; use 0..1",
        ),
        (
            {"predicate": [{"name": "cpu_usage_avg_5m", "maxLimitPecent": "65"}]},
            "spec.predicate[0].maxLimitPecent: this must be a fraction such as 0.65",
        ),
        (
            {"hotValue": [{"timeRange": "5m", "count": 0}]},
            "spec.hotValue[0].count: 0 is less than 1; use 1 or more",
        ),
        (
            {"hotValue": [{"timeRange": "5 minutes", "count": 5}]},
            'spec.hotValue[0].timeRange: "5 minutes" is not a duration',
        ),
        (
            {"syncPolicy": [{"name": "cpu_usage_avg_5m", "period": 180}]},
            "spec.syncPolicy[0].period: this must be a duration; write one such as 3m",
        ),
        (
            {"priority": [{"name": "cpu_usage_avg_5m", "weight": -1}]},
            "spec.priority[0].weight: -1 is negative; use 0 or more",
        ),
        (
            {"priority": [{"name": "cpu_usage_avg_5m", "weight": 0}]},
            "spec.priority: all weights are 0",
        ),
        ({"priority": {}}, "spec.priority: this must be a list"),
        ({"priority": [7]}, "spec.priority[0]: this must be an object with name and weight"),
    ],
)
def test_errors_have_field_and_fix(spec: dict[str, Any], text: str) -> None:
    assert text in errors_of(crane(**spec))


def test_all_errors_are_reported_together() -> None:
    text = errors_of(crane(hotValue=[{"timeRange": "x", "count": 0}], priority=3))

    assert "timeRange" in text
    assert "count" in text
    assert "priority" in text


# --- our own file -----------------------------------------------------------------------------


def test_format_of_the_policy_file() -> None:
    document = LoadPolicy().document()

    assert document["syncPolicy"][0] == {"name": "cpu_usage_avg_5m", "periodSeconds": 180}
    assert document["predicate"][0] == {"name": "cpu_usage_avg_5m", "maxLimit": 0.65}
    assert document["priority"][0] == {"name": "cpu_usage_avg_5m", "weight": 0.2}
    assert document["hotValue"] == [{"seconds": 300, "count": 5}, {"seconds": 60, "count": 2}]
    assert document["source"] == {
        "type": "NodeMetrics", "port": 19101, "path": "/statistics", "timeoutSeconds": 10
    }  # fmt: skip
    assert (document["cycleSeconds"], document["refreshSeconds"]) == (60, 240)
    assert (document["write"], document["read"]) == ([], "own")


@pytest.mark.parametrize(
    "policy",
    [
        LoadPolicy(),
        LoadPolicy(source=SourceSpec("MetricsServer")),
        LoadPolicy(source=SourceSpec("KubeletSummary", port=10250, insecure_skip_verify=True)),
        LoadPolicy(
            Rules(
                sync=(Sync("disk_usage", 60.0), Sync("cpu_usage_avg_5m", 0.5)),
                predicates=(Predicate("disk_usage", 0.123456789),),
                priorities=(),
                hot_values=(HotValue(2.5, 1),),
                grace=600.0,
            ),
            SourceSpec(
                "Prometheus",
                url="https://prometheus.monitoring:9090",
                token_file="/token",
                ca_file="/ca.crt",
                percent=False,
                queries={"disk_usage": "node:disk:ratio"},
                timeout=2.5,
            ),
            cycle=30.0,
            refresh=120.0,
            write=("crane", "safe"),
            remove=("safe",),
            read="crane",
            crane_zone="+01:00",
        ),
    ],
)
def test_policy_file_round_trips(policy: LoadPolicy) -> None:
    again = read_policy(policy.text()).policy

    assert again == LoadPolicy(
        policy.rules,
        SourceSpec(
            **{
                name: getattr(again.source, name)
                if policy.source.type == "MetricsServer" and name == "port"
                else getattr(policy.source, name)
                for name in SourceSpec.__slots__
            }
        ),
        policy.cycle,
        policy.refresh,
        policy.write,
        policy.remove,
        policy.read,
        policy.crane_zone,
    )
    assert again.text() == policy.text()


def test_empty_file_is_the_default() -> None:
    assert from_document({}).policy == LoadPolicy()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"predicate": [{"name": "cpu_usage_avg_5m", "maxLimit": 65}]},
            'predicate[0].maxLimit: 65 is not a fraction between 0 and 1; write 0.65 or "65%"',
        ),
        (
            {"predicate": [{"name": "cpu_usage_avg_5m", "maxLimit": "0.65"}]},
            'predicate[0].maxLimit: "0.65" is not a valid limit; write a fraction (0.65) or "65%"',
        ),
        (
            {"predicate": [{"name": "cpu_usage_avg_5m", "maxLimit": 0}]},
            "predicate[0].maxLimit: a limit of 0 turns the rule off; remove the entry",
        ),
        (
            {"predicate": [{"name": "cpu_usage_avg_5m", "maxLimit": float("nan")}]},
            "predicate[0].maxLimit: this must be a fraction",
        ),
        (
            {"predicate": [{"name": "cpu_usage_avg_5m", "max": 0.5, "maxLimit": 0.5}]},
            'predicate[0].max: unknown field "max"',
        ),
        (
            {"predicate": [{"name": "cpu_usage_avg_5min", "maxLimit": 0.5}]},
            'predicate[0].name: "cpu_usage_avg_5min" has no entry in syncPolicy; did you mean '
            '"cpu_usage_avg_5m"?',
        ),
        (
            {"syncPolicy": [{"name": "cpu_usage", "periodSeconds": 60}]},
            'syncPolicy[0].name: no source measures "cpu_usage" without a query for Prometheus',
        ),
        ({"predicates": []}, 'predicates: unknown field "predicates"; did you mean'),
        (
            {"source": {"type": "Prometheu"}},
            'source.type: "Prometheu" is not a source; did you mean "Prometheus"?',
        ),
        (
            {"source": {"type": "Prometheus"}},
            "source.url: this is required; write the URL of Prometheus",
        ),
        (
            {"source": {"type": "NodeMetrics", "port": 65536}},
            "source.port: 65536 is not a valid port",
        ),
        (
            {"source": {"type": "MetricsServer", "port": 1}},
            'source.port: unknown field "port"; remove it',
        ),
        ({"cycleSeconds": 0}, "cycleSeconds: 0 s is too short; use 1 s or more"),
        (
            {"refreshSeconds": 30},
            "refreshSeconds: shorter than cycleSeconds (60 s); use 60 s or more",
        ),
        (
            {"refreshSeconds": 480},
            "refreshSeconds: with 480 s and a cycleSeconds of 60 s, values expire (after 480 s) "
            "before they are refreshed; use a shorter time",
        ),
        ({"write": ["own"]}, 'write[0]: "own" is not supported; use crane or safe'),
        ({"write": "crane"}, "write: this must be a list of crane or safe"),
        ({"read": "cran"}, 'read: "cran" is not supported; use own, crane, crane-plus or safe'),
        (
            {"craneTimeZone": "Mars/Olympus"},
            'craneTimeZone: unknown time zone "Mars/Olympus"; write UTC, +08:00',
        ),
    ],
)
def test_errors_in_the_policy_file(fields: dict[str, Any], text: str) -> None:
    assert text in errors_of(own(**fields))


def test_custom_metrics_need_a_query() -> None:
    source = {"type": "Prometheus", "url": "http://p:9090", "queries": {"disk": "d"}}
    sync = [{"name": "disk", "periodSeconds": 60}]

    policy = from_document({"source": source, "syncPolicy": sync, "refreshSeconds": 120}).policy

    assert policy.rules.sync == (Sync("disk", 60.0),)
    assert policy.rules.predicates == ()  # default rules without a period are dropped silently


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "a load policy must be an object"),
        ("a: [", "line 1, column 5"),
        ("", "found 0 documents"),
        ("a: 1\n---\nb: 1\n", "found 2 documents"),
        ("cycleSeconds: 1\ncycleSeconds: 2\n", "cycleSeconds"),
        ("kind: Policy\napiVersion: v1\n", "kind: v1 Policy is not a load policy; write"),
        ("kind: DynamicSchedulerPolicy\napiVersion: scheduler.policy.crane.io/v1alpha1\n", "spec:"),
    ],
)
def test_other_documents_are_rejected(text: str, message: str) -> None:
    with pytest.raises(LoadPolicyError, match=message):
        read_policy(text)


# --- LoadPolicy -------------------------------------------------------------------------------


def test_spec_has_durations_and_percentages() -> None:
    policy = read_spec(
        {
            "source": {
                "type": "Prometheus",
                "prometheus": {
                    "url": "https://p:9090/",
                    "tokenSecret": {"name": "prometheus", "key": "t"},
                    "unit": "Fraction",
                },
                "timeout": "3s",
            },
            "sync": [{"name": "cpu_usage_avg_5m", "period": "3m"}],
            "predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": "65%"}],
            "priorities": [{"name": "cpu_usage_avg_5m", "weight": 1}],
            "hotValues": [{"timeRange": "1m", "count": 2}],
            "cycle": "30s",
            "refresh": "2m",
            "grace": "1m",
            "write": ["crane"],
            "read": "own",
            "craneTimeZone": "UTC",
        }
    ).policy

    assert policy == LoadPolicy(
        Rules(
            (Sync("cpu_usage_avg_5m", 180.0),),
            (Predicate("cpu_usage_avg_5m", 0.65),),
            (Priority("cpu_usage_avg_5m", 1.0),),
            (HotValue(60.0, 2),),
            60.0,
        ),
        SourceSpec(
            "Prometheus",
            url="https://p:9090",
            token_file="/etc/kube-scheduler-operator/prometheus/token",
            percent=False,
            timeout=3.0,
        ),
        cycle=30.0,
        refresh=120.0,
        write=("crane",),
        crane_zone="UTC",
    )


def test_section_of_another_source_type_is_an_error() -> None:
    with pytest.raises(LoadPolicyError, match="no effect with type MetricsServer"):
        read_spec({"source": {"type": "MetricsServer", "nodeMetrics": {"port": 9100}}})


def test_empty_spec_is_the_default() -> None:
    assert read_spec(None).policy == LoadPolicy()
    assert (
        from_document(
            {"apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "LoadPolicy", "spec": {}}
        ).policy
        == LoadPolicy()
    )


# --- for others -------------------------------------------------------------------------------


def test_rules_alone_are_parsed() -> None:
    rules = read_rules({"hotValue": [], "other": 1})

    assert rules.hot_values == ()
    assert rules.predicates == Rules().predicates
    with pytest.raises(LoadPolicyError, match=r"^hotValue: this must be a list"):
        read_rules({"hotValue": 1})


def test_validity_of_values() -> None:
    rules = Rules()

    assert rules.metrics == METRICS
    assert rules.valid_for("cpu_usage_avg_5m") == 480.0
    assert rules.valid_for("mem_usage_max_avg_1d") == 11100.0
    assert rules.valid_for("unknown") is None


@pytest.mark.parametrize(
    ("text", "hours"), [("UTC", 0), ("", 0), ("Asia/Shanghai", 8), ("-03:30", -3.5), ("+0800", 8)]
)
def test_time_zones(text: str, hours: float) -> None:
    moment = datetime.datetime(2026, 1, 1, tzinfo=time_zone(text))

    assert moment.utcoffset() == datetime.timedelta(hours=hours)


@pytest.mark.parametrize(
    "text",
    ["Mars/Olympus", "a" * 1000, "a/" * 600 + "a", "a." * 600, "../../etc/passwd", "+99:00", "é"],
)
def test_what_is_not_a_time_zone_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"time zone|timedelta"):
        time_zone(text)


def test_imports_are_small() -> None:
    code = (
        "import sys, kube_scheduler_operator.scheduling.load.policy_files as f\n"
        "f.from_document({})\n"
        "print([m for m in ('numpy', 'yaml', 'kopf', 'aiohttp') if m in sys.modules])"
    )
    root = Path(__file__).parents[4] / "operator"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True
    )

    assert done.stdout.strip() == "[]"


def test_a_percentage_above_100_is_quoted_as_it_was_written() -> None:
    document = own(predicate=[{"name": "cpu_usage_avg_5m", "maxLimit": "650%"}])
    with pytest.raises(LoadPolicyError) as caught:
        read_policy(json.dumps(document))
    assert "maxLimit: 650% is not a fraction between 0 and 1; use 0..1" in str(caught.value)

"""Conversion of crane-scheduler's configuration to objects with the same effect."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.migrate.changes import Severity
from kube_scheduler_operator.config.migrate.crane_scheduler import (
    DynamicConfig,
    SecondScheduler,
    convert_dynamic,
    convert_dynamic_policy,
    load_policy_object,
    read_dynamic,
)
from kube_scheduler_operator.config.migrate.operator_objects import ConvertedObjects
from kube_scheduler_operator.scheduling.load.policy import (
    HotValue,
    LoadPolicy,
    LoadPolicyError,
    Predicate,
    Rules,
    Sync,
)
from kube_scheduler_operator.scheduling.load.policy_files import LoadedPolicy, read_spec

TARGET = Target(Gates(Version(1, 35, 0)))
DYNAMIC = {"name": "Dynamic"}


def config(*profiles: dict[str, Any], version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"kubescheduler.config.k8s.io/{version}",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles) or [profile()],
        **fields,
    }


def profile(name: str = "", weight: int = 3, **plugins: Any) -> dict[str, Any]:
    lists = plugins or {
        "filter": {"enabled": [DYNAMIC]},
        "score": {"enabled": [{**DYNAMIC, "weight": weight}]},
    }
    return {**({"schedulerName": name} if name else {}), "plugins": lists}


def found(document: dict[str, Any]) -> DynamicConfig:
    dynamic = read_dynamic(document)
    assert dynamic is not None
    return dynamic


def converted(document: dict[str, Any], **options: Any) -> ConvertedObjects:
    loaded = LoadedPolicy(LoadPolicy())
    return convert_dynamic(found(document), loaded, (), TARGET, used=set(), **options)


def kinds(result: ConvertedObjects) -> list[str]:
    return [f"{obj['kind']} {obj['metadata']['name']}" for obj in result.objects]


def one(result: ConvertedObjects, kind: str) -> dict[str, Any]:
    (obj,) = (obj for obj in result.objects if obj["kind"] == kind)
    spec: dict[str, Any] = obj["spec"]
    return spec


def changes_of(result: ConvertedObjects, severity: Severity) -> str:
    return "\n".join(change.text for change in result.changes if change.severity is severity)


# --- uses of Dynamic --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plugins", "filters", "scores", "weight"),
    [
        ({"filter": {"enabled": [DYNAMIC]}}, True, False, 1),
        ({"score": {"enabled": [{**DYNAMIC, "weight": 5}]}}, False, True, 5),
        ({"score": {"enabled": [DYNAMIC]}}, False, True, 1),
        ({"multiPoint": {"enabled": [{**DYNAMIC, "weight": 2}]}}, True, True, 2),
        (
            {
                "multiPoint": {"enabled": [{**DYNAMIC, "weight": 2}]},
                "score": {"enabled": [{**DYNAMIC, "weight": 7}]},
            },
            True,
            True,
            7,
        ),
    ],
)
def test_uses_of_dynamic(plugins: dict[str, Any], filters: bool, scores: bool, weight: int) -> None:
    (use,) = found(config(profile(**plugins))).uses
    assert (use.filters, use.scores, use.weight) == (filters, scores, weight)


@pytest.mark.parametrize(
    "document",
    [
        config(profile(score={"enabled": [{"name": "ImageLocality"}]})),
        config(profile(score={"disabled": [DYNAMIC]})),
        {"profiles": None},
        {"profiles": [7]},
        {"kind": "Policy"},
        [],
        None,
    ],
)
def test_configurations_without_dynamic(document: Any) -> None:
    assert read_dynamic(document) is None


def test_the_path_of_the_policy() -> None:
    arguments = {"name": "Dynamic", "args": {"policyConfigPath": "/etc/kubernetes/policy.yaml"}}

    own = found(config({**profile(), "pluginConfig": [arguments]}))
    default = found(config())

    assert own.policy_path == "/etc/kubernetes/policy.yaml"
    assert default.policy_path == "/etc/kubernetes/dynamic-scheduler-policy.yaml"


def test_cranes_plugins_are_removed_and_other_fields_kept() -> None:
    lists: dict[str, Any] = {
        "filter": {"enabled": [DYNAMIC, {"name": "NodeResourceTopologyMatch"}]},
        "score": {
            "enabled": [{"name": "ImageLocality", "weight": 2}, DYNAMIC],
            "disabled": [{"name": "NodeAffinity"}],
        },
    }
    configs = [
        {"name": "Dynamic", "args": {}},
        {"name": "NodeResourceTopologyMatch", "args": {"topologyAwareResources": ["cpu"]}},
        {"name": "NodeAffinity", "args": {}},
    ]
    before = config({**profile(**lists), "pluginConfig": configs})
    text = yaml.safe_dump(before)

    rest = found(before).rest

    assert yaml.safe_dump(before) == text, "the input is not modified"
    (left,) = rest["profiles"]
    assert left["plugins"] == {
        "score": {
            "enabled": [{"name": "ImageLocality", "weight": 2}],
            "disabled": [{"name": "NodeAffinity"}],
        }
    }
    assert left["pluginConfig"] == [{"name": "NodeAffinity", "args": {}}]


def test_a_plugin_without_an_equivalent_is_reported() -> None:
    lists: dict[str, Any] = {
        "filter": {"enabled": [DYNAMIC, {"name": "NodeResourceTopologyMatch"}]},
    }
    lost = changes_of(converted(config(profile(**lists))), Severity.LOST)
    assert "profiles[0].plugins.filter.enabled[1]: NodeResourceTopologyMatch removed" in lost
    assert "topology.crane.io" in lost


# --- the control plane ------------------------------------------------------------------------


def test_the_control_planes_scheduler() -> None:
    result = converted(config())

    assert kinds(result) == ["LoadPolicy default", "SchedulerExtender load-aware"]
    assert one(result, "SchedulerExtender") == {
        "agent": {"policies": [{"name": "load-aware", "weight": 1}], "loadPolicy": "default"},
        "weight": 3,
    }
    assert result.problems == ()


def test_other_settings_become_a_scheduler_profile() -> None:
    lists: dict[str, Any] = {
        "filter": {"enabled": [DYNAMIC]},
        "score": {"disabled": [{"name": "ImageLocality"}]},
    }
    result = converted(config(profile(**lists), parallelism=8))
    (obj,) = (obj for obj in result.objects if obj["kind"] == "SchedulerProfile")
    assert obj["metadata"]["name"] == "default-scheduler"
    assert obj["spec"]["plugins"] == {"score": {"disabled": [{"name": "ImageLocality"}]}}
    assert "parallelism: removed" in changes_of(result, Severity.LOST)


@pytest.mark.parametrize("version", ["v1beta2", "v1beta3"])
def test_old_versions_keep_the_weights_of_their_time(version: str) -> None:
    result = converted(config(version=version))
    names = kinds(result)
    assert ("SchedulerProfile default-scheduler" in names) == (version == "v1beta2")
    assert f"{version} converted to v1" in changes_of(result, Severity.SAME)


def test_unused_verbs_and_rules_are_removed() -> None:
    result = converted(config(profile(filter={"enabled": [DYNAMIC]})))
    assert one(result, "SchedulerExtender")["agent"]["verbs"] == {
        "filter": True,
        "prioritize": False,
    }
    assert one(result, "LoadPolicy")["priorities"] == []
    assert one(result, "LoadPolicy")["predicates"] != []

    result = converted(config(profile(score={"enabled": [DYNAMIC]})))
    assert one(result, "SchedulerExtender")["agent"]["verbs"] == {
        "filter": False,
        "prioritize": True,
    }
    assert one(result, "LoadPolicy")["predicates"] == []


def test_only_the_profiles_that_used_it() -> None:
    plain = {"schedulerName": "plain"}
    result = converted(config(profile("loaded"), plain))
    assert one(result, "SchedulerExtender")["agent"]["schedulerNames"] == ["loaded"]
    assert "load applied to pods of loaded only" in changes_of(result, Severity.SAME)


def test_profiles_that_used_it_differently() -> None:
    arguments = {"name": "Dynamic", "args": {"policyConfigPath": "/other.yaml"}}
    second = {**profile("b", filter={"enabled": [DYNAMIC]}), "pluginConfig": [arguments]}
    third = profile("c", weight=9)
    result = converted(config(profile("a"), second, third))
    assert one(result, "SchedulerExtender")["weight"] == 3
    assert "schedulerNames" not in one(result, "SchedulerExtender")["agent"]
    differs = changes_of(result, Severity.DIFFERS)
    assert "profiles[0].plugins.score: weight set to 3 for all profiles" in differs
    assert "profiles[1].plugins: Dynamic used as in a" in differs
    assert "/other.yaml removed" in changes_of(result, Severity.LOST)


# --- a second scheduler -----------------------------------------------------------------------


def test_a_second_scheduler() -> None:
    election = {"leaderElect": True, "resourceName": "crane-scheduler", "leaseDuration": "30s"}
    connection = {"kubeconfig": "/etc/kubernetes/scheduler.conf", "qps": 100}
    document = config(
        profile("crane-scheduler"),
        leaderElection=election,
        clientConnection=connection,
        parallelism=8,
    )

    result = converted(document, second=SecondScheduler("crane-scheduler", "kube-system"))

    assert kinds(result) == [
        "LoadPolicy default",
        "SecondaryScheduler crane-scheduler",
        "SchedulerExtender load-aware",
    ]
    assert one(result, "SecondaryScheduler") == {
        "namespace": "kube-system",
        "config": {
            "parallelism": 8,
            "leaderElection": {"leaseDuration": "30s"},
            "clientConnection": {"qps": 100},
        },
        "profiles": [{"schedulerName": "crane-scheduler"}],
    }
    assert one(result, "SchedulerExtender")["scheduler"] == "crane-scheduler"
    same = changes_of(result, Severity.SAME)
    assert "leaderElection: reduced to its timings" in same
    assert "clientConnection.kubeconfig: removed" in same


def test_only_the_control_plane_serves_the_default_scheduler_name() -> None:
    result = converted(config(), second=SecondScheduler("crane-scheduler", "x"))
    (left,) = one(result, "SecondaryScheduler")["profiles"]
    assert left["schedulerName"] == "crane-scheduler"
    differs = changes_of(result, Severity.DIFFERS)
    assert "profiles[0].schedulerName: default-scheduler renamed to crane-scheduler" in differs


# --- the policy -------------------------------------------------------------------------------


def test_a_load_policy_has_the_same_rules() -> None:
    policy = LoadPolicy(
        Rules(
            (Sync("cpu_usage_avg_5m", 90.0), Sync("mem_usage_avg_5m", 10800.0)),
            (Predicate("cpu_usage_avg_5m", 0.655), Predicate("mem_usage_avg_5m", 0.65)),
            (),
            (HotValue(300.0, 5), HotValue(1.5, 1)),
        )
    )
    spec = load_policy_object(policy)["spec"]
    assert [each["period"] for each in spec["sync"]] == ["1m30s", "3h"]
    assert [each["maxLimit"] for each in spec["predicates"]] == [0.655, "65%"]
    assert [each["timeRange"] for each in spec["hotValues"]] == ["5m", "1.5s"]
    assert read_spec(spec).policy == policy
    assert read_spec(load_policy_object(LoadPolicy())["spec"]).policy == LoadPolicy()


def test_prometheus_can_stay_the_source() -> None:
    result = converted(config(), prometheus="http://prometheus:9090")
    source = one(result, "LoadPolicy")["source"]
    assert source == {"type": "Prometheus", "prometheus": {"url": "http://prometheus:9090"}}
    assert "load read from Prometheus" in changes_of(result, Severity.SAME)


def test_changes_of_a_policy() -> None:
    document = {
        "apiVersion": "scheduler.policy.crane.io/v1alpha1",
        "kind": "DynamicSchedulerPolicy",
        "spec": {
            "syncPolicy": [{"name": "cpu_usage_avg_5m", "period": "3m"}],
            "predicate": [
                {"name": "cpu_usage_avg_5m", "maxLimitPecent": 65},
                {"name": "gpu", "maxLimitPecent": 65},
            ],
        },
    }
    loaded, changes = convert_dynamic_policy(document)
    assert loaded.policy.rules.predicates == (Predicate("cpu_usage_avg_5m", 0.65),)
    texts = [f"{change.severity.value}: {change.text}" for change in changes]
    assert any(text.startswith("behaviour differs: spec.predicate[0]") for text in texts)
    assert any('"gpu" has no entry in syncPolicy' in text for text in texts)


def test_another_kind_is_rejected() -> None:
    with pytest.raises(LoadPolicyError, match="must be a DynamicSchedulerPolicy"):
        convert_dynamic_policy({"kind": "Pod"})


@pytest.mark.parametrize(
    "second",
    [None, SecondScheduler("crane-scheduler", "kube-scheduler-operator")],
    ids=["control plane", "secondary"],
)
def test_every_object_is_valid(second: SecondScheduler | None) -> None:
    from kube_scheduler_operator.base.crd_schema import validate_object
    from kube_scheduler_operator.config.lint.checks import CheckOptions
    from kube_scheduler_operator.config.lint.validate import validate

    document = config(version="v1beta2", leaderElection={"leaderElect": True})
    result = converted(document, second=second)
    for obj in result.objects:
        plural = obj["kind"].lower().replace("policy", "policie") + "s"
        definition = f"{plural}.kube-scheduler-operator.dev.yaml"
        assert list(validate_object(obj, definition, "v1alpha1")) == []
    known = [obj for obj in result.objects if obj["kind"] != "SchedulerExtender"]
    validation = validate(
        [("result.yaml", yaml.safe_dump_all(known))],
        CheckOptions(Gates(Version(1, 35, 0))),
    )
    assert validation.findings == ()

"""Validation of a configuration with the same result as kube-scheduler's."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.findings import format_path
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version

from .....configurations.by_hand import FIT, args, plugins, profile

PLUGINS = "scheduler-plugins:v0.34.7"
TYPE = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def target(minor: int = 35, stock: bool = True, **gates: bool) -> Target:
    return Target(Gates(Version(1, minor), gates), stock)


def found(config: Any, where: Target | None = None) -> list[tuple[str, str]]:
    problems = validate_config({**TYPE, **config}, where or target())
    return [(problem.reason, format_path(problem.path)) for problem in problems]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"leaderElection": {"leaderElect": False, "retryPeriod": "9s"}}, id="alone"),
        pytest.param({"leaderElection": {"leaseDuration": "0s"}}, id="zero means the default"),
        pytest.param({"clientConnection": {"qps": 0.5, "burst": 0}}, id="client"),
        pytest.param(plugins("score", disabled=("NoSuch",)), id="disabled unknown plugin"),
        pytest.param(args("NoSuch", anything=1), id="arguments of an unknown plugin"),
        pytest.param(args("ImageLocality", anything=1), id="arguments of a plugin without any"),
        pytest.param(args(FIT, apiVersion=TYPE["apiVersion"], kind=f"{FIT}Args"), id="typed args"),
        pytest.param(args("NodeResourcesFit", scoringStrategy={
            "type": "LeastAllocated",
            "requestedToCapacityRatio": {"shape": [{"utilization": 1, "score": 1}]},
        }), id="a shape that is not used"),
        pytest.param(
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}, id="two profiles"
        ),
        pytest.param({"extenders": [{"urlPrefix": ""}]}, id="an extender without address"),
        pytest.param(
            {
                "profiles": [{
                    "plugins": {"multiPoint": {"disabled": [{"name": FIT}]}},
                    "pluginConfig": [{"name": FIT, "args": {"scoringStrategy": {"type": "x"}}}],
                }]
            },
            id="invalid arguments of a disabled plugin",
        ),
    ],
)  # fmt: skip
def test_configurations_that_kube_scheduler_accepts_are_accepted(config: Any) -> None:
    assert found(config) == []


@pytest.mark.parametrize(
    ("config", "reason", "path"),
    [
        ({"paralellism": 1}, "UnknownField", "paralellism"),
        ({"Parallelism": 1}, "UnknownField", "Parallelism"),
        (profile(plugin={}), "UnknownField", "profiles[0].plugin"),
        (plugins("placementScore"), "UnknownField", "profiles[0].plugins.placementScore"),
        (args(FIT, strategy=1), "UnknownField", "profiles[0].pluginConfig[0].args.strategy"),
        ({"extenders": [{"urlprefix": "x"}]}, "UnknownField", "extenders[0].urlprefix"),
        ({"servingInfo": {}}, "UnknownField", "servingInfo"),
        ({"parallelism": "1"}, "InvalidType", "parallelism"),
        ({"parallelism": True}, "InvalidType", "parallelism"),
        ({"parallelism": 1.5}, "InvalidType", "parallelism"),
        ({"parallelism": 2**31}, "InvalidValue", "parallelism"),
        ({"profiles": {}}, "InvalidType", "profiles"),
        ({"profiles": ["a"]}, "InvalidType", "profiles[0]"),
        (profile(schedulerName=1), "InvalidType", "profiles[0].schedulerName"),
        ({"extenders": [{"httpTimeout": 5}]}, "InvalidType", "extenders[0].httpTimeout"),
        ({"extenders": [{"httpTimeout": "5"}]}, "InvalidValue", "extenders[0].httpTimeout"),
        (
            {"extenders": [{"tlsConfig": {"caData": "%"}}]},
            "InvalidValue",
            "extenders[0].tlsConfig.caData",
        ),
        ({"kind": "Policy"}, "InvalidConfiguration", "kind"),
        (args(FIT, kind="Other"), "InvalidConfiguration", "profiles[0].pluginConfig[0].args.kind"),
    ],
)
def test_decoding_is_strict(config: Any, reason: str, path: str) -> None:
    assert found(config) == [(reason, path)]


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"parallelism": 0}, "parallelism"),
        ({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore"),
        (profile(percentageOfNodesToScore=-1), "profiles[0].percentageOfNodesToScore"),
        ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds"),
        ({"podInitialBackoffSeconds": 11}, "podMaxBackoffSeconds"),
        ({"clientConnection": {"burst": -1}}, "clientConnection.burst"),
    ],
)
def test_ranges(config: Any, path: str) -> None:
    assert found(config) == [("InvalidConfiguration", path)]


@pytest.mark.parametrize(
    ("election", "path"),
    [
        ({"resourceLock": "endpoints"}, "resourceLock"),
        ({"leaseDuration": "10s"}, "leaseDuration"),
        ({"renewDeadline": "2.4s"}, "renewDeadline"),
        ({"retryPeriod": "-2s"}, "retryPeriod"),
    ],
)
def test_leader_election(election: Any, path: str) -> None:
    assert found({"leaderElection": election}) == [
        ("InvalidLeaderElection", f"leaderElection.{path}")
    ]


@pytest.mark.parametrize(
    ("config", "reason", "path"),
    [
        (
            {"profiles": [{"schedulerName": "a"}, {}]},
            "InvalidProfile",
            "profiles[1].schedulerName",
        ),
        (profile(schedulerName=""), "InvalidProfile", "profiles[0].schedulerName"),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "Duplicate",
            "profiles[1].schedulerName",
        ),
        (
            plugins("queueSort", disabled=("*",)),
            "InvalidProfile",
            "profiles[0].plugins.queueSort",
        ),
        (plugins("bind", disabled=("*",)), "InvalidProfile", "profiles[0].plugins.bind"),
        (
            plugins("score", "ImageLocality", "ImageLocality"),
            "Duplicate",
            "profiles[0].plugins.score",
        ),
        (
            profile(pluginConfig=[{"name": FIT}, {"name": FIT}]),
            "Duplicate",
            "profiles[0].pluginConfig[1].name",
        ),
        (
            plugins("filter", "ImageLocality"),
            "WrongExtensionPoint",
            "profiles[0].plugins.filter.enabled[0].name",
        ),
        (
            plugins("score", "NodeResourceFit"),
            "UnknownPlugin",
            "profiles[0].plugins.score.enabled[0].name",
        ),
        (
            plugins("multiPoint", "EBSLimits"),
            "UnknownPlugin",
            "profiles[0].plugins.multiPoint.enabled[0].name",
        ),
        (args("EBSLimits"), "UnknownPlugin", "profiles[0].pluginConfig[0].name"),
        (
            profile(plugins={"score": {"enabled": [{"name": FIT, "weight": -1}]}}),
            "InvalidProfile",
            "profiles[0].plugins.score",
        ),
    ],
)
def test_profiles(config: Any, reason: str, path: str) -> None:
    assert found(config) == [(reason, path)]


def test_profiles_must_have_equal_queue_sort() -> None:
    other = {"schedulerName": "b", "pluginConfig": [{"name": "PrioritySort", "args": {"x": 1}}]}
    assert found({"profiles": [{"schedulerName": "a"}, other]}) == [
        ("InvalidProfile", "profiles[1].plugins.queueSort")
    ]


@pytest.mark.parametrize(
    ("config", "minor", "fix"),
    [
        (plugins("score", "NodeResourceFit"), 35, 'did you mean "NodeResourcesFit"?'),
        (plugins("score", "Zzz"), 35, "remove it"),
        (plugins("filter", "LeafNodeVolumeBinding"), 35, 'has no plugin "LeafNodeVolumeBinding"; '),
        (plugins("filter", "VolumeBindings"), 35, 'did you mean "VolumeBinding"?'),
        (plugins("filter", "GCEPDLimits"), 32, "was removed in Kubernetes 1.32; remove it"),
        (plugins("filter", "NodeDeclaredFeatures"), 34, "was added in Kubernetes 1.35"),
        (plugins("filter", "ImageLocality"), 35, "list it at score"),
        ({"paralellism": 1}, 35, 'did you mean "parallelism"?'),
        (plugins("placementScore"), 35, "which was added in 1.36; remove it"),
    ],
)
def test_messages_contain_the_fix(config: Any, minor: int, fix: str) -> None:
    (problem,) = validate_config({**TYPE, **config}, target(minor))
    assert problem.message.endswith(fix) or fix in problem.message


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(plugins("score", "Mine"), id="plugin"),
        pytest.param(plugins("multiPoint", "Mine", disabled=("*",)), id="only a plugin"),
        pytest.param(plugins("permit", "ImageLocality"), id="point"),
    ],
)
def test_a_custom_image_may_have_more_plugins(config: Any) -> None:
    assert found(config) != []
    assert found(config, target(stock=False)) == []


@pytest.mark.parametrize(
    ("lists", "scheduler", "message"),
    [
        (plugins("queueSort", "Mine"), "", "PrioritySort and Mine are enabled"),
        (plugins("queueSort", "Mine", disabled=("*",)), "", ""),
        (plugins("multiPoint", "Mine"), "", ""),
        (plugins("multiPoint", "Coscheduling"), PLUGINS, "PrioritySort and Coscheduling are"),
        (plugins("multiPoint", "Coscheduling", disabled=("PrioritySort",)), PLUGINS, ""),
        (plugins("multiPoint", "SySched", disabled=("PrioritySort",)), PLUGINS, "no queueSort"),
        (plugins("multiPoint", "Mine", disabled=("PrioritySort",)), "", ""),
    ],
)
def test_a_queue_has_one_queue_sort_plugin(lists: Any, scheduler: str, message: str) -> None:
    """NewFramework of 1.34 exits with another number; a custom image may add one of its own."""
    image = Target(target(34).gates, stock=False, scheduler=scheduler)
    problems = validate_config({**TYPE, **lists}, image)
    assert [message in problem.message for problem in problems] == ([True] if message else [])


def test_an_unrecorded_version_may_have_more_fields() -> None:
    assert found({"newField": 1, **plugins("score", "New")}, target(minor=NEWEST.minor + 1)) == []


@pytest.mark.parametrize(("minor", "expected"), [(29, []), (31, []), (32, ["UnknownPlugin"])])
def test_cloud_volume_limits_exist_until_1_31(minor: int, expected: list[str]) -> None:
    config = plugins("multiPoint", "AzureDiskLimits")
    assert [reason for reason, _ in found(config, target(minor))] == expected


@pytest.mark.parametrize(("minor", "expected"), [(30, []), (31, ["UnknownPlugin"])])
def test_cloud_volume_limits_are_rejected_at_single_points_in_1_31(
    minor: int, expected: list[str]
) -> None:
    config = plugins("filter", "AzureDiskLimits")
    assert [reason for reason, _ in found(config, target(minor))] == expected


EXTENDER = {"urlPrefix": "http://localhost"}
GPU = {"name": "example.com/gpu"}


@pytest.mark.parametrize(
    ("extenders", "reason", "path"),
    [
        ([{**EXTENDER, "prioritizeVerb": "p"}], "InvalidExtender", "extenders[0].weight"),
        (
            [{**EXTENDER, "bindVerb": "b"}, {**EXTENDER, "bindVerb": "b"}],
            "InvalidExtender",
            "extenders[1].bindVerb",
        ),
        (
            [{**EXTENDER, "managedResources": [{"name": "cpu"}]}],
            "InvalidExtender",
            "extenders[0].managedResources[0].name",
        ),
        (
            [{**EXTENDER, "managedResources": [GPU]}, {**EXTENDER, "managedResources": [GPU]}],
            "Duplicate",
            "extenders[1].managedResources[0].name",
        ),
        (
            [{**EXTENDER, "tlsConfig": {"insecure": True, "caFile": "/ca"}}],
            "InvalidExtender",
            "extenders[0].tlsConfig.insecure",
        ),
    ],
)
def test_extenders(extenders: Any, reason: str, path: str) -> None:
    assert found({"extenders": extenders}) == [(reason, path)]


def test_ignored_resources_require_node_resources_fit() -> None:
    extender = {**EXTENDER, "managedResources": [{**GPU, "ignoredByScheduler": True}]}
    config = {**plugins("multiPoint", disabled=(FIT,)), "extenders": [extender]}
    assert found(config) == [("InvalidProfile", "profiles[0].plugins")]

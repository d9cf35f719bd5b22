"""Defaults of a configuration: top-level fields, merged lists, arguments of enabled plugins.

That it is the same as the program's is an integration test; these say what the rules are.
"""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version

from ....configurations.completed import defaulted_config


def completed(config: dict[str, Any], minor: int = 35, **gates: bool) -> dict[str, Any]:
    return defaulted_config(config, Target(Gates(Version(1, minor), gates)))


def profile(config: dict[str, Any], minor: int = 35, **gates: bool) -> dict[str, Any]:
    found: dict[str, Any] = completed({"profiles": [config]}, minor, **gates)["profiles"][0]
    return found


def args(found: dict[str, Any]) -> dict[str, Any]:
    return {
        entry["name"]: {k: v for k, v in entry["args"].items() if k not in ("apiVersion", "kind")}
        for entry in found["pluginConfig"]
    }


def test_the_defaults_at_the_top() -> None:
    found = completed({})
    del found["profiles"]
    assert found == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 16,
        "percentageOfNodesToScore": 0,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        "enableProfiling": True,
        "enableContentionProfiling": True,
        "leaderElection": {
            "leaderElect": True, "leaseDuration": "15s", "renewDeadline": "10s",
            "retryPeriod": "2s", "resourceLock": "leases", "resourceName": "kube-scheduler",
            "resourceNamespace": "kube-system",
        },
        "clientConnection": {
            "kubeconfig": "", "acceptContentTypes": "", "qps": 50, "burst": 100,
            "contentType": "application/vnd.kubernetes.protobuf",
        },
    }  # fmt: skip


def test_contention_profiling_defaults_to_profiling() -> None:
    found = completed({"enableProfiling": False})
    assert (found["enableProfiling"], found["enableContentionProfiling"]) == (False, False)


def test_leader_election_keeps_what_is_set() -> None:
    election = {"leaseDuration": "60s", "leaderElect": False}
    found = completed({"leaderElection": election})
    assert found["leaderElection"]["leaseDuration"] == "1m0s"
    assert found["leaderElection"]["leaderElect"] is False


def test_lists_are_merged_and_not_expanded() -> None:
    lists = {"multiPoint": {
        "enabled": [{"name": "ImageLocality", "weight": 9}, {"name": "VolumeZone"}],
        "disabled": [{"name": "VolumeZone", "weight": 3}],
    }}  # fmt: skip
    plugins = profile({"plugins": lists})["plugins"]
    enabled = {entry["name"]: entry["weight"] for entry in plugins["multiPoint"]["enabled"]}
    assert next(iter(enabled)) == "SchedulingGates"
    assert list(enabled)[-1] == "VolumeZone"  # disabled, and enabled again at the end
    assert (enabled["ImageLocality"], enabled["TaintToleration"]) == (9, 3)
    assert plugins["multiPoint"]["disabled"] == [{"name": "VolumeZone", "weight": 0}]
    assert plugins["score"] == {}


@pytest.mark.parametrize(("minor", "there"), [(35, False), (36, True)])
def test_a_version_has_its_own_extension_points(minor: int, there: bool) -> None:
    assert ("placementScore" in profile({}, minor)["plugins"]) == there


def test_arguments_are_those_of_enabled_plugins() -> None:
    off = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    given = [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Nope"}}},
        {"name": "ImageLocality", "args": {"x": [1]}},
        {"name": "NodeName", "args": None},
        {"name": "NoSuch", "args": {}},
    ]
    found = args(profile({"plugins": off, "pluginConfig": given}))
    assert found["ImageLocality"] == {"x": [1]}
    assert not found.keys() & {"NodeResourcesFit", "NodeName", "NoSuch"}
    assert list(found) == sorted(found)
    assert found["DefaultPreemption"] == {
        "minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("plugin", "own"),
    [
        ("DefaultPreemption", {"minCandidateNodesPercentage": 50}),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": 7}),
        ("DynamicResources", {"filterTimeout": "3s"}),
        ("InterPodAffinity", {"hardPodAffinityWeight": 50}),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 1}]}),
        ("NodeResourcesFit", {"scoringStrategy": {
            "type": "MostAllocated", "resources": [{"name": "cpu", "weight": 5}],
        }}),
        ("PodTopologySpread", {"defaultingType": "List"}),
        ("VolumeBinding", {"bindTimeoutSeconds": 30}),
    ],
)  # fmt: skip
def test_a_default_replaces_no_argument_that_is_set(plugin: str, own: dict[str, Any]) -> None:
    found = args(profile({"pluginConfig": [{"name": plugin, "args": own}]}))[plugin]
    assert {key: found[key] for key in own} == own


def test_extenders_determine_ignored_resources() -> None:
    extender = {
        "urlPrefix": "http://127.0.0.1:1",
        "managedResources": [
            {"name": "example.com/gpu", "ignoredByScheduler": True}, {"name": "example.com/nic"},
        ],
    }  # fmt: skip
    given = [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/mine"]}}]
    config = {"extenders": [extender], "profiles": [{"pluginConfig": given}]}
    found = completed(config)
    assert found["extenders"][0] == {
        "urlPrefix": "http://127.0.0.1:1", "httpTimeout": "5s",
        "managedResources": [
            {"name": "example.com/gpu", "ignoredByScheduler": True}, {"name": "example.com/nic"},
        ],
    }  # fmt: skip
    assert args(found["profiles"][0])["NodeResourcesFit"]["ignoredResources"] == ["example.com/gpu"]


@pytest.mark.parametrize(
    ("minor", "gates", "expected"),
    [
        (34, {}, {"filterTimeout": "10s"}),
        (35, {"DRASchedulerFilterTimeout": False}, {"filterTimeout": None}),
        (36, {}, {"filterTimeout": "10s", "bindingTimeout": "10m0s"}),
        (36, {"DRADeviceBindingConditions": False}, {"filterTimeout": "10s"}),
    ],
)
def test_timeouts_depend_on_their_feature_gates(
    minor: int, gates: dict[str, bool], expected: dict[str, Any]
) -> None:
    assert args(profile({}, minor, **gates))["DynamicResources"] == expected


@pytest.mark.parametrize(
    ("minor", "gate", "scores"),
    [(32, "VolumeCapacityPriority", [0, 10]), (33, "StorageCapacityScoring", [10, 0])],
)
def test_the_default_shape_was_reversed_in_1_33(minor: int, gate: str, scores: list[int]) -> None:
    assert "shape" not in args(profile({}, minor))["VolumeBinding"]
    shape = args(profile({}, minor, **{gate: True}))["VolumeBinding"]["shape"]
    assert [point["score"] for point in shape] == scores


@pytest.mark.parametrize(("given", "written"), [(0.1, 0.1), (123456789, 123456790), (1e-50, 50)])
def test_qps_is_a_float32(given: float, written: float) -> None:
    assert completed({"clientConnection": {"qps": given}})["clientConnection"]["qps"] == written

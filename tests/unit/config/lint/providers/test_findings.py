"""What each provider does not support: the field, and whether the scheduler would differ."""

from __future__ import annotations

from typing import Any

import pytest

from .....builders import extender, profile
from .outputs import overrides, reported, write

OVERRIDES = "KubeScheduler/cluster spec.unsupportedConfigOverrides"
PACKED = {"scheduler": {"profile": "HighNodeUtilization"}}
NO_PORTS = {"plugins": {"filter": {"disabled": [{"name": "NodePorts"}]}}}
FILTER = extender("gpu", url="http://10.0.0.7/s", verbs={"filter": "filter"})
SCORES = extender("gpu", url="http://10.0.0.7/s", verbs={"prioritize": "score"})
AGENT = extender("safe", agent={"policies": [{"name": "safe-overload"}]})
VERBOSE = {"kubescheduler": {"logLevel": "Debug"}}
GATES = {"kubescheduler": overrides(arguments={"feature-gates": "AllBeta=true"})}
REPEATED = {"kubescheduler": overrides(arguments={"vmodule": ["a=1", "b=2"]})}


def strategy(**fields: Any) -> dict[str, Any]:
    """A KubeScheduler with a scoring strategy for default-scheduler."""
    config = {"name": "NodeResourcesFit", "args": {"scoringStrategy": fields}}
    profiles = [{"schedulerName": "default-scheduler", "pluginConfig": [config]}]
    return {"kubescheduler": overrides(profiles=profiles)}


def scoring(*path: str) -> str:
    at = f"{OVERRIDES}.profiles[0].pluginConfig[0].args.scoringStrategy"
    return ".".join((at, *path))


def spread(when: str) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    return {"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}


_OF_THE_CHECK = ("OutvotedStrategy", "ExtenderOfAllProfiles")
"""Warnings that `compose` has without a provider."""
ALL = [
    "aks", "eks", "gardener", "k3s", "rke2", "kubeadm", "kubeadm:1.30", "kubeadm-patches", "talos",
    "talos:1.14", "cluster-autoscaler", "karpenter",
]  # fmt: skip
FILES = ["k3s", "rke2", "kubeadm", "kubeadm-patches", "talos", "talos:1.14"]
"""Those that take the whole configuration."""


@pytest.mark.parametrize("word", ALL)
def test_the_default_scheduler_is_taken_by_all(word: str) -> None:
    assert reported(write(word)) == []


@pytest.mark.parametrize("word", FILES)
@pytest.mark.parametrize(
    "objects",
    [
        PACKED,
        GATES,
        {"profiles": (profile("batch", **NO_PORTS),)},
        {"extenders": (FILTER,)},
        {"kubescheduler": overrides(parallelism=8, clientConnection={"qps": 100})},
    ],
)
def test_a_file_takes_the_whole_configuration(word: str, objects: dict[str, Any]) -> None:
    assert [each for each in reported(write(word, **objects)) if each[0] == "error"] == []


@pytest.mark.parametrize("word", [*FILES, "aks", "eks", "gardener"])
def test_an_agent_runs_beside_schedulers_of_the_operator_only(word: str) -> None:
    output = write(word, extenders=(AGENT,))
    assert reported(output) == [("error", "AgentNotSupported", "SchedulerExtender/safe spec.agent")]
    assert "127.0.0.1" not in str(output.files)


@pytest.mark.parametrize(
    ("word", "objects", "findings"),
    [
        # AKS takes three settings, profiles, and 18 plugins.
        ("aks", PACKED, []),
        (
            "aks",
            {"kubescheduler": overrides(percentageOfNodesToScore=40, podInitialBackoffSeconds=2)},
            [],
        ),
        (
            "aks",
            {"kubescheduler": overrides(parallelism=8, clientConnection={"qps": 100})},
            [
                ("error", "FieldNotSupported", f"{OVERRIDES}.clientConnection.qps"),
                ("error", "FieldNotSupported", f"{OVERRIDES}.parallelism"),
            ],
        ),
        ("aks", VERBOSE, [("error", "FlagNotSupported", "KubeScheduler/cluster spec.logLevel")]),
        (
            "aks",
            {"extenders": (FILTER,)},
            [("error", "ExtenderNotSupported", "SchedulerExtender/gpu spec")],
        ),
        (
            "aks",
            {"profiles": (profile("aks-system"),)},
            [("error", "ReservedProfile", "SchedulerProfile/aks-system spec.schedulerName")],
        ),
        (
            "aks",
            {
                "profiles": (
                    profile(
                        "dra", plugins={"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}
                    ),
                )
            },
            [
                (
                    "error",
                    "PluginNotSupported",
                    "SchedulerProfile/dra spec.plugins.multiPoint.disabled[0].name",
                )
            ],
        ),
        ("aks", {"version": "1.32"}, [("error", "VersionNotSupported", "")]),
        # EKS takes a scoring strategy.
        ("eks", strategy(type="MostAllocated"), []),
        ("eks", strategy(type="LeastAllocated", resources=[{"name": "cpu", "weight": 100}]), []),
        (
            "eks",
            strategy(
                type="RequestedToCapacityRatio",
                requestedToCapacityRatio={"shape": [{"utilization": 0, "score": 0}]},
            ),
            [("error", "StrategyNotSupported", scoring("type"))],
        ),
        ("eks", PACKED, [("error", "ProfileDiffers", "Scheduler/cluster spec.profile")]),
        (
            "eks",
            {"profiles": (profile("batch"),)},
            [("error", "ProfileNotSupported", "SchedulerProfile/batch spec")],
        ),
        (
            "eks",
            GATES,
            [("error", "FlagNotSupported", f"{OVERRIDES}.arguments.feature-gates")],
        ),
        # Gardener takes a profile and feature gates.
        ("gardener", GATES, []),
        ("gardener", PACKED, [("error", "ProfileDiffers", "Scheduler/cluster spec.profile")]),
        (
            "gardener",
            strategy(type="MostAllocated"),
            [("error", "ProfileDiffers", f"{OVERRIDES}.profiles[0].plugins")],
        ),
        (
            "gardener",
            {"scheduler": {"profile": "NoScoring"}},
            [("error", "ProfileDiffers", "Scheduler/cluster spec.profile")],
        ),
        # k3s has one verbosity; RKE2 has a Pod.
        ("k3s", VERBOSE, [("error", "FlagNotSupported", "KubeScheduler/cluster spec.logLevel")]),
        ("rke2", VERBOSE, []),
        # Maps of flags keep one value of each.
        ("kubeadm", REPEATED, []),
        ("kubeadm-patches", REPEATED, []),
        (
            "kubeadm:1.30",
            {**REPEATED, "version": "1.30"},
            [("error", "RepeatedFlagNotSupported", f"{OVERRIDES}.arguments.vmodule")],
        ),
        ("talos:1.13", REPEATED, []),
        (
            "talos:1.12",
            REPEATED,
            [("error", "RepeatedFlagNotSupported", f"{OVERRIDES}.arguments.vmodule")],
        ),
        ("talos:1.5", {}, [("error", "VersionNotSupported", "")]),
        (
            "talos:1.14",
            {
                "extenders": (
                    extender(
                        "gpu",
                        url="https://10.0.0.7/s",
                        verbs={"filter": "filter"},
                        tls={"caFile": "/ca.crt"},
                    ),
                )
            },
            [("error", "FileNotMounted", "/ca.crt")],
        ),
        # cluster-autoscaler simulates with the filters of one profile.
        ("cluster-autoscaler", PACKED, []),
        ("cluster-autoscaler", {"profiles": (profile("batch"),)}, []),
        (
            "cluster-autoscaler",
            {"profiles": (profile("batch", **spread("ScheduleAnyway")),)},
            [],
        ),
        (
            "cluster-autoscaler",
            {"profiles": (profile("batch", **spread("DoNotSchedule")),)},
            [
                (
                    "error",
                    "ProfileNotSimulated",
                    f"SchedulerProfile/batch spec.pluginConfig[0].args.{key}",
                )
                for key in ("defaultingType", "defaultConstraints")
            ],
        ),
        ("cluster-autoscaler", {"extenders": (SCORES,)}, []),
        (
            "cluster-autoscaler",
            {"extenders": (FILTER,)},
            [("error", "ExtenderNotSimulated", "SchedulerExtender/gpu spec")],
        ),
        (
            "cluster-autoscaler",
            GATES,
            [("warning", "OwnFeatureGates", f"{OVERRIDES}.arguments.feature-gates")],
        ),
        # Karpenter simulates with default filters and default constraints.
        ("karpenter", PACKED, []),
        (
            "karpenter:1.14.1",
            {
                "kubescheduler": overrides(
                    profiles=[{"schedulerName": "default-scheduler", **spread("DoNotSchedule")}]
                )
            },
            [("error", "VersionNotSupported", f"{OVERRIDES}.profiles[0].pluginConfig")],
        ),
        (
            "karpenter:1.15",
            {
                "kubescheduler": overrides(
                    profiles=[{"schedulerName": "default-scheduler", **spread("DoNotSchedule")}]
                )
            },
            [],
        ),
        (
            "karpenter",
            {"extenders": (FILTER,)},
            [("error", "ExtenderNotSimulated", "SchedulerExtender/gpu spec")],
        ),
    ],
)  # fmt: skip
def test_what_a_provider_does_not_take_is_reported(
    word: str, objects: dict[str, Any], findings: list[tuple[str, str, str]]
) -> None:
    found = reported(write(word, **objects))
    own = [each for each in found if each[1] not in _OF_THE_CHECK]
    assert own == findings


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"logLevel": "Debug"}, ["spec.logLevel"]),
        ({"bindAddress": "0.0.0.0"}, ["spec.bindAddress"]),
        ({"featureGates": {"AllBeta": True}}, ["spec.featureGates"]),
        (
            {"tlsSecurityProfile": {"type": "Modern", "modern": {}}},
            ["spec.tlsSecurityProfile", "spec.tlsSecurityProfile"],
        ),
        (
            overrides(servingInfo={"minTLSVersion": "VersionTLS13"}),
            ["spec.unsupportedConfigOverrides.servingInfo.minTLSVersion"],
        ),
        (
            {"logLevel": "Debug", **overrides(arguments={"v": "9"})},
            ["spec.unsupportedConfigOverrides.arguments.v"],
        ),
        # Adopted with a scheduler that had it.
        (
            {"observedConfig": {"arguments": {"vmodule": ["a=1"]}}},
            ["spec.observedConfig.arguments.vmodule"],
        ),
    ],
)
def test_a_flag_is_reported_at_the_field_that_sets_it(
    spec: dict[str, Any], paths: list[str]
) -> None:
    output = write("aks", kubescheduler=spec)
    assert [each.path for each in output.findings if each.reason == "FlagNotSupported"] == [
        f"KubeScheduler/cluster {path}" for path in paths
    ]


def test_eks_takes_a_hundred_resources() -> None:
    resources = [{"name": f"example.com/{n}", "weight": 1} for n in range(101)]
    found = reported(write("eks", **strategy(type="LeastAllocated", resources=resources)))
    assert ("error", "ResourcesNotSupported", scoring("resources")) in found
    fewer = write("eks", **strategy(type="LeastAllocated", resources=resources[:100]))
    assert [each for each in reported(fewer) if each[0] == "error"] == []


def test_a_profile_with_other_filters_is_simulated_wrongly() -> None:
    output = write("cluster-autoscaler", profiles=(profile("batch", **NO_PORTS),))
    (finding,) = (each for each in output.findings if each.reason == "ProfileNotSimulated")
    assert finding.path == "SchedulerProfile/batch spec.plugins.filter"
    assert finding.message.endswith("which differs: here filter: NodePorts does not run")


def test_every_finding_has_a_message_and_a_fix() -> None:
    objects: dict[str, Any] = {
        **PACKED,
        "kubescheduler": {"logLevel": "Debug", **overrides(parallelism=8)},
        "profiles": (profile("batch", **NO_PORTS),),
        "extenders": (FILTER, AGENT),
    }
    for word in ALL:
        for each in write(word, **objects).findings:
            assert each.message, each
            assert each.fix, each
            assert not each.message.endswith("."), each


def test_an_invalid_configuration_has_no_files() -> None:
    output = write("k3s", kubescheduler=overrides(parallelism=-1))
    assert output.files == ()
    assert [(each.severity, each.path) for each in output.findings] == [
        ("error", "spec.unsupportedConfigOverrides.parallelism")
    ]


def test_a_fix_names_the_field_of_a_secondary_scheduler_if_it_has_one() -> None:
    spec = {
        "logLevel": "Debug",
        "bindAddress": "0.0.0.0",
        **overrides(
            clientConnection={"qps": 100},
            arguments={"vmodule": "a=1", "leader-elect-lease-duration": "20s"},
        ),
    }
    output = write("aks", kubescheduler=spec)
    fixes = {each.path.rpartition(".")[2]: each.fix for each in output.findings}
    there = "remove it, or set {} of a SecondaryScheduler".format
    assert fixes == {
        "qps": there("spec.config.clientConnection.qps"),
        "logLevel": there("spec.logLevel"),
        "vmodule": there("spec.extraArguments.vmodule"),
        "bindAddress": "remove it",
        "leader-elect-lease-duration": "remove it",
    }

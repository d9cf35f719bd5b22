"""Our check and kube-scheduler itself agree: on every profile, and on good and bad configurations.

The program is started as the preflight does it: it decodes, defaults, validates, builds every
profile and writes the result, without a cluster and without serving.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.config.arguments import parse
from kube_scheduler_operator.config.check import Target, check_config
from kube_scheduler_operator.config.compose import Inputs, compose, config_text
from kube_scheduler_operator.config.flags import CIPHER_SUITES, check_flags, flag_names
from kube_scheduler_operator.config.gates import Gates, known_gates, parse_gates
from kube_scheduler_operator.config.merge import merge_by_meaning
from kube_scheduler_operator.config.profiles import PROFILES, default_config
from kube_scheduler_operator.config.versions import Version
from kube_scheduler_operator.platform import KUBEADM, Platform

pytestmark = pytest.mark.core

FIT = "NodeResourcesFit"
SPREAD = "PodTopologySpread"
ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
EXTENDER = {"urlPrefix": "http://127.0.0.1:1/x"}
GPU = {"name": "example.com/gpu"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [fields]}


def plugins(point: str, *enabled: str, disabled: tuple[str, ...] = ()) -> dict[str, Any]:
    sets = {
        "enabled": [{"name": name} for name in enabled],
        "disabled": [{"name": name} for name in disabled],
    }
    return profile(plugins={point: sets})


def args(plugin: str, **fields: Any) -> dict[str, Any]:
    return profile(pluginConfig=[{"name": plugin, "args": fields}])


def fit(**strategy: Any) -> dict[str, Any]:
    return args(FIT, scoringStrategy=strategy)


def ratio(*shape: tuple[int, int]) -> dict[str, Any]:
    points = [{"utilization": utilization, "score": score} for utilization, score in shape]
    return fit(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": points})


def affinity(**requirement: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [requirement]}]
    return args("NodeAffinity", addedAffinity={REQUIRED: {"nodeSelectorTerms": terms}})


def field_affinity(**requirement: Any) -> dict[str, Any]:
    terms = [{"weight": 1, "preference": {"matchFields": [requirement]}}]
    return args("NodeAffinity", addedAffinity={PREFERRED: terms})


def election(**fields: str) -> dict[str, Any]:
    return {"leaderElection": fields}


def extenders(*changes: dict[str, Any]) -> dict[str, Any]:
    return {"extenders": [{**EXTENDER, **change} for change in changes]}


def without(plugin: str, config: dict[str, Any]) -> dict[str, Any]:
    fields = {**config["profiles"][0], **plugins("multiPoint", disabled=(plugin,))["profiles"][0]}
    return {**config, "profiles": [fields]}


GOOD: dict[str, dict[str, Any]] = {
    "nothing": {},
    "every scalar at the top": {
        "parallelism": 1, "percentageOfNodesToScore": 100, "podInitialBackoffSeconds": 5,
        "podMaxBackoffSeconds": 5, "delayCacheUntilActive": True, "enableProfiling": True,
    },
    "client": {"clientConnection": {"qps": 0.5, "burst": 0, "contentType": "application/json"}},
    "zero lease means the default": election(leaseDuration="0s"),
    "lease in other units": election(leaseDuration="1m30.5s", retryPeriod="300ms"),
    "no leader election, so no rules": {"leaderElection": {
        "leaderElect": False, "leaseDuration": "1s", "resourceLock": "endpoints"}},
    "two profiles": {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]},
    "no profiles": {"profiles": []},
    "disabling what is not there": plugins("score", disabled=("NoSuch",)),
    "arguments of what is not there": args("NoSuch", anything=1),
    "arguments of what takes none": args("ImageLocality", anything=1),
    "a plugin without arguments": profile(pluginConfig=[{"name": FIT}]),
    "a plugin that is off by default": plugins("filter", "NodeDeclaredFeatures"),
    "another plugin that is off by default": plugins("multiPoint", "GangScheduling"),
    "negative weight that others make up for": profile(
        plugins={"multiPoint": {"enabled": [{"name": "ImageLocality", "weight": -1}]}}),
    "typed arguments": args(FIT, apiVersion="kubescheduler.config.k8s.io/v1", kind=f"{FIT}Args"),
    "most allocated": fit(type="MostAllocated", resources=[{"name": "cpu", "weight": 100}]),
    "weight 0 means 1": fit(type="MostAllocated", resources=[{"name": "cpu", "weight": 0}]),
    "a resource without name": fit(type="LeastAllocated", resources=[{}]),
    "ratio": ratio((0, 0), (100, 10)),
    "a shape that is not used": fit(type="LeastAllocated", requestedToCapacityRatio={
        "shape": [{"utilization": 0, "score": 0}]}),
    "wrong arguments of what is not built": without(FIT, fit(type="Nope")),
    "ignored resources": args(FIT, ignoredResources=["example.com/gpu", "cpu"],
                              ignoredResourceGroups=["example.com"]),
    "default constraints": args(SPREAD, defaultingType="List", defaultConstraints=[ZONE]),
    "bad node policies are not looked at": args(SPREAD, defaultingType="List",
        defaultConstraints=[{**ZONE, "nodeAffinityPolicy": "Nope", "minDomains": -1}]),
    "no preemption by share": args("DefaultPreemption", minCandidateNodesPercentage=0),
    "affinity": affinity(key="a.b/c", operator="In", values=["d"]),
    "affinity by field": field_affinity(key="metadata.name", operator="In", values=["n"]),
    "affinity by any field": field_affinity(key="nope", operator="NotIn", values=["n"]),
    "an empty term": args("NodeAffinity", addedAffinity={REQUIRED: {"nodeSelectorTerms": [{}]}}),
    "filter timeout": args("DynamicResources", filterTimeout="0s"),
    "no binding timeout": args("VolumeBinding", bindTimeoutSeconds=0),
    "empty shape": args("VolumeBinding", bindTimeoutSeconds=1),
    "extender": extenders({"filterVerb": "f", "prioritizeVerb": "p", "weight": 1,
                           "httpTimeout": "1s", "nodeCacheCapable": True, "ignorable": True}),
    "extender without address": {"extenders": [{"urlPrefix": ""}]},
    "managed resources": extenders({"managedResources": [{**GPU, "ignoredByScheduler": True}]}),
    "insecure extender": extenders({"enableHTTPS": True, "tlsConfig": {"insecure": True}}),
    "only one bind plugin": plugins("bind", "DefaultBinder", disabled=("*",)),
}  # fmt: skip

BAD: dict[str, dict[str, Any]] = {
    "unknown field": {"paralellism": 1},
    "wrong case": {"Parallelism": 1},
    "serving": {"servingInfo": {"minTLSVersion": "VersionTLS12"}},
    "unknown field of a profile": profile(plugin={}),
    "point of a newer version": plugins("placementScore"),
    "unknown field of arguments": args(FIT, strategy=1),
    "unknown field of an extender": extenders({"filterverb": "f"}),
    "unknown field of a constraint": args(SPREAD, defaultConstraints=[{**ZONE, "x": 1}]),
    "text for a number": {"parallelism": "1"},
    "fraction for an integer": {"parallelism": 1.5},
    "too large": {"parallelism": 2**31},
    "number for text": profile(schedulerName=1),
    "map for a list": {"profiles": {}},
    "number for a duration": extenders({"httpTimeout": 5}),
    "duration without unit": extenders({"httpTimeout": "5"}),
    "empty duration": election(leaseDuration=""),
    "not base64": extenders({"tlsConfig": {"caData": "%"}}),
    "arguments of another type": args(FIT, kind="InterPodAffinityArgs"),
    "arguments that are no object": profile(pluginConfig=[{"name": FIT, "args": [1]}]),
    "parallelism": {"parallelism": 0},
    "percentage": {"percentageOfNodesToScore": 101},
    "percentage of a profile": profile(percentageOfNodesToScore=-1),
    "backoff": {"podInitialBackoffSeconds": 0},
    "backoff order": {"podInitialBackoffSeconds": 11},
    "burst": {"clientConnection": {"burst": -1}},
    "lock": election(resourceLock="endpoints"),
    "lease not longer than deadline": election(leaseDuration="10s"),
    "negative retry": election(retryPeriod="-1s"),
    "second profile without name": {"profiles": [{"schedulerName": "a"}, {}]},
    "profile with an empty name": profile(schedulerName=""),
    "same name twice": {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
    "no queue sort": plugins("queueSort", disabled=("*",)),
    "different queues": {"profiles": [
        {"schedulerName": "a"},
        {"schedulerName": "b", "plugins": {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}},
    ]},
    "different queue arguments": {"profiles": [
        {"schedulerName": "a"},
        {"schedulerName": "b", "pluginConfig": [{"name": "PrioritySort", "args": {"x": 1}}]},
    ]},
    "no binder": plugins("bind", disabled=("*",)),
    "unknown plugin": plugins("score", "NoSuch"),
    "unknown plugin everywhere": plugins("multiPoint", "NoSuch"),
    "removed plugin": plugins("filter", "EBSLimits"),
    "removed plugin everywhere": plugins("multiPoint", "GCEPDLimits"),
    "arguments of a removed plugin": args("CinderLimits"),
    "plugin at a point that it does not have": plugins("filter", "ImageLocality"),
    "plugin twice at a point": plugins("score", "ImageLocality", "ImageLocality"),
    "plugin twice everywhere": plugins(
        "multiPoint", "ImageLocality", "ImageLocality", "PrioritySort", "DefaultBinder",
        disabled=("*",)),
    "arguments twice": profile(pluginConfig=[{"name": FIT}, {"name": FIT}]),
    "strategy": fit(type="Nope"),
    "negative weight": profile(plugins={"score": {"enabled": [{"name": FIT, "weight": -1}]}}),
    "no strategy": fit(resources=[{"name": "cpu"}]),
    "resource weight": fit(type="MostAllocated", resources=[{"name": "cpu", "weight": 101}]),
    "empty ratio": ratio(),
    "unsorted ratio": ratio((5, 1), (5, 2)),
    "ratio out of range": ratio((101, 1)),
    "ratio score out of range": ratio((0, 11)),
    "ignored resource": args(FIT, ignoredResources=["a b"]),
    "ignored group": args(FIT, ignoredResourceGroups=["example.com/x"]),
    "balanced weight": args("NodeResourcesBalancedAllocation",
                            resources=[{"name": "cpu", "weight": 2}]),
    "balanced twice": args("NodeResourcesBalancedAllocation",
                           resources=[{"name": "cpu"}, {"name": "cpu"}]),
    "preemption": args("DefaultPreemption", minCandidateNodesPercentage=101),
    "no preemption at all": args("DefaultPreemption", minCandidateNodesPercentage=0,
                                 minCandidateNodesAbsolute=0),
    "hard affinity": args("InterPodAffinity", hardPodAffinityWeight=101),
    "constraints without List": args(SPREAD, defaultConstraints=[ZONE]),
    "defaulting": args(SPREAD, defaultingType="Lists"),
    "skew": args(SPREAD, defaultingType="List", defaultConstraints=[{**ZONE, "maxSkew": 0}]),
    "topology key": args(SPREAD, defaultingType="List",
                         defaultConstraints=[{**ZONE, "topologyKey": "a b"}]),
    "selector": args(SPREAD, defaultingType="List",
                     defaultConstraints=[{**ZONE, "labelSelector": {}}]),
    "constraint twice": args(SPREAD, defaultingType="List", defaultConstraints=[ZONE, ZONE]),
    "affinity operator": affinity(key="a", operator="in", values=["b"]),
    "affinity without values": affinity(key="a", operator="In"),
    "affinity with values": affinity(key="a", operator="Exists", values=["b"]),
    "affinity number": affinity(key="a", operator="Gt", values=["x"]),
    "affinity key": affinity(key="a b", operator="Exists"),
    "affinity value": affinity(key="a", operator="In", values=["b c"]),
    "affinity by two names": field_affinity(key="metadata.name", operator="In", values=["a", "b"]),
    "negative timeout": args("VolumeBinding", bindTimeoutSeconds=-1),
    "shape without its gate": args("VolumeBinding", shape=[{"utilization": 0, "score": 0}]),
    "binding timeout without its gate": args("DynamicResources", bindingTimeout="5s"),
    "negative filter timeout": args("DynamicResources", filterTimeout="-1s"),
    "extender weight": extenders({"prioritizeVerb": "p"}),
    "two binders": extenders({"bindVerb": "b"}, {"bindVerb": "b"}),
    "native resource": extenders({"managedResources": [{"name": "cpu"}]}),
    "resource twice": extenders({"managedResources": [GPU]}, {"managedResources": [GPU]}),
    "insecure with CA": extenders({"tlsConfig": {"insecure": True, "caData": "eA=="}}),
    "ignored resource without its plugin": without(FIT, {
        **extenders({"managedResources": [{**GPU, "ignoredByScheduler": True}]}),
        "profiles": [{}]}),
}  # fmt: skip

OTHERWISE: dict[str, range] = {
    "a plugin that is off by default": range(35),
    "another plugin that is off by default": range(35),
    "a shape that is not used": range(36, 99),
    "binding timeout without its gate": range(36, 99),
    "point of a newer version": range(36, 99),
}
"""In which minor versions it is the other way around."""

OF_ANOTHER_PROGRAM = {"ControllerManagerReleaseLeaderElectionLockOnExit"}
"""Gates of kube-controller-manager 1.36, which is the same file as kube-scheduler if built here."""

FLAGS: dict[str, tuple[str, ...]] = {
    "flag of a newer version": ("--min-compatibility-version=1.35",),
    "flag of the newest version": ("--tls-curve-preferences=29,23",),
    "gate": ("--feature-gates=StorageCapacityScoring=true",),
    "gate of the component": ("--feature-gates=kube:AllAlpha=false",),
    "unknown gate": ("--feature-gates=NoSuchThing=true",),
    "locked gate": ("--feature-gates=DynamicResourceAllocation=false",),
    "gate without value": ("--feature-gates=AllAlpha",),
    "gate with another value": ("--feature-gates=AllAlpha=maybe",),
    "unknown flag": ("--no-such-flag=1",),
    "underscore": ("--bind_address=127.0.0.1",),
    "address": ("--bind-address=localhost",),
    "blank address": ("--bind-address=",),
    "verbosity": ("-v=two",),
    "negative verbosity": ("-v=-1",),
    "duration": ("--log-flush-frequency=5",),
    "boolean": ("--profiling=yes",),
    "integer": ("--kube-api-burst=1.5",),
    "lease by flag": ("--leader-elect-lease-duration=5s",),
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    """A kubeadm cluster whose kubeconfig is a stub, as the preflight mounts one."""
    kubeconfig = tmp_path / "scheduler.conf"
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    stub = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    }  # fmt: skip
    kubeconfig.write_text(json.dumps(stub), encoding="utf-8")
    return replace(KUBEADM, scheduler_kubeconfig=str(kubeconfig))


@pytest.fixture
def run(kube_scheduler_binary: Path, tmp_path: Path) -> Run:
    def start(config: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "config.yaml"
        file.write_text(config_text(config), encoding="utf-8")
        last = (f"--write-config-to={tmp_path / 'out.yaml'}", "--secure-port=0")
        return subprocess.run(
            [str(kube_scheduler_binary), *arguments, f"--config={file}", *last],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return start


@pytest.fixture
def version(kube_scheduler_binary: Path) -> Version:
    command = [str(kube_scheduler_binary), "--version"]
    return Version.parse(subprocess.check_output(command, text=True, timeout=50).split()[-1])


@pytest.fixture
def helped(kube_scheduler_binary: Path) -> str:
    command = [str(kube_scheduler_binary), "--help"]
    return subprocess.check_output(command, text=True, timeout=50)


def problems(config: Any, version: Version, *arguments: str) -> list[str]:
    flags = parse(arguments)
    found = list(check_flags(flags, version))
    explicit = {} if found else parse_gates(flags.get("feature-gates", ()))
    elected = dict(config["leaderElection"])
    if "leader-elect-lease-duration" in flags:
        elected["leaseDuration"] = flags["leader-elect-lease-duration"][-1]
    found += check_config(config, Target(Gates(version, explicit)), elected)
    return [f"{problem.path}: {problem.message}" for problem in found]


@pytest.mark.parametrize("profile_name", PROFILES)
def test_every_profile_is_accepted_as_composed(
    profile_name: str, run: Run, platform: Platform, version: Version, tmp_path: Path
) -> None:
    composition = compose(Inputs(platform, version, {"spec": {"profile": profile_name}}, {}))
    assert not composition.blocking
    result = run(composition.config, *composition.arguments)
    assert result.returncode == 0, result.stderr
    assert "leaseDuration: 15s" in (tmp_path / "out.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GOOD)
def test_both_accept(name: str, run: Run, platform: Platform, version: Version) -> None:
    config = merge_by_meaning([default_config(platform), GOOD[name]])
    accepted = version.minor not in OTHERWISE.get(name, ())
    assert (run(config).returncode == 0) == accepted, run(config).stderr
    assert (problems(config, version) == []) == accepted


@pytest.mark.parametrize("name", BAD)
def test_both_refuse(name: str, run: Run, platform: Platform, version: Version) -> None:
    config = merge_by_meaning([default_config(platform), BAD[name]])
    refused = version.minor not in OTHERWISE.get(name, ())
    assert (problems(config, version) != []) == refused
    assert (run(config).returncode != 0) == refused


@pytest.mark.parametrize("name", FLAGS)
def test_both_judge_flags_alike(name: str, run: Run, platform: Platform, version: Version) -> None:
    config = default_config(platform)
    result = run(config, *FLAGS[name])
    found = problems(config, version, *FLAGS[name])
    assert (found == []) == (result.returncode == 0), (found, result.stderr)


def test_gated_arguments_pass_with_their_gate(
    run: Run, platform: Platform, version: Version
) -> None:
    shape = args("VolumeBinding", shape=[{"utilization": 0, "score": 0}])
    config = merge_by_meaning([default_config(platform), shape])
    gate = "--feature-gates=StorageCapacityScoring=true"
    assert run(config, gate).returncode == 0
    assert problems(config, version, gate) == []


def test_the_feature_gates_on_record_are_those_of_the_program(
    run: Run, platform: Platform, version: Version, helped: str
) -> None:
    known = known_gates(version.minor)
    assert known is not None
    alone = ("AllAlpha", "AllBeta")
    for value in (True, False):
        everything = ",".join(
            f"{name}={str(value if locked is None else locked).lower()}"
            for name, locked in known.items()
            if name not in alone
        )
        result = run(default_config(platform), f"--feature-gates={everything}")
        assert result.returncode == 0, result.stderr
    listed = set(re.findall(r"kube:(\w+)=true\|false", helped))
    assert listed
    assert listed - OF_ANOTHER_PROGRAM <= set(known)


def test_the_flags_on_record_are_those_of_the_program(helped: str, version: Version) -> None:
    listed = set(re.findall(r"^\s+(?:-\w, )?--([\w-]+)", helped, re.MULTILINE))
    assert listed == flag_names(version.minor)


def test_the_cipher_suites_on_record_are_those_of_the_program(helped: str) -> None:
    assert set(re.findall(r"\bTLS_\w+", helped)) == CIPHER_SUITES

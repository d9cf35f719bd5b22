"""Objects of users, as files and as objects of a cluster, for tests that compare all commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from kube_scheduler_operator.kube import resource as kinds

from ....builders import extender, kubescheduler, profile, scheduler, secondary

ROOT = Path(__file__).parents[4]

OURS = frozenset(
    resource.kind
    for resource in (
        kinds.SCHEDULERS,
        kinds.KUBE_SCHEDULERS,
        kinds.SCHEDULER_PROFILES,
        kinds.SCHEDULER_EXTENDERS,
        kinds.SECONDARY_SCHEDULERS,
    )
)

NODE_NAME_OFF = {"plugins": {"filter": {"disabled": [{"name": "NodeName"}]}}}
UNKNOWN_PLUGIN = {"plugins": {"score": {"enabled": [{"name": "ImageLocalty"}]}}}
AGENT = {"agent": {"policies": [{"name": "safe-overload"}]}}
URL = {"url": "http://10.0.0.9:8888", "verbs": {"filter": "filter"}}


@dataclass(frozen=True)
class Scenario:
    """Objects that users apply together."""

    name: str  # the id of the test
    objects: Sequence[Mapping[str, Any]]  # in the order of the files

    def __str__(self) -> str:
        return self.name

    def of(self, *kinds_: str) -> tuple[Mapping[str, Any], ...]:
        """The objects of these kinds."""
        return tuple(obj for obj in self.objects if obj["kind"] in kinds_)

    @property
    def schedulers(self) -> tuple[str, ...]:
        """The schedulers that its objects configure; "" is the control plane's."""
        named = {
            str(obj["spec"].get("scheduler") or "")
            for obj in self.of("SchedulerProfile", "SchedulerExtender")
        }
        named |= {str(obj["metadata"]["name"]) for obj in self.of("SecondaryScheduler")}
        if self.of("Scheduler", "KubeScheduler"):
            named.add("")
        return tuple(sorted(named))

    def for_scheduler(self, name: str) -> Scenario:
        """The objects that configure one scheduler."""

        def belongs(obj: Mapping[str, Any]) -> bool:
            if obj["kind"] == "SecondaryScheduler":
                return bool(obj["metadata"]["name"] == name)
            return (obj["spec"].get("scheduler") or "") == name

        return replace(self, objects=tuple(filter(belongs, self.objects)))


def from_files() -> Iterator[Scenario]:
    """The examples of the documentation with the operator's kinds."""
    for path in sorted(ROOT.glob("docs/examples/*.yaml")):
        ours = [one for one in yaml.safe_load_all(path.read_text()) if one["kind"] in OURS]
        if ours:
            yield Scenario(path.stem, ours)


def _overrides(**fields: Any) -> Mapping[str, Any]:
    return kubescheduler(unsupportedConfigOverrides=fields)


ACCEPTED = (
    Scenario("nothing", [scheduler()]),
    Scenario("profile-field", [scheduler(profile="HighNodeUtilization")]),
    Scenario("no-scoring", [scheduler(profile="NoScoring"), kubescheduler(logLevel="Debug")]),
    Scenario("policy", [scheduler(policy={"name": "old"})]),
    Scenario("log-level", [kubescheduler(logLevel="Trace")]),
    Scenario("reason", [kubescheduler(forceRedeploymentReason="again")]),
    Scenario("gates", [kubescheduler(featureGates={"SchedulerAsyncAPICalls": False})]),
    Scenario("bind-address", [kubescheduler(bindAddress="0.0.0.0")]),
    Scenario("tls", [kubescheduler(tlsSecurityProfile={"type": "Modern", "modern": {}})]),
    Scenario("overrides", [_overrides(parallelism=8, percentageOfNodesToScore=40)]),
    Scenario("override-flags", [_overrides(arguments={"kube-api-qps": 70, "v": "4"})]),
    Scenario("override-profiles", [_overrides(profiles=[{"schedulerName": "s", **NODE_NAME_OFF}])]),
    Scenario("override-election", [_overrides(leaderElection={"leaseDuration": "30s"})]),
    Scenario("override-extenders", [_overrides(extenders=[{"urlPrefix": "http://localhost:1"}])]),
    Scenario("a-profile", [profile("team", percentageOfNodesToScore=10)]),
    Scenario("two-profiles", [profile("b", base="NoScoring"), profile("a", **NODE_NAME_OFF)]),
    Scenario("default-profile", [profile("default-scheduler", base="HighNodeUtilization")]),
    Scenario(
        "profile-and-field", [scheduler(profile="NoScoring"), profile("p", schedulerName="q")]
    ),
    Scenario("an-agent", [extender("safe", **AGENT)]),
    Scenario("a-url", [extender("far", **URL), profile("p")]),
    Scenario("two-extenders", [extender("b", **AGENT), extender("a", **URL, weight=3)]),
    Scenario(
        "everything",
        [
            scheduler(profile="HighNodeUtilization"),
            kubescheduler(logLevel="Debug", unsupportedConfigOverrides={"parallelism": 4}),
            profile("p", **NODE_NAME_OFF),
            extender("e", **AGENT),
        ],
    ),
    Scenario("secondary", [secondary()]),
    Scenario("secondary-settings", [secondary(logLevel="Debug", config={"parallelism": 4})]),
    Scenario("secondary-profiles", [secondary(profiles=[{}, {"schedulerName": "x"}])]),
    Scenario("secondary-off", [secondary(profiles=[NODE_NAME_OFF])]),
    Scenario("secondary-flags", [secondary(extraArguments={"kube-api-qps": "70"})]),
    Scenario("secondary-gates", [secondary(featureGates={"SchedulerAsyncAPICalls": False})]),
    Scenario(
        "secondary-old", [secondary(image="registry.k8s.io/kube-scheduler:v1.34.1", replicas=3)]
    ),
    Scenario("secondary-profile", [secondary(), profile("p", scheduler="mine", **NODE_NAME_OFF)]),
    Scenario("secondary-agent", [secondary(), extender("e", scheduler="mine", **AGENT)]),
    Scenario("secondary-url", [secondary(), extender("e", scheduler="mine", **URL)]),
    Scenario(
        "secondary-own-extenders",
        [secondary(config={"extenders": [{"urlPrefix": "http://localhost:8888"}]})],
    ),
    Scenario(
        "secondary-everything",
        [
            secondary(profiles=[{"percentageOfNodesToScore": 5}], config={"parallelism": 2}),
            profile("mine", scheduler="mine", base="NoScoring"),
            profile("other", scheduler="mine"),
            extender("e", scheduler="mine", **AGENT),
            extender("f", scheduler="mine", **URL),
        ],
    ),
    Scenario(
        "all-schedulers",
        [
            scheduler(profile="NoScoring"),
            profile("team"),
            extender("e", **AGENT),
            secondary("one"),
            secondary("two", profiles=[{"schedulerName": "second"}]),
            profile("p", scheduler="one"),
            profile("q", scheduler="two", **NODE_NAME_OFF),
            extender("f", scheduler="two", **URL),
        ],
    ),
)

REJECTED = (
    Scenario("unknown-profile", [scheduler(profile="Nope")]),
    Scenario("unknown-level", [kubescheduler(logLevel="Loud")]),
    Scenario("unknown-gate", [kubescheduler(featureGates={"NoSuchGate": True})]),
    Scenario("overridden-lease", [_overrides(leaderElection={"resourceName": "x"})]),
    Scenario("overridden-range", [_overrides(parallelism=0)]),
    Scenario("overridden-type", [_overrides(parallelism="many")]),
    Scenario("overridden-flag", [_overrides(arguments={"kube-api-qqs": 1})]),
    Scenario("overridden-kind", [_overrides(kind="Policy")]),
    Scenario("unknown-plugin", [profile("p", **UNKNOWN_PLUGIN)]),
    Scenario("one-name", [profile("p", schedulerName="s"), profile("q", schedulerName="s")]),
    Scenario("agent-arguments", [extender("e", agent={"policies": [{"name": "nope"}]})]),
    Scenario("one-url", [extender("e", **URL), extender("f", **URL)]),
    Scenario("secondary-range", [secondary(config={"parallelism": 0})]),
    Scenario("secondary-plugin", [secondary(profiles=[UNKNOWN_PLUGIN])]),
    Scenario("secondary-reserved", [secondary(extraArguments={"kubeconfig": "/k"})]),
    Scenario("secondary-lease", [secondary("kube-scheduler")]),
    Scenario("secondary-volume", [secondary(volumes=[{"name": "x", "hostPath": {"path": "/"}}])]),
    Scenario("default-taken", [secondary(profiles=[{"schedulerName": "default-scheduler"}])]),
    Scenario("secondary-level", [secondary(logLevel="Loud")]),
    Scenario("names-taken", [secondary("b"), secondary("a", profiles=[{"schedulerName": "b"}])]),
    Scenario(
        "names-taken-back", [secondary("a", profiles=[{"schedulerName": "b"}]), secondary("b")]
    ),
    Scenario(
        "profile-takes-default",
        [secondary(), profile("p", scheduler="mine", schedulerName="default-scheduler")],
    ),
    Scenario(
        "profile-takes-older",
        [secondary("a"), secondary("b"), profile("p", scheduler="b", schedulerName="a")],
    ),
    Scenario(
        "profile-of-the-control-plane-taken",
        [profile("team"), secondary(profiles=[{"schedulerName": "team"}])],
    ),
    Scenario(
        "secondary-bad-profile", [secondary(), profile("p", scheduler="mine", **UNKNOWN_PLUGIN)]
    ),
    Scenario(
        "secondary-bad-extender",
        [secondary(), extender("e", scheduler="mine", agent={"policies": [{"name": "nope"}]})],
    ),
)

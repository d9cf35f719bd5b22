"""Every change of a conversion is reported with its field, reason and severity."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.findings import format_path
from kube_scheduler_operator.base.go_values import seconds
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.migrate.changes import ConversionError, Severity
from kube_scheduler_operator.config.migrate.convert import Conversion, convert
from kube_scheduler_operator.config.migrate.old_schema import duration

from .conversions import (
    AGENT_SCHEDULER,
    CLASSIC,
    GROUP,
    LEAST,
    MOST,
    RATIO,
    SHAPE,
    component,
    policy,
    predicates,
    priorities,
    profile,
    sets,
)

SAME, DIFFERS, LOST = Severity


def conversion(document: Any, version: str = "1.35", *, stock: bool = True) -> Conversion:
    return convert(document, Target(Gates(Version.parse(version)), stock=stock))


def elect(version: str, **fields: Any) -> dict[str, Any]:
    return component(version, leaderElection=fields)


def argued(kind: str, **values: Any) -> dict[str, Any]:
    return {"name": "Mine", "weight": 3, "argument": {kind: values}}


SPREAD_MANY = {"NodeLabel": {"presentLabelsPreference": ["ssd"], "absentLabelsPreference": ["old"]}}
CASES: dict[str, tuple[dict[str, Any], str, Severity, str]] = {
    "version": (component("v1beta2"), "apiVersion", SAME, "v1beta2 converted to v1"),
    "health was served": (
        component("v1beta1", healthzBindAddress="0.0.0.0:10251"),
        "healthzBindAddress", DIFFERS, "--secure-port (10259)",
    ),
    "metrics were served": (
        component("v1beta2", metricsBindAddress="127.0.0.1"),
        "metricsBindAddress", DIFFERS, "to clients that may get that URL",
    ),
    "health was off": (
        component("v1beta2", healthzBindAddress=""), "healthzBindAddress", SAME, "it was disabled",
    ),
    "port 0": (
        component("v1alpha1", metricsBindAddress="0.0.0.0:0"), "metricsBindAddress", SAME,
        "removed",
    ),
    "lock of endpoints": (
        elect("v1beta1", resourceLock="endpoints"),
        "leaderElection.resourceLock", DIFFERS, "stop all of them first",
    ),
    "lock in migration": (
        elect("v1beta1", resourceLock="configmapsleases"),
        "leaderElection.resourceLock", SAME, "both use the Lease",
    ),
    "name of the lock": (
        elect("v1alpha1", lockObjectName="mine"),
        "leaderElection.lockObjectName", SAME, "renamed to resourceName (mine)",
    ),
    "namespace of the lock": (
        elect("v1alpha1", lockObjectNamespace="there", resourceNamespace="there"),
        "leaderElection.lockObjectNamespace", SAME, "renamed to resourceNamespace (there)",
    ),
    "feature gates": (
        component("v1beta1", featureGates={"A": True, "B": False}),
        "featureGates", LOST, "--feature-gates=A=true,B=false",
    ),
    "failure domains": (
        component("v1alpha1", failureDomains="zone"), "failureDomains", LOST, "topologyKey",
    ),
    "preemption on": (
        component("v1beta1", disablePreemption=False), "disablePreemption", SAME, "by default",
    ),
    "preemption off": (
        component("v1alpha2", disablePreemption=True), "disablePreemption", SAME, "postFilter",
    ),
    "provider": (
        component("v1alpha1", algorithmSource={"provider": "DefaultProvider"}),
        "algorithmSource.provider", SAME, "the provider's plugins are kept",
    ),
    "unknown field": (
        component("v1beta2", parallelsm=3),
        "parallelsm", LOST, 'kube-scheduler 1.27 has no field "parallelsm" here; did you mean',
    ),
    "unknown field that was passed over": (
        policy(extender=[]), "extender", SAME, 'did you mean "extenders"?',
    ),
    "a field of a later version": (
        component("v1beta2", delayCacheUntilActive=True), "delayCacheUntilActive", LOST, "1.27",
    ),
    "unknown field of arguments": (
        profile("v1beta1", config={"NodeLabel": {"present": ["a"]}}),
        "profiles[0].pluginConfig[0].args.present", LOST, "no field",
    ),
    "weights": (
        component("v1beta2"), "profiles[0].plugins.score", SAME,
        "weights set: InterPodAffinity 1, NodeAffinity 1, TaintToleration 1",
    ),
    "most allocated": (
        profile("v1beta1", score=sets(MOST, LEAST)),
        "profiles[0].plugins.score.enabled[0]", SAME, "scoringStrategy MostAllocated",
    ),
    "least allocated off": (
        profile("v1beta1", score=sets(disabled=LEAST)),
        "profiles[0].plugins.score.disabled[0]", SAME, "NodeResourcesFit disabled",
    ),
    "two strategies": (
        profile("v1beta1", score=sets(f"{MOST}=5")),
        "profiles[0].plugins.score.enabled[0]", SAME, "MostAllocated",
    ),
    "the lighter of two strategies": (
        profile("v1beta1", score=sets(f"{MOST}=5 {RATIO}=6", LEAST)),
        "profiles[0].plugins.score.enabled[0]", LOST, "one scoringStrategy per profile",
    ),
    "arguments of the lighter one": (
        profile("v1beta1", config={MOST: {"resources": [{"name": "cpu"}]}},
                score=sets(f"{MOST}=5 {RATIO}=6", LEAST)),
        "profiles[0].pluginConfig[0].args", LOST, "use a second profile",
    ),
    "arguments of a strategy that is off": (
        profile("v1beta1", config={RATIO: {"shape": SHAPE}}),
        "profiles[0].pluginConfig[0].args", SAME, "the plugin was not enabled",
    ),
    "avoided pods by default": (
        component("v1beta1"), "profiles[0].plugins.score", SAME, "weights set",
    ),
    "avoided pods": (
        profile("v1beta1", score=sets("NodePreferAvoidPods=5", "NodePreferAvoidPods")),
        "profiles[0].plugins.score.enabled[0]", LOST, "PreferNoSchedule",
    ),
    "selector spread": (
        profile("v1beta1", preScore=sets("SelectorSpread"), score=sets("SelectorSpread=3")),
        "profiles[0].plugins.score.enabled[0]", DIFFERS, "PodTopologySpread",
    ),
    "labels that nodes should have": (
        profile("v1beta1", config=SPREAD_MANY, score=sets("NodeLabel=2")),
        "profiles[0].pluginConfig[0].args", DIFFERS, "addedAffinity",
    ),
    "labels without the plugin": (
        profile("v1beta1", config=SPREAD_MANY),
        "profiles[0].pluginConfig[0].args", SAME, "was not enabled at score",
    ),
    "labels that nodes must have": (
        profile("v1beta1", config={"NodeLabel": {"presentLabels": ["a"]}},
                filter=sets("NodeLabel")),
        "profiles[0].pluginConfig[0].args", SAME, "requires the same labels for every pod",
    ),
    "labels without node affinity": (
        profile("v1beta1", config={"NodeLabel": {"presentLabels": ["a"]}},
                filter=sets("NodeLabel", "NodeAffinity")),
        "profiles[0].pluginConfig[0].args", DIFFERS, "the pods' own affinity",
    ),
    "services together": (
        profile("v1beta1", config={"ServiceAffinity": {"affinityLabels": ["rack"]}},
                preFilter=sets("ServiceAffinity"), filter=sets("ServiceAffinity")),
        "profiles[0].pluginConfig[0].args", LOST, "podAffinity with that label",
    ),
    "services together, the filter": (
        profile("v1beta1", filter=sets("ServiceAffinity")),
        "profiles[0].plugins.filter.enabled[0]", LOST, "podAffinity",
    ),
    "services apart": (
        profile("v1beta1", config={"ServiceAffinity": {"antiAffinityLabelsPreference": ["rack"]}},
                score=sets("ServiceAffinity")),
        "profiles[0].pluginConfig[0].args", DIFFERS, "rack moved to defaultConstraints",
    ),
    "cloud limits": (
        profile("v1beta3", filter=sets("EBSLimits")),
        "profiles[0].plugins.filter.enabled[0]", SAME, "EBSLimits replaced by NodeVolumeLimits",
    ),
    "nothing to disable": (
        profile("v1beta2", score=sets(disabled="SelectorSpread VolumeZone")),
        "profiles[0].plugins.score.disabled[1]", SAME, "does not run it at score by default",
    ),
    "unreserve": (
        component("v1alpha2", profiles=[{"plugins": {"unreserve": sets("VolumeBinding")}}]),
        "profiles[0].plugins.unreserve.enabled[0]", SAME, "since 1.20 reserve includes it",
    ),
    "a point that got another name": (
        component("v1alpha1", plugins={"postFilter": sets(disabled="InterPodAffinity")}),
        "plugins.postFilter", SAME, "renamed to preScore",
    ),
    "a Policy and flags": (policy(), "kind", DIFFERS, "clientConnection.kubeconfig"),
    "a predicate": (
        policy(predicates=predicates("GeneralPredicates")), "predicates[0]", SAME,
        "NodeResourcesFit, NodeName, NodePorts, NodeAffinity",
    ),
    "a predicate that taints replaced": (
        policy(predicates=predicates("CheckNodeMemoryPressure")), "predicates[0]", SAME, "taint",
    ),
    "a priority": (
        policy(priorities=priorities(TaintTolerationPriority=4)), "priorities[0]", SAME,
        "score TaintToleration with weight 4",
    ),
    "a priority of avoided pods": (
        policy(priorities=priorities(NodePreferAvoidPodsPriority=4)), "priorities[0]", LOST,
        "NodePreferAvoidPodsPriority removed",
    ),
    "limits": (
        policy(priorities=priorities(ResourceLimitsPriority=4)), "priorities[0]", LOST,
        "set requests",
    ),
    "equal": (policy(priorities=priorities(EqualPriority=1)), "priorities[0]", SAME, "equally"),
    "preferred label": (
        policy(priorities=[argued("labelPreference", label="ssd", presence=True)]),
        "priorities[0].argument.labelPreference", DIFFERS, "addedAffinity",
    ),
    "anti-affinity of a Service": (
        policy(priorities=[argued("serviceAntiAffinity", label="rack")]),
        "priorities[0].argument.serviceAntiAffinity", DIFFERS, "defaultConstraints",
    ),
    "affinity of a Service": (
        policy(predicates=[argued("serviceAffinity", labels=["rack"]) | {"weight": None}]),
        "predicates[0].argument.serviceAffinity", LOST, "affinity by rack removed",
    ),
    "all predicates checked": (
        policy(alwaysCheckAllPredicates=True), "alwaysCheckAllPredicates", DIFFERS, "fewer",
    ),
    "symmetric weight": (
        policy(hardPodAffinitySymmetricWeight=5), "hardPodAffinitySymmetricWeight", SAME,
        "moved to hardPodAffinityWeight 5",
    ),
    "symmetric weight that nothing reads": (
        CLASSIC, "hardPodAffinitySymmetricWeight", SAME, "does not list InterPodAffinityPriority",
    ),
    "nanoseconds": (
        policy(extenders=[{"urlPrefix": "http://a", "httpTimeout": 5_000_000_000}]),
        "extenders[0].httpTimeout", SAME, "5000000000 converted to 5s",
    ),
    "spelling": (
        policy(extenders=[{"urlPrefix": "http://a", "BindVerb": "b"}]),
        "extenders[0].BindVerb", SAME, "bindVerb",
    ),
    "spelling within": (
        policy(extenders=[{"urlPrefix": "http://a", "tlsConfig": {"CAFile": "/ca"}}]),
        "extenders[0].tlsConfig.CAFile", SAME, "caFile",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_reported(name: str) -> None:
    document, path, severity, part = CASES[name]
    found = [change for change in conversion(document).changes if format_path(change.path) == path]
    assert [change.severity for change in found if part in f"{change.what}; {change.why}"] == [
        severity
    ], found


def test_a_removed_default_plugin_is_reported() -> None:
    changes = conversion(component("v1beta1")).changes
    (gone,) = [change for change in changes if change.severity is not SAME]
    assert gone.severity is DIFFERS
    assert gone.what == "NodePreferAvoidPods, a default plugin of v1beta1, removed"
    spread = [change.what for change in conversion(component("v1alpha2")).changes]
    assert any("DefaultPodTopologySpread, a default plugin of v1alpha2" in what for what in spread)


def test_arguments_of_an_out_of_tree_plugin_are_kept_and_their_version_reported() -> None:
    args = {"apiVersion": f"{GROUP}/v1beta2", "kind": "DynamicArgs", "policyConfigPath": "/x"}
    document = profile("v1beta2", config={"Dynamic": args}, filter=sets("Dynamic"))
    result = conversion(document, stock=False)
    assert result.config["profiles"][0]["pluginConfig"] == [{"name": "Dynamic", "args": args}]
    assert result.problems == ()
    (change,) = [change for change in result.changes if change.severity is DIFFERS]
    assert change.path == ("profiles", 0, "pluginConfig", 0, "args", "apiVersion")


@pytest.mark.parametrize(
    ("args", "part"),
    [
        ({"name": "NodeResourcesFit"}, 'name "NodeResourcesFit" is inside of args'),
        ({"x": 1}, "has always ignored it"),
        (None, "has always ignored it"),
    ],
)
def test_arguments_without_a_plugin_are_dropped(args: Any, part: str) -> None:
    entry = {} if args is None else {"args": args}
    document = component("v1beta2", profiles=[{"schedulerName": "a", "pluginConfig": [entry]}])
    result = conversion(document)
    (change,) = [
        change for change in result.changes if change.path == ("profiles", 0, "pluginConfig", 0)
    ]
    assert (change.what, change.severity) == ("dropped", SAME)
    assert part in change.why
    assert "pluginConfig" not in result.config["profiles"][0]


def test_the_version_of_in_tree_arguments_is_changed() -> None:
    args = {"apiVersion": f"{GROUP}/v1beta2", "kind": "VolumeBindingArgs"}
    made = conversion(profile("v1beta2", config={"VolumeBinding": args}))
    assert made.problems == ()
    assert made.config["profiles"][0]["pluginConfig"][0]["args"]["apiVersion"] == f"{GROUP}/v1"


def test_the_weight_of_a_policy_takes_precedence() -> None:
    document = {**AGENT_SCHEDULER, "hardPodAffinitySymmetricWeight": 3}
    given = policy(hardPodAffinitySymmetricWeight=8)
    result = convert(document, Target(Gates(Version(1, 35))), given)
    (entry,) = result.config["profiles"][0]["pluginConfig"]
    assert entry == {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 8}}
    assert ("hardPodAffinitySymmetricWeight",) in [change.path for change in result.changes]


def test_the_policy_must_be_a_policy() -> None:
    with pytest.raises(ConversionError, match="is not a Policy; pass the Policy"):
        convert(AGENT_SCHEDULER, Target(Gates(Version(1, 35))), {"kind": "Pod"})


def test_service_constraints_are_added_to_the_system_constraints() -> None:
    document = policy(priorities=[argued("serviceAntiAffinity", label="rack")])
    (made,) = conversion(document).config["profiles"]
    (args,) = [each["args"] for each in made["pluginConfig"]]
    keys = [each["topologyKey"] for each in args["defaultConstraints"]]
    assert keys == ["kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"]
    assert made["plugins"]["score"]["enabled"] == [{"name": "PodTopologySpread", "weight": 3}]
    assert {"name": "PodTopologySpread"} in made["plugins"]["preScore"]["enabled"]


def test_preferred_labels_share_the_weight() -> None:
    document = policy(
        priorities=[
            argued("labelPreference", label="ssd", presence=True),
            argued("labelPreference", label="old"),
        ]
    )
    (made,) = conversion(document).config["profiles"]
    assert made["plugins"]["score"]["enabled"] == [{"name": "NodeAffinity", "weight": 6}]
    (args,) = [each["args"] for each in made["pluginConfig"]]
    (first, second) = args["addedAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert (first["weight"], second["weight"]) == (50, 50)
    assert second["preference"]["matchExpressions"][0] == {"key": "old", "operator": "DoesNotExist"}


def test_cloud_limits_are_kept_where_they_exist() -> None:
    document = profile("v1beta3", filter=sets("EBSLimits NodeName", "*"))
    kept = conversion(document, "1.30").config["profiles"][0]["plugins"]["filter"]["enabled"]
    assert [each["name"] for each in kept] == ["EBSLimits", "NodeName"]
    now = conversion(document, "1.31").config["profiles"][0]["plugins"]["filter"]["enabled"]
    assert [each["name"] for each in now] == ["NodeVolumeLimits", "NodeName"]


def test_v1_loses_only_plugins_that_its_scheduler_does_not_have() -> None:
    lists: dict[str, Any] = {"filter": sets("EBSLimits NodeName", "* GCEPDLimits")}
    document = profile("v1", config={"CinderLimits": None}, **lists)
    assert conversion(document, "1.30").config["profiles"][0]["plugins"] == lists
    result = conversion(document, "1.35")
    assert result.config["profiles"][0] == {
        "plugins": {"filter": sets("NodeName NodeVolumeLimits", "*")},
        "pluginConfig": [],
    }
    assert len(result.changes) == 4
    assert result.problems == ()


def test_v1_is_validated() -> None:
    document = component("v1", parallelism=0)
    result = conversion(document)
    assert result.config == document
    assert [problem.path for problem in result.problems] == [("parallelism",)]


def test_a_result_that_does_not_start_has_problems() -> None:
    result = conversion(profile("v1beta1", score=sets(RATIO, LEAST)))
    assert ["requestedToCapacityRatio" in problem.message for problem in result.problems] == [True]


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(0, "0s"), (1, "1ns"), (1_500, "1500ns"), (2_000_000, "2ms"), (90_000_000_000, "90s"),
     (120_000_000_000, "2m"), (3_600_000_000_000, "1h"), (-5_000_000_000, "-5s")],
)  # fmt: skip
def test_nanoseconds_as_a_duration(nanoseconds: int, text: str) -> None:
    assert duration(nanoseconds) == text
    assert seconds(text) == pytest.approx(nanoseconds / 1e9)


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "Policy", "predicates": []},
        {"kind": "Policy", "apiVersion": "v1", "predicates": []},
        {"predicates": []},
        {"extenders": [], "predicates": []},
    ],
)
def test_a_policy_is_recognized_without_its_version(document: dict[str, Any]) -> None:
    made = conversion(document).config["profiles"][0]["plugins"]["filter"]["enabled"]
    assert [each["name"] for each in made] == ["NodeUnschedulable", "TaintToleration"]

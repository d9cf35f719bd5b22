"""Warnings at the right path and nowhere else, and never as errors."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.findings import WARNING, Problem, format_path
from kube_scheduler_operator.base.platform import PLATFORMS
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.merging.merge import merge_semantically
from kube_scheduler_operator.config.language.merging.presets import (
    PRESETS,
    default_config,
    profile_fragment,
)
from kube_scheduler_operator.config.language.plugins.effective_plugins import effective_plugins
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.language.warnings import configuration as top
from kube_scheduler_operator.config.language.warnings import extenders as ext
from kube_scheduler_operator.config.language.warnings import plugins as plug
from kube_scheduler_operator.config.language.warnings.configuration import (
    config_warnings,
    file_warnings,
)

Found = list[tuple[str, str]]


def target(minor: int = 35, *, stock: bool = True) -> Target:
    return Target(Gates(Version(1, minor)), stock=stock)


def config(**fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **fields,
    }


def profile(**fields: Any) -> dict[str, Any]:
    return config(profiles=[{"schedulerName": "default-scheduler", **fields}])


def plugins(**points: Any) -> dict[str, Any]:
    return profile(plugins=points)


def on(*names: str, **weights: int) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = [{"name": name} for name in names]
    return listed + [{"name": name, "weight": weight} for name, weight in weights.items()]


def warnings_of(document: dict[str, Any], minor: int = 35, *, stock: bool = True) -> list[Problem]:
    """The warnings about a configuration that kube-scheduler accepts."""
    assert validate_config(document, target(minor, stock=stock)) == []
    found = config_warnings(document, target(minor, stock=stock))
    assert {problem.severity for problem in found} <= {WARNING}
    assert all(problem.message and problem.fix for problem in found)
    return found


def found_in(document: dict[str, Any], minor: int = 35) -> Found:
    return [(problem.reason, format_path(problem.path)) for problem in warnings_of(document, minor)]


@pytest.mark.parametrize("minor", range(29, 37))
@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("name", PRESETS)
def test_of_the_default_configurations_only_one_has_a_warning(
    name: str, platform: Any, minor: int
) -> None:
    """OpenShift's profile for packing leaves the default spreading on."""
    found = warnings_of(
        merge_semantically([profile_fragment(name), default_config(platform)]), minor
    )
    expected = [plug.OUTVOTED_STRATEGY] if name == "HighNodeUtilization" else []
    assert [problem.reason for problem in found] == expected


def test_an_empty_configuration_has_no_warning() -> None:
    assert warnings_of(config()) == []


# --- safety filters ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", plug.SAFETY_FILTERS)
def test_a_disabled_safety_filter_is_reported_with_its_consequence(name: str) -> None:
    for point in ("filter", "multiPoint"):
        document = plugins(**{point: {"disabled": on(name)}})
        warnings = [each for each in warnings_of(document) if each.reason == plug.SAFETY_FILTER_OFF]
        (warning,) = warnings
        assert format_path(warning.path) == f"profiles[0].plugins.{point}.disabled[0]"
        assert warning.message == f"{name} does not run at filter: {plug.SAFETY_FILTERS[name]}"


def test_disabling_all_filters_reports_all_seven() -> None:
    found = found_in(plugins(filter={"disabled": on("*")}))
    off = (plug.SAFETY_FILTER_OFF, "profiles[0].plugins.filter.disabled[0]")
    assert found == [off] * 7


def test_other_filters_may_be_disabled() -> None:
    document = plugins(filter={"disabled": on("VolumeZone", "PodTopologySpread")})
    assert found_in(document) == []


def test_a_safety_filter_that_another_list_enables_has_no_warning() -> None:
    document = plugins(filter={"disabled": on("NodeName"), "enabled": on("NodeName")})
    assert found_in(document) == []


# --- preparation at an earlier point ----------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "before", "name"),
    [(point, before, name) for point, (before, names) in plug.NEEDS.items() for name in names],
)
def test_a_plugin_without_its_preparation_fails_every_pod(
    point: str, before: str, name: str
) -> None:
    document = plugins(**{before: {"disabled": on(name)}})
    where = f"profiles[0].plugins.{before}.disabled[0]"
    assert (plug.NOT_PREPARED, where) in found_in(document)
    assert found_in(plugins(**{each: {"disabled": on(name)} for each in (point, before)})) in (
        [],
        [(plug.SAFETY_FILTER_OFF, f"profiles[0].plugins.{point}.disabled[0]")],
    )


def test_a_filter_without_its_pre_filter_is_reported() -> None:
    document = plugins(
        multiPoint={"disabled": on("*"), "enabled": on("PrioritySort", "DefaultBinder")},
        filter={"enabled": on("NodeResourcesFit", "TaintToleration")},
    )
    assert found_in(document)[-1] == (
        plug.NOT_PREPARED,
        "profiles[0].plugins.multiPoint.disabled[0]",
    )


# --- weights ----------------------------------------------------------------------------------

OTHERS = 14  # TaintToleration 3, NodeAffinity 2, Fit 1, VolumeBinding 1, Spread 2, Affinity 2, …


def heavy(weight: int) -> dict[str, Any]:
    return plugins(score={"enabled": on(ImageLocality=weight)})


def test_the_sum_of_the_default_weights() -> None:
    score = effective_plugins({}, target().gates).points["score"]
    assert sum(entry.weight or 1 for entry in score if entry.name != "ImageLocality") == OTHERS


def test_a_weight_outvotes_the_others_above_a_hundred_times_their_sum() -> None:
    assert found_in(heavy(100 * OTHERS)) == []
    (warning,) = warnings_of(heavy(100 * OTHERS + 1))
    assert warning.reason == plug.OUTVOTED
    assert format_path(warning.path) == "profiles[0].plugins.score.enabled[0]"
    assert "ImageLocality decides alone" in warning.message
    assert "all other scores together at most 1400," in warning.message


def test_image_locality_as_the_only_score_is_reported() -> None:
    only = {"disabled": on("*"), "enabled": on("ImageLocality")}
    (warning,) = warnings_of(plugins(score=only))
    assert warning.reason == plug.IMAGES_ALONE
    assert "docker.io/library/nginx:1.29, not nginx:1.29" in warning.message
    assert format_path(warning.path) == "profiles[0].plugins.score.enabled[0]"
    also = {**only, "enabled": on("ImageLocality", "NodeResourcesFit")}
    assert warnings_of(plugins(score=also)) == []
    score = {"extenders": [{**CALM, "filterVerb": "", "prioritizeVerb": "p", "weight": 1}]}
    assert found_in({**plugins(score=only), **score}) == []


def test_an_extender_counts_with_its_ten_points() -> None:
    extender = {
        "urlPrefix": "http://x", "prioritizeVerb": "p", "nodeCacheCapable": True,
        "httpTimeout": "1s",
    }  # fmt: skip
    most = 100 * (OTHERS + 1)
    for weight, reported in ((most // 10, False), (most // 10 + 1, True)):
        document = {**config(), "extenders": [{**extender, "weight": weight}]}
        assert [each.reason for each in warnings_of(document)] == [plug.OUTVOTED] * reported
    limited = {**extender, "weight": most, "managedResources": [{"name": "example.com/gpu"}]}
    assert warnings_of({**config(), "extenders": [limited]}) == []


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"metricProvider": {"type": "Prometheus", "token": "eyJ0"}}, "metricProvider.token"),
        ({"sources": [{"Password": "x"}]}, "sources[0].Password"),
        ({"metricProvider": {"token": "${PROM_TOKEN}"}, "secret": ""}, ""),
        ({"secretName": "prometheus", "token": {"valueFrom": "file"}}, ""),
    ],
)
def test_a_credential_in_the_arguments_of_a_plugin(args: Any, path: str) -> None:
    document = plugins(multiPoint={"enabled": on("Own")})
    document["profiles"][0]["pluginConfig"] = [{"name": "Own", "args": args}]
    found = [(each.reason, each.path) for each in warnings_of(document, stock=False)]
    where = f"profiles[0].pluginConfig[0].args.{path}"
    assert [(reason, format_path(at)) for reason, at in found] == (
        [(ext.KEY_IN_LOG, where)] if path else []
    )


def test_an_unknown_plugin_may_score_so_no_weight_is_reported() -> None:
    document = plugins(score={"enabled": on(ImageLocality=9000)}, multiPoint={"enabled": on("Own")})
    assert warnings_of(document, stock=False) == []


@pytest.mark.parametrize(
    ("points", "reason", "path"),
    [
        ({"score": {"enabled": on(TaintToleration=3, ImageLocality=-1)}},
         plug.NEGATIVE_WEIGHT, "score.enabled[1].weight"),
        ({"score": {"enabled": on(NodeResourcesFit=0)}},
         plug.ZERO_WEIGHT, "score.enabled[0].weight"),
        ({"multiPoint": {"enabled": on(TaintToleration=0)}},
         plug.ZERO_WEIGHT, "multiPoint.enabled[0].weight"),
        ({"filter": {"enabled": on(NodePorts=2)}},
         plug.USELESS_WEIGHT, "filter.enabled[0].weight"),
        ({"multiPoint": {"enabled": on(NodePorts=2)}},
         plug.USELESS_WEIGHT, "multiPoint.enabled[0].weight"),
        ({"score": {"enabled": on("TaintToleration")}}, plug.WEIGHT_RESET, "score.enabled[0]"),
        ({"multiPoint": {"enabled": on("NodeAffinity")}},
         plug.WEIGHT_RESET, "multiPoint.enabled[0]"),
    ],
)  # fmt: skip
def test_weights_with_another_effect_than_intended(points: Any, reason: str, path: str) -> None:
    assert found_in(plugins(**points)) == [(reason, f"profiles[0].plugins.{path}")]


@pytest.mark.parametrize(
    "points",
    [
        {"score": {"enabled": on(TaintToleration=1, ImageLocality=2)}},
        {"score": {"enabled": on("ImageLocality")}},
        {"filter": {"enabled": on("TaintToleration")}},
        {"multiPoint": {"enabled": on(ImageLocality=2)}},
    ],
)
def test_weights_with_the_intended_effect(points: Any) -> None:
    assert found_in(plugins(**points)) == []


# --- lists without effect ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "name", "minor", "part"),
    [
        ("score", "NodeResourcesLeastAllocated", 35, "API version v1 has no plugin"),
        ("score", "NodeResourceFit", 35, "has no plugin NodeResourceFit"),
        ("multiPoint", "NoSuch", 35, "has no plugin NoSuch"),
        ("filter", "EBSLimits", 35, "was removed in Kubernetes 1.32"),
        ("filter", "NodeDeclaredFeatures", 34, "was added in Kubernetes 1.35"),
        ("filter", "NodeDeclaredFeatures", 35, "is not enabled by default"),
        ("multiPoint", "GangScheduling", 35, "is not enabled by default"),
        ("score", "NodeName", 35, "does not implement score"),
    ],
)
def test_a_disabled_entry_without_effect(point: str, name: str, minor: int, part: str) -> None:
    (warning,) = warnings_of(plugins(**{point: {"disabled": on(name)}}), minor)
    assert (warning.reason, part in warning.message) == (plug.USELESS_DISABLED, True)
    assert format_path(warning.path) == f"profiles[0].plugins.{point}.disabled[0]"


@pytest.mark.parametrize(
    "points",
    [
        {"score": {"disabled": on("ImageLocality", "*")}},
        {"score": {"disabled": on("*")}, "multiPoint": {"disabled": on("ImageLocality")}},
        {"permit": {"disabled": on("*")}},
        {"multiPoint": {"enabled": on("GangScheduling")},
         "permit": {"disabled": on("GangScheduling")}},
    ],
)  # fmt: skip
def test_a_disabled_entry_that_repeats_another_one(points: Any) -> None:
    found = [reason for reason, _ in found_in(plugins(**points))]
    assert plug.USELESS_DISABLED not in found


def test_plugins_of_a_custom_image_may_be_disabled() -> None:
    for name in ("Own", "NodeResourcesFitPlus"):
        assert warnings_of(plugins(score={"disabled": on(name)}), stock=False) == []


def test_a_misspelt_plugin_of_kubernetes_is_reported_for_a_custom_image() -> None:
    disabled = plugins(score={"disabled": on("ImageLocalityy")})
    (problem,) = warnings_of(disabled, stock=False)
    assert 'did you mean "ImageLocality"' in str(problem)


def args(name: str, **fields: Any) -> dict[str, Any]:
    return {"pluginConfig": [{"name": name, "args": fields}]}


def test_arguments_without_effect() -> None:
    where = "profiles[0].pluginConfig[0]"
    off = {"plugins": {"multiPoint": {"disabled": on("InterPodAffinity")}}}
    assert found_in(profile(**args("NoSuch"))) == [(plug.UNUSED_ARGUMENTS, where)]
    assert found_in(profile(**off, **args("InterPodAffinity"))) == [(plug.UNUSED_ARGUMENTS, where)]
    assert found_in(profile(**args("TaintToleration", a=1))) == [(plug.UNUSED_ARGUMENTS, where)]
    assert found_in(profile(**args("InterPodAffinity"))) == []
    own = {"plugins": {"multiPoint": {"enabled": on("Own")}}}
    assert warnings_of(profile(**own, **args("Own")), stock=False) == []


@pytest.mark.parametrize(
    ("fields", "minor", "reported"),
    [
        ({"plugins": {"filter": {"enabled": on("EBSLimits")}}}, 30, True),
        ({"plugins": {"multiPoint": {"enabled": on("CinderLimits")}}}, 30, True),
        (args("GCEPDLimits"), 30, True),
        ({"plugins": {"preScore": {"enabled": on("DynamicResources")}}}, 31, True),
        ({"plugins": {"filter": {"enabled": on("NodeVolumeLimits")}}}, 31, False),
    ],
)
def test_entries_that_a_later_version_rejects_are_reported(
    fields: dict[str, Any], minor: int, reported: bool
) -> None:
    found = [
        each for each in warnings_of(profile(**fields), minor) if each.reason == plug.REMOVED_LATER
    ]
    assert len(found) == reported
    assert all("Kubernetes 1.32" in each.message for each in found)


# --- leader election, sampling ----------------------------------------------------------------


def election(name: str, **fields: Any) -> dict[str, Any]:
    return config(profiles=[{"schedulerName": name}], leaderElection=fields)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (election("mine"), top.SHARED_LEASE),
        (election("mine", leaderElect=True, resourceNamespace="kube-system"), top.SHARED_LEASE),
        (election("mine", resourceNamespace="openshift-kube-scheduler"), top.SHARED_LEASE),
        (election("mine", resourceName="mine"), ""),
        (election("mine", resourceNamespace="mine"), ""),
        (election("mine", leaderElect=False), ""),
        (election("default-scheduler"), ""),
        (election("default-scheduler", resourceName="mine"), top.SECOND_DEFAULT_SCHEDULER),
        (election("default-scheduler", leaderElect=False), top.SECOND_DEFAULT_SCHEDULER),
    ],
)
def test_leases(document: dict[str, Any], reason: str) -> None:
    assert found_in(document) == ([(reason, "leaderElection")] if reason else [])


def test_flags_take_precedence_over_the_file() -> None:
    document = election("mine")
    assert config_warnings(document, target(), {"resourceName": "mine"}) == []


@pytest.mark.parametrize(("percentage", "reported"), [(0, 0), (1, 1), (4, 1), (5, 0), (100, 0)])
def test_a_low_percentage_of_nodes(percentage: int, reported: int) -> None:
    whole = config(percentageOfNodesToScore=percentage)
    one = profile(percentageOfNodesToScore=percentage)
    assert found_in(whole) == [(top.SAMPLED_TOO_FEW, "percentageOfNodesToScore")] * reported
    where = "profiles[0].percentageOfNodesToScore"
    assert found_in(one) == [(top.SAMPLED_TOO_FEW, where)] * reported


def test_the_number_of_scored_nodes_is_reported() -> None:
    (one,) = warnings_of(config(percentageOfNodesToScore=1))
    (four,) = warnings_of(config(percentageOfNodesToScore=4))
    assert "the first 100 nodes of 5000" in one.message
    assert "the first 200 nodes of 5000" in four.message


# --- extenders --------------------------------------------------------------------------------

CALM = {
    "urlPrefix": "http://x", "filterVerb": "f", "nodeCacheCapable": True, "ignorable": True,
    "httpTimeout": "500ms",
}  # fmt: skip
GPU = [{"name": "example.com/gpu"}]


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        ({}, []),
        ({"nodeCacheCapable": False}, [ext.WHOLE_NODES]),
        ({"nodeCacheCapable": False, "filterVerb": "", "bindVerb": "b"}, []),
        ({"ignorable": False}, [ext.NOT_IGNORABLE]),
        ({"ignorable": False, "managedResources": GPU}, []),
        ({"ignorable": False, "filterVerb": "", "prioritizeVerb": "p", "weight": 1}, []),
        ({"httpTimeout": "1s"}, []),
        ({"httpTimeout": "1.1s"}, [ext.LONG_TIMEOUT]),
        ({"httpTimeout": "0s"}, [ext.LONG_TIMEOUT]),
        ({"httpTimeout": "-1s"}, [ext.LONG_TIMEOUT]),
        ({"enableHTTPS": True}, [ext.UNVERIFIED_TLS]),
        ({"enableHTTPS": True, "tlsConfig": {"caFile": "/ca"}}, []),
        ({"enableHTTPS": True, "tlsConfig": {"insecure": True}}, []),
        ({"filterVerb": ""}, [ext.NEVER_CALLED]),
        ({"urlPrefix": "localhost:8888/"}, [ext.NEVER_CALLED]),
        ({"urlPrefix": ""}, [ext.NEVER_CALLED]),
        ({"urlPrefix": "HTTPS://x"}, []),
    ],
)
def test_extenders(change: dict[str, Any], reasons: list[str]) -> None:
    assert [each.reason for each in warnings_of(config(extenders=[{**CALM, **change}]))] == reasons


@pytest.mark.parametrize(("minor", "logged"), [(34, True), (37, True), (38, False)])
def test_an_inline_key_is_logged_before_1_38(minor: int, logged: bool) -> None:
    files = {"caFile": "/ca", "certFile": "/crt"}
    inline = config(extenders=[{**CALM, "tlsConfig": {**files, "keyData": "bm90IGEga2V5"}}])
    expected = [(ext.KEY_IN_LOG, "extenders[0].tlsConfig.keyData")] if logged else []
    assert found_in(inline, minor) == expected
    named = config(extenders=[{**CALM, "tlsConfig": {**files, "keyFile": "/key"}}])
    assert found_in(named, minor) == []


def test_an_extender_applies_to_all_profiles() -> None:
    several = [{"schedulerName": name} for name in ("default-scheduler", "b", "c")]
    (warning,) = warnings_of(config(extenders=[CALM], profiles=several))
    assert (warning.reason, warning.path) == (ext.ALL_PROFILES, ("extenders", 0))
    assert "all 3 profiles" in warning.message
    assert (
        warnings_of(config(extenders=[{**CALM, "managedResources": GPU}], profiles=several)) == []
    )
    assert warnings_of(config(extenders=[CALM], profiles=several[:1])) == []


def test_a_minimal_extender_has_three_warnings() -> None:
    found = found_in(config(extenders=[{"urlPrefix": "http://x", "filterVerb": "f"}]))
    assert sorted(found) == [
        (ext.LONG_TIMEOUT, "extenders[0].httpTimeout"),
        (ext.NOT_IGNORABLE, "extenders[0].ignorable"),
        (ext.WHOLE_NODES, "extenders[0].nodeCacheCapable"),
    ]


@pytest.mark.parametrize(
    ("entry", "fix"),
    [
        ({"args": {"name": "NodeResourcesFit"}}, "move it beside args: {name: NodeResourcesFit"),
        ({"args": {"x": 1}}, "add the name of the plugin"),
        ({"name": "", "args": {"name": 3}}, "add the name of the plugin"),
        ({}, "add the name of the plugin"),
    ],
)
def test_arguments_without_a_plugin_have_no_effect(entry: dict[str, Any], fix: str) -> None:
    (problem,) = warnings_of(profile(pluginConfig=[entry]))
    assert (problem.reason, format_path(problem.path)) == (
        plug.UNNAMED_ARGUMENTS, "profiles[0].pluginConfig[0]",
    )  # fmt: skip
    assert problem.fix.startswith(fix)


EVENLY = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
STRICTLY = {**EVENLY, "whenUnsatisfiable": "DoNotSchedule"}


def packing(
    fit: int | None, strategy: str = "MostAllocated", scores: tuple[int, ...] = (), **spread: Any
) -> dict[str, Any]:
    scoring: dict[str, Any] = {"type": strategy}
    if scores:
        shape = [
            {"utilization": 100 * at // (len(scores) - 1), "score": score}
            for at, score in enumerate(scores)
        ]
        scoring["requestedToCapacityRatio"] = {"shape": shape}
    arguments = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}]
    if spread:
        arguments.append({"name": "PodTopologySpread", "args": spread})
    weights = {} if fit is None else {"score": {"enabled": on(NodeResourcesFit=fit)}}
    return profile(plugins=weights, pluginConfig=arguments)


@pytest.mark.parametrize(
    ("document", "effect"),
    [
        (packing(None), "hardly packs Pods"),
        (packing(2), "more than about 50 percent"),
        (packing(5), "more than about 20 percent"),
        (packing(100), "more than about 1 percent"),
        (packing(101), ""),
        (packing(None, "LeastAllocated"), ""),
        (packing(None, "RequestedToCapacityRatio", (0, 10)), "hardly packs Pods"),
        (packing(None, "RequestedToCapacityRatio", (10, 0)), ""),
        (packing(None, defaultingType="List"), ""),
        (packing(None, defaultingType="List", defaultConstraints=[EVENLY]), "hardly packs Pods"),
        (packing(None, defaultingType="List", defaultConstraints=[STRICTLY]), ""),
        (packing(None, defaultingType="System"), "hardly packs Pods"),
    ],
)
def test_packing_with_a_low_weight_is_outvoted_by_spreading(
    document: dict[str, Any], effect: str
) -> None:
    messages = [
        problem.message
        for problem in warnings_of(document)
        if problem.reason == plug.OUTVOTED_STRATEGY
    ]
    assert len(messages) == bool(effect)
    assert all(effect in message for message in messages)


@pytest.mark.parametrize(
    ("election", "field", "example"),
    [
        ({"resourceName": "Peaks"}, "resourceName", "peaks"),
        ({"resourceName": "My_Scheduler"}, "resourceName", "my-scheduler"),
        ({"resourceName": "-a.-b-"}, "resourceName", "a.b"),
        ({"resourceName": "x", "resourceNamespace": "a.b"}, "resourceNamespace", "a-b"),
        ({"resourceName": "a..b"}, "resourceName", "a.b"),
        ({"resourceName": "é"}, "resourceName", "my-scheduler"),
    ],
)
def test_a_lease_name_that_the_api_server_rejects(
    election: dict[str, Any], field: str, example: str
) -> None:
    found = warnings_of(config(leaderElection=election, profiles=[{"schedulerName": "x"}]))
    (problem,) = [problem for problem in found if problem.reason == top.INVALID_LEASE]
    assert format_path(problem.path) == f"leaderElection.{field}"
    assert problem.fix.endswith(f"for example {example}")
    corrected = config(
        leaderElection={**election, field: example}, profiles=[{"schedulerName": "x"}]
    )
    assert top.INVALID_LEASE not in [each.reason for each in warnings_of(corrected)]


@pytest.mark.parametrize("name", ["Peaks", "My_Scheduler", "a/b", "x" * 300, "..", "-"])
def test_the_fix_of_a_shared_lease_is_a_valid_name(name: str) -> None:
    (problem,) = warnings_of(config(profiles=[{"schedulerName": name}]))
    assert problem.reason == top.SHARED_LEASE
    proposed = problem.fix.split()[3]
    followed = config(leaderElection={"resourceName": proposed}, profiles=[{"schedulerName": name}])
    assert warnings_of(followed) == []


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        (config(), [top.NO_KUBECONFIG]),
        (config(clientConnection={"kubeconfig": ""}), [top.NO_KUBECONFIG]),
        (config(clientConnection={"kubeconfig": "~/.kube/config"}), [top.NO_KUBECONFIG]),
        (config(clientConnection={"kubeconfig": "KUBECONFIG_PATH"}), [top.NO_KUBECONFIG]),
        (config(clientConnection={"kubeconfig": "/x"}), []),
        (
            config(leaderElection={"leaderElect": False}, profiles=[{"schedulerName": "a"}]),
            [],
        ),
    ],
)
def test_a_file_of_the_default_scheduler_needs_a_kubeconfig(
    document: dict[str, Any], reasons: list[str]
) -> None:
    assert [problem.reason for problem in file_warnings(document, target())] == reasons


def test_a_file_of_a_scheduler_without_a_service_account_needs_a_kubeconfig() -> None:
    alone = {"leaderElection": {"leaderElect": False}, "profiles": [{"schedulerName": "a"}]}
    (problem,) = file_warnings(config(**alone), target(), "/var/lib/x.kubeconfig")
    assert (problem.reason, problem.severity) == (top.NO_KUBECONFIG, "error")
    assert "/var/lib/x.kubeconfig" in problem.fix
    own = config(clientConnection={"kubeconfig": "/x"}, **alone)
    assert file_warnings(own, target(), "/var/lib/x.kubeconfig") == []


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize("selector", [{}, {"nodeSelectorTerms": []}, {"nodeSelectorTerms": [{}]}])
def test_added_affinity_that_matches_no_node_is_reported(selector: dict[str, Any]) -> None:
    document = profile(**args("NodeAffinity", addedAffinity={REQUIRED: selector}))
    where = f"profiles[0].pluginConfig[0].args.addedAffinity.{REQUIRED}"
    assert found_in(document) == [(plug.NO_NODE_MATCHES, where)]
    off = {"filter": {"disabled": [{"name": "NodeAffinity"}]}}
    document["profiles"][0]["plugins"] = off
    assert plug.NO_NODE_MATCHES not in {reason for reason, _ in found_in(document)}


@pytest.mark.parametrize(
    "added",
    [
        {},
        {REQUIRED: {"nodeSelectorTerms": [{}, {"matchExpressions": [
            {"key": "a", "operator": "Exists"},
        ]}]}},
        {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["a"]},
        ]}]}},
    ],
)  # fmt: skip
def test_added_affinity_with_a_term_has_no_warning(added: dict[str, Any]) -> None:
    assert found_in(profile(**args("NodeAffinity", addedAffinity=added))) == []

"""Warnings: each where it belongs and nowhere else, and none of them an error."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.findings import WARNING, Problem, format_path
from kube_scheduler_operator.base.platform import PLATFORMS
from kube_scheduler_operator.schedulerconfig import extender_warnings as ext
from kube_scheduler_operator.schedulerconfig import plugin_warnings as plug
from kube_scheduler_operator.schedulerconfig import warnings as top
from kube_scheduler_operator.schedulerconfig.check import Target, check_config
from kube_scheduler_operator.schedulerconfig.effective_plugins import effective_plugins
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.merge import merge_by_meaning
from kube_scheduler_operator.schedulerconfig.presets import (
    PROFILES,
    default_config,
    profile_fragment,
)
from kube_scheduler_operator.schedulerconfig.versions import Version
from kube_scheduler_operator.schedulerconfig.warnings import hazards

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


def look(document: dict[str, Any], minor: int = 35, *, stock: bool = True) -> list[Problem]:
    """The warnings; the configuration must be one that kube-scheduler accepts."""
    assert check_config(document, target(minor, stock=stock)) == []
    found = hazards(document, target(minor, stock=stock))
    assert {problem.severity for problem in found} <= {WARNING}
    assert all(problem.message and problem.fix for problem in found)
    return found


def found_in(document: dict[str, Any], minor: int = 35) -> Found:
    return [(problem.reason, format_path(problem.path)) for problem in look(document, minor)]


@pytest.mark.parametrize("minor", range(29, 37))
@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("name", PROFILES)
def test_what_ships_has_no_warning(name: str, platform: Any, minor: int) -> None:
    assert look(merge_by_meaning([profile_fragment(name), default_config(platform)]), minor) == []


def test_nothing_is_no_hazard() -> None:
    assert look(config()) == []


# --- safety filters ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", plug.SAFETY_FILTERS)
def test_a_safety_filter_that_is_off_is_told_with_what_happens_then(name: str) -> None:
    for point in ("filter", "multiPoint"):
        document = plugins(**{point: {"disabled": on(name)}})
        warnings = [each for each in look(document) if each.reason == plug.SAFETY_FILTER_OFF]
        (warning,) = warnings
        assert format_path(warning.path) == f"profiles[0].plugins.{point}.disabled[0]"
        assert warning.message == f"{name} does not run at filter: {plug.SAFETY_FILTERS[name]}"


def test_disabling_all_filters_tells_all_seven() -> None:
    found = found_in(plugins(filter={"disabled": on("*")}))
    off = (plug.SAFETY_FILTER_OFF, "profiles[0].plugins.filter.disabled[0]")
    assert found == [off] * 7


def test_other_filters_may_be_off() -> None:
    document = plugins(filter={"disabled": on("VolumeZone", "PodTopologySpread")})
    assert found_in(document) == []


def test_a_safety_filter_that_another_list_puts_back_is_no_hazard() -> None:
    document = plugins(filter={"disabled": on("NodeName"), "enabled": on("NodeName")})
    assert found_in(document) == []


# --- what a plugin needs from the point before ------------------------------------------------


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


def test_a_filter_that_is_kept_alone_lacks_its_preparation() -> None:
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


def test_the_sum_of_the_other_weights_is_what_the_defaults_say() -> None:
    score = effective_plugins({}, target().gates).points["score"]
    assert sum(entry.weight or 1 for entry in score if entry.name != "ImageLocality") == OTHERS


def test_a_weight_silences_the_others_from_a_hundred_times_their_sum_on() -> None:
    assert found_in(heavy(100 * OTHERS)) == []
    (warning,) = look(heavy(100 * OTHERS + 1))
    assert warning.reason == plug.SILENCED
    assert format_path(warning.path) == "profiles[0].plugins.score.enabled[0]"
    assert "ImageLocality decides alone" in warning.message
    assert "add at most 1400;" in warning.message


def test_images_alone_tell_few_nodes_apart() -> None:
    only = {"disabled": on("*"), "enabled": on("ImageLocality")}
    (warning,) = look(plugins(score=only))
    assert warning.reason == plug.IMAGES_ALONE
    assert format_path(warning.path) == "profiles[0].plugins.score.enabled[0]"
    also = {**only, "enabled": on("ImageLocality", "NodeResourcesFit")}
    assert look(plugins(score=also)) == []
    score = {"extenders": [{**CALM, "filterVerb": "", "prioritizeVerb": "p", "weight": 1}]}
    assert found_in({**plugins(score=only), **score}) == []


def test_an_extender_counts_with_ten_points_of_its_own() -> None:
    extender = {
        "urlPrefix": "http://x", "prioritizeVerb": "p", "nodeCacheCapable": True,
        "httpTimeout": "1s",
    }  # fmt: skip
    most = 100 * (OTHERS + 1)
    for weight, told in ((most // 10, False), (most // 10 + 1, True)):
        document = {**config(), "extenders": [{**extender, "weight": weight}]}
        assert [each.reason for each in look(document)] == [plug.SILENCED] * told
    limited = {**extender, "weight": most, "managedResources": [{"name": "example.com/gpu"}]}
    assert look({**config(), "extenders": [limited]}) == []


def test_an_unknown_plugin_of_a_custom_image_may_score_so_nothing_is_said() -> None:
    document = plugins(score={"enabled": on(ImageLocality=9000)}, multiPoint={"enabled": on("Own")})
    assert look(document, stock=False) == []


@pytest.mark.parametrize(
    ("points", "reason", "path"),
    [
        ({"score": {"enabled": on(TaintToleration=3, ImageLocality=-1)}},
         plug.NEGATIVE_WEIGHT, "score.enabled[1].weight"),
        ({"filter": {"enabled": on(NodePorts=2)}},
         plug.USELESS_WEIGHT, "filter.enabled[0].weight"),
        ({"multiPoint": {"enabled": on(NodePorts=2)}},
         plug.USELESS_WEIGHT, "multiPoint.enabled[0].weight"),
        ({"score": {"enabled": on("TaintToleration")}}, plug.WEIGHT_RESET, "score.enabled[0]"),
        ({"multiPoint": {"enabled": on("NodeAffinity")}},
         plug.WEIGHT_RESET, "multiPoint.enabled[0]"),
    ],
)  # fmt: skip
def test_weights_that_do_something_else(points: Any, reason: str, path: str) -> None:
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
def test_weights_that_do_what_they_say(points: Any) -> None:
    assert found_in(plugins(**points)) == []


# --- lists that do nothing --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "name", "minor", "said"),
    [
        ("score", "NodeResourcesLeastAllocated", 35, "v1 of the API has no plugin"),
        ("score", "NodeResourceFit", 35, "has no plugin NodeResourceFit"),
        ("multiPoint", "NoSuch", 35, "has no plugin NoSuch"),
        ("filter", "EBSLimits", 35, "was removed in Kubernetes 1.32"),
        ("filter", "NodeDeclaredFeatures", 34, "comes with Kubernetes 1.35"),
        ("filter", "NodeDeclaredFeatures", 35, "is off by default"),
        ("multiPoint", "GangScheduling", 35, "is off by default"),
        ("score", "NodeName", 35, "never runs at score"),
    ],
)
def test_a_disabled_entry_that_does_nothing(point: str, name: str, minor: int, said: str) -> None:
    (warning,) = look(plugins(**{point: {"disabled": on(name)}}), minor)
    assert (warning.reason, said in warning.message) == (plug.USELESS_DISABLED, True)
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
def test_a_disabled_entry_that_says_what_is(points: Any) -> None:
    found = [reason for reason, _ in found_in(plugins(**points))]
    assert plug.USELESS_DISABLED not in found


def test_what_a_custom_image_has_may_be_disabled() -> None:
    assert look(plugins(score={"disabled": on("Own")}), stock=False) == []


def args(name: str, **fields: Any) -> dict[str, Any]:
    return {"pluginConfig": [{"name": name, "args": fields}]}


def test_arguments_that_nobody_reads() -> None:
    where = "profiles[0].pluginConfig[0]"
    off = {"plugins": {"multiPoint": {"disabled": on("InterPodAffinity")}}}
    assert found_in(profile(**args("NoSuch"))) == [(plug.UNUSED_ARGUMENTS, where)]
    assert found_in(profile(**off, **args("InterPodAffinity"))) == [(plug.UNUSED_ARGUMENTS, where)]
    assert found_in(profile(**args("InterPodAffinity"))) == []
    own = {"plugins": {"multiPoint": {"enabled": on("Own")}}}
    assert look(profile(**own, **args("Own")), stock=False) == []


@pytest.mark.parametrize(
    ("fields", "minor", "told"),
    [
        ({"plugins": {"filter": {"enabled": on("EBSLimits")}}}, 30, True),
        ({"plugins": {"multiPoint": {"enabled": on("CinderLimits")}}}, 30, True),
        (args("GCEPDLimits"), 30, True),
        ({"plugins": {"preScore": {"enabled": on("DynamicResources")}}}, 31, True),
        ({"plugins": {"filter": {"enabled": on("NodeVolumeLimits")}}}, 31, False),
    ],
)
def test_what_the_next_versions_refuse_is_told_before(
    fields: dict[str, Any], minor: int, told: bool
) -> None:
    found = [each for each in look(profile(**fields), minor) if each.reason == plug.REMOVED_LATER]
    assert len(found) == told
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


def test_flags_count_before_the_file() -> None:
    document = election("mine")
    assert hazards(document, target(), {"resourceName": "mine"}) == []


@pytest.mark.parametrize(("percentage", "told"), [(0, 0), (1, 1), (4, 1), (5, 0), (100, 0)])
def test_a_low_percentage_of_nodes(percentage: int, told: int) -> None:
    whole = config(percentageOfNodesToScore=percentage)
    one = profile(percentageOfNodesToScore=percentage)
    assert found_in(whole) == [(top.SAMPLED_TOO_FEW, "percentageOfNodesToScore")] * told
    where = "profiles[0].percentageOfNodesToScore"
    assert found_in(one) == [(top.SAMPLED_TOO_FEW, where)] * told


def test_how_few_nodes_are_compared_is_told() -> None:
    (one,) = look(config(percentageOfNodesToScore=1))
    (four,) = look(config(percentageOfNodesToScore=4))
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
    ],
)
def test_extenders(change: dict[str, Any], reasons: list[str]) -> None:
    assert [each.reason for each in look(config(extenders=[{**CALM, **change}]))] == reasons


def test_an_extender_is_for_all_profiles() -> None:
    several = [{"schedulerName": name} for name in ("default-scheduler", "b", "c")]
    (warning,) = look(config(extenders=[CALM], profiles=several))
    assert (warning.reason, warning.path) == (ext.ALL_PROFILES, ("extenders", 0))
    assert "all 3 profiles" in warning.message
    assert look(config(extenders=[{**CALM, "managedResources": GPU}], profiles=several)) == []
    assert look(config(extenders=[CALM], profiles=several[:1])) == []


def test_a_bare_extender_has_all_three() -> None:
    found = found_in(config(extenders=[{"urlPrefix": "http://x", "filterVerb": "f"}]))
    assert sorted(found) == [
        (ext.LONG_TIMEOUT, "extenders[0].httpTimeout"),
        (ext.NOT_IGNORABLE, "extenders[0].ignorable"),
        (ext.WHOLE_NODES, "extenders[0].nodeCacheCapable"),
    ]

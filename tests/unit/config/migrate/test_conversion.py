"""A converted configuration runs the same plugins as the old one."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.effective_plugins import effective_plugins
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.migrate.convert import Conversion, convert

from .conversion_cases import CASES
from .conversions import LATER, Case, Ran, component, named, profile, sets

VERSIONS = ("1.29", "1.31", "1.34", "1.35", "1.36", "1.37")


def target(version: str = "1.35", *, stock: bool = True) -> Target:
    return Target(Gates(Version.parse(version)), stock=stock)


def converted(case: Case, version: str = "1.35") -> Conversion:
    return convert(case.document, target(version, stock=case.own), case.policy)


def weights(text: str) -> dict[str, int]:
    return {name: int(weight) for name, _, weight in (word.partition("=") for word in text.split())}


def arguments(converted_profile: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each["args"] for each in converted_profile.get("pluginConfig", ())}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CASES)
def test_the_same_runs_as_before(name: str, version: str) -> None:
    case = CASES[name]
    result = converted(case, version)
    assert result.problems == ()
    profiles = result.config.get("profiles") or [{}]
    for made, ran in zip(profiles, case.ran, strict=True):
        compare(made, ran, Gates(Version.parse(version)))
        assert arguments(made) == ran.config


def compare(made: dict[str, Any], ran: Ran, gates: Gates) -> None:
    runs = effective_plugins(made, gates).points
    old = {
        point: [entry for entry in entries if entry.name not in LATER]
        for point, entries in runs.items()
    }
    # Up to 1.31 the cloud limits are separate plugins beside NodeVolumeLimits, which counts.
    limits = {"EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"}
    assert {entry.name for entry in old["filter"]} - limits == {
        name for name in ran.filters.split() if name != "NodeVolumeLimits"
    } | ({"NodeVolumeLimits"} & {entry.name for entry in old["filter"]})
    if "NodeVolumeLimits" in ran.filters.split():
        assert {entry.name for entry in old["filter"]} & (limits | {"NodeVolumeLimits"})
    scores = {entry.name: entry.weight or 1 for entry in old["score"]}
    scores.pop("VolumeBinding", None)  # it scores behind a feature gate only
    assert scores == weights(ran.scores)
    for point in ("reserve", "preBind"):
        assert [entry.name for entry in old[point]] == ran.volumes.split()
    assert [entry.name for entry in old["postFilter"]] == ran.post_filters.split()
    assert [entry.name for entry in old["bind"]] == ran.binders.split()
    assert [entry.name for entry in old["queueSort"]] == ["PrioritySort"]
    dynamic = {point for point in runs if "DynamicResources" in {e.name for e in runs[point]}}
    if not ran.later:
        assert dynamic == set()
    elif gates.version.minor >= 34:
        assert {"preFilter", "filter", "reserve", "preBind"} <= dynamic


@pytest.mark.parametrize("name", CASES)
def test_plugins_that_score_or_filter_also_run_at_the_preparing_point(name: str) -> None:
    for made in converted(CASES[name]).config.get("profiles") or [{}]:
        runs = effective_plugins(made, target().gates).points
        at = {point: {entry.name for entry in runs[point]} for point in runs}
        since = at["preFilter"] & {"VolumeRestrictions", "VolumeZone", "NodeVolumeLimits"}
        assert since <= at["filter"]
        assert {"VolumeRestrictions"} & at["filter"] <= at["preFilter"]  # it fails without
        since = at["preScore"] & {"NodeResourcesFit", "NodeResourcesBalancedAllocation"}
        assert since <= at["score"]
        assert ("DefaultPreemption" in at["preEnqueue"]) == (
            "DefaultPreemption" in at["postFilter"]
        )


@pytest.mark.parametrize("name", CASES)
def test_a_plugin_runs_at_a_point_of_1_37_only_if_it_runs_at_the_one_before(name: str) -> None:
    for made in converted(CASES[name], "1.37").config.get("profiles") or [{}]:
        runs = effective_plugins(made, target("1.37").gates).points
        at = {point: {entry.name for entry in runs[point]} for point in runs}
        both = {"DefaultPreemption", "DynamicResources"}
        assert at["podGroupPostFilter"] & both == at["postFilter"] & both
        assert {"NodeName", "NodeUnschedulable"} & at["preFilter"] <= at["filter"]


@pytest.mark.parametrize("name", CASES)
def test_converting_twice_changes_nothing(name: str) -> None:
    case = CASES[name]
    once = converted(case)
    again = convert(once.config, target(stock=case.own))
    assert again.config == once.config
    assert again.changes == ()


@pytest.mark.parametrize("name", CASES)
def test_the_document_is_not_modified(name: str) -> None:
    case = CASES[name]
    before = copy.deepcopy((case.document, case.policy))
    converted(case)
    assert (case.document, case.policy) == before


def test_weights_are_only_set_where_they_differ() -> None:
    made = converted(CASES["v1beta2: nothing"]).config["profiles"]
    score = named("InterPodAffinity=1", "NodeAffinity=1", "TaintToleration=1")
    assert made == [{"plugins": {"score": {"enabled": score}}}]
    assert "profiles" not in converted(CASES["v1beta3: nothing"]).config


def test_lists_of_the_document_are_kept() -> None:
    lists = {
        "filter": sets("Mine VolumeZone", "VolumeZone"),
        "permit": sets("Mine", "*"),
        "score": sets("Mine=4 NodeAffinity=1 InterPodAffinity=1 TaintToleration=1"),
    }
    document = profile("v1beta2", name="mine", **lists)
    made = convert(document, target(stock=False)).config["profiles"][0]
    assert made == {"schedulerName": "mine", "plugins": lists}


def test_a_disabled_plugin_gets_no_new_extension_point() -> None:
    document = profile("v1beta2", filter=sets(disabled="VolumeZone"))
    made = convert(document, target()).config["profiles"][0]["plugins"]
    assert made["filter"] == sets(disabled="VolumeZone")
    assert made["multiPoint"] == sets(disabled="VolumeZone")


def test_later_plugins_are_not_added_to_closed_lists() -> None:
    document = profile("v1beta2", preFilter=sets("NodeResourcesFit", "*"))
    result = convert(document, target("1.36"))
    made = result.config["profiles"][0]["plugins"]
    assert named("DynamicResources", "NodeDeclaredFeatures") == made["multiPoint"]["disabled"]
    assert any("DynamicResources" in change.what for change in result.changes)


def test_later_plugins_disabled_by_name_stay_disabled() -> None:
    document = profile("v1beta2", preEnqueue=sets(disabled="SchedulingGates"))
    made = convert(document, target()).config["profiles"][0]
    names = [e.name for e in effective_plugins(made, target().gates).points["preEnqueue"]]
    assert names == ["DynamicResources", "DefaultPreemption"]


def test_profiles_are_converted_independently() -> None:
    document = component(
        "v1beta2",
        profiles=[
            {"schedulerName": "a", "plugins": {"score": sets("NodeAffinity=2")}},
            {"schedulerName": "b"},
        ],
    )
    first, second = convert(document, target()).config["profiles"]
    assert first["plugins"]["score"]["enabled"][0] == {"name": "NodeAffinity", "weight": 2}
    assert {"name": "NodeAffinity", "weight": 1} in second["plugins"]["score"]["enabled"]


def test_an_order_that_matters_is_kept() -> None:
    lists: dict[str, Any] = {"postFilter": sets("First DefaultPreemption", "DefaultPreemption")}
    made = convert(profile("v1beta2", **lists), target(stock=False)).config["profiles"][0]
    assert made["plugins"]["postFilter"] == lists["postFilter"]  # the list is explicit
    lists = {"multiPoint": sets("Later"), "bind": sets("DefaultBinder Mine", "*")}
    made = convert(profile("v1beta3", **lists), target(stock=False)).config["profiles"][0]
    names = [entry.name for entry in effective_plugins(made, target().gates).points["bind"]]
    assert names == ["DefaultBinder", "Mine"]

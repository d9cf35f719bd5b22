"""Which SchedulerProfiles a scheduler runs, and findings about the others."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.effective.profiles.validate import (
    ProfileResult,
    unattached_profiles,
    validate_profiles,
)
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.schema import API_VERSION, KIND
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version

from .....builders import profile

TARGET = Target(Gates(Version(1, 35)))
FIRST = {"schedulerName": "default-scheduler"}
PACKED = {
    "schedulerName": "default-scheduler",
    "pluginConfig": [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    ],
}
NO_SPREADING = {"name": "PodTopologySpread", "args": {"defaultingType": "List"}}
SPREADING = {"name": "PodTopologySpread", "args": {"defaultingType": "System"}}
ONLY_IMAGES = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}}
MISSPELT = {"score": {"enabled": [{"name": "ImageLocalty"}]}}
NO_BIND = {"bind": {"disabled": [{"name": "*"}]}}


def chosen(
    *objects: Any, scheduler: str = "", first: Any = None, target: Target = TARGET, over: Any = None
) -> tuple[list[str], dict[str, ProfileResult]]:
    profiles, results = validate_profiles(
        scheduler, objects, FIRST if first is None else first, target, over=over
    )
    return [p["schedulerName"] for p in profiles], {v.name: v for v in results}


def states(results: dict[str, ProfileResult]) -> dict[str, str]:
    return {
        name: "accepted" if v.accepted else "held" if v.uses_last_accepted else "left out"
        for name, v in results.items()
    }


def reported(result: ProfileResult) -> list[tuple[str, str]]:
    return [(f.reason, f.path.removeprefix(f"SchedulerProfile/{result.name} "))
            for f in result.findings]  # fmt: skip


# --- selection and order --------------------------------------------------------------------------


def test_without_objects_only_the_first_profile_is_used() -> None:
    profiles, results = validate_profiles("", (), FIRST, TARGET)
    assert results == ()
    assert len(profiles) == 1
    assert profiles[0] is FIRST


def test_default_scheduler_comes_first_and_the_others_by_name() -> None:
    order, results = chosen(
        profile("z"), profile("a", age=1), profile("m", schedulerName="b"), profile("0", age=9)
    )
    assert order == ["default-scheduler", "0", "a", "b", "z"]
    assert set(states(results).values()) == {"accepted"}


def test_objects_of_another_scheduler_are_ignored() -> None:
    objects = (profile("here"), profile("there", scheduler="second"))
    assert chosen(*objects)[0] == ["default-scheduler", "here"]
    order, results = chosen(*objects, scheduler="second", first={"schedulerName": "second"})
    assert order == ["second", "there"]
    assert set(results) == {"there"}


def test_a_scheduler_without_own_profiles_has_those_of_the_objects() -> None:
    order, _ = chosen(
        profile("b", scheduler="s"), profile("a", scheduler="s"), scheduler="s", first={}
    )
    assert order == ["a", "b"]
    assert chosen(scheduler="s", first={}) == ([], {})


@given(st.permutations(range(4)))
def test_the_result_does_not_depend_on_the_order_of_the_objects(order: list[int]) -> None:
    objects = [
        profile("a", age=3, schedulerName="x"),
        profile("b", age=7, schedulerName="x"),
        profile("c", plugins=MISSPELT),
        profile("d", schedulerName="default-scheduler", plugins=ONLY_IMAGES),
    ]
    expected = validate_profiles("", objects, FIRST, TARGET)
    assert validate_profiles("", [objects[i] for i in order], FIRST, TARGET) == expected


def test_validation_does_not_change_its_input() -> None:
    objects = [profile("a", plugins=ONLY_IMAGES, base="HighNodeUtilization"), profile("b")]
    before = copy.deepcopy((objects, FIRST))
    validate_profiles(
        "", objects, FIRST, TARGET, over={"profiles": [{"percentageOfNodesToScore": 3}]}
    )
    assert (objects, FIRST) == before


# --- the base -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "base", "packed"),
    [
        ("default-scheduler", None, True),
        ("default-scheduler", "", True),
        ("default-scheduler", "LowNodeUtilization", False),
        ("default-scheduler", "None", False),
        ("team", None, False),
        ("team", "HighNodeUtilization", True),
        ("team", "BinPacking", True),
    ],
)
def test_the_base_of_a_profile(name: str, base: str | None, packed: bool) -> None:
    spec = {} if base is None else {"base": base}
    profiles, _ = validate_profiles(
        "", [profile(name, percentageOfNodesToScore=7, **spec)], PACKED, TARGET
    )
    (mine,) = (p for p in profiles if p["schedulerName"] == name)
    assert mine["percentageOfNodesToScore"] == 7
    arguments = {c["name"]: c["args"] for c in mine.get("pluginConfig", ())}
    strategy = arguments.get("NodeResourcesFit", {}).get("scoringStrategy", {}).get("type")
    assert strategy == ("MostAllocated" if packed else None)


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ({"base": "BinPacking"}, []),
        ({"base": "HighNodeUtilization"}, [("OutvotedStrategy", "spec.base")]),
        ({"base": "HighNodeUtilization", "pluginConfig": [NO_SPREADING]}, []),
        ({"base": "BinPacking", "pluginConfig": [SPREADING]}, [("OutvotedStrategy", "spec.base")]),
        (
            {"pluginConfig": PACKED["pluginConfig"]},
            [("OutvotedStrategy", "spec.pluginConfig[0].args.scoringStrategy.type")],
        ),
    ],
)
def test_a_base_that_hardly_packs_is_reported_at_its_field(spec: Any, warned: Any) -> None:
    _, results = chosen(profile("p", **spec))
    assert states(results) == {"p": "accepted"}
    found = [(each.reason, each.path.partition(" ")[2]) for each in results["p"].warnings]
    assert found == warned


def test_arguments_merge_by_plugin_and_lists_replace_those_of_the_base() -> None:
    spec = {
        "base": "HighNodeUtilization",
        "pluginConfig": [
            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}},
            {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/x"]}},
        ],
        "plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}},
    }
    (_, mine), (result,) = validate_profiles("", [profile("team", **spec)], FIRST, TARGET)
    arguments = {c["name"]: c["args"] for c in mine["pluginConfig"]}
    assert arguments["NodeResourcesFit"] == {
        "scoringStrategy": {"type": "MostAllocated"},
        "ignoredResources": ["example.com/x"],
    }
    assert mine["plugins"]["score"] == {
        "enabled": [{"name": "ImageLocality", "weight": 9}],
        "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
    }
    weights = {entry.name: entry.weight for entry in result.points["score"]}
    assert weights["ImageLocality"] == 9
    assert "NodeResourcesBalancedAllocation" not in weights


# --- shared names ---------------------------------------------------------------------------------


def test_the_older_object_keeps_a_shared_name_and_the_other_reports_it() -> None:
    _, results = chosen(
        profile("young", age=1, schedulerName="x"), profile("old", age=9, schedulerName="x")
    )
    assert states(results) == {"old": "accepted", "young": "left out"}
    (finding,) = results["young"].findings
    assert finding.path == "SchedulerProfile/young spec.schedulerName"
    assert 'the older SchedulerProfile "old" has' in finding.message
    assert (finding.condition, finding.blocking) == (names.SCHEDULER_PROFILES_DEGRADED, False)


def test_between_objects_of_equal_age_the_name_decides() -> None:
    _, results = chosen(profile("b", schedulerName="x"), profile("a", schedulerName="x"))
    assert states(results) == {"a": "accepted", "b": "left out"}


def test_an_invalid_older_object_does_not_reserve_its_name() -> None:
    _, results = chosen(
        profile("old", age=9, schedulerName="x", plugins=MISSPELT),
        profile("young", schedulerName="x"),
    )
    assert states(results) == {"old": "left out", "young": "accepted"}


def test_the_last_accepted_version_reserves_its_name() -> None:
    _, results = chosen(
        profile("old", age=9, accepted={"schedulerName": "x"}, schedulerName="y", plugins=MISSPELT),
        profile("young", schedulerName="x"),
    )
    assert states(results) == {"old": "held", "young": "left out"}


def test_only_one_object_replaces_the_first_profile() -> None:
    order, results = chosen(
        profile("one", schedulerName="default-scheduler"),
        profile("two", age=1, schedulerName="default-scheduler"),
    )
    assert order == ["default-scheduler"]
    assert states(results) == {"one": "accepted", "two": "left out"}


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "reason", "path"),
    [
        ({"plugins": MISSPELT}, "UnknownPlugin", "spec.plugins.score.enabled[0].name"),
        (
            {"plugins": {"filter": {"enabled": [{"name": "ImageLocality"}]}}},
            "WrongExtensionPoint",
            "spec.plugins.filter.enabled[0].name",
        ),
        ({"plugins": NO_BIND}, "InvalidProfile", "spec.plugins.bind"),
        (
            {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoring": {}}}]},
            "UnknownField",
            "spec.pluginConfig[0].args.scoring",
        ),
        (
            {
                "pluginConfig": [
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}
                ]
            },
            None,
            "spec.pluginConfig[0].args.hardPodAffinityWeight",
        ),
        ({"percentageOfNodesToScore": 101}, None, "spec.percentageOfNodesToScore"),
        (
            {"plugins": {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}},
            "InvalidProfile",
            "spec.plugins.queueSort",
        ),
        (
            {"pluginConfig": [{"name": "PrioritySort", "args": {"x": 1}}]},
            "InvalidProfile",
            "spec.plugins.queueSort",
        ),
        (
            {"plugins": {"placementScore": {"enabled": [{"name": "NodeResourcesFit"}]}}},
            "UnknownField",
            "spec.plugins.placementScore",
        ),
        ({"base": "HighUtilization"}, "UnknownProfile", "spec.base"),
        ({"schedulerName": 5}, "InvalidType", "spec.schedulerName"),
        ({"plugin": {}}, "UnknownField", "spec.plugin"),
        ({"plugins": []}, "InvalidType", "spec.plugins"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("spec.") else "",
)
def test_an_invalid_profile_is_reported_with_its_field_and_omitted(
    spec: dict[str, Any], reason: str | None, path: str
) -> None:
    order, results = chosen(profile("bad", **spec), profile("good", plugins=ONLY_IMAGES))
    assert order == ["default-scheduler", "good"]
    assert states(results) == {"bad": "left out", "good": "accepted"}
    found_reason, found_path = reported(results["bad"])[0]
    assert found_path == path
    assert reason in (None, found_reason)


def test_the_path_of_arguments_is_that_in_the_object() -> None:
    """The entry of the base comes first in the composed list."""
    arguments = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": -1}}
    _, results = chosen(profile("p", base="HighNodeUtilization", pluginConfig=[arguments]))
    assert reported(results["p"])[0][1] == "spec.pluginConfig[0].args.hardPodAffinityWeight"


def test_after_an_invalid_edit_the_last_accepted_version_is_used() -> None:
    accepted = {"plugins": ONLY_IMAGES}
    profiles, (result,) = validate_profiles(
        "", [profile("team", age=5, accepted=accepted, plugins=MISSPELT)], FIRST, TARGET
    )
    assert profiles[1]["plugins"] == ONLY_IMAGES
    assert (result.uses_last_accepted, result.spec) == (True, accepted)
    assert [entry.name for entry in result.points["score"]] == ["ImageLocality"]
    assert reported(result) == [("UnknownPlugin", "spec.plugins.score.enabled[0].name")]


def test_the_last_accepted_version_is_validated_for_the_current_kube_scheduler() -> None:
    accepted = {"plugins": {"placementScore": {"enabled": [{"name": "NodeResourcesFit"}]}}}
    obj = profile("team", age=5, accepted=accepted, plugins=MISSPELT)
    _, newer = chosen(obj, target=Target(Gates(Version(1, 36))))
    assert states(newer) == {"team": "held"}
    _, older = chosen(obj)
    assert states(older) == {"team": "left out"}
    assert [path for _, path in reported(older["team"])][:2] == [
        "spec.plugins.score.enabled[0].name",
        "status.accepted.plugins.placementScore",
    ]


def test_an_error_in_both_versions_is_reported_once() -> None:
    _, results = chosen(
        profile("p", age=5, accepted={"plugins": MISSPELT}, plugins=MISSPELT, base="None")
    )
    assert reported(results["p"]) == [("UnknownPlugin", "spec.plugins.score.enabled[0].name")]


def test_an_unknown_plugin_is_accepted_for_a_custom_image() -> None:
    spec = {"plugins": {"score": {"enabled": [{"name": "MyCustomPluginA"}]}}}
    assert states(chosen(profile("p", **spec))[1]) == {"p": "left out"}
    custom = Target(Gates(Version(1, 35)), stock=False)
    assert states(chosen(profile("p", **spec), target=custom)[1]) == {"p": "accepted"}


# --- one queue ------------------------------------------------------------------------------------
SORTED = {"queueSort": {"enabled": [{"name": "PrioritySort"}], "disabled": [{"name": "*"}]}}


def test_all_profiles_share_the_queue_of_the_replaced_first_profile() -> None:
    order, results = chosen(
        profile("first", schedulerName="default-scheduler", plugins=SORTED),
        profile("same", plugins=SORTED),
        profile("other", age=9),
    )
    assert order == ["default-scheduler", "same"]
    assert states(results) == {"first": "accepted", "same": "accepted", "other": "left out"}


def test_the_queue_is_that_of_the_first_profile_after_the_overrides() -> None:
    over = {"profiles": [{"plugins": SORTED}]}
    objects = (profile("same", plugins=SORTED), profile("other"))
    assert states(chosen(*objects, over=over)[1]) == {"same": "accepted", "other": "left out"}
    assert states(chosen(*objects)[1]) == {"same": "left out", "other": "accepted"}


# --- overrides ------------------------------------------------------------------------------------


def test_an_error_in_the_overrides_is_not_attributed_to_a_profile() -> None:
    for over in (
        {"profiles": [{"schedulerName": "team", "plugins": NO_BIND}]},
        {"profiles": [{"schedulerName": "foreign", "plugins": MISSPELT}]},
        {"profiles": [{"plugins": {"score": {"enabled": 5}}}]},
        {"profiles": "nonsense", "extenders": 7},
    ):
        assert states(chosen(profile("team"), over=over)[1]) == {"team": "accepted"}
        bad = profile("team", plugins=MISSPELT)
        assert states(chosen(bad, over=over)[1]) == {"team": "left out"}, over


def test_every_profile_must_meet_the_requirements_of_extenders_in_the_overrides() -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    over = {
        "extenders": [{"urlPrefix": "http://x", "filterVerb": "f", "managedResources": managed}]
    }
    fit = {"filter": {"enabled": [{"name": "NodeResourcesFit"}]}}
    without = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [
        {"name": "PrioritySort"}, {"name": "DefaultBinder"}]}}  # fmt: skip
    objects = (profile("fit", plugins=fit), profile("without", plugins=without))
    assert states(chosen(*objects, over=over)[1]) == {"fit": "accepted", "without": "left out"}


def test_the_plugin_table_includes_the_overrides() -> None:
    over = {"profiles": [{"schedulerName": "team", "plugins": ONLY_IMAGES}]}
    _, results = chosen(profile("team"), over=over)
    assert [entry.name for entry in results["team"].points["score"]] == ["ImageLocality"]


# --- moves between schedulers ---------------------------------------------------------------------


def test_a_moving_profile_stays_until_the_other_scheduler_accepts_it() -> None:
    moving = profile(
        "team", age=5, accepted={"scheduler": "", "percentageOfNodesToScore": 5}, scheduler="second"
    )
    order, results = chosen(moving)
    assert order == ["default-scheduler", "team"]
    assert results == {}, "the other scheduler's result counts"
    assert states(chosen(moving, scheduler="second")[1]) == {"team": "accepted"}
    moved = profile("team", age=5, accepted={"scheduler": "second"}, scheduler="second")
    assert chosen(moved)[0] == ["default-scheduler"]


def test_a_profile_of_a_missing_scheduler_is_reported() -> None:
    objects = (
        profile("new", scheduler="missing"),
        profile("held", age=5, accepted={}, scheduler="missing"),
        profile("fine", scheduler="second"),
        profile("ours"),
    )
    results = {v.name: v for v in unattached_profiles(objects, ("", "second"))}
    assert states(results) == {"new": "left out", "held": "held"}
    assert reported(results["new"]) == [("SchedulerNotFound", "spec.scheduler")]
    assert 'SecondaryScheduler "missing" does not exist' in results["new"].findings[0].message


# --- properties ----------------------------------------------------------------------------------
POOL: list[dict[str, Any]] = [
    {},
    {"plugins": ONLY_IMAGES},
    {"plugins": MISSPELT},
    {"plugins": SORTED},
    {"plugins": NO_BIND, "base": "NoScoring"},
    {"schedulerName": "default-scheduler"},
    {"schedulerName": "default-scheduler", "plugins": SORTED},
    {"schedulerName": "x"},
    {"schedulerName": "x", "percentageOfNodesToScore": 300},
    {"schedulerName": "x", "base": "HighNodeUtilization"},
]


@given(st.lists(st.tuples(*[st.sampled_from(POOL)] * 2, st.integers(0, 3)), max_size=5))
def test_any_set_of_profiles_results_in_a_valid_configuration(
    drawn: list[tuple[dict[str, Any], dict[str, Any], int]],
) -> None:
    objects = [
        profile(f"p{i}", age=age, accepted=accepted, **spec)
        for i, (spec, accepted, age) in enumerate(drawn)
    ]
    profiles, results = validate_profiles("", objects, FIRST, TARGET)
    config = {"apiVersion": API_VERSION, "kind": KIND, "profiles": list(profiles)}
    assert validate_config(config, TARGET) == []
    assert profiles[0]["schedulerName"] == "default-scheduler"
    assert [v.name for v in results] == [f"p{i}" for i in range(len(drawn))]
    running = [v.spec.get("schedulerName") or v.name for v in results if v.spec is not None]
    assert len(running) == len(set(running))
    served = {p["schedulerName"] for p in profiles}
    assert served == {*running, "default-scheduler"}
    assert all(v.findings for v in results if not v.accepted)


def test_results_are_cached_by_all_their_inputs() -> None:
    """Interleaved calls with different arguments get different results."""
    spec = {"plugins": {"placementScore": {"enabled": [{"name": "NodeResourcesFit"}]}}}
    targets = [Target(Gates(Version(1, minor))) for minor in (35, 36)]
    over = [None, {"profiles": [{"plugins": SORTED}]}]
    for target, overlay in [*itertools.product(targets, over)] * 2:
        _, results = chosen(profile("p", **spec), target=target, over=overlay)
        expected = "accepted" if target.minor == 36 and overlay is None else "left out"
        assert states(results) == {"p": expected}


def test_the_last_accepted_version_does_not_replace_the_first_profile_afterwards() -> None:
    """An older object, which shares the queue of the first profile, has the new name already."""
    order, results = chosen(
        profile("a", age=9, accepted={"schedulerName": "x"}, plugins=MISSPELT),
        profile(
            "b",
            age=5,
            accepted={"schedulerName": "default-scheduler", "plugins": SORTED},
            schedulerName="x",
        ),
    )
    assert order == ["default-scheduler", "x"]
    assert states(results) == {"a": "held", "b": "left out"}

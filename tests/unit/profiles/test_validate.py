"""Which SchedulerProfiles a scheduler is given, and what is said of the others."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base import names
from kube_scheduler_operator.profiles.validate import Verdict, profiles_of, unclaimed
from kube_scheduler_operator.schedulerconfig.check import Target, check_config
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.schema import API_VERSION, KIND
from kube_scheduler_operator.schedulerconfig.versions import Version

TARGET = Target(Gates(Version(1, 35)))
FIRST = {"schedulerName": "default-scheduler"}
PACKED = {
    "schedulerName": "default-scheduler",
    "pluginConfig": [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    ],
}
ONLY_IMAGES = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}}
MISSPELT = {"score": {"enabled": [{"name": "ImageLocalty"}]}}
NO_BIND = {"bind": {"disabled": [{"name": "*"}]}}


def profile(name: str, age: int = 5, accepted: Any = None, /, **spec: Any) -> dict[str, Any]:
    """An object that is `age` days old."""
    created = f"2026-01-{20 - age:02}T00:00:00Z"
    obj = {"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}
    return obj if accepted is None else {**obj, "status": {"accepted": accepted}}


def chosen(
    *objects: Any, scheduler: str = "", first: Any = None, target: Target = TARGET, over: Any = None
) -> tuple[list[str], dict[str, Verdict]]:
    profiles, verdicts = profiles_of(
        scheduler, objects, FIRST if first is None else first, target, over=over
    )
    return [p["schedulerName"] for p in profiles], {v.name: v for v in verdicts}


def states(verdicts: dict[str, Verdict]) -> dict[str, str]:
    return {
        name: "accepted" if v.accepted else "held" if v.held else "left out"
        for name, v in verdicts.items()
    }


def said(verdict: Verdict) -> list[tuple[str, str]]:
    return [(f.reason, f.path.removeprefix(f"SchedulerProfile/{verdict.name} "))
            for f in verdict.findings]  # fmt: skip


# --- which, and in which order --------------------------------------------------------------------


def test_without_objects_the_first_profile_is_all_and_it_is_the_same() -> None:
    profiles, verdicts = profiles_of("", (), FIRST, TARGET)
    assert verdicts == ()
    assert len(profiles) == 1
    assert profiles[0] is FIRST


def test_the_default_scheduler_comes_first_and_the_others_by_name() -> None:
    order, verdicts = chosen(
        profile("z"), profile("a", 1), profile("m", schedulerName="b"), profile("0", 9)
    )
    assert order == ["default-scheduler", "0", "a", "b", "z"]
    assert set(states(verdicts).values()) == {"accepted"}


def test_objects_of_another_scheduler_are_not_this_ones_business() -> None:
    objects = (profile("here"), profile("there", scheduler="second"))
    assert chosen(*objects)[0] == ["default-scheduler", "here"]
    order, verdicts = chosen(*objects, scheduler="second", first={"schedulerName": "second"})
    assert order == ["second", "there"]
    assert set(verdicts) == {"there"}


def test_a_scheduler_without_a_profile_of_its_own_has_those_of_the_objects() -> None:
    order, _ = chosen(
        profile("b", scheduler="s"), profile("a", scheduler="s"), scheduler="s", first={}
    )
    assert order == ["a", "b"]
    assert chosen(scheduler="s", first={}) == ([], {})


@given(st.permutations(range(4)))
def test_the_order_in_which_objects_are_read_does_not_matter(order: list[int]) -> None:
    objects = [
        profile("a", 3, schedulerName="x"),
        profile("b", 7, schedulerName="x"),
        profile("c", plugins=MISSPELT),
        profile("d", schedulerName="default-scheduler", plugins=ONLY_IMAGES),
    ]
    expected = profiles_of("", objects, FIRST, TARGET)
    assert profiles_of("", [objects[i] for i in order], FIRST, TARGET) == expected


def test_nothing_that_was_given_is_changed() -> None:
    objects = [profile("a", plugins=ONLY_IMAGES, base="HighNodeUtilization"), profile("b")]
    before = copy.deepcopy((objects, FIRST))
    profiles_of("", objects, FIRST, TARGET, over={"profiles": [{"percentageOfNodesToScore": 3}]})
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
    ],
)
def test_what_a_profile_is_laid_over(name: str, base: str | None, packed: bool) -> None:
    spec = {} if base is None else {"base": base}
    profiles, _ = profiles_of(
        "", [profile(name, percentageOfNodesToScore=7, **spec)], PACKED, TARGET
    )
    (mine,) = (p for p in profiles if p["schedulerName"] == name)
    assert mine["percentageOfNodesToScore"] == 7
    strategies = [c["args"]["scoringStrategy"]["type"] for c in mine.get("pluginConfig", ())]
    assert strategies == (["MostAllocated"] if packed else [])


def test_arguments_merge_by_plugin_and_lists_replace_those_of_the_base() -> None:
    spec = {
        "base": "HighNodeUtilization",
        "pluginConfig": [
            {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}},
            {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/x"]}},
        ],
        "plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}},
    }
    (_, mine), (verdict,) = profiles_of("", [profile("team", **spec)], FIRST, TARGET)
    arguments = {c["name"]: c["args"] for c in mine["pluginConfig"]}
    assert arguments["NodeResourcesFit"] == {
        "scoringStrategy": {"type": "MostAllocated"},
        "ignoredResources": ["example.com/x"],
    }
    assert mine["plugins"]["score"] == {
        "enabled": [{"name": "ImageLocality", "weight": 9}],
        "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
    }
    weights = {entry.name: entry.weight for entry in verdict.points["score"]}
    assert weights["ImageLocality"] == 9
    assert "NodeResourcesBalancedAllocation" not in weights


# --- who has a name -------------------------------------------------------------------------------


def test_of_two_with_one_name_the_older_object_has_it_and_the_other_says_so() -> None:
    _, verdicts = chosen(
        profile("young", 1, schedulerName="x"), profile("old", 9, schedulerName="x")
    )
    assert states(verdicts) == {"old": "accepted", "young": "left out"}
    (finding,) = verdicts["young"].findings
    assert finding.path == "SchedulerProfile/young spec.schedulerName"
    assert 'SchedulerProfile "old" is older' in finding.message
    assert (finding.condition, finding.blocking) == (names.SCHEDULER_PROFILES_DEGRADED, False)


def test_of_two_of_the_same_age_the_name_decides() -> None:
    _, verdicts = chosen(profile("b", schedulerName="x"), profile("a", schedulerName="x"))
    assert states(verdicts) == {"a": "accepted", "b": "left out"}


def test_an_older_object_that_cannot_run_leaves_the_name_to_the_younger_one() -> None:
    _, verdicts = chosen(
        profile("old", 9, schedulerName="x", plugins=MISSPELT),
        profile("young", schedulerName="x"),
    )
    assert states(verdicts) == {"old": "left out", "young": "accepted"}


def test_a_name_that_a_held_version_has_is_taken() -> None:
    _, verdicts = chosen(
        profile("old", 9, {"schedulerName": "x"}, schedulerName="y", plugins=MISSPELT),
        profile("young", schedulerName="x"),
    )
    assert states(verdicts) == {"old": "held", "young": "left out"}


def test_one_replaces_the_first_profile_and_a_second_one_does_not() -> None:
    order, verdicts = chosen(
        profile("one", schedulerName="default-scheduler"),
        profile("two", 1, schedulerName="default-scheduler"),
    )
    assert order == ["default-scheduler"]
    assert states(verdicts) == {"one": "accepted", "two": "left out"}


# --- what is wrong --------------------------------------------------------------------------------


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
def test_a_mistake_is_named_with_its_field_and_the_others_go_on(
    spec: dict[str, Any], reason: str | None, path: str
) -> None:
    order, verdicts = chosen(profile("bad", **spec), profile("good", plugins=ONLY_IMAGES))
    assert order == ["default-scheduler", "good"]
    assert states(verdicts) == {"bad": "left out", "good": "accepted"}
    found_reason, found_path = said(verdicts["bad"])[0]
    assert found_path == path
    assert reason in (None, found_reason)


def test_a_path_of_arguments_counts_in_the_object_and_not_in_the_base() -> None:
    """The base's own entry comes first in what is composed."""
    arguments = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": -1}}
    _, verdicts = chosen(profile("p", base="HighNodeUtilization", pluginConfig=[arguments]))
    assert said(verdicts["p"])[0][1] == "spec.pluginConfig[0].args.hardPodAffinityWeight"


def test_a_bad_one_is_held_at_the_version_that_was_accepted_last() -> None:
    accepted = {"plugins": ONLY_IMAGES}
    profiles, (verdict,) = profiles_of(
        "", [profile("team", 5, accepted, plugins=MISSPELT)], FIRST, TARGET
    )
    assert profiles[1]["plugins"] == ONLY_IMAGES
    assert (verdict.held, verdict.spec) == (True, accepted)
    assert [entry.name for entry in verdict.points["score"]] == ["ImageLocality"]
    assert said(verdict) == [("UnknownPlugin", "spec.plugins.score.enabled[0].name")]


def test_what_was_accepted_by_another_version_of_kube_scheduler_is_judged_again() -> None:
    accepted = {"plugins": {"placementScore": {"enabled": [{"name": "NodeResourcesFit"}]}}}
    obj = profile("team", 5, accepted, plugins=MISSPELT)
    _, newer = chosen(obj, target=Target(Gates(Version(1, 36))))
    assert states(newer) == {"team": "held"}
    _, older = chosen(obj)
    assert states(older) == {"team": "left out"}
    assert [path for _, path in said(older["team"])][:2] == [
        "spec.plugins.score.enabled[0].name",
        "status.accepted.plugins.placementScore",
    ]


def test_the_same_mistake_in_both_versions_is_told_once() -> None:
    _, verdicts = chosen(profile("p", 5, {"plugins": MISSPELT}, plugins=MISSPELT, base="None"))
    assert said(verdicts["p"]) == [("UnknownPlugin", "spec.plugins.score.enabled[0].name")]


def test_a_plugin_that_only_a_custom_image_can_know_is_accepted_for_one() -> None:
    spec = {"plugins": {"score": {"enabled": [{"name": "MyCustomPluginA"}]}}}
    assert states(chosen(profile("p", **spec))[1]) == {"p": "left out"}
    custom = Target(Gates(Version(1, 35)), stock=False)
    assert states(chosen(profile("p", **spec), target=custom)[1]) == {"p": "accepted"}


# --- one queue ------------------------------------------------------------------------------------
SORTED = {"queueSort": {"enabled": [{"name": "PrioritySort"}], "disabled": [{"name": "*"}]}}


def test_all_share_the_queue_of_what_replaces_the_first_profile() -> None:
    order, verdicts = chosen(
        profile("first", schedulerName="default-scheduler", plugins=SORTED),
        profile("same", plugins=SORTED),
        profile("other", 9),
    )
    assert order == ["default-scheduler", "same"]
    assert states(verdicts) == {"first": "accepted", "same": "accepted", "other": "left out"}


def test_the_queue_is_that_of_the_first_profile_with_the_overrides_over_it() -> None:
    over = {"profiles": [{"plugins": SORTED}]}
    objects = (profile("same", plugins=SORTED), profile("other"))
    assert states(chosen(*objects, over=over)[1]) == {"same": "accepted", "other": "left out"}
    assert states(chosen(*objects)[1]) == {"same": "left out", "other": "accepted"}


# --- overrides ------------------------------------------------------------------------------------


def test_a_mistake_of_the_overrides_is_not_blamed_on_an_object() -> None:
    for over in (
        {"profiles": [{"schedulerName": "team", "plugins": NO_BIND}]},
        {"profiles": [{"schedulerName": "somebody-elses", "plugins": MISSPELT}]},
        {"profiles": [{"plugins": {"score": {"enabled": 5}}}]},
        {"profiles": "nonsense", "extenders": 7},
    ):
        assert states(chosen(profile("team"), over=over)[1]) == {"team": "accepted"}
        bad = profile("team", plugins=MISSPELT)
        assert states(chosen(bad, over=over)[1]) == {"team": "left out"}, over


def test_what_extenders_of_the_overrides_need_is_asked_of_every_profile() -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    over = {
        "extenders": [{"urlPrefix": "http://x", "filterVerb": "f", "managedResources": managed}]
    }
    fit = {"filter": {"enabled": [{"name": "NodeResourcesFit"}]}}
    without = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [
        {"name": "PrioritySort"}, {"name": "DefaultBinder"}]}}  # fmt: skip
    objects = (profile("fit", plugins=fit), profile("without", plugins=without))
    assert states(chosen(*objects, over=over)[1]) == {"fit": "accepted", "without": "left out"}


def test_the_table_is_that_of_what_runs_in_the_end() -> None:
    over = {"profiles": [{"schedulerName": "team", "plugins": ONLY_IMAGES}]}
    _, verdicts = chosen(profile("team"), over=over)
    assert [entry.name for entry in verdicts["team"].points["score"]] == ["ImageLocality"]


# --- from one scheduler to another ----------------------------------------------------------------


def test_one_that_moves_stays_until_the_other_scheduler_has_accepted_it() -> None:
    moving = profile(
        "team", 5, {"scheduler": "", "percentageOfNodesToScore": 5}, scheduler="second"
    )
    order, verdicts = chosen(moving)
    assert order == ["default-scheduler", "team"]
    assert verdicts == {}, "the other one's verdict counts"
    assert states(chosen(moving, scheduler="second")[1]) == {"team": "accepted"}
    moved = profile("team", 5, {"scheduler": "second"}, scheduler="second")
    assert chosen(moved)[0] == ["default-scheduler"]


def test_a_scheduler_that_does_not_exist_is_named() -> None:
    objects = (
        profile("new", scheduler="nobody"),
        profile("held", 5, {}, scheduler="nobody"),
        profile("fine", scheduler="second"),
        profile("ours"),
    )
    verdicts = {v.name: v for v in unclaimed(objects, ("", "second"))}
    assert states(verdicts) == {"new": "left out", "held": "held"}
    assert said(verdicts["new"]) == [("SchedulerNotFound", "spec.scheduler")]
    assert 'no SecondaryScheduler "nobody"' in verdicts["new"].findings[0].message


# --- the whole ------------------------------------------------------------------------------------
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
def test_whatever_is_written_the_outcome_can_run(
    drawn: list[tuple[dict[str, Any], dict[str, Any], int]],
) -> None:
    objects = [
        profile(f"p{i}", age, accepted, **spec) for i, (spec, accepted, age) in enumerate(drawn)
    ]
    profiles, verdicts = profiles_of("", objects, FIRST, TARGET)
    config = {"apiVersion": API_VERSION, "kind": KIND, "profiles": list(profiles)}
    assert check_config(config, TARGET) == []
    assert profiles[0]["schedulerName"] == "default-scheduler"
    assert [v.name for v in verdicts] == [f"p{i}" for i in range(len(drawn))]
    running = [v.spec.get("schedulerName") or v.name for v in verdicts if v.spec is not None]
    assert len(running) == len(set(running))
    served = {p["schedulerName"] for p in profiles}
    assert served == {*running, "default-scheduler"}
    assert all(v.findings for v in verdicts if not v.accepted)


def test_a_judgement_is_kept_by_what_it_depends_on() -> None:
    """Whatever is asked in between: each of these has another answer."""
    spec = {"plugins": {"placementScore": {"enabled": [{"name": "NodeResourcesFit"}]}}}
    targets = [Target(Gates(Version(1, minor))) for minor in (35, 36)]
    over = [None, {"profiles": [{"plugins": SORTED}]}]
    for target, overlay in [*itertools.product(targets, over)] * 2:
        _, verdicts = chosen(profile("p", **spec), target=target, over=overlay)
        expected = "accepted" if target.minor == 36 and overlay is None else "left out"
        assert states(verdicts) == {"p": expected}


def test_a_remembered_version_does_not_become_the_first_one_after_the_others_were_judged() -> None:
    """Its own new name is taken by an older object, which shares the queue of the first one."""
    order, verdicts = chosen(
        profile("a", 9, {"schedulerName": "x"}, plugins=MISSPELT),
        profile(
            "b", 5, {"schedulerName": "default-scheduler", "plugins": SORTED}, schedulerName="x"
        ),
    )
    assert order == ["default-scheduler", "x"]
    assert states(verdicts) == {"a": "held", "b": "left out"}

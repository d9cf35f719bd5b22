"""Which SchedulerProfile kube-scheduler's own words are about, and where in it."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.findings import Finding
from kube_scheduler_operator.profiles.attribution import attribute, relocated
from kube_scheduler_operator.profiles.validate import Verdict, profiles_of
from kube_scheduler_operator.schedulerconfig.check import Target
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.versions import Version

TARGET = Target(Gates(Version(1, 35)), stock=False)
FIRST = {"schedulerName": "default-scheduler"}
SPEC = {
    "base": "HighNodeUtilization",  # it brings arguments of NodeResourcesFit, which come first
    "plugins": {"score": {"enabled": [{"name": "Mine"}, {"name": "ImageLocality", "weight": 5}]}},
    "pluginConfig": [
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 10}},
        {"name": "Mine", "args": {"resources": [{"name": "cpu", "weight": 500}]}},
    ],
}


def given(**more: Any) -> tuple[list[Any], tuple[Verdict, ...]]:
    objects = [
        {"metadata": {"name": "a"}, "spec": {"plugins": {}}},
        {"metadata": {"name": "guilty"}, "spec": {"schedulerName": "team-a.x", **SPEC}, **more},
    ]
    profiles, verdicts = profiles_of("", objects, FIRST, TARGET)
    assert [profile["schedulerName"] for profile in profiles] == [
        "default-scheduler", "a", "team-a.x",
    ]  # fmt: skip
    return list(profiles), verdicts


def blamed(words: str, **more: Any) -> dict[str, list[str]]:
    """name -> the fields that it is told to mend."""
    profiles, verdicts = given(**more)
    found = attribute(verdicts, words, profiles, profiles, "it was refused")
    return {
        v.name: [f.path.removeprefix(f"SchedulerProfile/{v.name} ") for f in v.findings]
        for v in found
        if v.findings
    }


@pytest.mark.parametrize(
    ("words", "field"),
    [
        pytest.param(
            "profiles[2].pluginConfig[1].args.hardPodAffinityWeight: Invalid value: 101: not in "
            "valid range [0, 100]",
            "spec.pluginConfig[0].args.hardPodAffinityWeight",
            id="validation: the index is that of the object",
        ),
        pytest.param(
            'strict decoding error: unknown field "profiles[2].plugins.scores"',
            "spec.plugins.scores",
            id="unknown field",
        ),
        pytest.param(
            "strict decoding error: decoding .profiles[2].pluginConfig[1]: strict decoding error: "
            'decoding args for plugin InterPodAffinity: strict decoding error: unknown field "h"',
            "spec.pluginConfig[0]",
            id="unknown argument",
        ),
        pytest.param(
            "profiles[2].schedulerName: Duplicate value: {}", "spec.schedulerName", id="name"
        ),
        pytest.param(
            "initializing profiles: creating profile for scheduler name team-a.x: initializing "
            'plugin "Mine": resources[0].weight: Invalid value: 500: not in valid range (0, 100]',
            "spec.pluginConfig[1].args.resources[0].weight",
            id="built: the field is in the arguments of the plugin",
        ),
        pytest.param(
            "initializing profiles: creating profile for scheduler name team-a.x: initializing "
            'plugin "Mine": no server at http://example.com: refused',
            "spec.plugins.score.enabled[0].name",
            id="built: what a plugin says freely",
        ),
        pytest.param(
            "initializing profiles: creating profile for scheduler name team-a.x: ScorePlugin "
            '"Mine" does not exist',
            "spec.plugins.score.enabled[0].name",
            id="no such plugin",
        ),
        pytest.param(
            "initializing profiles: creating profile for scheduler name team-a.x: at least one "
            'bind plugin is needed for profile with scheduler name "team-a.x"',
            "spec",
            id="the profile as a whole",
        ),
    ],
)
def test_the_object_and_its_field_are_found(words: str, field: str) -> None:
    assert blamed(words) == {"guilty": [field]}
    crash = f'pod x crashes: container "kube-scheduler": {words}'
    assert blamed(crash) == {"guilty": [field]}, "words in words"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "profiles[0].percentageOfNodesToScore: Invalid value: 101",  # nobody's object
        "profiles[7].percentageOfNodesToScore: Invalid value: 101",
        "creating profile for scheduler name somebody-elses: no",
        "leaderElection.renewDeadline: Invalid value",
        "panic: runtime error",
    ],
)
def test_what_names_none_of_them_is_blamed_on_none(words: str) -> None:
    assert blamed(words) == {}


def test_several_are_named_at_once_and_each_by_its_first_mistake() -> None:
    words = (
        "[profiles[1].percentageOfNodesToScore: Invalid value: 101, profiles[2].plugins.x: no, "
        "profiles[2].schedulerName: no]"
    )
    assert blamed(words) == {"a": ["spec.percentageOfNodesToScore"], "guilty": ["spec.plugins.x"]}


def test_of_one_that_is_held_the_accepted_version_is_blamed() -> None:
    accepted = {"schedulerName": "team-a.x", **SPEC}
    misspelt = {"spec": {"schedulerName": "team-a.x", "percentageOfNodesToScore": 200}}
    words = "profiles[2].pluginConfig[1].args.hardPodAffinityWeight: Invalid value: 101"
    found = blamed(words, **misspelt, status={"accepted": accepted})
    assert found["guilty"][1:] == ["status.accepted.pluginConfig[0].args.hardPodAffinityWeight"]


def test_one_that_has_been_edited_since_is_not_blamed() -> None:
    profiles, verdicts = given()
    refused = [*profiles[:2], {**profiles[2], "percentageOfNodesToScore": 101}]
    words = "profiles[2].percentageOfNodesToScore: Invalid value: 101"
    assert attribute(verdicts, words, refused, profiles, "it was refused") == verdicts


@pytest.mark.parametrize("nonsense", [None, "profiles", [1, None, "x"], {"a": 1}])
def test_nonsense_in_place_of_profiles_blames_nobody(nonsense: Any) -> None:
    profiles, verdicts = given()
    words = "profiles[2].percentageOfNodesToScore: Invalid value: 101"
    assert attribute(verdicts, words, nonsense, profiles, "x") == verdicts
    assert attribute(verdicts, words, profiles, nonsense, "x") == verdicts


def test_a_finding_about_a_profile_of_an_object_names_the_object() -> None:
    profiles, verdicts = given()
    paths = (
        "profiles[2].plugins.score.enabled[0].name", "spec.profiles[0].plugins", "spec.config.qps",
    )  # fmt: skip
    findings = [Finding(names.WARNINGS, "X", path, "why", blocking=False) for path in paths]
    assert [finding.path for finding in relocated(findings, profiles, verdicts)] == [
        "SchedulerProfile/guilty spec.plugins.score.enabled[0].name", *paths[1:],
    ]  # fmt: skip

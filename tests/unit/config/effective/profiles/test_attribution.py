"""Errors of kube-scheduler are attributed to SchedulerProfiles and their fields."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.findings import Finding
from kube_scheduler_operator.config.effective.attachment import Refusal
from kube_scheduler_operator.config.effective.attribution import attribute_profiles, relocated
from kube_scheduler_operator.config.effective.profiles.validate import (
    ProfileResult,
    validate_profiles,
)
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version

TARGET = Target(Gates(Version(1, 35)), stock=False)
FIRST = {"schedulerName": "default-scheduler"}
SPEC = {
    "base": "HighNodeUtilization",  # its arguments of NodeResourcesFit come first
    "plugins": {"score": {"enabled": [{"name": "Mine"}, {"name": "ImageLocality", "weight": 5}]}},
    "pluginConfig": [
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 10}},
        {"name": "Mine", "args": {"resources": [{"name": "cpu", "weight": 500}]}},
    ],
}


def validated(**more: Any) -> tuple[list[Any], tuple[ProfileResult, ...]]:
    objects = [
        {"metadata": {"name": "a"}, "spec": {"plugins": {}}},
        {"metadata": {"name": "team"}, "spec": {"schedulerName": "team-a.x", **SPEC}, **more},
    ]
    profiles, results = validate_profiles("", objects, FIRST, TARGET)
    assert [profile["schedulerName"] for profile in profiles] == [
        "default-scheduler", "a", "team-a.x",
    ]  # fmt: skip
    return list(profiles), results


def refusal(words: str, profiles: Any) -> Refusal:
    return Refusal({"profiles": profiles}, words, "it was refused")


def attributed(words: str, **more: Any) -> dict[str, list[str]]:
    """name -> the fields that its findings name."""
    profiles, results = validated(**more)
    found = attribute_profiles(results, refusal(words, profiles), {"profiles": profiles})
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
            id="built: free text of a plugin",
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
def test_an_error_is_attributed_to_the_object_and_its_field(words: str, field: str) -> None:
    assert attributed(words) == {"team": [field]}
    crash = f'pod x crashes: container "kube-scheduler": {words}'
    assert attributed(crash) == {"team": [field]}, "the error within another message"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "profiles[0].percentageOfNodesToScore: Invalid value: 101",  # no object's field
        "profiles[7].percentageOfNodesToScore: Invalid value: 101",
        "creating profile for scheduler name foreign: no",
        "leaderElection.renewDeadline: Invalid value",
        "panic: runtime error",
    ],
)
def test_an_error_that_names_no_profile_is_not_attributed(words: str) -> None:
    assert attributed(words) == {}


def test_several_errors_are_attributed_to_the_first_field_of_each_profile() -> None:
    words = (
        "[profiles[1].percentageOfNodesToScore: Invalid value: 101, profiles[2].plugins.x: no, "
        "profiles[2].schedulerName: no]"
    )
    assert attributed(words) == {
        "a": ["spec.percentageOfNodesToScore"],
        "team": ["spec.plugins.x"],
    }


def test_an_error_in_the_last_accepted_version_has_its_path() -> None:
    accepted = {"schedulerName": "team-a.x", **SPEC}
    misspelt = {"spec": {"schedulerName": "team-a.x", "percentageOfNodesToScore": 200}}
    words = "profiles[2].pluginConfig[1].args.hardPodAffinityWeight: Invalid value: 101"
    found = attributed(words, **misspelt, status={"accepted": accepted})
    assert found["team"][1:] == ["status.accepted.pluginConfig[0].args.hardPodAffinityWeight"]


def test_one_that_has_been_edited_since_is_not_attributed() -> None:
    profiles, results = validated()
    refused = [*profiles[:2], {**profiles[2], "percentageOfNodesToScore": 101}]
    words = "profiles[2].percentageOfNodesToScore: Invalid value: 101"
    assert attribute_profiles(results, refusal(words, refused), {"profiles": profiles}) == results


@pytest.mark.parametrize("nonsense", [None, "profiles", [1, None, "x"], {"a": 1}])
def test_invalid_profiles_get_no_attribution(nonsense: Any) -> None:
    profiles, results = validated()
    words = "profiles[2].percentageOfNodesToScore: Invalid value: 101"
    assert attribute_profiles(results, refusal(words, nonsense), {"profiles": profiles}) == results
    assert attribute_profiles(results, refusal(words, profiles), {"profiles": nonsense}) == results


def test_a_finding_about_a_scheduler_profile_has_its_path() -> None:
    profiles, results = validated()
    paths = (
        "profiles[2].plugins.score.enabled[0].name", "spec.profiles[0].plugins", "spec.config.qps",
    )  # fmt: skip
    findings = [Finding(names.WARNINGS, "X", path, "why", blocking=False) for path in paths]
    assert [finding.path for finding in relocated(findings, profiles, results)] == [
        "SchedulerProfile/team spec.plugins.score.enabled[0].name", *paths[1:],
    ]  # fmt: skip

"""SchedulerProfiles in the observed configuration, and overrides of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.templates import canonical_json
from kube_scheduler_operator.config.effective.control_plane.compose import (
    Composition,
    compose,
)
from kube_scheduler_operator.config.language.versions import Version

from .....builders import profile
from .....control_plane_inputs import inputs_of
from .....expect import findings

ONLY_IMAGES = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}}
MISSPELT = {"score": {"enabled": [{"name": "ImageLocalty"}]}}


def composed(
    *profiles: Any, scheduler: Any = None, served: bool = True, **spec: Any
) -> Composition:
    return compose(
        inputs_of(
            platform=KUBEADM,
            default_version=Version(1, 35),
            scheduler={"spec": scheduler or {}},
            kubescheduler={"spec": spec},
            profiles=profiles if served else None,
        )
    )


def profiles_in(composition: Composition) -> dict[str, Any]:
    assert composition.config is not None
    return {p["schedulerName"]: p for p in composition.config.get("profiles", ())}


def test_without_profiles_the_file_has_the_same_bytes() -> None:
    with_none, without = composed(), composed(served=False)
    left_out = composed(profile("bad", plugins=MISSPELT))
    texts = {canonical_json(c.config or {}) for c in (with_none, without, left_out)}
    assert len(texts) == 1
    assert "profiles" not in json.loads(texts.pop())
    assert with_none.observed_config == without.observed_config == left_out.observed_config == {}


def test_the_default_profile_stays_in_the_file() -> None:
    """A file with profiles serves only these, but most pods use default-scheduler."""
    composition = composed(profile("team", plugins=ONLY_IMAGES))
    assert list(profiles_in(composition)) == ["default-scheduler", "team"]
    assert composition.observed_config == {
        "profiles": [{"schedulerName": "team", "plugins": ONLY_IMAGES}]
    }
    assert not composition.blocking
    assert composition.findings == ()


def test_the_named_profile_applies_to_default_scheduler_only() -> None:
    composition = composed(profile("team"), scheduler={"profile": "NoScoring"})
    off = {"disabled": [{"name": "*"}]}
    assert profiles_in(composition) == {
        "default-scheduler": {
            "schedulerName": "default-scheduler",
            "plugins": {"preScore": off, "score": off},
        },
        "team": {"schedulerName": "team"},
    }


@pytest.mark.parametrize(
    ("base", "strategy"), [(None, "MostAllocated"), ("LowNodeUtilization", None), ("None", None)]
)
def test_a_profile_named_default_scheduler_replaces_or_extends_the_default(
    base: str | None, strategy: str | None
) -> None:
    spec: dict[str, Any] = {"percentageOfNodesToScore": 40, **({"base": base} if base else {})}
    composition = composed(
        profile("default-scheduler", **spec), scheduler={"profile": "HighNodeUtilization"}
    )
    (mine,) = profiles_in(composition).values()
    assert mine["percentageOfNodesToScore"] == 40
    found = [c["args"]["scoringStrategy"]["type"] for c in mine.get("pluginConfig", ())]
    assert found == ([strategy] if strategy else [])


def test_overrides_are_merged_by_name_and_report_their_own_errors() -> None:
    overrides = {
        "percentageOfNodesToScore": 10,
        "profiles": [
            {"schedulerName": "default-scheduler"},
            {"schedulerName": "team", "percentageOfNodesToScore": 70},
        ],
    }
    team = profile("team", plugins=ONLY_IMAGES, percentageOfNodesToScore=30)
    composition = composed(team, unsupportedConfigOverrides=overrides)
    assert (composition.config or {})["percentageOfNodesToScore"] == 10
    found = profiles_in(composition)["team"]
    assert found == {
        "schedulerName": "team", "plugins": ONLY_IMAGES, "percentageOfNodesToScore": 70,
    }  # fmt: skip
    overrides["profiles"][1]["percentageOfNodesToScore"] = 700  # type: ignore[index]
    composition = composed(team, unsupportedConfigOverrides=overrides)
    path = "spec.unsupportedConfigOverrides.profiles[1].percentageOfNodesToScore"
    assert (names.OVERRIDES_DEGRADED, path, True) in findings(
        composition, "condition", "path", "blocking"
    )
    assert [v.accepted for v in composition.results] == [True]


def test_an_invalid_profile_is_reported_and_blocks_no_revision() -> None:
    accepted = {"plugins": ONLY_IMAGES}
    composition = composed(
        profile("held", accepted=accepted, plugins=MISSPELT),
        profile("new", plugins=MISSPELT),
        profile("good", scheduler=""),
        profile("lost", scheduler="second"),
    )
    assert not composition.blocking
    assert list(profiles_in(composition)) == ["default-scheduler", "good", "held"]
    texts = [finding.text for finding in composition.findings]
    assert len(texts) == 3
    assert texts[0].startswith("SchedulerProfile/held spec.plugins.score.enabled[0].name: ")
    assert texts[0].endswith(
        'did you mean "ImageLocality"? (its last accepted version stays in use)'
    )
    assert texts[1].endswith("(not used)")
    assert texts[2].startswith('SchedulerProfile/lost spec.scheduler: SecondaryScheduler "second"')


def test_a_kind_that_is_not_served_is_reported_without_an_alarm() -> None:
    composition = composed(served=False)
    assert findings(composition, "condition", "path", "blocking") == [
        (names.INEFFECTIVE_SETTINGS, "SchedulerProfile", False)
    ]


def test_observed_profiles_stay_while_the_kind_is_not_served() -> None:
    """Pods keep their profiles if the API server restarts without the kind."""
    before = composed(profile("team", plugins=ONLY_IMAGES), profile("other"))
    after = composed(served=False, observedConfig=before.observed_config)
    assert canonical_json(after.config or {}) == canonical_json(before.config or {})
    assert after.observed_config == before.observed_config
    ((condition, _, blocking),) = findings(after, "condition", "path", "blocking")
    assert (condition, blocking) == (names.SCHEDULER_PROFILES_DEGRADED, False)
    assert (
        "(the profiles that were observed last stay in use: other, team)"
        in after.findings[0].message
    )
    replaced = composed(profile("default-scheduler", plugins=ONLY_IMAGES))
    after = composed(served=False, observedConfig=replaced.observed_config)
    assert canonical_json(after.config or {}) == canonical_json(replaced.config or {})


@pytest.mark.parametrize("invalid", ["x", {"a": 1}, [1], [{}], [{"schedulerName": 1}], None])
def test_invalid_observed_profiles_are_dropped(invalid: Any) -> None:
    composition = composed(served=False, observedConfig={"profiles": invalid})
    assert composition.observed_config == {}
    assert not composition.blocking


def test_without_a_base_no_profile_is_validated() -> None:
    before = composed(profile("team")).observed_config
    composition = composed(
        profile("team", plugins=MISSPELT), scheduler={"profile": "Nope"}, observedConfig=before
    )
    assert composition.blocking
    assert composition.results == ()
    assert composition.observed_config == before


def test_a_deleted_profile_is_removed_from_the_file() -> None:
    before = composed(profile("team"), profile("other"))
    after = composed(profile("other"), observedConfig=before.observed_config)
    assert list(profiles_in(after)) == ["default-scheduler", "other"]

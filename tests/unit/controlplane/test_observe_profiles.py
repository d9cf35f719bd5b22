"""SchedulerProfiles on the way into the file: what is observed of them, and what lies over them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.controlplane.compose import Composition, Inputs, compose
from kube_scheduler_operator.schedulerconfig.canonical import config_text
from kube_scheduler_operator.schedulerconfig.versions import Version

ONLY_IMAGES = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}}
MISSPELT = {"score": {"enabled": [{"name": "ImageLocalty"}]}}


def profile(name: str, accepted: Any = None, /, **spec: Any) -> dict[str, Any]:
    obj = {"metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec}
    return obj if accepted is None else {**obj, "status": {"accepted": accepted}}


def made(*profiles: Any, scheduler: Any = None, served: bool = True, **spec: Any) -> Composition:
    return compose(
        Inputs(
            platform=KUBEADM,
            operand_version=Version(1, 35),
            scheduler={"spec": scheduler or {}},
            kubescheduler={"spec": spec},
            scheduler_profiles=profiles if served else None,
        )
    )


def profiles_in(composition: Composition) -> dict[str, Any]:
    assert composition.config is not None
    return {p["schedulerName"]: p for p in composition.config.get("profiles", ())}


def said(composition: Composition) -> list[tuple[str, str, bool]]:
    return [(f.condition, f.path, f.blocking) for f in composition.findings]


def test_without_any_the_file_is_what_it_was_to_the_byte() -> None:
    with_none, without = made(), made(served=False)
    left_out = made(profile("bad", plugins=MISSPELT))
    texts = {config_text(c.config or {}) for c in (with_none, without, left_out)}
    assert len(texts) == 1
    assert "profiles" not in json.loads(texts.pop())
    assert with_none.observed_config == without.observed_config == left_out.observed_config == {}


def test_the_default_scheduler_stays_beside_them() -> None:
    """A file with profiles serves these only; pods that name none must not be forgotten."""
    composition = made(profile("team", plugins=ONLY_IMAGES))
    assert list(profiles_in(composition)) == ["default-scheduler", "team"]
    assert composition.observed_config == {
        "profiles": [{"schedulerName": "team", "plugins": ONLY_IMAGES}]
    }
    assert not composition.blocking
    assert composition.findings == ()


def test_the_profile_of_the_scheduler_object_is_that_of_the_default_scheduler() -> None:
    composition = made(profile("team"), scheduler={"profile": "NoScoring"})
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
def test_one_replaces_the_default_profile_or_lays_itself_over_it(
    base: str | None, strategy: str | None
) -> None:
    spec: dict[str, Any] = {"percentageOfNodesToScore": 40, **({"base": base} if base else {})}
    composition = made(
        profile("default-scheduler", **spec), scheduler={"profile": "HighNodeUtilization"}
    )
    (mine,) = profiles_in(composition).values()
    assert mine["percentageOfNodesToScore"] == 40
    found = [c["args"]["scoringStrategy"]["type"] for c in mine.get("pluginConfig", ())]
    assert found == ([strategy] if strategy else [])


def test_overrides_lie_over_them_by_name_and_name_their_own_mistakes() -> None:
    overrides = {
        "percentageOfNodesToScore": 10,
        "profiles": [
            {"schedulerName": "default-scheduler"},
            {"schedulerName": "team", "percentageOfNodesToScore": 70},
        ],
    }
    team = profile("team", plugins=ONLY_IMAGES, percentageOfNodesToScore=30)
    composition = made(team, unsupportedConfigOverrides=overrides)
    assert (composition.config or {})["percentageOfNodesToScore"] == 10
    found = profiles_in(composition)["team"]
    assert found == {
        "schedulerName": "team", "plugins": ONLY_IMAGES, "percentageOfNodesToScore": 70,
    }  # fmt: skip
    overrides["profiles"][1]["percentageOfNodesToScore"] = 700  # type: ignore[index]
    composition = made(team, unsupportedConfigOverrides=overrides)
    path = "spec.unsupportedConfigOverrides.profiles[1].percentageOfNodesToScore"
    assert (names.OVERRIDES_DEGRADED, path, True) in said(composition)
    assert [v.accepted for v in composition.verdicts] == [True]


def test_a_bad_one_does_not_hold_up_a_revision_and_is_named() -> None:
    accepted = {"plugins": ONLY_IMAGES}
    composition = made(
        profile("held", accepted, plugins=MISSPELT),
        profile("new", plugins=MISSPELT),
        profile("good", scheduler=""),
        profile("lost", scheduler="second"),
    )
    assert not composition.blocking
    assert list(profiles_in(composition)) == ["default-scheduler", "good", "held"]
    texts = [finding.text for finding in composition.findings]
    assert len(texts) == 3
    assert texts[0].startswith("SchedulerProfile/held spec.plugins.score.enabled[0].name: ")
    assert texts[0].endswith('did you mean "ImageLocality"? (its last accepted version runs on)')
    assert texts[1].endswith("(it is left out)")
    assert texts[2].startswith("SchedulerProfile/lost spec.scheduler: there is no Secondary")


def test_a_kind_that_is_not_served_is_told_and_alarms_nobody() -> None:
    composition = made(served=False)
    assert said(composition) == [(names.INEFFECTIVE_SETTINGS, "SchedulerProfile", False)]


def test_what_was_observed_stays_while_the_kind_is_not_served() -> None:
    """An API server that comes back without the kind must not take profiles from pods."""
    before = made(profile("team", plugins=ONLY_IMAGES), profile("other"))
    after = made(served=False, observedConfig=before.observed_config)
    assert config_text(after.config or {}) == config_text(before.config or {})
    assert after.observed_config == before.observed_config
    ((condition, _, blocking),) = said(after)
    assert (condition, blocking) == (names.SCHEDULER_PROFILES_DEGRADED, False)
    assert "(profiles stay as they were observed last: other, team)" in after.findings[0].message
    replaced = made(profile("default-scheduler", plugins=ONLY_IMAGES))
    after = made(served=False, observedConfig=replaced.observed_config)
    assert config_text(after.config or {}) == config_text(replaced.config or {})


@pytest.mark.parametrize("nonsense", ["x", {"a": 1}, [1], [{}], [{"schedulerName": 1}], None])
def test_observed_nonsense_is_no_memory(nonsense: Any) -> None:
    composition = made(served=False, observedConfig={"profiles": nonsense})
    assert composition.observed_config == {}
    assert not composition.blocking


def test_nothing_is_judged_while_nobody_knows_what_to_lay_it_over() -> None:
    before = made(profile("team")).observed_config
    composition = made(
        profile("team", plugins=MISSPELT), scheduler={"profile": "Nope"}, observedConfig=before
    )
    assert composition.blocking
    assert composition.verdicts == ()
    assert composition.observed_config == before


def test_a_deleted_one_is_gone() -> None:
    before = made(profile("team"), profile("other"))
    after = made(profile("other"), observedConfig=before.observed_config)
    assert list(profiles_in(after)) == ["default-scheduler", "other"]

"""SchedulerProfiles of a SecondaryScheduler, in addition to the profiles in its spec."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.effective.profiles.validate import ProfileResult
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS
from kube_scheduler_operator.operator.secondary.reconcile import SecondarySchedulers

from .world import NAME, NAMESPACE, World, refusing

WRONG = {"score": {"enabled": [{"name": "ImageLocalty"}]}}
RIGHT = {"score": {"enabled": [{"name": "ImageLocality", "weight": 5}]}}


def secondary_of(world: World) -> SecondarySchedulers:
    return world.secondary()


def result(world: World, name: str) -> ProfileResult:
    return next(found for found in secondary_of(world).results if found.name == name)


def running(world: World, name: str = NAME) -> list[dict[str, Any]]:
    """The profiles in the configuration that the Deployment mounts."""
    deployment = world.objects[DEPLOYMENTS, NAMESPACE, name]
    text = json.dumps(deployment)
    (found,) = (
        obj
        for (kind, _, map_name), obj in world.objects.items()
        if kind == CONFIG_MAPS and f'"{map_name}"' in text
    )
    return list(json.loads(found["data"][names.CONFIG_KEY])["profiles"])


def run_names(world: World, name: str = NAME) -> list[str]:
    return [profile["schedulerName"] for profile in running(world, name)]


@pytest.mark.parametrize(
    ("inline", "expected"),
    [
        ([], [NAME, "a", "z"]),
        ([{"schedulerName": "own"}], ["own", "a", "z"]),
        ([{"schedulerName": "own"}, {"schedulerName": "two"}], ["own", "two", "a", "z"]),
    ],
)
def test_profiles_of_the_spec_precede_scheduler_profiles_sorted_by_name(
    world: World, inline: list[dict[str, Any]], expected: list[str]
) -> None:
    world.profile("z")
    world.profile("a", plugins=RIGHT)
    world.profile("of-the-control-plane", "")
    world.put(profiles=inline)
    world.run()
    assert run_names(world) == expected
    assert running(world)[expected.index("a")]["plugins"] == RIGHT
    assert {found.name for found in secondary_of(world).results} == {"a", "z"}


def test_a_scheduler_profile_with_the_name_of_the_scheduler_replaces_the_first(
    world: World,
) -> None:
    world.put()
    world.profile("any", schedulerName=NAME, plugins=RIGHT)
    world.run()
    assert run_names(world) == [NAME]
    assert running(world)[0]["plugins"] == RIGHT


def test_adding_or_deleting_a_profile_rolls_out_new_content(world: World) -> None:
    world.put()
    world.run()
    world.roll_out()
    world.profile("a")
    world.run()
    assert run_names(world) == [NAME, "a"]
    world.roll_out()
    world.profiles = {}
    world.run()
    assert run_names(world) == [NAME]


def test_an_invalid_profile_is_omitted_and_the_others_run(world: World) -> None:
    world.put()
    world.profile("wrong", plugins=WRONG)
    world.profile("right", plugins=RIGHT)
    world.run()
    assert run_names(world) == [NAME, "right"]
    (finding,) = result(world, "wrong").findings
    assert 'did you mean "ImageLocality"?' in finding.message


def test_an_accepted_profile_stays_in_use_after_a_bad_edit(world: World) -> None:
    world.put()
    world.profile("a", plugins=RIGHT)
    assert world.profiles is not None
    world.profiles["a"]["status"] = {"accepted": dict(world.profiles["a"]["spec"])}
    world.profile("a", plugins=WRONG)
    world.run()
    assert running(world)[1]["plugins"] == RIGHT
    assert result(world, "a").uses_last_accepted


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("two", f'SecondaryScheduler "{NAME}" itself'),
        ("default-scheduler", "the control plane's scheduler"),
        ("other", 'SecondaryScheduler "other"'),
    ],
)
def test_a_scheduler_name_that_is_already_served_is_refused(
    world: World, name: str, owner: str
) -> None:
    world.put("other", born=1)
    world.put(profiles=[{"schedulerName": "own"}, {"schedulerName": "two"}], born=2)
    world.profile("late", schedulerName=name)
    world.profile("fine")
    world.run()
    assert run_names(world) == ["own", "two", "fine"]
    (finding,) = result(world, "late").findings
    assert finding.path == "SchedulerProfile/late spec.schedulerName"
    assert f"{owner} already serves" in finding.message


def test_a_moving_profile_is_accepted_before_the_control_plane_drops_it(world: World) -> None:
    world.put()
    data = {names.CONFIG_KEY: json.dumps({"profiles": [{"schedulerName": "moving"}]})}
    world.config_maps[names.CONFIG] = {"data": data}
    world.profile("moving")
    assert not result(world, "moving").accepted, "the control plane serves that name"
    assert world.profiles is not None
    world.profiles["moving"]["status"] = {"accepted": {"scheduler": ""}}
    assert result(world, "moving").accepted
    # The control plane drops it after this acceptance; until then nothing changes here.
    world.run()
    assert (DEPLOYMENTS, NAMESPACE, NAME) not in world.objects
    world.config_maps = {}
    world.run()
    assert run_names(world) == [NAME, "moving"]


def test_profiles_stay_if_the_api_no_longer_serves_the_kind(world: World) -> None:
    world.put()
    world.profile("a")
    world.run()
    world.roll_out()
    world.run()
    world.profiles = None
    world.put(logLevel="Debug")
    world.run()
    assert run_names(world) == [NAME, "a"]
    (status,) = (c for c in secondary_of(world).conditions if c.type == names.SECONDARY_DEGRADED)
    assert (
        "the API does not serve this kind, and the scheduler runs profiles from it (a)"
        in status.message
    )


def test_a_kind_that_was_never_served_delays_nothing(world: World) -> None:
    world.profiles = None
    world.put()
    world.run()
    assert run_names(world) == [NAME]


# --- attribution ----------------------------------------------------------------------------------


def conditions_of(world: World) -> dict[str, tuple[str, str]]:
    found = world.status()["conditions"]
    return {one["type"]: (one["status"], one.get("message", "")) for one in found}


def test_a_refusal_by_kube_scheduler_is_attributed_to_its_profile(world: World) -> None:
    world.profile("a", plugins=RIGHT)
    world.profile("b", percentageOfNodesToScore=10)
    good = world.installed()
    world.profile("b", percentageOfNodesToScore=20)
    world.run()
    bad = world.running()
    words = "profiles[2].percentageOfNodesToScore: Invalid value: 20"
    log = f'E0101 00:00:00.000000       1 run.go:72] "command failed" err="{words}"'
    world.pod(bad, **refusing(log))
    world.run()
    assert world.running() == good
    assert result(world, "a").findings == ()
    refused = result(world, "b")
    assert refused.accepted, "validation finds no error"
    (finding,) = refused.findings
    assert finding.path == "SchedulerProfile/b spec.percentageOfNodesToScore"
    assert finding.message == (
        f'kube-scheduler refused configuration {bad} of SecondaryScheduler "{NAME}"; correct '
        f"or revert this setting: {words}"
    )
    world.profile("b", percentageOfNodesToScore=30)
    world.run()
    assert result(world, "b").findings == ()


def test_an_unknown_plugin_with_a_custom_image_is_a_warning_at_its_profile(
    world: World,
) -> None:
    world.profile("a", base="HighNodeUtilization", plugins=WRONG)
    world.put(image="example.com/mine:v1", profiles=[{"plugins": {"score": WRONG["score"]}}])
    world.run()
    status, message = conditions_of(world)[names.WARNINGS]
    assert status == "True"
    assert [line.partition(": ")[0] for line in sorted(message.split("\n"))] == [
        "SchedulerProfile/a spec.plugins.score.enabled[0].name",
        "spec.profiles[0].plugins.score.enabled[0].name",
    ]


def test_every_profile_must_meet_the_requirements_of_the_extenders(world: World) -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    extender = {"urlPrefix": "http://x", "filterVerb": "f", "managedResources": managed}
    bare = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [
        {"name": "PrioritySort"}, {"name": "DefaultBinder"}]}}  # fmt: skip
    world.profile("fine")
    world.profile("without", plugins=bare)
    world.put(config={"extenders": [extender]})
    world.run()
    assert run_names(world) == [NAME, "fine"]
    (finding,) = result(world, "without").findings
    assert finding.path == "SchedulerProfile/without spec.plugins"
    assert "require NodeResourcesFit; enable it" in finding.message

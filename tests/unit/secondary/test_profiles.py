"""SchedulerProfiles that a SecondaryScheduler runs, beside the profiles that it has itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS
from kube_scheduler_operator.profiles.validate import Verdict
from kube_scheduler_operator.schedulerconfig.versions import Version
from kube_scheduler_operator.secondary.reconcile import Secondary, secondary_schedulers

from .world import IMAGE, NAME, NAMESPACE, World, refusing

WRONG = {"score": {"enabled": [{"name": "ImageLocalty"}]}}
RIGHT = {"score": {"enabled": [{"name": "ImageLocality", "weight": 5}]}}


def result(world: World) -> Secondary:
    return secondary_schedulers(world.snapshot(), IMAGE, lambda _: Version(1, 35, 4))


def verdict(world: World, name: str) -> Verdict:
    return next(found for found in result(world).verdicts if found.name == name)


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
def test_its_own_come_first_and_the_others_by_name(
    world: World, inline: list[dict[str, Any]], expected: list[str]
) -> None:
    world.profile("z")
    world.profile("a", plugins=RIGHT)
    world.profile("of-the-control-plane", "")
    world.put(profiles=inline)
    world.run()
    assert run_names(world) == expected
    assert running(world)[expected.index("a")]["plugins"] == RIGHT
    assert {found.name for found in result(world).verdicts} == {"a", "z"}


def test_one_with_its_name_replaces_the_first(world: World) -> None:
    world.put()
    world.profile("any", schedulerName=NAME, plugins=RIGHT)
    world.run()
    assert run_names(world) == [NAME]
    assert running(world)[0]["plugins"] == RIGHT


def test_a_profile_that_comes_or_goes_is_a_new_content(world: World) -> None:
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


def test_a_mistake_in_one_leaves_it_out_and_stops_no_other(world: World) -> None:
    world.put()
    world.profile("wrong", plugins=WRONG)
    world.profile("right", plugins=RIGHT)
    world.run()
    assert run_names(world) == [NAME, "right"]
    (finding,) = verdict(world, "wrong").findings
    assert 'did you mean "ImageLocality"?' in finding.message


def test_one_that_was_accepted_is_held(world: World) -> None:
    world.put()
    world.profile("a", plugins=RIGHT)
    assert world.profiles is not None
    world.profiles["a"]["status"] = {"accepted": dict(world.profiles["a"]["spec"])}
    world.profile("a", plugins=WRONG)
    world.run()
    assert running(world)[1]["plugins"] == RIGHT
    assert verdict(world, "a").held


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("two", f'SecondaryScheduler "{NAME}" itself'),
        ("default-scheduler", "the control plane's scheduler"),
        ("other", 'SecondaryScheduler "other"'),
    ],
)
def test_a_name_that_somebody_serves_is_not_to_be_had(world: World, name: str, owner: str) -> None:
    world.put("other", born=1)
    world.put(profiles=[{"schedulerName": "own"}, {"schedulerName": "two"}], born=2)
    world.profile("late", schedulerName=name)
    world.profile("fine")
    world.run()
    assert run_names(world) == ["own", "two", "fine"]
    (finding,) = verdict(world, "late").findings
    assert finding.path == "SchedulerProfile/late spec.schedulerName"
    assert f"are scheduled by {owner}" in finding.message


def test_one_that_moves_here_is_accepted_before_the_control_plane_lets_it_go(world: World) -> None:
    world.put()
    data = {names.CONFIG_KEY: json.dumps({"profiles": [{"schedulerName": "moving"}]})}
    world.config_maps[names.CONFIG] = {"data": data}
    world.profile("moving")
    assert not verdict(world, "moving").accepted, "somebody else's of that name"
    assert world.profiles is not None
    world.profiles["moving"]["status"] = {"accepted": {"scheduler": ""}}
    assert verdict(world, "moving").accepted
    # Accepted here, it goes there; until it has gone, nothing changes here.
    world.run()
    assert (DEPLOYMENTS, NAMESPACE, NAME) not in world.objects
    world.config_maps = {}
    world.run()
    assert run_names(world) == [NAME, "moving"]


def test_a_kind_that_is_not_served_any_more_takes_no_profile_away(world: World) -> None:
    world.put()
    world.profile("a")
    world.run()
    world.roll_out()
    world.run()
    world.profiles = None
    world.put(logLevel="Debug")
    world.run()
    assert run_names(world) == [NAME, "a"]
    (status,) = (c for c in result(world).conditions if c.type == names.SECONDARY_DEGRADED)
    assert "the API does not serve this kind, from which a came" in status.message


def test_a_kind_that_never_was_served_holds_nothing_up(world: World) -> None:
    world.profiles = None
    world.put()
    world.run()
    assert run_names(world) == [NAME]


# --- who is to blame ------------------------------------------------------------------------------


def conditions_of(world: World) -> dict[str, tuple[str, str]]:
    found = world.status()["conditions"]
    return {one["type"]: (one["status"], one.get("message", "")) for one in found}


def test_what_kube_scheduler_refuses_is_told_to_the_profile_that_is_to_blame(world: World) -> None:
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
    assert verdict(world, "a").findings == ()
    refused = verdict(world, "b")
    assert refused.accepted, "nothing that the operator can find is wrong with it"
    (finding,) = refused.findings
    assert finding.path == "SchedulerProfile/b spec.percentageOfNodesToScore"
    assert finding.message == (
        f'kube-scheduler refused configuration {bad} of SecondaryScheduler "{NAME}", mend this or '
        f"take it back: {words}"
    )
    world.profile("b", percentageOfNodesToScore=30)
    world.run()
    assert verdict(world, "b").findings == ()


def test_a_plugin_that_only_the_image_can_know_is_a_warning_that_names_the_profile(
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


def test_what_the_schedulers_extenders_need_is_asked_of_each_profile(world: World) -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    extender = {"urlPrefix": "http://x", "filterVerb": "f", "managedResources": managed}
    bare = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [
        {"name": "PrioritySort"}, {"name": "DefaultBinder"}]}}  # fmt: skip
    world.profile("fine")
    world.profile("without", plugins=bare)
    world.put(config={"extenders": [extender]})
    world.run()
    assert run_names(world) == [NAME, "fine"]
    (finding,) = verdict(world, "without").findings
    assert finding.path == "SchedulerProfile/without spec.plugins"
    assert "need NodeResourcesFit; enable it" in finding.message

"""The configuration of a simulated kube-scheduler."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.simulate.configuration import simulated, without_calls

GPU = {"name": "example.com/gpu", "ignoredByScheduler": True}
FPGA = {"name": "example.com/fpga"}


def ignored(config: dict[str, Any]) -> list[Any]:
    found = []
    for profile in config["profiles"]:
        args = [one["args"] for one in profile.get("pluginConfig", ())]
        found.append([one.get("ignoredResources") for one in args])
    return found


def test_an_extender_that_is_left_out_keeps_the_resources_that_are_ignored() -> None:
    extender = {"urlPrefix": "http://a:b@x", "filterVerb": "f", "managedResources": [GPU, FPGA]}
    config = {"parallelism": 2, "extenders": [extender, {"urlPrefix": "http://y"}]}
    silent = without_calls(config)
    assert silent == {"parallelism": 2, "extenders": [{"managedResources": [GPU]}]}
    assert without_calls(silent) == silent
    made = simulated(silent, [{"schedulerName": "probe"}])
    assert "extenders" not in made
    assert ignored(made) == [[["example.com/gpu"]], [["example.com/gpu"]]]


def test_what_own_extenders_manage_is_ignored_in_each_profile() -> None:
    args = {"ignoredResources": ["example.com/other"], "scoringStrategy": {"type": "MostAllocated"}}
    profile = {"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}
    own = {"urlPrefix": "http://own", "managedResources": [GPU, FPGA]}
    made = simulated({"profiles": [profile]}, [{"schedulerName": "probe"}], [own])
    assert made["extenders"] == [{**own, "managedResources": [{"name": "example.com/gpu"}, FPGA]}]
    assert ignored(made) == [[["example.com/gpu"]], [["example.com/gpu"]]]
    (fit,) = made["profiles"][0]["pluginConfig"]
    assert fit["args"]["scoringStrategy"] == {"type": "MostAllocated"}
    assert args["ignoredResources"] == ["example.com/other"]


def test_without_such_resources_profiles_stay_as_they_are() -> None:
    assert without_calls({"extenders": [{"managedResources": [FPGA]}]}) == {}
    made = simulated({}, [{"schedulerName": "probe"}])
    assert made["profiles"] == [{"schedulerName": "default-scheduler"}, {"schedulerName": "probe"}]

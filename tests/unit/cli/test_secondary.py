"""SecondarySchedulers in `compose`, `plugins` and `validate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...builders import profile, secondary
from .conftest import OnFile

EXAMPLES = Path(__file__).parents[3] / "docs/examples"
V1 = "kube-scheduler-operator.dev/v1alpha1"
NAMED = {"apiVersion": V1, "kind": "SecondaryScheduler", "metadata": {"name": "mine"}}
SCORE = {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}
SCHEDULER = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "spec": {}}


def test_compose_shows_what_it_would_run(on_file: OnFile) -> None:
    code, shown, _ = on_file(
        "compose", secondary(), profile("other", scheduler="mine", plugins=SCORE)
    )
    assert code == 0
    assert set(shown) == {"schedulerProfiles", "secondarySchedulers"}
    (one,) = shown["secondarySchedulers"]
    assert [each["schedulerName"] for each in one["config"]["profiles"]] == ["mine", "other"]
    assert one["config"]["leaderElection"]["resourceName"] == "mine"
    assert one["args"] == ["--config=/etc/kubernetes/scheduler/config.yaml", "-v=2"]
    assert one["conditions"] == []
    assert [(p["name"], p["state"]) for p in shown["schedulerProfiles"]] == [("other", "Accepted")]


def test_compose_includes_the_control_plane(on_file: OnFile) -> None:
    code, shown, _ = on_file("compose", SCHEDULER, secondary())
    assert code == 0
    assert "profiles" not in shown["config"]
    (one,) = shown["secondarySchedulers"]
    assert one["config"]["profiles"] == [{"schedulerName": "mine"}]


def test_compose_reports_its_errors(on_file: OnFile) -> None:
    wrong = secondary(config={"parallelism": 0})
    code, shown, _ = on_file("compose", wrong)
    assert code == 1
    (condition,) = shown["secondarySchedulers"][0]["conditions"]
    assert condition["type"] == "Degraded"
    assert condition["message"].startswith("spec.config.parallelism")
    code, shown, output = on_file("compose", secondary(logLevl="Debug"))
    assert (code, shown) == (2, None)
    assert "spec.logLevl" in output
    code, _, output = on_file("compose", NAMED)
    assert code == 2
    assert "without spec; use spec: {namespace: NAME}" in output


def test_plugins_shows_those_of_all_its_profiles(on_file: OnFile) -> None:
    other = profile("other", scheduler="mine", plugins=SCORE)
    code, shown, _ = on_file("plugins", secondary(), other)
    assert code == 0
    mine, further = shown["profiles"]
    assert (mine["schedulerName"], further["schedulerName"]) == ("mine", "other")

    def weight(table: Any) -> Any:
        return next(p["weight"] for p in table["points"]["score"] if p["name"] == "ImageLocality")

    assert (weight(mine), weight(further)) == (1, 9)
    image = "registry.k8s.io/kube-scheduler:v1.30.4"
    assert on_file("plugins", secondary(image=image))[1]["kubernetesVersion"] == "1.30"


def test_plugins_of_several_are_a_matter_of_one_after_the_other(on_file: OnFile) -> None:
    code, _, output = on_file(
        "plugins", secondary(), {**secondary(), "metadata": {"name": "other"}}
    )
    assert code == 2
    assert "one SecondaryScheduler" in output


def test_validate_has_them(on_file: OnFile) -> None:
    wrong = secondary(profiles=[{"plugins": {"score": {"enabled": [{"name": "Nope"}]}}}])
    code, shown, _ = on_file("validate", wrong)
    assert code == 1
    assert "Nope" in json.dumps(shown)
    assert on_file("validate", secondary())[0] == 0

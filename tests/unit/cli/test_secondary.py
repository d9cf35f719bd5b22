"""SecondarySchedulers in `compose`, `plugins` and `validate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import main

EXAMPLES = Path(__file__).parents[3] / "docs/examples"
V1 = "kube-scheduler-operator.dev/v1alpha1"
NAMED = {"apiVersion": V1, "kind": "SecondaryScheduler", "metadata": {"name": "mine"}}
SCORE = {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}
SCHEDULER = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "spec": {}}


def secondary(**spec: Any) -> dict[str, Any]:
    return {**NAMED, "spec": {"namespace": "batch", **spec}}


def profile(name: str, **spec: Any) -> dict[str, Any]:
    kind = "SchedulerProfile"
    return {"apiVersion": V1, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(command: str, *documents: Any, output: str = "json") -> tuple[int, Any, str]:
        file = tmp_path / "in.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        code = main([command, "-f", str(file), "-o", output])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else None, said.err

    return run


def test_compose_shows_what_it_would_run(run: Any) -> None:
    code, shown, _ = run("compose", secondary(), profile("other", scheduler="mine", plugins=SCORE))
    assert code == 0
    assert set(shown) == {"schedulerProfiles", "secondarySchedulers"}
    (one,) = shown["secondarySchedulers"]
    assert [each["schedulerName"] for each in one["config"]["profiles"]] == ["mine", "other"]
    assert one["config"]["leaderElection"]["resourceName"] == "mine"
    assert one["args"] == ["--config=/etc/kubernetes/scheduler/config.yaml", "-v=2"]
    assert one["conditions"] == []
    assert [(p["name"], p["state"]) for p in shown["schedulerProfiles"]] == [("other", "Accepted")]


def test_compose_shows_it_beside_the_control_plane(run: Any) -> None:
    code, shown, _ = run("compose", SCHEDULER, secondary())
    assert code == 0
    assert "profiles" not in shown["config"]
    (one,) = shown["secondarySchedulers"]
    assert one["config"]["profiles"] == [{"schedulerName": "mine"}]


def test_compose_says_what_is_wrong_with_it(run: Any) -> None:
    wrong = secondary(config={"parallelism": 0})
    code, shown, _ = run("compose", wrong)
    assert code == 1
    (condition,) = shown["secondarySchedulers"][0]["conditions"]
    assert condition["type"] == "Degraded"
    assert condition["message"].startswith("spec.config.parallelism")
    code, shown, said = run("compose", secondary(logLevl="Debug"))
    assert (code, shown) == (2, None)
    assert "spec.logLevl" in said
    code, _, said = run("compose", NAMED)
    assert code == 2
    assert "without spec; write spec: {namespace: NAME}" in said


def test_plugins_shows_those_of_all_its_profiles(run: Any) -> None:
    other = profile("other", scheduler="mine", plugins=SCORE)
    code, shown, _ = run("plugins", secondary(), other)
    assert code == 0
    mine, further = shown["profiles"]
    assert (mine["schedulerName"], further["schedulerName"]) == ("mine", "other")

    def weight(table: Any) -> Any:
        return next(p["weight"] for p in table["points"]["score"] if p["name"] == "ImageLocality")

    assert (weight(mine), weight(further)) == (1, 9)
    image = "registry.k8s.io/kube-scheduler:v1.30.4"
    assert run("plugins", secondary(image=image))[1]["kubernetesVersion"] == "1.30"


def test_plugins_of_several_are_a_matter_of_one_after_the_other(run: Any) -> None:
    code, _, said = run("plugins", secondary(), {**secondary(), "metadata": {"name": "other"}})
    assert code == 2
    assert "one SecondaryScheduler" in said


def test_validate_has_them(run: Any) -> None:
    wrong = secondary(profiles=[{"plugins": {"score": {"enabled": [{"name": "Nope"}]}}}])
    code, shown, _ = run("validate", wrong)
    assert code == 1
    assert "Nope" in json.dumps(shown)
    assert run("validate", secondary())[0] == 0

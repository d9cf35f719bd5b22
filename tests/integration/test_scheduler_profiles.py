"""SchedulerProfile in a real API server: what it refuses, what it keeps, what kubectl shows."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.base.templates import canonical_json
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.language.schema import POINTS
from kube_scheduler_operator.config.language.versions import Version

from ..control_plane_inputs import inputs_of
from .conftest import REPOSITORY, RefusedError
from .test_crds import GROUPS, SINCE, Kind

pytestmark = pytest.mark.presubmit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest import ApiServer


EXAMPLES = [
    path
    for path in sorted((REPOSITORY / "docs" / "examples").glob("*.yaml"))
    if {each["kind"] for each in yaml.safe_load_all(path.read_text())} == {"SchedulerProfile"}
]


@pytest.fixture
def profiles(api_server: ApiServer) -> Iterator[Kind]:
    kind = Kind(api_server, "SchedulerProfile")
    yield kind
    kind.remove()


def at(point: str, **lists: Any) -> dict[str, Any]:
    return {"plugins": {point: lists}}


def plugins(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize("point", [*POINTS, "multiPoint"])
def test_every_extension_point_is_kept(profiles: Kind, point: str) -> None:
    spec = at(point, enabled=[{"name": "A", "weight": 3}], disabled=plugins("*"))
    assert profiles.get(profiles.create(spec))["spec"] == spec


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="empty"),
        pytest.param({"schedulerName": "team-a.example_1", "scheduler": "second"}, id="names"),
        pytest.param({"base": ""}, id="no-base"),
        pytest.param({"base": "None", "percentageOfNodesToScore": 0}, id="base"),
        pytest.param(
            at("score", enabled=plugins("A", "B"), disabled=plugins("*", "A")), id="lists"
        ),
        pytest.param(at("score", enabled=[{"name": "A", "weight": 0}]), id="no-weight"),
        pytest.param(
            {
                "pluginConfig": [
                    {"name": "A", "args": {"deep": {"x": [1, {"y": 2.5}]}, "kind": "AArgs"}},
                    {"name": "B"},
                ]
            },
            id="arguments",
        ),
        pytest.param(at("filter", enabled=plugins(*(f"P{i}" for i in range(100)))), id="many"),
    ],
)
@pytest.mark.presubmit
def test_a_profile_is_kept_as_it_was_written(profiles: Kind, spec: dict[str, Any]) -> None:
    assert profiles.get(profiles.create(spec))["spec"] == spec


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            at("score", enabled=plugins("A", "B", "A")),
            r"spec.plugins.score.enabled: .*enabled twice at one extension point; list it once",
            id="twice",
        ),
        pytest.param(
            at("multiPoint", enabled=plugins("*")),
            r"spec.plugins.multiPoint.enabled\[0\].name: .*\* is only for disabled; name the",
            id="star",
        ),
        pytest.param(
            at("score", enabled=[{"name": "A", "weight": -1}]),
            r"enabled\[0\].weight: .*a weight must not be negative; use 1 or more",
            id="weight",
        ),
        pytest.param(
            at("score", enabled=[{"name": "A", "weight": 2**31}]), "weight", id="weight-too-large"
        ),
        pytest.param(
            at("queueSort", enabled=plugins("A", "B")),
            "spec.plugins.queueSort.enabled: Too many",
            id="two-sorters",
        ),
        pytest.param(at("score", enabled=[{}]), r"enabled\[0\].name: Required", id="nameless"),
        pytest.param(at("scores"), 'unknown field "spec.plugins.scores"', id="point"),
        pytest.param(
            {"pluginConfig": [{"name": "A"}, {"name": "B"}, {"name": "A"}]},
            "spec.pluginConfig: .*a plugin has two entries; merge them into one",
            id="arguments-twice",
        ),
        pytest.param({"schedulerName": "team a"}, "use letters, digits", id="scheduler-name"),
        pytest.param({"schedulerName": "-a"}, "use letters, digits", id="scheduler-name-end"),
        pytest.param({"schedulerName": "a" * 64}, "spec.schedulerName", id="long-scheduler-name"),
        pytest.param({"base": "HighUtilization"}, "spec.base: Unsupported value", id="base"),
        pytest.param({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore", id="over-100"),
        pytest.param({"percentageOfNodesToScore": -1}, "percentageOfNodesToScore", id="negative"),
    ],
)
def test_a_profile_is_refused_with_the_fix(
    profiles: Kind, spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(RefusedError, match=message):
        profiles.create(spec)


def test_an_object_whose_name_is_not_a_scheduler_name_needs_one(
    profiles: Kind, api_server: ApiServer
) -> None:
    body = {
        "apiVersion": GROUPS["SchedulerProfile"],
        "kind": "SchedulerProfile",
        "metadata": {"name": "a" * 64},
        "spec": {},
    }
    with pytest.raises(RefusedError, match="too long for a schedulerName"):
        api_server.request("POST", profiles.path, body)
    api_server.request("POST", profiles.path, {**body, "spec": {"schedulerName": "a"}})
    profiles.created.append("a" * 64)


def test_the_accepted_version_is_kept_whole_and_edits_raise_the_generation(profiles: Kind) -> None:
    spec = {
        **at("score", enabled=[{"name": "A", "weight": 3}]),
        "pluginConfig": [{"name": "A", "args": {"x": {"y": [1, 2]}}}],
    }
    name = profiles.create(spec, status={"accepted": {"a": 1}})
    created = profiles.get(name)
    assert created["status"] == {"observedGeneration": -1}, "it is a subresource"
    condition = {"type": "Accepted", "status": "True", "lastTransitionTime": SINCE}
    status = {
        "observedGeneration": 1,
        "acceptedGeneration": 1,
        "schedulerName": name,
        "accepted": spec,
        "plugins": {"score": "A=3"},
        "conditions": [condition],
    }
    profiles.set_status(name, status)
    assert profiles.get(name)["status"] == status
    assert profiles.get(name)["metadata"]["generation"] == 1
    profiles.set_status(name, {})
    assert profiles.get(name).get("status", {}) == {}, "nothing stays when the operator goes"


def test_kubectl_get(profiles: Kind) -> None:
    name = profiles.create({"schedulerName": "x", "scheduler": "second"})
    condition = {
        "status": "False", "reason": "LastAcceptedInUse", "message": "why",
        "lastTransitionTime": SINCE,
    }  # fmt: skip
    conditions = [{**condition, "type": type_} for type_ in ("Accepted", "Ready")]
    profiles.set_status(name, {"schedulerName": "x", "conditions": conditions})
    row = profiles.row(name)
    del row["AGE"]
    assert row == {
        "NAME": name, "SCHEDULERNAME": "x", "SCHEDULER": "second", "READY": "False",
        "REASON": "LastAcceptedInUse",
    }  # fmt: skip
    wide = profiles.row(name, "-o", "wide")
    assert (wide["ACCEPTED"], wide["MESSAGE"]) == ("False", "why")


def test_the_short_name_and_the_manual(profiles: Kind, api_server: ApiServer) -> None:
    name = profiles.create({})
    assert name in api_server.kubectl("get", "sprof")
    explained = api_server.kubectl("explain", "schedulerprofile.spec.plugins.preEnqueue")
    assert "may enter the queue" in explained


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_accepted_by_the_api_server_and_runs_the_plugins_of_its_table(
    profiles: Kind, kube_scheduler_binary: Path, tmp_path: Path, path: Path
) -> None:
    """The table beside what kube-scheduler itself makes of the configuration."""
    profiles.server.kubectl("apply", "-f", str(path))
    objects = []
    for document in yaml.safe_load_all(path.read_text()):
        profiles.created.append(document["metadata"]["name"])
        objects.append(profiles.get(document["metadata"]["name"]))
    version = subprocess.run(
        [kube_scheduler_binary, "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    composition = compose(
        inputs_of(
            platform=KUBEADM,
            default_version=Version.parse(version),
            scheduler={"spec": {}},
            kubescheduler={"spec": {}},
            profiles=tuple(objects),
        )
    )
    config = dict(composition.config or {})
    config["clientConnection"] = {"kubeconfig": str(profiles.server.kubeconfig)}
    file, completed = tmp_path / "config.yaml", tmp_path / "completed.yaml"
    file.write_text(canonical_json(config))
    done = subprocess.run(
        [kube_scheduler_binary, f"--config={file}", f"--write-config-to={completed}",
         "--secure-port=0"],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert completed.exists(), done.stderr
    found = {p["schedulerName"]: p for p in yaml.safe_load(completed.read_text())["profiles"]}
    assert set(found) == {"default-scheduler", *(v.name for v in composition.results)}
    for result in composition.results:
        sets = found[result.name]["plugins"]
        weights = {e["name"]: e.get("weight") or 1 for e in sets["score"].get("enabled") or ()}
        named = {e.name: e.weight for e in result.points.get("score", ()) if e.name in weights}
        assert named == weights

"""The operator and the commands compose the same configuration of the same objects.

Each receives the objects through its own front door: the operator and `diff` from an API server,
`compose` and `validate` from files.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.crd_schema import validate_object
from kube_scheduler_operator.base.images import EVERY_IMAGE
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.kube import resource as kinds
from kube_scheduler_operator.operator.controlplane.desired import desired_content

from ...cli.conftest import Cluster, OnFile
from ...cli.conftest import api as api
from ...cli.conftest import cluster as cluster
from ...cli.conftest import on_file as on_file
from ...fake_cluster import FakeCluster
from .scenarios import ACCEPTED, REJECTED, Scenario, from_files

VALID = (*ACCEPTED, *from_files())
EVERY = (*VALID, *REJECTED)
DEFINITIONS = {
    resource: f"{resource.plural}.{resource.group}.yaml"
    for resource in (
        kinds.SCHEDULERS,
        kinds.KUBE_SCHEDULERS,
        kinds.SCHEDULER_PROFILES,
        kinds.SCHEDULER_EXTENDERS,
        kinds.SECONDARY_SCHEDULERS,
    )
}
RESOURCES = {resource.kind: resource for resource in DEFINITIONS}


def is_stored(scenario: Scenario) -> bool:
    """Whether the API server stores the objects."""
    return not any(
        problem
        for obj in scenario.objects
        for resource in (RESOURCES[obj["kind"]],)
        for problem in validate_object(obj, DEFINITIONS[resource], resource.version)
    )


@dataclass(frozen=True)
class Run:
    """What a scheduler would run: its configuration and its flags."""

    config: Mapping[str, Any]
    flags: tuple[str, ...]


class Operator:
    """The operator in a cluster with the objects, once it has nothing more to write."""

    def __init__(self, scenario: Scenario) -> None:
        self.cluster = FakeCluster()
        self.cluster.allowed_images = EVERY_IMAGE
        for obj in scenario.objects:
            self.cluster.put(RESOURCES[obj["kind"]], obj["metadata"]["name"], **obj["spec"])
        self.cluster.settle()

    def run(self, name: str) -> Run:
        """What a scheduler runs; "" is the control plane's."""
        data, pod = self._content(name) if name else self._target()
        return Run(
            json.loads(data[names.CONFIG_KEY]),
            tuple(pod["containers"][0]["args"]),
        )

    def _target(self) -> tuple[Mapping[str, str], Any]:
        namespace = KUBEADM.target_namespace
        config = self.cluster.get(kinds.CONFIG_MAPS, names.CONFIG, namespace)
        pod = self.cluster.get(kinds.CONFIG_MAPS, names.POD, namespace)
        return config["data"], json.loads(pod["data"][names.POD_KEY])["spec"]

    def _content(self, name: str) -> tuple[Mapping[str, str], Any]:
        scheduler = self.cluster.get(kinds.SECONDARY_SCHEDULERS, name)
        running = f"{name}-config-{scheduler['status']['configHash']}"
        namespace = scheduler["spec"]["namespace"]
        data = self.cluster.get(kinds.CONFIG_MAPS, running, namespace)["data"]
        return data, json.loads(data[names.POD_KEY])

    def conditions(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(kind, condition) of all objects of users."""
        for resource in DEFINITIONS:
            for obj in self.cluster.list(resource):
                for condition in obj.get("status", {}).get("conditions", ()):
                    yield resource.kind, condition

    @property
    def errors(self) -> str:
        """The messages of the conditions that report an error, as one text."""
        return "\n".join(
            condition["message"]
            for kind, condition in self.conditions()
            if condition["status"] == ERRORS[kind].get(condition["type"])
            and condition["reason"] not in NO_ERRORS
        )


@cache
def operator_of(name: str) -> Operator:
    """The operator with the objects of a scenario; tests must not write into its cluster."""
    return Operator(next(one for one in EVERY if one.name == name))


ERRORS: Mapping[str, Mapping[str, str]] = {
    "Scheduler": {},
    "SchedulerProfile": {names.ACCEPTED: "False"},
    "SchedulerExtender": {names.ACCEPTED: "False"},
    "KubeScheduler": dict.fromkeys(
        (
            names.CONFIG_OBSERVATION_DEGRADED,
            names.TARGET_CONFIG_DEGRADED,
            names.OVERRIDES_DEGRADED,
            names.SCHEDULER_PROFILES_DEGRADED,
            names.SCHEDULER_EXTENDERS_DEGRADED,
        ),
        "True",
    ),
    "SecondaryScheduler": {names.DEGRADED: "True"},
}
NO_ERRORS = ("PolicyRemoved",)
"""Reasons of warnings."""


@pytest.mark.parametrize("scenario", VALID, ids=str)
def test_compose_makes_what_the_operator_rolls_out(scenario: Scenario, on_file: OnFile) -> None:
    assert is_stored(scenario)
    operator = operator_of(scenario.name)
    assert operator.errors == ""
    code, shown, error = on_file("compose", *scenario.objects)
    assert (code, error) == (0, ""), shown
    for name in scenario.schedulers:
        part = _named(shown["secondarySchedulers"], name) if name else shown
        assert Run(part["config"], tuple(part["args"])) == operator.run(name)


def _named(listed: Any, name: str) -> Any:
    (found,) = (one for one in listed if one["name"] == name)
    return found


@pytest.mark.parametrize("scenario", EVERY, ids=str)
def test_compose_accepts_what_the_operator_accepts(scenario: Scenario, on_file: OnFile) -> None:
    code, shown, error = on_file("compose", *scenario.objects)
    if not is_stored(scenario):
        assert code
        return
    errors = operator_of(scenario.name).errors
    assert (code == 0) == (errors == ""), (shown, error, errors)


@pytest.mark.parametrize("scenario", EVERY, ids=str)
def test_validate_has_the_errors_of_the_operator(scenario: Scenario, on_file: OnFile) -> None:
    code, checked, _ = on_file("validate", *scenario.objects)
    found = [each for each in checked["findings"] if each["severity"] == "error"]
    assert bool(code) == bool(found)
    if not is_stored(scenario):
        assert found
        return
    errors = operator_of(scenario.name).errors
    assert bool(found) == bool(errors), (found, errors)
    for each in found:
        assert each["message"] in errors


@pytest.mark.parametrize("scenario", VALID, ids=str)
async def test_diff_of_what_runs_is_empty(
    scenario: Scenario, cluster: Cluster, tmp_path: Path
) -> None:
    operator = await asyncio.to_thread(operator_of, scenario.name)
    _into_the_api(operator.cluster, cluster)
    for name in scenario.schedulers:
        path = tmp_path / f"{name or 'control-plane'}.yaml"
        path.write_text(yaml.safe_dump_all(scenario.for_scheduler(name).objects))
        done = await cluster.run("diff", "-f", str(path), "-o", "words")
        assert (done.code, done.out, done.err) == (0, "", "")


def _into_the_api(source: FakeCluster, target: Cluster) -> None:
    """Everything that the operator has written, with the newest revision on a node."""
    target.api.served |= set(DEFINITIONS)
    for resource in (*DEFINITIONS, kinds.CONFIG_MAPS):
        for obj in source.list(resource):
            target.put(resource, obj)
    kubescheduler = source.get(kinds.KUBE_SCHEDULERS, names.CLUSTER)
    revision = kubescheduler["status"].get("latestAvailableRevision", 0)
    target.kubescheduler({"a": revision}, **kubescheduler["spec"])


@pytest.mark.parametrize("scenario", VALID, ids=str)
def test_the_desired_content_is_what_the_operator_rolls_out(scenario: Scenario) -> None:
    operator = operator_of(scenario.name)
    content, _ = desired_content(operator.cluster.snapshot())
    assert content is not None
    for name in (names.CONFIG, names.POD):
        written = operator.cluster.get(kinds.CONFIG_MAPS, name, KUBEADM.target_namespace)
        assert content.parts[name] == written["data"]

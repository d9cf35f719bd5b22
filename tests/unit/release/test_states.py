"""What each released version has left in the API is read: revisions, their inputs, the adoption.

The test of upgrades records it (docs/releasing.md); a file is never edited.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import read_inputs
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    PODS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    Resource,
)
from kube_scheduler_operator.operator.controlplane.adoption.adopted import NOTHING, read_record
from kube_scheduler_operator.operator.controlplane.revision.history import Revision, read
from kube_scheduler_operator.operator.controlplane.rollout.node_statuses import read_node_status
from kube_scheduler_operator.operator.model import operand_pods

from ..cli.conftest import Cluster
from ..cli.conftest import cluster as cluster
from ..kube.conftest import api as api

STATES: Final = sorted((Path(__file__).parent / "states").glob("*.json"))
State = dict[str, list[dict[str, Any]]]

pytestmark = pytest.mark.parametrize("file", STATES, ids=lambda file: file.stem)


def state(file: Path) -> State:
    found: State = json.loads(file.read_text())
    return found


def objects(found: State, resource: Resource) -> list[dict[str, Any]]:
    """The objects of a kind, in whatever namespace they were recorded."""
    (items,) = [items for path, items in found.items() if path.endswith(f"/{resource.plural}")
                and f"/{resource.api_version}/" in path]  # fmt: skip
    return items


def revisions(found: State) -> tuple[Revision, ...]:
    by_name: Mapping[str, Any] = {
        one["metadata"]["name"]: one for one in objects(found, CONFIG_MAPS)
    }
    return read(by_name, KUBEADM.parts)


def test_revisions_are_complete_intact_and_have_their_outcome(file: Path) -> None:
    found = revisions(state(file))
    assert len(found) >= 2
    for revision in found:
        assert revision.complete
        assert revision.intact
        assert revision.outcome == names.OUTCOME_INSTALLED


def test_inputs_of_revisions_are_read(file: Path) -> None:
    *_, last = revisions(state(file))
    inputs = read_inputs(last.inputs)
    assert inputs is not None


def test_what_was_adopted_is_read(file: Path) -> None:
    first, *_ = revisions(state(file))
    assert read_record(first) != NOTHING


def test_the_revision_that_each_node_runs_is_read(file: Path) -> None:
    found = state(file)
    (kubescheduler,) = objects(found, KUBE_SCHEDULERS)
    numbers = {revision.number for revision in revisions(found)}
    entries = kubescheduler["status"]["nodeStatuses"]
    assert {read_node_status(entry).current for entry in entries} <= numbers
    assert {operand_pods.read(pod).revision for pod in objects(found, PODS)} <= numbers


async def test_commands_show_it(file: Path, cluster: Cluster) -> None:
    found = state(file)
    for resource in (CONFIG_MAPS, PODS, SCHEDULERS, KUBE_SCHEDULERS, SCHEDULER_PROFILES):
        cluster.api.served |= {resource}
        for obj in objects(found, resource):
            cluster.put(resource, obj)
    done = await cluster.run("history", "-o", "json", "--platform", "kubeadm")
    assert done.code == 0, done.err
    shown = json.loads(done.out)
    assert [one["revision"] for one in shown] == [one.number for one in revisions(found)][::-1]
    assert shown[0]["changes"]
    undone = await cluster.run("rollout", "undo", "--dry-run", "--platform", "kubeadm")
    assert undone.code == 0, undone.err
    assert "parallelism" in undone.out

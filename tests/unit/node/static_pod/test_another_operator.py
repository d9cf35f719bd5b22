"""OpenShift's own operator uses the same names: its scheduler comes back, with what it mounts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kube_scheduler_operator.node.protocol.result import InstallerOutcome

from .fake_node import CRASHES, revision_manifest
from .test_restore import restored
from .world import World

DIRECTORY = "kube-scheduler-pod-7"


def manifest_of_openshifts_operator() -> bytes:
    pod = json.loads(revision_manifest(7))
    pod["spec"]["containers"].append({"name": "kube-scheduler-cert-syncer"})
    return json.dumps(pod).encode()


MANIFEST = manifest_of_openshifts_operator()


def contents(world: World) -> dict[str, bytes]:
    directory = world.resources / DIRECTORY
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A node of OpenShift's operator: label, mount and copy of the manifest have its revision."""
    world = World(tmp_path, {9: CRASHES}, stock=MANIFEST)
    world.foreign.append(MANIFEST)
    directory = world.resources / DIRECTORY
    (directory / "configmaps/config").mkdir(parents=True)
    (directory / "configmaps/config/config.yaml").write_text("{}")
    (directory / "kube-scheduler-pod.yaml").write_bytes(MANIFEST)
    return world


def test_removal_restores_its_scheduler_and_keeps_what_it_mounts(world: World) -> None:
    before = contents(world)
    assert world.install(8).result is InstallerOutcome.INSTALLED
    assert world.install(10).result is InstallerOutcome.INSTALLED
    assert contents(world) == before
    assert restored(world).result is InstallerOutcome.RESTORED
    assert world.path.read_bytes() == MANIFEST
    assert contents(world) == before
    assert [path.name for path in world.resources.iterdir()] == [DIRECTORY]


def test_its_scheduler_comes_back_if_the_first_revision_fails(world: World) -> None:
    assert world.install(9).result is InstallerOutcome.ROLLED_BACK
    assert world.path.read_bytes() == MANIFEST


def test_a_revision_with_the_number_of_its_directory_is_refused(world: World) -> None:
    before = contents(world)
    result = world.install(7)
    assert result.result is InstallerOutcome.SUPERSEDED
    assert "another operator" in result.reason
    assert contents(world) == before
    assert world.path.read_bytes() == MANIFEST

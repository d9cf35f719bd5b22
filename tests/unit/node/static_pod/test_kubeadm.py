"""What kubeadm wrote on a node, and whether it is still at work there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kube_scheduler_operator.node.protocol.disk_report import DiskReport
from kube_scheduler_operator.node.protocol.result import InstallerOutcome
from kube_scheduler_operator.node.static_pod import kubeadm
from kube_scheduler_operator.node.static_pod.activate import ManifestAppearedError
from kube_scheduler_operator.node.static_pod.disk_state import WatchedFiles, look

from .fake_node import NEVER_READY, revision_manifest
from .kubeadm_files import NEW, SERVER, server, stock
from .world import World

OLD = "registry.k8s.io/kube-scheduler:v1.35.4"


def working(folder: Path, age: float = 0.0) -> Path:
    """The directory of an upgrade that moved a manifest `age` seconds ago."""
    path = folder / "tmp" / f"{kubeadm.WORK}123"
    path.mkdir(parents=True, exist_ok=True)
    os.utime(path, (time.time() - age,) * 2)
    return path


# --- reading ---------------------------------------------------------------------------------


def test_the_image_of_kubeadms_manifest_is_read() -> None:
    assert kubeadm.image_in(stock(), "kube-scheduler") == NEW


def test_a_patched_manifest_may_have_other_containers() -> None:
    sidecar = "  - image: registry.example/proxy:1\n    name: proxy\n"
    text = stock().decode().replace("  hostNetwork: true", f"{sidecar}  hostNetwork: true")
    assert kubeadm.image_in(text.encode(), "kube-scheduler") == NEW


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"\xff\xfe",
        b"kind: Pod\n",
        revision_manifest(3),
        stock().replace(b"kind: Pod", b"kind: Job"),
        stock().replace(b"    name: kube-scheduler\n", b"    name: other\n"),
        b"kind: Pod\nmetadata:\n  annotations:\n    a: |\n      spec:\n",
    ],
)
def test_another_manifest_has_no_image_of_kubeadm(data: bytes | None) -> None:
    assert kubeadm.image_in(data, "kube-scheduler") == ""


def test_the_api_servers_image_is_read_from_the_manifest_beside(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "kube-apiserver.yaml").write_bytes(server())
    found = kubeadm.read(manifests / "kube-scheduler.yaml", "kube-scheduler", time.time())
    assert found == kubeadm.KubeadmFiles("", SERVER, "")


@pytest.mark.parametrize(("age", "runs"), [(0, True), (600, True), (700, False), (90_000, False)])
def test_an_upgrade_runs_until_it_has_moved_nothing_for_long(
    tmp_path: Path, age: float, runs: bool
) -> None:
    name = working(tmp_path, age).name
    assert kubeadm.running_upgrade(tmp_path / "tmp", time.time()) == (name if runs else "")


def test_other_directories_of_kubeadm_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "tmp/kubeadm-backup-manifests-2026-01-01").mkdir(parents=True)
    assert kubeadm.running_upgrade(tmp_path / "tmp", time.time()) == ""
    assert kubeadm.running_upgrade(tmp_path / "absent", time.time()) == ""


# --- reports ---------------------------------------------------------------------------------


def test_a_guard_reports_an_upgrade_and_what_it_wrote(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.install(1)
    watched = WatchedFiles(None, world.resources, world.path)
    assert look(watched, time.time()).edit == ""
    name = working(tmp_path).name
    begun = look(watched, time.time())
    assert (begun.work, begun.edits, begun.image) == (name, (), "")
    assert begun.edit
    world.path.write_bytes(stock())
    (world.manifests / "kube-apiserver.yaml").write_bytes(server())
    moved = look(watched, time.time())
    assert (moved.image, moved.api_server) == (NEW, SERVER)
    (tmp_path / "tmp" / name).rmdir()
    ended = look(watched, time.time())
    assert (ended.work, ended.image) == ("", NEW)
    assert begun.edit == moved.edit, "another report would delay the next one"
    assert len({begun.edit, ended.edit}) == 2, "both are reported"
    assert DiskReport.parse(ended.serialise()) == ended


def test_a_guard_reports_a_manifest_that_is_missing_while_kubeadm_works(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.install(1)
    watched = WatchedFiles(None, world.resources, world.path)
    working(tmp_path)
    begun = look(watched, time.time())
    data = world.path.read_bytes()
    world.path.unlink()
    missing = look(watched, time.time())
    assert missing.edit != begun.edit
    assert (missing.edits, missing.image, missing.labelled) == ((str(world.path),), "", 0)
    world.path.write_bytes(data)
    assert look(watched, time.time()).edit == begun.edit


def test_a_report_of_an_earlier_guard_is_read() -> None:
    text = DiskReport(revision=2, content="abc").serialise()
    for name in ("image", "api_server", "work"):
        text = text.replace(f',"{name}":""', "")
    assert DiskReport.parse(text) == DiskReport(revision=2, content="abc")


# --- installers ------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.install(1)
    made.foreign += [stock(), stock(OLD)]
    return made


def test_nothing_is_replaced_while_kubeadm_works(world: World, tmp_path: Path) -> None:
    name = working(tmp_path).name
    result = world.install(2)
    assert result.result is InstallerOutcome.OVERTAKEN
    assert (result.work, world.current) == (name, 1)
    assert name in result.reason
    (tmp_path / "tmp" / name).rmdir()
    assert world.install(2).result is InstallerOutcome.INSTALLED


def test_another_version_of_kubeadm_is_not_replaced(world: World) -> None:
    world.path.write_bytes(stock())
    world.node.settle(20)
    result = world.install(2, image=OLD, follow_kubeadm=True)
    assert (result.result, result.image) == (InstallerOutcome.OVERTAKEN, NEW)
    assert world.path.read_bytes() == stock()
    assert world.install(2, image=NEW, follow_kubeadm=True).result is InstallerOutcome.INSTALLED


def test_another_version_is_replaced_if_an_image_is_configured(world: World) -> None:
    world.path.write_bytes(stock())
    world.node.settle(20)
    assert world.install(2, image=OLD).result is InstallerOutcome.INSTALLED


def test_an_upgrade_during_a_swap_is_noticed_before_it_is_overwritten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = world.swap(2, image=OLD, follow_kubeadm=True)
    withdraw = world.layout.withdraw

    def withdraw_and_lose() -> None:
        withdraw()
        world.path.write_bytes(stock())

    with monkeypatch.context() as patch:
        patch.setattr(world.layout, "withdraw", withdraw_and_lose)
        with pytest.raises(ManifestAppearedError):
            swap.run()
    assert world.path.read_bytes() == stock()
    result = world.install(2, image=OLD, follow_kubeadm=True)
    assert result.result is InstallerOutcome.OVERTAKEN
    assert world.layout.journal() is None


def test_a_revision_that_fails_goes_back_to_what_kubeadm_wrote(tmp_path: Path) -> None:
    world = World(tmp_path, {2: NEVER_READY})
    world.install(1)
    world.foreign.append(stock())
    world.path.write_bytes(stock())
    world.node.settle(20)
    result = world.install(2, image=NEW, follow_kubeadm=True)
    assert result.result is InstallerOutcome.ROLLED_BACK
    assert (result.last_good_revision, result.image) == (0, NEW)
    assert world.path.read_bytes() == stock()


def test_after_a_downgrade_the_manifest_of_before_is_the_newest_adopted_one(world: World) -> None:
    for revision, image in enumerate((OLD, NEW, OLD), 2):
        world.path.write_bytes(stock(image))
        world.node.settle(20)
        world.install(revision, image=image, follow_kubeadm=True)
    adopted = world.layout.adopted()
    assert adopted is not None
    assert adopted.data == stock(OLD)

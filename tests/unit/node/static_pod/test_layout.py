"""The journal of a swap, which installers of other versions read as well, and what is synced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kube_scheduler_operator.base.files import Disk
from kube_scheduler_operator.node.static_pod import manifest
from kube_scheduler_operator.node.static_pod.layout import Journal, Layout, Phase

from .fake_node import revision_manifest

JOURNAL = Journal(
    revision=7,
    retry=1,
    phase=Phase.ROLLBACK,
    reason="OperandFailed",
    last_error="address already in use",
    boot_id="b",
    placed=1.5,
    steps={"remove": 0.2},
)


def test_a_journal_is_read_as_it_was_written() -> None:
    assert Journal.parse(JOURNAL.serialise()) == JOURNAL


def test_the_keys_in_the_file_do_not_change() -> None:
    assert set(json.loads(JOURNAL.serialise())) == {
        "away_since",
        "boot_id",
        "last_words",  # words: allow last words - the key in the file
        "phase",
        "placed",
        "placed_at",
        "reason",
        "retry",
        "revision",
        "steps",
    }


@pytest.mark.parametrize("data", [None, b"", b"[]", b"{}", b'{"phase": "sideways"}'])
def test_an_invalid_journal_is_ignored(data: bytes | None) -> None:
    assert Journal.parse(data) is None


class SyncRecorder(Disk):
    def __init__(self) -> None:
        self.synced: set[Path] = set()

    def sync(self, path: Path) -> None:
        super().sync(path)
        self.synced.add(path)


def test_what_an_installer_wrote_before_it_ended_is_synced_by_the_next_one(tmp_path: Path) -> None:
    """Equal bytes do not prove it: until they are synced, a power cut takes them away."""
    resources, manifests = tmp_path / "resources", tmp_path / "manifests"
    resources.mkdir()
    manifests.mkdir()
    path = manifests / "kube-scheduler.yaml"
    target = manifest.parse(revision_manifest(1), "kube-scheduler")
    before = Layout(resources, path, "kube-scheduler", Disk())
    before.prepare(target)
    disk = SyncRecorder()
    layout = Layout(resources, path, "kube-scheduler", disk)
    layout.prepare(target)
    assert disk.synced == {manifests / ".kube-scheduler.yaml"}
    before.place(target)
    layout.confirm_placed()
    assert {path, manifests} <= disk.synced
    disk.synced = set()
    before.make_last_good(1)
    layout.make_last_good(1)
    assert disk.synced == {resources}
    disk.synced = set()
    layout.clear_journal()
    assert disk.synced == {resources}


@pytest.mark.parametrize("used", [False, True])
def test_clearing_removes_the_directory_of_upgrades_if_it_is_empty(
    tmp_path: Path, used: bool
) -> None:
    manifests, upgrades = tmp_path / "manifests", tmp_path / "tmp"
    resources = tmp_path / "static-pod-resources"
    for directory in (manifests, upgrades, resources):
        directory.mkdir()
    if used:
        (upgrades / "kubeadm-backup-etcd-2026").mkdir()
    layout = Layout(resources, manifests / "kube-scheduler.yaml", "kube-scheduler", Disk())
    layout.clear()
    assert upgrades.exists() is used
    assert not resources.exists()
    assert manifests.exists()

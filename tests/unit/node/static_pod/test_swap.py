"""A swap ends with a healthy scheduler, whatever fails and whenever the installer is killed."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_scheduler_operator.node.protocol.result import InstallerOutcome
from kube_scheduler_operator.node.static_pod import manifest
from kube_scheduler_operator.node.static_pod.activate import NoApiServerError
from kube_scheduler_operator.node.static_pod.layout import RevisionFiles

from .fake_node import (
    CRASHES,
    FLAPS,
    GOOD,
    NEVER_READY,
    NOT_STARTED,
    SLOW,
    STOCK,
    Killed,
    revision_manifest,
)
from .world import CONTENT, World, make_world

OTHER = dict.fromkeys(CONTENT, b'{"a":1}\n')


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# --- the good path -------------------------------------------------------------------------------
def test_healthy_revision_is_installed(world: World) -> None:
    result = world.install(1)
    assert (result.result, result.last_good_revision) == (InstallerOutcome.INSTALLED, 1)
    assert world.current == 1
    assert world.node.running() == [1]
    world.check_is_tidy()


def test_steps_are_timed(world: World) -> None:
    steps = world.install(1).steps
    assert list(steps) == ["stage", "remove", "release", "write", "ready", "settle"]
    assert steps["settle"] == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize(("shows_cgroups", "limit"), [(True, 4.5), (False, 7.0)])
def test_swap_avoids_the_kubelets_back_off(world: World, shows_cgroups: Any, limit: Any) -> None:
    world.node.shows_cgroups = shows_cgroups
    for revision in range(1, 12):
        begin = world.node.time
        world.install(revision)
        world.node.advance(0.37)  # another phase of the housekeeping each time
        assert world.node.time - begin - 2.0 < limit, "settling excluded"


def test_remaining_cgroup_does_not_block_a_swap(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.node, "has_worker", lambda: True)
    steps = world.install(1).steps
    assert steps["release"] < 5.0
    assert world.node.running() == [1]


def test_a_manifest_that_an_installer_placed_before_it_ended_is_synced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then a power cut takes away what the next installer watches."""
    world.kill_if = lambda: world.current == 1
    with pytest.raises(Killed):
        world.install(1)
    world.kill_if = lambda: False
    synced: list[Path] = []
    monkeypatch.setattr(world.disk, "sync", synced.append)
    world.install(1)
    assert {world.path, world.manifests} <= {*synced}
    world.check_is_tidy()


def test_stock_manifest_is_saved_byte_for_byte(world: World) -> None:
    world.install(1)
    world.install(2)
    assert world.layout.stock.read_bytes() == STOCK


def test_later_kubeadm_manifest_is_saved_beside_the_stock_manifest(world: World) -> None:
    world.install(1)
    upgraded = STOCK + b"# v1.36\n"
    world.path.write_bytes(upgraded)
    swap = world.swap(2)
    world.node.on_step = world.disk.on_step = world.node.look
    assert swap.run().result is InstallerOutcome.INSTALLED
    kept = {path.read_bytes() for path in world.layout.stock.parent.iterdir()}
    assert kept == {STOCK, upgraded}
    assert world.layout.stock.read_bytes() == STOCK


def test_running_revision_is_not_touched(world: World) -> None:
    world.install(1)
    (process,) = world.node.operands()
    before = world.path.stat().st_ino
    assert world.install(1).result is InstallerOutcome.INSTALLED
    assert world.node.operands() == (process,)
    assert world.path.stat().st_ino == before


def test_changed_manifest_keeps_the_mounted_directory(world: World) -> None:
    world.install(1)
    directory = world.layout.revision_dir(1)
    before = directory.stat().st_ino
    other = manifest.parse(revision_manifest(1) + b"\n", "kube-scheduler")
    assert world.layout.stage(1, RevisionFiles(other, CONTENT))
    assert directory.stat().st_ino == before
    assert (directory / "kube-scheduler-pod.yaml").read_bytes() == other.data
    assert world.layout.outcome(1) is None, "the other manifest's outcome does not apply"
    assert not world.layout.stage(1, RevisionFiles(other, CONTENT))


def test_changed_configuration_replaces_the_directory(world: World) -> None:
    world.install(1)
    directory = world.layout.revision_dir(1)
    before = directory.stat().st_ino
    current = world.layout.current()
    assert current is not None
    assert world.layout.stage(1, RevisionFiles(current, OTHER))
    assert directory.stat().st_ino != before


def test_missing_manifest_is_written(tmp_path: Path) -> None:
    world = World(tmp_path, stock=None)
    assert world.install(1).result is InstallerOutcome.INSTALLED
    assert world.node.running() == [1]


def test_slow_start_is_awaited(tmp_path: Path) -> None:
    assert make_world(tmp_path, r1=SLOW).install(1).result is InstallerOutcome.INSTALLED


# --- failures ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (CRASHES, "kube-scheduler exited 3 times after its start"),
        (NEVER_READY, "kube-scheduler ran, but did not become ready within 30 s"),
        (NOT_STARTED, "the kubelet did not start the pod within 30 s"),
        (FLAPS, "kube-scheduler exited 3 times after its start"),
        (SLOW, "kube-scheduler ran, but did not become ready within 10 s"),
    ],
)
@pytest.mark.parametrize("before", [None, 3], ids=["over stock", "over a revision"])
def test_failing_revision_is_rolled_back(
    tmp_path: Path, kind: Any, reason: Any, before: Any
) -> None:
    world = make_world(tmp_path, r4=kind)
    if before:
        world.install(before)
    result = world.install(4, health_timeout=10.0 if kind == SLOW else 30.0)
    assert result.result is InstallerOutcome.ROLLED_BACK
    assert result.reason == reason
    assert result.last_good_revision == (before or 0)
    assert world.current == before
    assert world.node.running() == [before]
    world.check_is_tidy()


def test_crashes_are_detected_before_the_timeout(tmp_path: Path) -> None:
    world = make_world(tmp_path, r1=CRASHES)
    result = world.install(1)
    assert result.last_error == "bad cipher"
    # Three exits include the kubelet's first back-off of 10 s; the time-out is 60 s.
    assert result.steps["ready"] < 15


def test_api_server_outage_does_not_fail_the_revision(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    world.node.outages = [(world.node.time, world.node.time + 28.0)]
    result = world.install(1)
    assert result.result is InstallerOutcome.INSTALLED
    assert result.steps["ready"] > 28 - result.steps["release"]


def test_long_api_server_outage_is_reported_and_awaited(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    begun = world.node.time
    world.node.outages = [(begun, begun + 200.0)]
    errors: list[str] = []
    result = None
    while result is None:
        try:
            result = world.install(1)
        except NoApiServerError as error:
            errors.append(str(error))
            world.node.advance(10.0)
    assert len(errors) > 2
    assert set(errors) == {"the API server in the scheduler's kubeconfig does not answer"}
    assert world.node.time > begun + 200.0
    assert (result.result, world.current) == (InstallerOutcome.INSTALLED, 1)


@pytest.mark.parametrize("killed_after", [10.0, 20.0, 30.0, 35.0])
def test_installer_killed_in_an_outage_resumes_with_it(tmp_path: Path, killed_after: Any) -> None:
    world = make_world(tmp_path)
    begun = world.node.time
    world.node.outages = [(begun, begun + 25.0)]
    world.kill_if = lambda: world.node.time >= begun + killed_after
    with contextlib.suppress(Killed):
        world.install(1)
    world.kill_if = lambda: False
    world.node.advance(10.0)
    assert world.install(1).result is InstallerOutcome.INSTALLED


def test_crashes_are_detected_after_an_outage(tmp_path: Path) -> None:
    world = make_world(tmp_path, r1=CRASHES)
    outage = (world.node.time, world.node.time + 20.0)
    world.node.outages = [outage]
    result = world.install(1)
    assert result.result is InstallerOutcome.ROLLED_BACK
    assert result.reason.startswith("kube-scheduler exited ")
    assert world.node.time > outage[1]


def test_timeout_restarts_after_an_outage(tmp_path: Path) -> None:
    world = make_world(tmp_path, r1=NEVER_READY)
    begun = world.node.time
    world.node.outages = [(begun, begun + 20.0)]
    result = world.install(1)
    assert result.result is InstallerOutcome.ROLLED_BACK
    assert result.steps["ready"] > 20.0 + 30.0 - 5.0


def test_failed_rollback_is_reported(tmp_path: Path) -> None:
    world = make_world(tmp_path, r2=CRASHES)
    world.install(1)
    world.node.behaviour[1] = NEVER_READY
    result = world.install(2)
    assert result.result is InstallerOutcome.UNHEALTHY
    assert "rollback to revision 1 failed" in result.reason
    assert world.current == 1


def test_without_last_good_manifest_the_new_one_stays(tmp_path: Path) -> None:
    world = World(tmp_path, {1: NEVER_READY}, stock=None)
    result = world.install(1)
    assert result.result is InstallerOutcome.UNHEALTHY
    assert "no other manifest" in result.reason
    assert world.current == 1


def test_truncated_stock_manifest_is_saved_but_never_restored(tmp_path: Path) -> None:
    world = World(tmp_path, {1: NEVER_READY}, stock=None)
    world.node.on_step = world.disk.on_step = world.node.look
    world.path.write_bytes(b"apiVersion: v1\nkin")
    assert world.install(1).result is InstallerOutcome.UNHEALTHY
    assert world.current == 1
    (kept,) = (world.resources / "kube-scheduler-stock").iterdir()
    assert kept.read_bytes() == b"apiVersion: v1\nkin"


def test_failing_revision_that_is_the_last_good_one_stays(world: World) -> None:
    world.install(1)
    world.node.behaviour[1] = NEVER_READY
    result = world.install(1)
    assert result.result is InstallerOutcome.UNHEALTHY
    assert world.current == 1


# --- attempts ------------------------------------------------------------------------------------
def test_failed_attempt_is_reported_again_but_not_repeated(tmp_path: Path) -> None:
    world = make_world(tmp_path, r1=CRASHES)
    first = world.install(1)
    (process,) = world.node.operands()
    again = world.install(1)
    assert again == first
    assert world.node.operands() == (process,)


@pytest.mark.parametrize("behaviour", [GOOD, CRASHES], ids=["installed", "failed"])
def test_every_result_has_its_own_time_since_boot_whatever_the_wall_clock(
    tmp_path: Path, behaviour: Any
) -> None:
    world = make_world(tmp_path, r2=behaviour)
    world.install(1)
    begin = world.node.now()
    first = world.install(2)
    assert begin < first.read.seconds <= world.node.now()
    assert first.read.boot == world.node.boot_id()
    world.node.settle(10)
    assert world.install(2).read.seconds > first.read.seconds
    assert world.install(1).read.seconds > first.read.seconds, "also if nothing is changed"


def test_retry_changes_the_node_again(tmp_path: Path) -> None:
    world = make_world(tmp_path, r1=CRASHES)
    world.install(1)
    world.node.behaviour[1] = GOOD
    assert world.install(1, retry=1).result is InstallerOutcome.INSTALLED
    assert world.current == 1


def test_changed_content_is_a_new_attempt(tmp_path: Path) -> None:
    world = make_world(tmp_path, r1=CRASHES)
    world.install(1)
    world.node.behaviour[1] = GOOD
    assert world.install(1, content=OTHER).result is InstallerOutcome.INSTALLED


# --- older and newer -----------------------------------------------------------------------------
def test_older_revision_does_not_replace_a_newer_one(world: World) -> None:
    world.install(5)
    result = world.install(4)
    assert result.result is InstallerOutcome.SUPERSEDED
    assert result.last_good_revision == 5
    assert world.current == 5
    assert not world.layout.revision_dir(4).exists()


def test_declared_rollback_replaces_a_newer_revision(world: World) -> None:
    world.install(5)
    assert world.install(4, rollback=True).result is InstallerOutcome.INSTALLED
    assert world.current == 4


def test_older_installer_only_restores_a_manifest_after_a_newer_one(world: World) -> None:
    world.install(1)
    world.node.behaviour[3] = NEVER_READY
    kill_when_absent(world, 3)
    result = world.install(2)
    assert result.result is InstallerOutcome.SUPERSEDED
    assert world.current == 1
    assert world.install(3).result is InstallerOutcome.ROLLED_BACK


def test_newer_installer_takes_over_from_a_killed_older_one(world: World) -> None:
    world.install(1)
    kill_when_absent(world, 2)
    assert world.install(3).result is InstallerOutcome.INSTALLED
    assert world.current == 3
    world.check_is_tidy()


def kill_when_absent(world: World, revision: Any) -> None:
    """Kill an installer while there is no manifest."""
    world.kill_if = lambda: not world.path.exists()
    with pytest.raises(Killed):
        world.install(revision)
    world.kill_if = lambda: False
    assert world.current == "nothing"


# --- old revisions on the disk -------------------------------------------------------------------
def revisions_on_disk(world: World) -> list[Any]:
    return sorted(int(p.name.rpartition("-")[2]) for p in world.resources.glob("*-pod-[0-9]*"))


def test_success_removes_unneeded_revisions(world: World) -> None:
    for revision in (1, 2, 3, 4):
        world.install(revision)
    assert revisions_on_disk(world) == [1, 2, 3, 4], "not requested"
    world.install(5, keep=frozenset({2}))
    assert revisions_on_disk(world) == [2, 5]
    world.check_is_tidy()


def test_failure_removes_nothing(tmp_path: Path) -> None:
    world = make_world(tmp_path, r3=CRASHES)
    world.install(1)
    world.install(2)
    assert world.install(3, keep=frozenset()).result is InstallerOutcome.ROLLED_BACK
    assert revisions_on_disk(world) == [1, 2, 3]


def test_newer_revisions_and_other_files_stay(world: World) -> None:
    for name in ("kube-scheduler-pod-9", "kube-scheduler-pod-old", "kube-scheduler-pods"):
        (world.resources / name).mkdir()
    world.install(1)
    result = world.install(2, keep=frozenset())
    assert revisions_on_disk(world) == [2, 9]
    assert result.strangers == ("kube-scheduler-pod-old",)
    assert (world.resources / "kube-scheduler-pods").exists()


def test_failure_to_remove_does_not_affect_the_result(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.install(1)

    def broken(_keep: Any, _below: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(world.layout, "prune", broken)
    assert world.install(2, keep=frozenset()).result is InstallerOutcome.INSTALLED
    assert "Failed to remove old revisions: [Errno 30] Read-only file system" in caplog.text


# --- leaving early -------------------------------------------------------------------------------
def test_exit_restores_the_last_good_manifest(world: World) -> None:
    world.install(1)
    kill_when_absent(world, 2)
    world.layout.leave_running()
    assert world.current == 1


def test_exit_without_last_good_manifest_places_the_new_one(tmp_path: Path) -> None:
    world = World(tmp_path, stock=None)
    world.kill_if = lambda: world.layout.staged(1) is not None
    with pytest.raises(Killed):
        world.install(1)
    world.kill_if = lambda: False
    world.layout.leave_running()
    assert world.current == 1


def test_exit_keeps_an_existing_manifest(world: World) -> None:
    world.install(1)
    before = world.path.stat().st_ino
    world.layout.leave_running()
    assert world.path.stat().st_ino == before


# --- killed at every step ------------------------------------------------------------------------
SCENARIOS = [
    pytest.param({}, InstallerOutcome.INSTALLED, 2, id="good"),
    pytest.param({2: CRASHES}, InstallerOutcome.ROLLED_BACK, None, id="crashes"),
]


@pytest.mark.parametrize("reboot", [False, True], ids=["killed", "power cut"])
@pytest.mark.parametrize(("behaviour", "outcome", "left"), SCENARIOS)
def test_kill_at_every_step_leads_to_the_same_result(
    tmp_path: Path, behaviour: Any, outcome: Any, left: Any, reboot: Any
) -> None:
    killed, step = True, 0
    while killed:
        step += 1
        directory = tmp_path / str(step)
        directory.mkdir()
        world = World(directory, behaviour)
        world.node.on_step = world.node.look  # disk operations only: see below for the others
        killed = world.install_killed_at(step, 2)
        if reboot:
            world.node.reboot()
        world.node.advance(step % 5)
        result = world.install(2)
        assert (result.result, world.current) == (outcome, left), f"killed at step {step}"
        world.node.settle(10)  # a known result comes at once, even while a node still boots
        assert world.node.running() == [left]
        world.check_is_tidy()
    assert step > 30


@settings(max_examples=40)
@given(
    kills=st.lists(st.tuples(st.integers(1, 150), st.integers(0, 20), st.booleans()), max_size=5),
    kind=st.sampled_from([GOOD, GOOD, CRASHES, NEVER_READY, FLAPS, NOT_STARTED]),
    revisions=st.lists(st.integers(2, 4), min_size=1, max_size=3).map(sorted),
)
def test_any_sequence_of_kills_ends_with_a_healthy_scheduler(
    tmp_path_factory: pytest.TempPathFactory, kills: Any, kind: Any, revisions: Any
) -> None:
    world = World(tmp_path_factory.mktemp("world"), {revisions[-1]: kind})
    world.install(1)
    for index, (step, pause, reboot) in enumerate(kills):
        world.install_killed_at(step, revisions[min(index, len(revisions) - 1)])
        if reboot:
            world.node.reboot()
        world.node.advance(pause)
    result = world.install(revisions[-1])
    assert result.result is (
        InstallerOutcome.INSTALLED if kind == GOOD else InstallerOutcome.ROLLED_BACK
    )
    world.node.settle(10)
    assert world.node.running() == [world.current]
    assert (world.current == revisions[-1]) is (kind == GOOD)
    world.check_is_tidy()


def test_repeatedly_killed_watch_does_not_restart_its_timeout(tmp_path: Path) -> None:
    world = make_world(tmp_path, r1=NEVER_READY)
    begin = world.node.time
    while world.install_killed_at(100, 1):
        assert world.node.time - begin < 200
    assert world.current is None
    assert world.node.running() == [None]


# --- what the disk proves -------------------------------------------------------------------------


def labelled(data: bytes, revision: int) -> bytes:
    """The manifest of revision 2 with another revision in its label and in its path."""
    text = data.replace(b'"revision": "2"', b'"revision": "%d"' % revision)
    return text.replace(b"kube-scheduler-pod-2", b"kube-scheduler-pod-%d" % revision)


@pytest.mark.parametrize("label", [1, 99, 2**63 - 1])
def test_a_label_edited_by_hand_supersedes_nothing(world: World, label: Any) -> None:
    world.install(2)
    edited = labelled(world.path.read_bytes(), label)
    world.foreign.append(edited)
    world.path.write_bytes(edited)
    assert world.install(3).result is InstallerOutcome.INSTALLED
    assert world.current == 3


def test_a_newer_revision_on_the_disk_supersedes_whatever_the_label(world: World) -> None:
    """The API has forgotten revision 2, and the label in the manifest is 1."""
    world.install(2)
    edited = labelled(world.path.read_bytes(), 1)
    world.foreign.append(edited)
    world.path.write_bytes(edited)
    result = world.install(1, retry=1)
    assert (result.result, result.newest) == (InstallerOutcome.SUPERSEDED, 2)


@pytest.mark.parametrize("method", ["stage", "run"])
def test_a_number_with_other_content_is_refused_before_anything_is_written(
    world: World, method: Any
) -> None:
    world.install(2, content_hash="one")
    world.node.settle(10)
    directory = world.resources / "kube-scheduler-pod-2"
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    request = {"retry": 1, "content_hash": "another", "content": {"configmaps/x/y": b"other"}}
    result = getattr(world.swap(2, **request), method)()
    assert (result.result, result.newest) == (InstallerOutcome.SUPERSEDED, 2)
    assert "other content" in result.reason
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
    assert world.current == 2


def test_an_edited_manifest_of_the_operator_is_saved_but_never_restored_by_a_removal(
    world: World,
) -> None:
    world.install(2)
    edited = world.path.read_bytes() + b" "
    world.foreign.append(edited)
    world.path.write_bytes(edited)
    world.install(2, retry=1)
    (kept,) = (world.resources / "kube-scheduler-stock").glob("edited-*.yaml")
    assert kept.read_bytes() == edited
    assert getattr(world.layout.adopted(), "data", None) == STOCK


def test_a_repaired_directory_restarts_the_scheduler_even_if_the_installer_is_killed(
    tmp_path: Path,
) -> None:
    """The directory is repaired while staging; the restart must not be forgotten after that."""
    for step in range(1, 200):
        folder = tmp_path / str(step)
        folder.mkdir()
        world = World(folder)
        world.install(1)
        process = [pod.process for pod in world.node.pods if pod.process]
        (world.resources / "kube-scheduler-pod-1/configmaps/config/config.yaml").write_text("x")
        killed = world.install_killed_at(step, 1, retry=1)
        result = world.install(1, retry=1)
        assert result.result is InstallerOutcome.INSTALLED
        assert [pod.process for pod in world.node.pods if pod.process] != process
        assert world.layout.journal() is None
        if not killed:
            return
    raise AssertionError("the installer never ended")


# --- links that something with fewer rights planted -----------------------------------------------


@pytest.fixture
def victim(tmp_path: Path) -> Any:
    path = tmp_path / "victim"
    path.mkdir()
    (path / "file").write_bytes(b"of another program")
    return path


PLANTED = [
    "kube-scheduler-pod-2",
    ".kube-scheduler-staging",
    ".kube-scheduler-scratch",
    "kube-scheduler-swap.json",
    "kube-scheduler-last-known-good",
    "kube-scheduler-pod-2/configmaps",
    "kube-scheduler-pod-2/outcome.json",
]


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("target", ["victim", "victim/file", "victim/nothing"])
def test_nothing_is_written_through_a_planted_link(
    world: World, victim: Any, name: Any, target: Any
) -> None:
    path = world.resources / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(victim.parent / target)
    assert world.install(2).result is InstallerOutcome.INSTALLED
    assert [path.name for path in victim.iterdir()] == ["file"]
    assert (victim / "file").read_bytes() == b"of another program"
    directory = world.resources / "kube-scheduler-pod-2"
    assert not any(path.is_symlink() for path in (directory, *directory.rglob("*")))


def test_a_link_in_place_of_the_prepared_manifest_is_replaced(world: World, victim: Any) -> None:
    (world.manifests / ".kube-scheduler.yaml").symlink_to(victim / "file")
    assert world.install(2).result is InstallerOutcome.INSTALLED
    assert (victim / "file").read_bytes() == b"of another program"
    assert not world.path.is_symlink()


def test_a_linked_directory_has_no_last_good_manifest(world: World, victim: Any) -> None:
    world.install(2)
    directory = world.resources / "kube-scheduler-pod-2"
    shutil.copytree(directory, victim / "copy")
    shutil.rmtree(directory)
    assert world.layout.last_known_good.readlink().parts[0] == directory.name
    directory.symlink_to(victim / "copy")
    assert getattr(world.layout.last_good(), "data", None) == STOCK


def test_a_link_out_of_the_directory_is_not_a_last_good_manifest(world: World, victim: Any) -> None:
    world.install(2)
    (victim / "kube-scheduler-pod.yaml").write_bytes(revision_manifest(99))
    link = world.layout.last_known_good
    for target in (str(victim / "kube-scheduler-pod.yaml"), "../victim/kube-scheduler-pod.yaml"):
        link.unlink()
        link.symlink_to(target)
        assert getattr(world.layout.last_good(), "data", None) == STOCK

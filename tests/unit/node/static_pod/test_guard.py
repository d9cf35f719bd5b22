"""The guard: what counts as changed on its node's disk, and how the guard reports it."""

from __future__ import annotations

import dataclasses
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.node.protocol.disk_report import DiskReport
from kube_scheduler_operator.node.protocol.message import (
    EXIT_CHANGED,
    EXIT_DEFINITIVE,
    EXIT_RETRY,
    UNKNOWN,
    BootTime,
)
from kube_scheduler_operator.node.protocol.result import InstallerOutcome
from kube_scheduler_operator.node.static_pod import guard, host, manifest, mounts
from kube_scheduler_operator.node.static_pod.disk_state import look
from kube_scheduler_operator.node.static_pod.guard import GuardOptions
from kube_scheduler_operator.node.static_pod.kubeconfig import fingerprint
from kube_scheduler_operator.node.static_pod.layout import Journal, RevisionFiles
from kube_scheduler_operator.node.static_pod.revision_directory import PREFIX

from .fake_node import STOCK, revision_manifest
from .world import CONTENT, World, make_world


class StoppedError(Exception):
    """There is nothing more in the script."""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.conf"
    path.write_text("first")
    return path


def play(monkeypatch: pytest.MonkeyPatch, script: Any) -> None:
    """Do one thing during each of the guard's pauses."""
    steps = iter(script)

    def sleep(_seconds: float) -> None:
        try:
            next(steps)()
        except StopIteration:
            raise StoppedError from None

    monkeypatch.setattr(time, "sleep", sleep)


def nothing() -> None:
    pass


def test_fingerprint_is_short_and_differs_by_content(conf: Path) -> None:
    first = fingerprint(conf)
    assert len(first) == 16
    assert fingerprint(conf) == first
    conf.write_text("second")
    assert fingerprint(conf) not in ("", first)


@pytest.mark.parametrize("content", [None, ""])
def test_missing_or_empty_file_has_no_fingerprint(conf: Path, content: Any) -> None:
    conf.unlink() if content is None else conf.write_text(content)
    assert fingerprint(conf) == ""


def wait(conf: Path | None, known: str = "", **options: Any) -> DiskReport:
    return guard.wait_for_change(GuardOptions(conf, known=known, **options))


def test_unchanged_file_is_not_reported(monkeypatch: pytest.MonkeyPatch, conf: Path) -> None:
    play(monkeypatch, [nothing] * 5)
    with pytest.raises(StoppedError):
        wait(conf, fingerprint(conf))


def test_changed_file_is_reported_after_two_equal_reads(
    monkeypatch: pytest.MonkeyPatch, conf: Path
) -> None:
    half = iter(["sec", "second", "second"])
    play(
        monkeypatch,
        [nothing, lambda: conf.write_text(next(half))] + 2 * [lambda: conf.write_text(next(half))],
    )
    found = wait(conf, fingerprint(conf))
    assert found.kubeconfig == fingerprint(conf)
    assert next(half, "") == "", "not before it is complete"


def test_replaced_file_is_reported(monkeypatch: pytest.MonkeyPatch, conf: Path) -> None:
    known = fingerprint(conf)

    def replace() -> None:
        other = conf.with_suffix(".new")
        other.write_text("second")
        other.replace(conf)

    play(monkeypatch, [replace, nothing])
    assert wait(conf, known).kubeconfig == fingerprint(conf)


MOUNTED = "36 35 8:1 {source} {point} ro,relatime - ext4 /dev/sda1 rw\n"


def mount(monkeypatch: pytest.MonkeyPatch, table: Path, point: Path) -> Any:
    """Return a function that states what is mounted at a path."""
    other = MOUNTED.format(source="/", point="/")

    def state(source: str) -> None:
        table.write_text(other + MOUNTED.format(source=source, point=point))

    monkeypatch.setattr(mounts.sources, "__defaults__", (table,))
    state("/etc/kubernetes/scheduler.conf")
    return state


@pytest.mark.parametrize(
    "source", ["/etc/kubernetes/scheduler.conf//deleted", "/etc/kubernetes/scheduler.conf.old"]
)
def test_a_file_that_was_replaced_under_its_mount_ends_the_guard_for_a_new_mount(
    monkeypatch: pytest.MonkeyPatch, conf: Path, tmp_path: Path, source: str
) -> None:
    state = mount(monkeypatch, tmp_path / "mountinfo", conf)
    reads = int(guard.REPLACED_SECONDS / guard.INTERVAL)
    play(monkeypatch, [nothing, lambda: state(source), *[nothing] * reads])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    log = tmp_path / "log"
    options = GuardOptions(conf, known=fingerprint(conf), termination_log=log)
    assert guard.main(options) == EXIT_RETRY
    assert not log.exists(), "it has nothing to report yet"


def test_a_file_that_is_back_at_once_does_not_end_the_guard(
    monkeypatch: pytest.MonkeyPatch, conf: Path, tmp_path: Path
) -> None:
    state = mount(monkeypatch, tmp_path / "mountinfo", conf)
    reads = int(guard.REPLACED_SECONDS / guard.INTERVAL) - 2
    back = partial(state, "/etc/kubernetes/scheduler.conf")
    away = partial(state, "/etc/kubernetes/scheduler.conf.old")
    play(monkeypatch, [away, *[nothing] * reads, back, nothing, away, *[nothing] * reads])
    with pytest.raises(StoppedError):
        wait(conf, fingerprint(conf))


def test_temporarily_missing_file_is_not_reported(
    monkeypatch: pytest.MonkeyPatch, conf: Path
) -> None:
    known = fingerprint(conf)
    play(monkeypatch, [conf.unlink, nothing, lambda: conf.write_text("first"), nothing, nothing])
    with pytest.raises(StoppedError):
        wait(conf, known)


def test_without_known_fingerprint_the_first_one_is_the_baseline(
    monkeypatch: pytest.MonkeyPatch, conf: Path
) -> None:
    conf.unlink()
    play(
        monkeypatch,
        [
            nothing,
            lambda: conf.write_text("first"),
            nothing,
            lambda: conf.write_text("second"),
            nothing,
        ],
    )
    found = wait(conf)
    assert found.kubeconfig == fingerprint(conf)
    assert conf.read_text() == "second"


def test_change_before_the_start_is_reported(monkeypatch: pytest.MonkeyPatch, conf: Path) -> None:
    play(monkeypatch, [nothing] * 3)
    assert wait(conf, "another").kubeconfig == fingerprint(conf)


def test_the_report_is_the_termination_message(
    monkeypatch: pytest.MonkeyPatch, conf: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    play(monkeypatch, [nothing] * 3)
    log = tmp_path / "log"
    assert guard.main(GuardOptions(conf, known="another", termination_log=log)) == EXIT_CHANGED
    assert DiskReport.parse(log.read_text()) == DiskReport(kubeconfig=fingerprint(conf))


# --- a revision on the disk -----------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A node that runs revision 2."""
    world = make_world(tmp_path)
    for number in (1, 2):
        assert world.install(number, content_hash=f"content-{number}").revision == number
    return world


def reported(text: str) -> DiskReport:
    found = DiskReport.parse(text)
    assert found is not None
    return found


def watched(world: World, **options: Any) -> GuardOptions:
    return GuardOptions(resource_dir=world.resources, manifest_path=world.path, **options)


def file_of(world: World, revision: int = 2) -> Path:
    return Path(world.resources, f"kube-scheduler-pod-{revision}/configmaps/config/config.yaml")


def edit_manifest(world: World) -> None:
    world.path.write_bytes(world.path.read_bytes().replace(b"/readyz", b"/healthz"))


def test_the_disk_of_a_node_as_it_was_installed(world: World) -> None:
    assert look(watched(world)) == DiskReport(revision=2, content="content-2", newest=2, labelled=2)


def replace_by_a_link(world: World) -> None:
    elsewhere = world.resources.parent / "elsewhere"
    elsewhere.write_bytes(file_of(world).read_bytes())
    file_of(world).unlink()
    file_of(world).symlink_to(elsewhere)


EDITS = {
    "manifest": (edit_manifest, "kube-scheduler.yaml", 2),
    "manifest with a blank more": (
        lambda w: w.path.write_bytes(w.path.read_bytes() + b"\n"), "kube-scheduler.yaml", 2,
    ),
    "manifest with another label": (
        lambda w: w.path.write_bytes(
            w.path.read_bytes().replace(b'"revision": "2"', b'"revision": "99"')
        ),
        "kube-scheduler.yaml",
        99,
    ),
    "manifest of another revision": (
        lambda w: w.path.write_bytes(revision_manifest(1)), "kube-scheduler.yaml", 1,
    ),
    "manifest of the platform": (lambda w: w.path.write_bytes(STOCK), "kube-scheduler.yaml", 0),
    "manifest removed": (lambda w: w.path.unlink(), "kube-scheduler.yaml", 0),
    "file edited": (lambda w: file_of(w).write_bytes(b"{}"), "config.yaml", 2),
    "file removed": (lambda w: file_of(w).unlink(), "config.yaml", 2),
    "file added": (lambda w: file_of(w).with_name("more").touch(), "more", 2),
    "file replaced by a link": (replace_by_a_link, "config.yaml", 2),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "name", "label"), EDITS.values(), ids=EDITS)
def test_every_hand_edit_is_found(world: World, edit: Any, name: Any, label: Any) -> None:
    edit(world)
    found = look(watched(world))
    assert [path.rpartition("/")[2] for path in found.edits] == [name]
    assert found.edit
    assert (found.revision, found.labelled) == (2, label)


@pytest.mark.parametrize("what", EDITS)
def test_only_a_removed_file_is_missing(world: World, what: str) -> None:
    EDITS[what][0](world)
    found = look(watched(world))
    assert found.missing == (found.edits if "removed" in what else ())
    assert reported(found.serialise()).missing == found.missing


@pytest.mark.parametrize(("edit", "name", "label"), EDITS.values(), ids=EDITS)
def test_every_hand_edit_is_put_back_by_an_installer(
    world: World, edit: Any, name: Any, label: Any
) -> None:
    process = [pod.process for pod in world.node.pods]
    edit(world)
    if world.path.exists():
        world.foreign.append(world.path.read_bytes())
    result = world.install(2, content_hash="content-2")
    assert (result.result, result.restarted) == (InstallerOutcome.INSTALLED, True)
    assert look(watched(world)).edits == ()
    assert [pod.process for pod in world.node.pods if pod.process] != process
    world.check_is_tidy()


def test_an_installer_that_only_looks_restarts_nothing(world: World) -> None:
    process = [pod.process for pod in world.node.pods]
    result = world.install(2, content_hash="content-2")
    assert (result.result, result.restarted) == (InstallerOutcome.INSTALLED, False)
    assert [pod.process for pod in world.node.pods] == process


def test_a_hand_edit_that_is_known_to_stay_is_not_reported_again(
    monkeypatch: pytest.MonkeyPatch, world: World, tmp_path: Path
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    known, log = tmp_path / "known", tmp_path / "log"
    options = watched(world, known_edit=known, termination_log=log)
    assert guard.main(dataclasses.replace(options, look=True)) == EXIT_DEFINITIVE
    assert reported(log.read_text()).edits == ()
    play(monkeypatch, [nothing, lambda: edit_manifest(world), nothing])
    assert guard.main(options) == EXIT_CHANGED
    assert reported(log.read_text()).edits == (str(world.path),)
    play(monkeypatch, [nothing] * 5)
    assert guard.main(options) == EXIT_CHANGED, "until the operator knows that it stays"
    known.write_text(reported(log.read_text()).edit)
    play(monkeypatch, [nothing] * 5)
    with pytest.raises(StoppedError):  # the kubelet has started it again
        guard.main(options)
    play(monkeypatch, [nothing, lambda: file_of(world).unlink(), nothing])
    assert guard.main(options) == EXIT_CHANGED
    assert len(reported(log.read_text()).edits) == 2


def test_a_guard_that_ends_logs_what_it_found(
    monkeypatch: pytest.MonkeyPatch,
    world: World,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    edit_manifest(world)
    play(monkeypatch, [nothing] * (guard.KNOWN_SOON + 3))
    with caplog.at_level("INFO"):
        guard.main(watched(world, termination_log=tmp_path / "log"))
    assert f"{world.path} changed since revision 2 was installed" in caplog.text
    deleted = DiskReport(revision=2, edits=("/m", "/c"), missing=("/m",))
    assert guard.describe(deleted, GuardOptions()).startswith("/c changed and /m was deleted since")
    report = DiskReport(revision=2, kubeconfig="new", work="directory", image="image")
    options = GuardOptions(kubeconfig=Path("/conf"), known="old")
    assert guard.describe(report, options).split("; ") == [
        "/conf changed since the scheduler started",
        "`kubeadm upgrade` uses directory or has left it",
        "kubeadm wrote a manifest with image",
    ]
    assert guard.describe(DiskReport(revision=2), options).startswith("nothing is changed")


@pytest.mark.parametrize(("work", "image"), [("directory", ""), ("", "image")])
def test_a_kubeconfig_that_kubeadm_renews_with_the_manifest_is_not_reported_by_itself(
    monkeypatch: pytest.MonkeyPatch, work: str, image: str
) -> None:
    report = DiskReport(kubeconfig="new", work=work, image=image)
    monkeypatch.setattr(guard, "_look", lambda _: report)
    play(monkeypatch, [nothing] * 5)
    with pytest.raises(StoppedError):
        guard.wait_for_change(GuardOptions(known="old"))


def test_an_edit_is_not_reported_while_no_api_server_answers(
    monkeypatch: pytest.MonkeyPatch, world: World, tmp_path: Path
) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text("first")
    answers = [False, False, True]
    monkeypatch.setattr(guard, "_has_api_server", lambda _: answers.pop(0))
    edit_manifest(world)
    play(monkeypatch, [nothing] * (guard.KNOWN_SOON + 3))
    known = tmp_path / "known"
    options = dataclasses.replace(watched(world, known_edit=known), kubeconfig=conf)
    assert guard.wait_for_change(options).edits == (str(world.path),)
    assert answers == []


def test_a_new_kubeconfig_is_reported_although_its_api_server_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, conf: Path
) -> None:
    monkeypatch.setattr(guard, "_has_api_server", lambda _: False)
    known = fingerprint(conf)
    conf.write_text("of no API server")
    play(monkeypatch, [nothing] * 3)
    assert wait(conf, known).kubeconfig == fingerprint(conf)


def test_an_edit_found_at_the_start_is_reported_after_the_operator_could_know_it(
    monkeypatch: pytest.MonkeyPatch, world: World, tmp_path: Path
) -> None:
    edit_manifest(world)
    looks = [0]

    def look() -> None:
        looks[0] += 1

    play(monkeypatch, [look] * 20)
    guard.wait_for_change(watched(world, known_edit=tmp_path / "known"))
    assert looks[0] == guard.KNOWN_SOON


def test_a_swap_in_progress_is_not_an_edit(world: World) -> None:
    world.path.unlink()
    world.layout.write_journal(Journal(3, 0))
    assert look(watched(world)).edits == ()


def test_a_kubeconfig_that_waits_for_its_restart_is_not_an_edit(world: World) -> None:
    """The manifest is staged with the new fingerprint, and the old one is in place."""
    staged = world.path.read_bytes().replace(b'"labels"', b'"annotations": {"k": "new"}, "labels"')
    target = manifest.parse(staged, "kube-scheduler")
    world.layout.stage(2, RevisionFiles(target, CONTENT), "content-2")
    assert look(watched(world)).edits == ()
    world.layout.stage(2, RevisionFiles(target, CONTENT), "content-2")
    assert look(watched(world)).edits == (), "nor if it is staged again"
    edit_manifest(world)
    assert look(watched(world)).edits == (str(world.path),)


def test_without_hashes_the_copy_of_the_manifest_is_compared(world: World) -> None:
    """An older operator installed the revision."""
    (world.resources / "kube-scheduler-pod-2/hashes.json").unlink()
    assert look(watched(world)) == DiskReport(revision=2, newest=1, labelled=2)
    edit_manifest(world)
    assert look(watched(world)).edits == (str(world.path),)


def test_hashes_are_added_to_a_revision_of_an_older_operator_without_a_restart(
    world: World,
) -> None:
    (world.resources / "kube-scheduler-pod-2/hashes.json").unlink()
    assert world.install(2, content_hash="content-2").restarted is False
    assert look(watched(world)).newest == 2


NUMBERS = {
    "copied directory": lambda r: shutil.copytree(r / f"{PREFIX}2", r / f"{PREFIX}99"),
    "empty directory": lambda r: (r / f"{PREFIX}99").mkdir(),
    "link to a directory": lambda r: (r / f"{PREFIX}99").symlink_to(f"{PREFIX}2"),
    "number that cannot be": lambda r: (r / f"{PREFIX}{2**63}").mkdir(),
    "edited": lambda r: (r / f"{PREFIX}2/configmaps/config/config.yaml").write_text("x"),
}


@pytest.mark.parametrize("make", NUMBERS.values(), ids=NUMBERS)
def test_a_number_counts_only_with_the_hashes_of_its_files(world: World, make: Any) -> None:
    make(world.resources)
    assert look(watched(world)).newest in (1, 2)


def test_the_report_fits_into_a_termination_message() -> None:
    paths = tuple(f"/{'é' * 300}/{n}" for n in range(1000))
    report = DiskReport(edits=paths, missing=paths, edit="e")
    assert len(report.serialise().encode()) <= 4096
    assert reported(report.serialise()).edit == "e"


OTHER = ["", "x", "[]", "{}", "null", '{"revision": Infinity}', "[" * 100_000]


@pytest.mark.parametrize("text", OTHER, ids=range(len(OTHER)))
def test_other_text_is_not_a_report(text: Any) -> None:
    assert DiskReport.parse(text) is None


def test_an_implausible_number_in_a_report_does_not_count() -> None:
    text = DiskReport(revision=2**63 - 1, newest=2**31, labelled=-1).serialise()
    found = reported(text)
    assert (found.revision, found.newest, found.labelled) == (0, 0, 0)


def test_a_report_has_the_time_since_boot_before_its_look(world: World, tmp_path: Path) -> None:
    log = tmp_path / "log"
    before = host.boot_time()
    assert guard.main(watched(world, look=True, termination_log=log)) == EXIT_DEFINITIVE
    read = reported(log.read_text()).read
    assert read.boot == before.boot != ""
    rounded = round(host.seconds_since_boot(), 3)  # as in a report
    assert round(before.seconds, 3) <= read.seconds <= rounded


def test_reports_of_the_same_state_at_different_times_are_equal(world: World) -> None:
    found = look(watched(world))
    later = dataclasses.replace(found, read=BootTime("another", 1e9))
    assert later == found
    assert reported(later.serialise()).read == later.read


def test_sigterm_ends_the_guard(conf: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "kube_scheduler_operator", "guard"]
    process = subprocess.Popen(
        [
            *command,
            f"--kubeconfig={conf}",
            f"--termination-log={tmp_path / 'log'}",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        assert "Watching" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert not (tmp_path / "log").exists()


def test_an_unknown_boot_is_reported_as_unknown(tmp_path: Path) -> None:
    assert host.boot_time(tmp_path / "absent") == UNKNOWN

"""The installer program: flags, exit codes, termination messages, and its lock."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import fcntl
import json
import logging
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.files import Disk
from kube_scheduler_operator.cli.programs import node as command
from kube_scheduler_operator.node.protocol.message import EXIT_RETRY
from kube_scheduler_operator.node.protocol.result import InstallerOutcome, Result
from kube_scheduler_operator.node.static_pod import installer, program
from kube_scheduler_operator.node.static_pod.installer import install, main
from kube_scheduler_operator.node.static_pod.layout import Journal
from kube_scheduler_operator.node.static_pod.program import InstallerOptions
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent

from .fake_node import CRASHES, STOCK, FakeDisk, FakeNode, pod_json, revision_manifest


@pytest.fixture
def options(tmp_path: Path) -> InstallerOptions:
    for name in ("configmaps/config", "pod", "manifests", "logs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "configmaps/config/config.yaml").write_text("{}\n")
    (tmp_path / "pod" / "pod.yaml").write_bytes(pod_json())
    (tmp_path / "manifests" / "kube-scheduler.yaml").write_bytes(STOCK)
    return InstallerOptions(
        revision=1,
        node="cp-1",
        static_pod_name="kube-scheduler",
        configmaps_dir=tmp_path / "configmaps",
        pod_dir=tmp_path / "pod",
        resource_dir=tmp_path / "resources",
        manifest_path=tmp_path / "manifests" / "kube-scheduler.yaml",
        pod_log_dir=tmp_path / "logs",
        kubelet_pod_dir=tmp_path / "pods",
        cgroup_dir=tmp_path / "cgroups",
        termination_log=tmp_path / "termination-log",
    )


@pytest.fixture
def node(options: InstallerOptions, monkeypatch: pytest.MonkeyPatch) -> Any:
    node = FakeNode(options.manifest_path)
    node.on_step = node.look
    node.settle(10)
    monkeypatch.setattr(installer, "_node_host", lambda *_: node)
    monkeypatch.setattr(installer, "Disk", lambda: FakeDisk(node.look))
    return node


def message(options: InstallerOptions) -> Any:
    return Result.parse(options.termination_log.read_bytes())


def test_success_exits_with_0_and_a_message(options: InstallerOptions, node: Any) -> None:
    assert main(options) == 0
    assert message(options).result is InstallerOutcome.INSTALLED
    assert message(options).node == "cp-1"


def test_rollback_exits_with_0_and_a_message(options: InstallerOptions, node: Any) -> None:
    node.behaviour[1] = CRASHES
    assert main(options) == 0
    assert message(options).result is InstallerOutcome.ROLLED_BACK
    assert message(options).last_error == "bad cipher"


def test_revision_is_written_to_disk(options: InstallerOptions, node: Any, tmp_path: Path) -> None:
    (tmp_path / "effective.yaml").write_text("effective\n")
    changed = dataclasses.replace(options, effective_config=tmp_path / "effective.yaml")
    assert main(changed) == 0
    directory = options.resource_dir / "kube-scheduler-pod-1"
    files = {p.relative_to(directory).as_posix(): p for p in directory.rglob("*") if p.is_file()}
    assert sorted(files) == [
        "configmaps/config/config.yaml",
        "effective-config.yaml",
        "hashes.json",
        "kube-scheduler-pod.yaml",
        "outcome.json",
    ]
    assert {path.stat().st_mode & 0o777 for path in files.values()} == {0o600}
    assert files["kube-scheduler-pod.yaml"].read_bytes() == revision_manifest(1)
    assert options.manifest_path.read_bytes() == revision_manifest(1)
    link = options.resource_dir / "kube-scheduler-last-known-good"
    assert str(link.readlink()) == "kube-scheduler-pod-1/kube-scheduler-pod.yaml"


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        pytest.param(b"not json", "is not JSON", id="not JSON"),
        pytest.param(b'{"kind":"ConfigMap"}', "is not a Pod", id="not a pod"),
        pytest.param(
            pod_json().replace(b'"REVISION"', b'"1"'), "must be 'REVISION'", id="no placeholder"
        ),
    ],
)
def test_invalid_pod_changes_nothing(
    options: InstallerOptions, node: Any, pod: Any, why: Any
) -> None:
    (options.pod_dir / "pod.yaml").write_bytes(pod)
    assert main(options) == EXIT_RETRY
    assert options.manifest_path.read_bytes() == STOCK
    assert why in options.termination_log.read_text()


def test_unwritten_message_is_written_after_a_restart(
    options: InstallerOptions, node: Any, tmp_path: Path
) -> None:
    elsewhere = dataclasses.replace(options, termination_log=tmp_path / "absent" / "log")
    assert main(elsewhere) == EXIT_RETRY
    assert main(options) == 0
    assert message(options).result is InstallerOutcome.INSTALLED


def test_disk_failure_during_a_swap_leaves_a_manifest(options: InstallerOptions, node: Any) -> None:
    removed = []

    class Failing(FakeDisk):
        def unlink(self, path: Any) -> None:
            super().unlink(path)
            if path == options.manifest_path:
                removed.append(path)
                raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        install(options, Failing(node.look), lambda pod: node)
    assert removed
    assert options.manifest_path.read_bytes() == STOCK


@pytest.mark.parametrize("when", ["absent", "present"])
def test_sigterm_leaves_a_manifest_and_exits_with_143(
    options: InstallerOptions, node: Any, when: Any
) -> None:
    def terminate() -> None:
        node.look()
        if options.manifest_path.exists() is (when == "present"):
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)  # a second one must not tear anything

    node.on_step = terminate
    before = signal.getsignal(signal.SIGTERM)
    assert main(options) == 143
    assert signal.getsignal(signal.SIGTERM) is before
    left = STOCK if when == "absent" else revision_manifest(1)
    assert options.manifest_path.read_bytes() == left
    node.on_step = node.look
    assert main(options) == 0
    assert message(options).result is InstallerOutcome.INSTALLED


def test_second_installer_waits_for_the_first(
    options: InstallerOptions, node: Any, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record: Any) -> None:
            if "Waiting" in record.getMessage():
                waiting.set()

    listener = Listener()
    logger = logging.getLogger(program.__name__)
    logger.addHandler(listener)
    caplog.set_level(logging.INFO)
    options.resource_dir.mkdir()
    results = []
    try:
        with (options.resource_dir / ".kube-scheduler.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            second = threading.Thread(target=lambda: results.append(install(options)))
            second.start()
            assert waiting.wait(30)
            assert options.manifest_path.read_bytes() == STOCK
            assert results == []
        second.join()
    finally:
        logger.removeHandler(listener)
    assert [result.result for result in results] == [InstallerOutcome.INSTALLED]


@pytest.fixture
def waiting_for_permission(
    options: InstallerOptions, node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Options without permission to roll out; each poll calls `node.on_poll`."""
    file = tmp_path / "permission"
    file.write_text("")
    polls = []

    def poll(_seconds: Any) -> None:
        polls.append(1)
        assert len(polls) < 100, "it waits indefinitely"
        node.on_poll(len(polls))

    monkeypatch.setattr(time, "sleep", poll)
    return dataclasses.replace(options, permission=file, staged=tmp_path / "staged")


def test_without_permission_the_revision_is_staged_only(
    waiting_for_permission: Any, node: Any
) -> None:
    options = waiting_for_permission

    def poll(count: Any) -> None:
        assert (options.resource_dir / "kube-scheduler-pod-1/kube-scheduler-pod.yaml").exists()
        assert options.manifest_path.read_bytes() == STOCK
        assert options.staged.exists()
        with (options.resource_dir / ".kube-scheduler.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # others may work in the meantime
        if count == 5:
            options.permission.write_text("true")

    node.on_poll = poll
    assert main(options) == 0
    assert message(options).result is InstallerOutcome.INSTALLED
    assert options.manifest_path.read_bytes() == revision_manifest(1)


def test_after_a_power_cut_a_scheduler_runs_while_waiting_for_permission(
    waiting_for_permission: Any, node: Any
) -> None:
    options = waiting_for_permission
    options.manifest_path.unlink()
    options.resource_dir.mkdir()
    options.layout(Disk()).write_journal(Journal(revision=1, retry=0))

    def poll(_count: Any) -> None:
        assert options.manifest_path.read_bytes() == revision_manifest(1)
        options.permission.write_text("true")

    node.on_poll = poll
    assert main(options) == 0
    assert message(options).result is InstallerOutcome.INSTALLED


def test_port_in_use_is_reported_before_any_change(
    waiting_for_permission: Any, node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = json.loads((tmp_path / "pod" / "pod.yaml").read_bytes())
    pod["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] = 10261
    (tmp_path / "pod" / "pod.yaml").write_text(json.dumps(pod))
    monkeypatch.setattr(node, "is_port_free", lambda probe: probe.port != 10261)
    waiting_for_permission.staged.touch()  # by an earlier run, when it was free
    assert main(waiting_for_permission) == EXIT_RETRY
    assert not waiting_for_permission.staged.exists()
    assert waiting_for_permission.manifest_path.read_bytes() == STOCK
    assert waiting_for_permission.termination_log.read_text() == (
        "port 10261 of 127.0.0.1, needed by revision 1, is already in use by another program"
    )
    assert not (waiting_for_permission.resource_dir / "kube-scheduler-pod-1").exists()


def test_sigterm_without_permission_changes_nothing(waiting_for_permission: Any, node: Any) -> None:
    options = waiting_for_permission
    node.on_poll = lambda _count: os.kill(os.getpid(), signal.SIGTERM)
    assert main(options) == 143
    assert options.manifest_path.read_bytes() == STOCK
    assert not options.termination_log.exists()


def test_full_disk_is_reported_before_permission(
    waiting_for_permission: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(Disk):
        def write(self, *_args: Any, **_kwargs: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(installer, "Disk", Full)
    assert main(waiting_for_permission) == EXIT_RETRY
    assert "No space left on device" in waiting_for_permission.termination_log.read_text()
    assert waiting_for_permission.manifest_path.read_bytes() == STOCK


@pytest.mark.parametrize(
    ("content", "expected"), [("true", True), ("true\n", True), ("", False), ("false", False)]
)
def test_permission_requires_the_exact_value(tmp_path: Path, content: Any, expected: Any) -> None:
    (tmp_path / "permission").write_text(content)
    assert installer.is_granted(tmp_path / "permission") is expected


def test_missing_file_grants_no_permission(tmp_path: Path) -> None:
    assert installer.is_granted(tmp_path / "permission") is False


def test_flags_of_the_template_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    from kube_scheduler_operator.base.platform import KUBEADM
    from kube_scheduler_operator.operator.controlplane.node_pods import (
        Attempt,
        InstalledScheduler,
        InstallerSettings,
        render_installer_pod,
    )

    pod = render_installer_pod(
        KUBEADM,
        Attempt("cp-1", 7, 2),
        InstalledScheduler("a", [], "sha256:x"),
        "b",
        "uid",
        InstallerSettings(rollback=True, keep=(3, 6)),
    )
    container = pod["spec"]["containers"][1]
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args([*container["command"][1:], *container["args"]])
    seen: list[Any] = []

    def main(options: Any) -> int:
        seen.append(options)
        return 0

    monkeypatch.setattr(installer, "main", main)
    monkeypatch.setattr(program, "configure_logging", lambda verbosity: None)
    assert args.run(args) == 0
    (options,) = seen
    assert (options.revision, options.retry, options.node) == (7, 2, "cp-1")
    assert str(options.manifest_path) == KUBEADM.manifest_path
    assert options.content_hash == "sha256:x"
    assert options.rollback is True
    assert options.keep == {3, 6}


@pytest.mark.parametrize("revision", ["0", "-1", "x"])
def test_revision_must_be_positive(revision: Any, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    with pytest.raises(SystemExit):
        parser.parse_args(["installer", "--revision", revision])
    assert "--revision" in capsys.readouterr().err


def test_node_programs_import_only_the_standard_library() -> None:
    import subprocess
    import sys
    from pathlib import Path

    import kube_scheduler_operator

    code = (
        "import sys; import kube_scheduler_operator.node.static_pod.installer;"
        "print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(Path(kube_scheduler_operator.__file__).parents[1])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) <= {"kube_scheduler_operator", "__main__"}


def content_of(options: InstallerOptions) -> Any:
    parts = {
        "config": {"config.yaml": (options.configmaps_dir / "config/config.yaml").read_text()},
        "kube-scheduler-pod": {"pod.yaml": (options.pod_dir / "pod.yaml").read_text()},
    }
    return RevisionContent(parts).hash


def test_configmaps_with_the_recorded_content_are_installed(
    options: InstallerOptions, node: Any
) -> None:
    assert main(dataclasses.replace(options, content_hash=content_of(options))) == 0


@pytest.mark.parametrize("part", ["configmaps/config/config.yaml", "pod/pod.yaml", "pod/more"])
def test_configmaps_that_were_forged_are_never_installed(
    options: InstallerOptions, node: Any, tmp_path: Path, part: Any
) -> None:
    changed = dataclasses.replace(options, content_hash=content_of(options))
    with (tmp_path / part).open("a") as file:
        file.write(" ")
    assert main(changed) == 1
    assert "do not have its content" in options.termination_log.read_text()
    assert options.manifest_path.read_bytes() == STOCK
    assert not list(options.resource_dir.glob("kube-scheduler-pod-*"))


@pytest.mark.parametrize("target", ["elsewhere", "nothing"])
def test_a_planted_lock_creates_no_file_elsewhere(
    options: InstallerOptions, node: Any, tmp_path: Path, target: Any
) -> None:
    (tmp_path / "elsewhere").write_text("of another program")
    options.resource_dir.mkdir()
    (options.resource_dir / ".kube-scheduler.lock").symlink_to(tmp_path / target)
    assert main(options) == 0
    assert (tmp_path / "elsewhere").read_text() == "of another program"
    assert not (tmp_path / "nothing").exists()


def test_a_lock_that_is_planted_at_the_last_moment_creates_no_file_elsewhere(
    options: InstallerOptions, node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options.resource_dir.mkdir()
    lock = options.resource_dir / ".kube-scheduler.lock"
    real = Path.is_symlink

    def planting(path: Path) -> bool:
        was = real(path)
        if path == lock and not was:
            lock.symlink_to(tmp_path / "nothing")
        return was

    monkeypatch.setattr(Path, "is_symlink", planting)
    main(options)
    assert not (tmp_path / "nothing").exists()

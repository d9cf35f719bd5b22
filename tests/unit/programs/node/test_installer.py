"""The program: flags in, an exit code and a termination message out, one at a time per node."""

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

import pytest

from kube_scheduler_operator.base.files import Disk
from kube_scheduler_operator.cli.programs import node as command
from kube_scheduler_operator.programs.node import installer, program, rollout_permission
from kube_scheduler_operator.programs.node.installer import Options, install, main
from kube_scheduler_operator.programs.node.layout import Journal
from kube_scheduler_operator.programs.node.result import Result, Verdict

from .fake_node import CRASHES, STOCK, FakeDisk, FakeNode, pod_json, revision_manifest


@pytest.fixture
def options(tmp_path):
    for name in ("configmaps/config", "pod", "manifests", "logs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "configmaps/config/config.yaml").write_text("{}\n")
    (tmp_path / "pod" / "pod.yaml").write_bytes(pod_json())
    (tmp_path / "manifests" / "kube-scheduler.yaml").write_bytes(STOCK)
    return Options(
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
def node(options, monkeypatch):
    node = FakeNode(options.manifest_path)
    node.on_step = node.look
    node.settle(10)
    monkeypatch.setattr(installer, "_node_host", lambda *_: node)
    monkeypatch.setattr(installer, "Disk", lambda: FakeDisk(node.look))
    return node


def message(options):
    return Result.parse(options.termination_log.read_bytes())


def test_success_is_exit_0_and_a_message(options, node):
    assert main(options) == 0
    assert message(options).result is Verdict.INSTALLED
    assert message(options).node == "cp-1"


def test_a_roll_back_is_definitive_as_well(options, node):
    node.behaviour[1] = CRASHES
    assert main(options) == 0
    assert message(options).result is Verdict.ROLLED_BACK
    assert message(options).last_words == "bad cipher"


def test_the_revision_is_on_disk(options, node, tmp_path):
    (tmp_path / "effective.yaml").write_text("effective\n")
    changed = dataclasses.replace(options, effective_config=tmp_path / "effective.yaml")
    assert main(changed) == 0
    directory = options.resource_dir / "kube-scheduler-pod-1"
    files = {p.relative_to(directory).as_posix(): p for p in directory.rglob("*") if p.is_file()}
    assert sorted(files) == [
        "configmaps/config/config.yaml",
        "effective-config.yaml",
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
        pytest.param(b'{"kind":"ConfigMap"}', "must be a Pod", id="not a pod"),
        pytest.param(
            pod_json().replace(b'"REVISION"', b'"1"'), "must be 'REVISION'", id="no placeholder"
        ),
    ],
)
def test_a_pod_that_cannot_be_installed_touches_nothing(options, node, pod, why):
    (options.pod_dir / "pod.yaml").write_bytes(pod)
    assert main(options) == program.EXIT_RETRY
    assert options.manifest_path.read_bytes() == STOCK
    assert why in options.termination_log.read_text()


def test_a_message_that_cannot_be_written_is_written_by_the_next_start(options, node, tmp_path):
    elsewhere = dataclasses.replace(options, termination_log=tmp_path / "absent" / "log")
    assert main(elsewhere) == program.EXIT_RETRY
    assert main(options) == 0
    assert message(options).result is Verdict.INSTALLED


def test_a_disk_that_fails_in_the_middle_does_not_leave_the_node_without_a_manifest(options, node):
    removed = []

    class Failing(FakeDisk):
        def unlink(self, path):
            super().unlink(path)
            if path == options.manifest_path:
                removed.append(path)
                raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        install(options, Failing(node.look), lambda pod: node)
    assert removed
    assert options.manifest_path.read_bytes() == STOCK


@pytest.mark.parametrize("when", ["absent", "present"])
def test_sigterm_leaves_a_manifest_and_ends_with_143(options, node, when):
    def terminate():
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
    assert message(options).result is Verdict.INSTALLED


def test_a_second_installer_waits_for_the_first(options, node, caplog):
    waiting = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record):
            if "waiting" in record.getMessage():
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
    assert [result.result for result in results] == [Verdict.INSTALLED]


@pytest.fixture
def waiting_for_its_turn(options, node, tmp_path, monkeypatch):
    """Options with a go-ahead that has not come; what happens at each look is `node.on_look`."""
    file = tmp_path / "go-ahead"
    file.write_text("")
    looks = []

    def look(_seconds):
        looks.append(1)
        assert len(looks) < 100, "it waits for ever"
        node.on_look(len(looks))

    monkeypatch.setattr(rollout_permission.time, "sleep", look)
    return dataclasses.replace(options, go_ahead=file, staged=tmp_path / "staged")


def test_before_its_turn_a_revision_is_staged_and_the_scheduler_runs_on(waiting_for_its_turn, node):
    options = waiting_for_its_turn

    def look(count):
        assert (options.resource_dir / "kube-scheduler-pod-1/kube-scheduler-pod.yaml").exists()
        assert options.manifest_path.read_bytes() == STOCK
        assert options.staged.exists()
        with (options.resource_dir / ".kube-scheduler.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # others may work meanwhile
        if count == 5:
            options.go_ahead.write_text("true")

    node.on_look = look
    assert main(options) == 0
    assert message(options).result is Verdict.INSTALLED
    assert options.manifest_path.read_bytes() == revision_manifest(1)


def test_a_node_that_lost_its_power_in_a_swap_has_a_scheduler_while_it_waits_for_its_turn(
    waiting_for_its_turn, node
):
    options = waiting_for_its_turn
    options.manifest_path.unlink()
    options.resource_dir.mkdir()
    options.layout(Disk()).write_journal(Journal(revision=1, retry=0))

    def look(_count):
        assert options.manifest_path.read_bytes() == revision_manifest(1)
        options.go_ahead.write_text("true")

    node.on_look = look
    assert main(options) == 0
    assert message(options).result is Verdict.INSTALLED


def test_a_port_that_somebody_else_has_is_told_before_anything_is_touched(
    waiting_for_its_turn, node, tmp_path, monkeypatch
):
    pod = json.loads((tmp_path / "pod" / "pod.yaml").read_bytes())
    pod["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] = 10261
    (tmp_path / "pod" / "pod.yaml").write_text(json.dumps(pod))
    monkeypatch.setattr(node, "is_port_free", lambda probe: probe.port != 10261)
    waiting_for_its_turn.staged.touch()  # by an earlier run, when it was free
    assert main(waiting_for_its_turn) == program.EXIT_RETRY
    assert not waiting_for_its_turn.staged.exists()
    assert waiting_for_its_turn.manifest_path.read_bytes() == STOCK
    assert waiting_for_its_turn.termination_log.read_text() == (
        "port 10261 of 127.0.0.1, where revision 1 would listen, is taken by another program"
    )
    assert not (waiting_for_its_turn.resource_dir / "kube-scheduler-pod-1").exists()


def test_sigterm_before_its_turn_leaves_the_scheduler_alone(waiting_for_its_turn, node):
    options = waiting_for_its_turn
    node.on_look = lambda _count: os.kill(os.getpid(), signal.SIGTERM)
    assert main(options) == 143
    assert options.manifest_path.read_bytes() == STOCK
    assert not options.termination_log.exists()


def test_a_disk_that_is_full_is_known_before_its_turn(waiting_for_its_turn, monkeypatch):
    class Full(Disk):
        def write(self, *_args, **_kwargs):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(installer, "Disk", Full)
    assert main(waiting_for_its_turn) == program.EXIT_RETRY
    assert "No space left on device" in waiting_for_its_turn.termination_log.read_text()
    assert waiting_for_its_turn.manifest_path.read_bytes() == STOCK


@pytest.mark.parametrize(
    ("content", "expected"), [("true", True), ("true\n", True), ("", False), ("false", False)]
)
def test_only_the_word_is_a_go_ahead(tmp_path, content, expected):
    (tmp_path / "go-ahead").write_text(content)
    assert rollout_permission.has_come(tmp_path / "go-ahead") is expected


def test_a_go_ahead_that_is_not_there_has_not_come(tmp_path):
    assert rollout_permission.has_come(tmp_path / "go-ahead") is False


def test_the_command_line_of_the_template_is_understood(monkeypatch):
    from kube_scheduler_operator.base.platform import KUBEADM
    from kube_scheduler_operator.manifests.pods import InstallerSettings, render_installer_pod

    pod = render_installer_pod(
        KUBEADM, "cp-1", 7, 2, "a", "b", [], "uid", InstallerSettings(rollback=True, keep=(3, 6)),
        content_hash="sha256:x",
    )  # fmt: skip
    container = pod["spec"]["containers"][1]
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args([*container["command"][1:], *container["args"]])
    seen = []
    monkeypatch.setattr(installer, "main", lambda options: seen.append(options) or 0)
    monkeypatch.setattr(program, "configure_logging", lambda verbosity: None)
    assert args.run(args) == 0
    (options,) = seen
    assert (options.revision, options.retry, options.node) == (7, 2, "cp-1")
    assert str(options.manifest_path) == KUBEADM.manifest_path
    assert options.content_hash == "sha256:x"
    assert options.rollback is True
    assert options.keep == {3, 6}


@pytest.mark.parametrize("revision", ["0", "-1", "x"])
def test_a_revision_is_a_positive_number(revision, capsys):
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    with pytest.raises(SystemExit):
        parser.parse_args(["installer", "--revision", revision])
    assert "--revision" in capsys.readouterr().err


def test_the_programs_of_a_node_import_nothing_but_the_standard_library():
    import subprocess
    import sys
    from pathlib import Path

    import kube_scheduler_operator

    code = (
        "import sys; import kube_scheduler_operator.programs.node.installer;"
        "print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(Path(kube_scheduler_operator.__file__).parents[1])},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) <= {"kube_scheduler_operator", "__main__"}

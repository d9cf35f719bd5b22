"""What `down` takes for its own, and, more importantly, what it does not."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import cgroups, model, network, processes, teardown
from cluster.api import wait
from cluster.model import Sandbox


@pytest.fixture
def box(state_root: Path) -> Sandbox:
    # A name of its own for each process that runs tests: cleaning ends everything of that name.
    name = f"unit{os.getpid()}"
    return Sandbox(name, 0, model.make_nodes(name, 0, 0))


@pytest.fixture
def sleeper(box: Sandbox) -> Iterator[Sandbox]:
    processes.spawn(box, "sleeper", [sys.executable, "-c", "import time; time.sleep(60)"])
    yield box
    processes.kill_one(box, "sleeper")


def wait_until_ended(pid: int) -> None:
    os.waitpid(pid, 0)


def test_a_daemon_is_started_once_and_found_again(sleeper: Sandbox) -> None:
    first = processes.find(sleeper, "sleeper")
    processes.spawn(sleeper, "sleeper", ["false"])
    assert first is not None
    assert processes.find(sleeper, "sleeper") == first


def test_a_daemon_is_found_by_its_mark_when_the_record_is_lost(sleeper: Sandbox) -> None:
    identity = processes.find(sleeper, "sleeper")
    assert identity is not None
    record = sleeper.state / "pids" / "sleeper.json"
    content = record.read_text()
    record.unlink()
    assert identity.pid in processes.members(sleeper.name)
    record.write_text(content)


def test_a_starting_process_is_examined_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {"7": 0, "8": 0x00200000}  # the second one is the kernel's own, and never has any
    for pid, flag in flags.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "environ").write_bytes(b"")
        (tmp_path / pid / "stat").write_text(f"{pid} (sh) S 1 1 1 0 -1 {flag} 0 0")
    looks = []

    def go_on(_seconds: float) -> None:
        looks.append(1)
        (tmp_path / "7" / "environ").write_bytes(f"{processes.MARK}=dev\0".encode())

    monkeypatch.setattr(processes, "_PROC", tmp_path)
    monkeypatch.setattr(time, "sleep", go_on)
    assert processes.marks() == {"dev": {7}}
    assert len(looks) == 1


def test_a_process_has_not_ended_with_its_first_thread() -> None:
    """Where many threads are killed, the last one gives back the memory, and holds the cgroup."""
    program = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print(flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)  # this thread only
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    stat = Path(f"/proc/{process.pid}/stat")
    wait(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", 10, stat.read_text)
    assert processes.start_time(process.pid) is not None
    assert processes.kill(lambda: [process.pid] if processes.start_time(process.pid) else []) == 1
    assert stat.exists()  # not waited for yet
    process.wait()
    process.stdout.close()


def test_a_sandbox_of_a_similar_name_is_another_one(sleeper: Sandbox) -> None:
    assert processes.members(sleeper.name[:-1]) == set()
    assert processes.members(f"{sleeper.name}2") == set()


def test_a_later_process_with_a_recorded_pid_is_not_killed(box: Sandbox) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        start = processes.start_time(stranger.pid)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        record = box.state / "pids" / "etcd.json"
        record.parent.mkdir(parents=True)
        for changed in ({"start": 1}, {"boot": "another boot"}, {"pid": 2**22 + 1}):
            content = {"pid": stranger.pid, "start": start, "boot": boot, **changed}
            record.write_text(json.dumps(content))
            assert not processes.alive(box, "etcd")
            assert processes.members(box.name) == set()
    finally:
        stranger.kill()
        stranger.wait()


def test_down_does_not_kill_its_own_process(box: Sandbox) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(Path(processes.__file__).parents[1])!r})\n"
        "from cluster import processes; print(len(processes.members(sys.argv[1])))"
    )
    environment = {**os.environ, processes.MARK: box.name}
    done = subprocess.run(
        [sys.executable, "-c", script, box.name], env=environment, capture_output=True, check=True
    )
    assert done.stdout.strip() == b"0"


def test_damaged_records_are_passed_over(box: Sandbox) -> None:
    folder = box.state / "pids"
    folder.mkdir(parents=True)
    for number, content in enumerate(["", "{", "[]", '{"pid": 1}', "null"]):
        (folder / f"{number}.json").write_text(content)
    assert processes.recorded(box.state) == set()


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ('-A INPUT -i kso0 -m comment --comment "kso-sandbox:dev" -j ACCEPT', True),
        ("-A INPUT -i kso0 -m comment --comment kso-sandbox:dev -j ACCEPT", True),
        ("-A INPUT -i kso0 -m comment --comment kso-sandbox:dev2 -j ACCEPT", False),
        ("-A INPUT -i kso0 -m comment --comment kso-sandbox:my-dev -j ACCEPT", False),
        ("-A INPUT -i kso0 -j ACCEPT", False),
        (":kso-sandbox:dev ACCEPT [0:0]", False),
    ],
)
def test_only_rules_with_the_exact_comment_are_removed(line: str, ours: bool) -> None:
    assert network.is_tagged(line, "dev") is ours


def test_a_cgroup_that_is_still_held_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / cgroups.ROOT / "dev" / "node" / "daemons"
    group.mkdir(parents=True)
    (group / "holder").touch()  # a folder with something in it cannot be removed either
    monkeypatch.setattr(cgroups, "_hierarchies", lambda: iter([tmp_path]))
    monkeypatch.setattr(time, "sleep", lambda _: (group / "holder").unlink())
    cgroups.remove("dev")
    assert list(tmp_path.iterdir()) == []


def test_a_root_of_cgroups_that_another_sandbox_removes_meanwhile_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dev").mkdir()
    monkeypatch.setattr(cgroups, "_trees", lambda: [tmp_path / "gone", tmp_path])
    assert cgroups.sandboxes() == {"dev"}


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENODEV])
def test_a_cgroup_is_made_while_another_sandbox_removes_their_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    make, failures = Path.mkdir, [OSError(number, "gone")]

    def mkdir(path: Path, *args: Any, **options: Any) -> None:
        if failures and path.name == "daemons":
            raise failures.pop()
        make(path, *args, **options)

    monkeypatch.setattr(cgroups, "_hierarchies", lambda: iter([tmp_path]))
    monkeypatch.setattr(Path, "mkdir", mkdir)
    (group,) = cgroups.create("dev", "node")
    assert group.is_dir()
    assert not failures


def test_namespaces_of_a_sandbox_with_a_longer_name_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_NAMESPACES", tmp_path)
    mine = [
        f"kso-dev-{node}" for node in ("bootstrap", "control-plane", "control-plane2", "worker")
    ]
    others = ["kso-dev-worker-control-plane", "kso-dev-bootstrap2", "kso-dev2-worker", "cni-1234"]
    for name in [*mine, *others]:
        (tmp_path / name).touch()
    assert network.namespaces("dev") == mine


def test_down_removes_processes_and_state(
    sleeper: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)  # nothing of the machine's network
    monkeypatch.setattr(os, "geteuid", os.getuid)
    identity = processes.find(sleeper, "sleeper")
    assert identity is not None
    teardown.down(sleeper.name)
    assert not identity.alive
    assert not sleeper.state.exists()
    teardown.down(sleeper.name)  # and again, with nothing left

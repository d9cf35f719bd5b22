"""Starting, finding and ending the sandbox's processes, and no others.

A process is provably the sandbox's if its pid and start time were written down when it was
started, if its environment carries the sandbox's mark, or if it lives in the sandbox's cgroup.
The first survives a damaged machine state, the second a lost state folder (and finds containerd's
shims, which inherit it), the third finds the containers, whose environment is their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import cgroups, paths
from cluster.console import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cluster.model import Sandbox

MARK = "KSO_SANDBOX"
"""The environment variable that marks a sandbox's processes."""

_PROC = Path("/proc")
_KILL_TIMEOUT = 15.0
_LOOKS = 10
_BETWEEN_LOOKS = 0.02
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h, in the flags of /proc/PID/stat


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, distinguished from a later one with the same pid."""

    pid: int
    start: int
    boot: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return self.boot == _boot_id() and start_time(self.pid) == self.start


def _boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if it has ended (or is a zombie).

    What is called a zombie may be its first thread alone: while another one still gives back the
    memory, which takes 0.2 s for 3 GiB, the process has its files and its cgroup.
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the command's name may contain anything
    state, threads, start = fields[0], int(fields[17]), int(fields[19])
    return None if state in "ZX" and threads <= 1 else start


def environment(sandbox: str) -> dict[str, str]:
    """The environment of a sandbox's processes: nothing of the caller's but PATH and HOME."""
    return {
        MARK: sandbox,
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
    }


def spawn(
    sandbox: Sandbox,
    name: str,
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
) -> None:
    """Start a daemon unless it runs already, with its output appended to ``logs/NAME.log``."""
    if alive(sandbox, name):
        return
    log = log_file(sandbox, name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**environment(sandbox.name), **(env or {})},
            cwd="/",
            start_new_session=True,
        )
    process.returncode = 0  # it outlives this program, so do not wait for it or warn about it
    started = start_time(process.pid)
    if started is not None:
        record = json.dumps({"pid": process.pid, "start": started, "boot": _boot_id()})
        paths.write_atomically(_record(sandbox, name), record)


def log_file(sandbox: Sandbox, name: str) -> Path:
    """Where a daemon's output goes."""
    return sandbox.state / "logs" / f"{name}.log"


def log_tail(sandbox: Sandbox, name: str, lines: int = 15) -> str:
    """The end of a daemon's output, for error messages."""
    try:
        text = log_file(sandbox, name).read_text(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def find(sandbox: Sandbox, name: str) -> Identity | None:
    """The recorded process of a daemon, if it still runs."""
    identity = _read(_record(sandbox, name))
    return identity if identity is not None and identity.alive else None


def alive(sandbox: Sandbox, name: str) -> bool:
    """Whether a daemon runs."""
    return find(sandbox, name) is not None


def _record(sandbox: Sandbox, name: str) -> Path:
    return sandbox.state / "pids" / f"{name}.json"


def _read(path: Path) -> Identity | None:
    try:
        return Identity(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def recorded(state: Path) -> set[int]:
    """The living processes that a state folder knows of."""
    identities = (_read(path) for path in (state / "pids").glob("*.json"))
    return {one.pid for one in identities if one is not None and one.alive}


def marks() -> dict[str, set[int]]:
    """This user's living processes that carry a mark, by the name of the sandbox.

    Another user's sandbox may have the same name, and is none of our business, not even root's.
    """
    found: dict[str, set[int]] = {}
    prefix = f"{MARK}=".encode()
    entries = [entry for entry in _PROC.iterdir() if entry.name.isdigit()]
    for _ in range(_LOOKS):
        unknown = []
        for entry in entries:
            try:
                if entry.stat().st_uid != os.geteuid():
                    continue
                content = (entry / "environ").read_bytes()
                if not content and _is_starting(entry):
                    unknown.append(entry)
            except OSError:  # ended meanwhile, or another user's
                continue
            for variable in content.split(b"\0"):
                if variable.startswith(prefix):
                    name = variable.removeprefix(prefix).decode(errors="replace")
                    found.setdefault(name, set()).add(int(entry.name))
        if not unknown:
            break
        entries = unknown
        time.sleep(_BETWEEN_LOOKS)
    return found


def _is_starting(entry: Path) -> bool:
    """Whether a process without an environment may get one: it has none while it is in execve."""
    fields = (entry / "stat").read_text().rpartition(")")[2].split()
    return fields[0] not in "ZX" and not int(fields[6]) & _KERNEL_THREAD


def members(sandbox: str) -> set[int]:
    """All living processes that are provably a sandbox's."""
    found = recorded(paths.state_root() / sandbox)
    found |= marks().get(sandbox, set())
    if os.geteuid() == 0:  # only root's sandboxes have cgroups
        found |= cgroups.processes(sandbox)
    return {pid for pid in found - _ancestors() if start_time(pid) is not None}


def _ancestors() -> set[int]:
    """This process and those that wait for it: `down` may be run with a sandbox's environment."""
    chain: set[int] = set()
    pid = os.getpid()
    while pid > 0 and pid not in chain:
        chain.add(pid)
        try:
            pid = int((_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return chain


def kill(find_them: Callable[[], Iterable[int]]) -> int:
    """Kill processes until none is found: one may start another while it is being killed.

    Returns:
        How many were killed.

    Raises:
        SandboxError: Some do not go away.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + _KILL_TIMEOUT
    while found := set(find_them()):
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed.add(pid)
        if time.monotonic() > deadline:
            raise SandboxError(f"these processes cannot be killed: {sorted(found)}")
        time.sleep(0.05)
    return len(killed)


def terminate(sandbox: Sandbox, name: str, patience: float = 10.0) -> None:
    """Terminate one daemon, and kill it after a grace period in seconds."""
    identity = find(sandbox, name)
    if identity is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(identity.pid, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while identity.alive and time.monotonic() < deadline:
        time.sleep(0.02)
    kill_one(sandbox, name)


def kill_one(sandbox: Sandbox, name: str) -> bool:
    """Kill one daemon; False if it did not run."""
    identity = find(sandbox, name)
    if identity is None:
        return False
    kill(lambda: [identity.pid] if identity.alive else [])
    return True

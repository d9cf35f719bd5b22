"""Every node's processes in a cgroup of the sandbox: /kso-sandbox/SANDBOX/NODE.

A container's environment is its own, so a mark in it cannot be relied on; but runc puts containers
below the cgroup of the process that started them, whatever they do. So the daemons are started in
NODE/daemons, and everything that ever runs on a node is found below NODE.

Works with cgroup v1 (one tree for every controller) and v2 (one tree). With v2 runc creates the
containers' cgroups beside, not below, that of the daemons, because only leaves may have processes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.console import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = "kso-sandbox"
_WEIGHTS = {"cpu.shares": "4096", "cpu.weight": "400"}
"""v1 and v2: four times the usual. All nodes together are one group, and beside it tests and
benchmarks are one for each session: a kubelet must not wait for them."""
_ATTEMPTS = 10
_GONE = (errno.ENOENT, errno.ENODEV)  # the parent does not exist any more, or is being removed
_LET_GO_SECONDS = 10.0
"""How long a cgroup whose processes have ended is waited for."""


def sandbox_path(sandbox: str) -> str:
    """The cgroup of all nodes of a sandbox."""
    return f"/{ROOT}/{sandbox}"


def node_path(sandbox: str, node: str) -> str:
    """A node's cgroup, as the kubelet's cgroupRoot wants it."""
    return f"{sandbox_path(sandbox)}/{node}"


def create(sandbox: str, node: str) -> list[Path]:
    """Make the cgroup of a node's daemons in every hierarchy.

    Raises:
        SandboxError: This machine does not let us.
    """
    made = []
    for hierarchy in _hierarchies():
        group = hierarchy / ROOT / sandbox / node / "daemons"
        try:
            _make(group)
            _inherit_cpuset(hierarchy, group)
            _weigh(hierarchy / ROOT)
        except OSError as error:
            raise SandboxError(
                f"cannot create the cgroup {group}: {error.strerror}; nodes need a writable "
                "cgroup file system (in a container: run it privileged), `--nodes 0` does not"
            ) from error
        made.append(group)
    return made


def _make(group: Path) -> None:
    """Make a cgroup, also while the last other sandbox goes and takes the shared root along."""
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            group.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if error.errno not in _GONE or not attempts_left:
                raise
        else:
            return


def _inherit_cpuset(hierarchy: Path, group: Path) -> None:
    """A cpuset of v1 starts empty, and refuses processes until it has been given CPUs."""
    if not (group / "cpuset.mems").exists() or (group / "cgroup.controllers").exists():
        return
    chain = [group, *group.parents]
    for child in reversed(chain[: chain.index(hierarchy)]):
        for name in ("cpuset.cpus", "cpuset.mems"):
            if not (child / name).read_text().strip():
                (child / name).write_text((child.parent / name).read_text())


def _weigh(group: Path) -> None:
    for name, weight in _WEIGHTS.items():
        if (group / name).exists():
            (group / name).write_text(weight)


def enter(groups: Sequence[Path], command: Sequence[str]) -> list[str]:
    """Wrap a command so that it moves itself into the cgroups before it becomes the command."""
    script = 'until [ "$1" = -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift; exec "$@"'
    folders = (str(group) for group in groups)
    return ["sh", "-euc", script, "enter-cgroups", *folders, "--", *command]


def sandboxes() -> set[str]:
    """The sandboxes that have cgroups."""
    # os.walk finds nothing in a root that goes away while it looks; Path.iterdir fails.
    roots = (next(os.walk(tree), None) for tree in _trees())
    return {name for root in roots if root is not None for name in root[1]}


def processes(sandbox: str, node: str = "") -> set[int]:
    """Everything that runs in the cgroups of a sandbox, or of one of its nodes."""
    found: set[int] = set()
    for tree in _trees():
        # os.walk takes it well that a group goes away while it looks; Path.rglob does not.
        for folder, _, _ in os.walk(tree / sandbox / node):
            with contextlib.suppress(OSError):
                text = Path(folder, "cgroup.procs").read_text()
                found.update(int(pid) for pid in text.split())
    found.discard(0)  # a process of another pid namespace
    return found


def remove(sandbox: str, node: str = "") -> None:
    """Remove cgroups that no longer have processes; the shared root goes with the last of them.

    A process that has ended holds its cgroup until its last thread has given back the memory, and
    no list shows it meanwhile.
    """
    deadline = time.monotonic() + _LET_GO_SECONDS
    while not _remove(sandbox, node) and time.monotonic() < deadline:
        time.sleep(0.05)


def _remove(sandbox: str, node: str) -> bool:
    """Remove what can be removed; returns whether nothing is left."""
    left = False
    for tree in _trees():
        group = tree / sandbox / node
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
        left = left or group.exists()
        with contextlib.suppress(OSError):
            tree.rmdir()
    return not left


def _trees() -> list[Path]:
    return [path for path in (tree / ROOT for tree in _hierarchies()) if path.is_dir()]


def _hierarchies() -> Iterator[Path]:
    """Where cgroup hierarchies are mounted, each once."""
    seen = set()
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        _, _, device, _, mount_point, *_ = fields.split()
        path = Path(mount_point)
        if not kind.startswith(("cgroup ", "cgroup2 ")) or device in seen:
            continue
        seen.add(device)
        yield path

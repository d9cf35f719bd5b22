"""`down`: removing a sandbox and nothing else, also when it was killed half-way up or down.

What is removed is found on the machine, not in the sandbox's record: by the mark, the cgroup, the
alias, the comment and the name that everything of a sandbox carries (see processes, cgroups and
network). The state folder goes last, so an interrupted `down` can be repeated.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

from cluster import cgroups, lifecycle, model, network, node_files, paths, processes
from cluster.console import SandboxError, run, say, step


@dataclass(frozen=True, slots=True)
class Remnants:
    """What there is of a sandbox on this machine."""

    processes: list[int] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)
    cgroups: bool = False
    state: bool = False

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return any(
            (self.processes, self.links, self.namespaces, self.rules, self.mounts, self.cgroups,
             self.state)
        )  # fmt: skip


def find(name: str) -> Remnants:
    """Look for everything that is provably a sandbox's."""
    own = Remnants(
        processes=sorted(processes.members(name)),
        mounts=_mounts(paths.state_root() / name),
        state=(paths.state_root() / name).exists(),
    )
    if os.geteuid() != 0:  # what is below is root's, though perhaps of a sandbox of the same name
        return own
    return replace(
        own,
        links=network.links(name),
        namespaces=network.namespaces(name),
        rules=[rule for _, rule in network.tagged_rules(name)],
        cgroups=name in cgroups.sandboxes(),
    )


def names() -> list[str]:
    """All sandboxes of which there is anything left, whether or not their record is readable."""
    found = set(processes.marks())
    if paths.state_root().is_dir():
        found |= {path.name for path in paths.state_root().iterdir() if path.is_dir()}
    if os.geteuid() == 0:
        found |= cgroups.sandboxes() | network.tagged_sandboxes()
    return sorted(found)


def down(name: str) -> None:
    """Remove a sandbox.

    Raises:
        SandboxError: Something of it resists, or it is another user's.
    """
    state = paths.state_root() / model.check_name(name)
    with paths.locked(lifecycle.lock(name)):
        before = find(name)
        if not before:
            say(f"there is nothing of a sandbox {name}")
        with step(f"sandbox {name} is down"):
            processes.kill(lambda: processes.members(name))
            for mount in reversed(_mounts(state)):
                run("umount", "--lazy", mount)
            if os.geteuid() == 0:
                network.remove(name)
            cgroups.remove(name)
            shutil.rmtree(state, ignore_errors=True)
        if left := find(name):
            raise SandboxError(f"this is left of sandbox {name}: {left}")
        if os.geteuid() == 0 and not names():
            node_files.remove_mount_points()
        lifecycle.lock(name).unlink(missing_ok=True)


def _mounts(folder: Path) -> list[str]:
    """The host's mounts below a folder, in the order in which they were made."""
    below = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        target = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), line.split()[1])
        if Path(target).is_relative_to(folder):
            below.append(target)
    return below

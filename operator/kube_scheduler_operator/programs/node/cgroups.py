"""Finds pods with a running kubelet worker by their cgroups, whose removal is its last step.

The kubelet's SyncTerminatedPod removes the cgroup after the volumes; then the worker ends and
another static pod of the same name may start (pod_workers.go, completeTerminated).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_POD: Final = re.compile(
    r"(?:^|-)pod([0-9a-f]{32}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?$"
)
_LEAVES: Final = (".service", ".scope", ".socket", ".mount")
_DEPTH: Final = 6


def pods(root: Path) -> frozenset[str]:
    """UIDs of the pods that have a cgroup; `root` is the host's /sys/fs/cgroup, version 1 or 2.

    Empty only if cgroups are not visible: the caller's own pod has one.
    """
    # One hierarchy of version 1 is sufficient: runc leaves some of the others behind.
    memory = root / "memory"
    return frozenset(_find(memory if memory.is_dir() else root, _DEPTH))


def _find(directory: Path | str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            below = [e for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return  # removed in the meantime, or not readable
    for entry in below:
        found = _POD.search(entry.name)
        if found:
            yield found[1].replace("_", "-")
        elif depth and not entry.name.endswith(_LEAVES):
            yield from _find(entry.path, depth - 1)

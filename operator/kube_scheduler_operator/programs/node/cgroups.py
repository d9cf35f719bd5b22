"""Which pods the kubelet still works on: it removes a pod's cgroup as the last step of its worker.

In kubelet's SyncTerminatedPod the cgroup goes after the volumes; when it has gone, the worker ends
and another static pod of the same name may start (pod_workers.go, completeTerminated).
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_POD: Final = re.compile(
    r"(?:^|-)pod([0-9a-f]{32}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?$"
)
_LEAVES: Final = (".service", ".scope", ".socket", ".mount")
_DEPTH: Final = 6


def pods(root: Path) -> frozenset[str]:
    """UIDs of the pods that have a cgroup.

    Args:
        root: the host's /sys/fs/cgroup, version 1 or 2.

    Returns:
        Empty if cgroups cannot be seen, because the pod of whoever asks has one, too.
    """
    # With version 1 one hierarchy tells enough: runc leaves some of the others behind.
    memory = root / "memory"
    return frozenset(_find(memory if memory.is_dir() else root, _DEPTH))


def _find(directory: Path | str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            below = [e for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return  # gone meanwhile, or none of ours to see
    for entry in below:
        found = _POD.search(entry.name)
        if found:
            yield found[1].replace("_", "-")
        elif depth and not entry.name.endswith(_LEAVES):
            yield from _find(entry.path, depth - 1)

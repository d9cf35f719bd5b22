"""Ends processes of the operator's pods, as accidents do."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from pathlib import Path

from cluster.api import ApiError

from .conftest import PODS, Cluster


def pids(*words: str, cgroup: str = "") -> list[int]:
    """Processes that have all of `words` in their command line, and `cgroup` in their cgroup."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            group = (folder / "cgroup").read_text()
            line = (folder / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue
        if cgroup in group.replace("-", "_") and all(any(w in x for x in line) for w in words):
            found.append(int(folder.name))
    return found


def kill_an_operator(cluster: Cluster) -> int:
    """SIGKILL one of the operator's processes; its pod goes too, or it would be backed off."""
    running = cluster.operators
    if not running:
        return 0
    victim = random.choice(running)
    pod = cluster.api.request("GET", f"{PODS}/{victim}")
    for pid in pids("operator", cgroup=pod["metadata"]["uid"].replace("-", "_")):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    with contextlib.suppress(ApiError):
        cluster.api.request("DELETE", f"{PODS}/{victim}", body)
    return 1

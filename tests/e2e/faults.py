"""Ends processes of the operator's pods, as accidents do."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.api import ApiError

from .conftest import PODS, Cluster
from .workloads import own_pods


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


def pids_of(cluster: Cluster, selector: str, word: str, node: str = "") -> list[int]:
    """The processes with a word in their command line of our pods with a label.

    Those on one node, or everywhere.
    """
    uids = [
        each["metadata"]["uid"].replace("-", "_")
        for each in own_pods(cluster, selector)
        if node in ("", each["spec"].get("nodeName"))
    ]
    return [pid for uid in uids for pid in pids(word, cgroup=uid)]


@contextmanager
def dead(find: Callable[[], list[int]]) -> Iterator[None]:
    """Processes are killed each time they are restarted."""
    with _signalled(find, signal.SIGKILL):
        yield


@contextmanager
def hung(find: Callable[[], list[int]]) -> Iterator[None]:
    """Processes are stopped, also those that are started in their place; they go on afterwards."""
    stopped = set[int]()
    try:
        with _signalled(find, signal.SIGSTOP) as stopped:
            yield
    finally:
        for pid in stopped:
            _send(pid, signal.SIGCONT)


@contextmanager
def _signalled(find: Callable[[], list[int]], signal_: signal.Signals) -> Iterator[set[int]]:
    over, sent = threading.Event(), set[int]()

    def signal_all() -> None:
        while not over.wait(0.2):
            with contextlib.suppress(ApiError):
                for pid in find():
                    _send(pid, signal_)
                    sent.add(pid)

    thread = threading.Thread(target=signal_all, daemon=True)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()


def _send(pid: int, signal_: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal_)

"""Several control-plane nodes: how long a rollout takes over all of them, and who notices it.

Pods are created every 100 ms during every rollout.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.table import Row
from cluster.api import Api, Object
from cluster.console import say
from cluster.load import Load
from cluster.model import Sandbox
from cluster.observe import KUBESCHEDULER, SCHEDULER, until

ROLLOUT_TIMEOUT = 600.0


def measure(sandbox: Sandbox, repeat: int) -> Iterator[Row]:
    """All figures of several nodes, once they are measured."""
    api = Api(sandbox)
    until(lambda: _all_at(api, 1), ROLLOUT_TIMEOUT, "the stock schedulers were not adopted")
    time.sleep(5)
    last, moves, waits, lost = [], [], [], 0
    each: list[list[float]] = [[] for _ in sandbox.nodes]
    for number in range(repeat):
        with Load(api) as load:
            seconds = _roll(api, ("HighNodeUtilization", "NoScoring")[number % 2])
            time.sleep(1)
        for values, value in zip(each, seconds, strict=True):
            values.append(value)
        last.append(seconds[-1])
        moves.append(float(load.lease_moves))
        waited, unbound = load.finish()
        waits += waited
        lost += unbound
        moments = ", ".join(f"{value:.1f}" for value in seconds)
        say(f"  rollout {number + 1}: nodes after {moments} s; {moves[-1]:.0f} moves of the Lease")
        time.sleep(3)
    for number, values in enumerate(each[:-1], 1):
        yield Row(f"edit to {number} of {len(each)} nodes on it", values, "s", None)
    yield Row(f"edit to all {len(each)} nodes on it", last, "s", 40.0)
    yield Row("moves of the Lease in a rollout", moves, "", 1.0)
    yield Row(f"pods created meanwhile: {len(waits)}; never bound", [float(lost)], "", 0.0)
    waits.sort()
    yield Row("creation to binding, median", [waits[len(waits) // 2]], "s", None)
    yield Row("creation to binding, 99th percentile", [waits[int(len(waits) * 0.99)]], "s", 3.0)


def _roll(api: Api, profile: str) -> list[float]:
    """Edit; after how many seconds each of the nodes ran the new revision, the fastest first."""
    before = int(api.request("GET", KUBESCHEDULER)["status"]["latestAvailableRevision"])
    begun = time.monotonic()
    api.request("PATCH", SCHEDULER, {"spec": {"profile": profile}})
    seen: dict[str, float] = {}

    def done() -> bool:
        entries = _entries(api)
        for entry in entries:
            if entry.get("currentRevision", 0) > before:
                seen.setdefault(entry["nodeName"], time.monotonic() - begun)
        return len(seen) == len(entries)

    until(done, ROLLOUT_TIMEOUT, "not all nodes got the new revision")
    return sorted(seen.values())


def _entries(api: Api) -> list[Object]:
    found: list[Object] = (
        api.request("GET", KUBESCHEDULER).get("status", {}).get("nodeStatuses", [])
    )
    return found


def _all_at(api: Api, revision: int) -> bool:
    entries = _entries(api)
    at = [entry.get("currentRevision", 0) >= revision for entry in entries]
    return len(at) == len(api.nodes()) and all(at)

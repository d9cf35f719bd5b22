"""Bursts of Pods without requests beside a load limit: what the fullest node gets.

A real kube-scheduler finds the Pods pending at its start, with an extender of the policy load-aware
and hollow nodes that are half loaded. Nodes take a part of the Pods; the others wait until the
first ones are measured, which does not happen here.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import UTC, datetime

from benchmarks.extender_trial import USAGE
from benchmarks.extenders import Extender, Variant
from benchmarks.table import Row
from cluster import hollow, scheduling
from cluster.api import Api, Object
from cluster.console import say
from cluster.model import Sandbox

NAMESPACE = "bursts"
SIZES = ((30, 3), (300, 30))
"""(Pods, nodes)."""
LIMIT, MEASURED = 65.0, 50.0
"""Percent of a node's CPU: the default limit of a LoadPolicy, and what is measured on each node."""
CORES_OF_A_POD = 0.25
"""What a Pod without requests counts."""
WEIGHTS = (3, 10)
"""Of the extender: that of the example, where plugins also decide, and one that decides alone."""
PODS_ABOVE = 3
"""On the smallest node: the last one that it accepts, and two that were assumed on another of the
nodes with the best score."""
QUIET_SECONDS = 3.0
_FIRST_SECONDS = 60.0


def measure(sandbox: Sandbox, repeat: int) -> list[Row]:
    """Measure bursts of all sizes."""
    api, scheduler = Api(sandbox), scheduling.Scheduler(sandbox)
    scheduling.create_namespace(api, NAMESPACE)
    scheduling.free_of_limits(api)
    rows = []
    for pods, nodes in SIZES:
        names = hollow.create(api, nodes)
        hollow.annotate(api, {name: {USAGE: _load()} for name in names})
        allowed = LIMIT + 100 * PODS_ABOVE * CORES_OF_A_POD / _least_cores(nodes)
        for weight in WEIGHTS:
            bursts = [_burst(sandbox, api, scheduler, pods, weight) for _ in range(repeat)]
            title = f"{pods} pods, {nodes} nodes, weight {weight}"
            fullest = [max(_expected(placed).values()) for placed in bursts]
            rows.append(Row(f"{title}: fullest node", fullest, "% of CPU", allowed))
            bound = [float(placed.total()) for placed in bursts]
            rows.append(Row(f"{title}: bound", bound, "pods", None))
            say(f"  {title}: {fullest} % of CPU, {bound} bound")
        scheduling.delete_pods(api, NAMESPACE)
        hollow.remove(api)
    return rows


def _burst(
    sandbox: Sandbox, api: Api, scheduler: scheduling.Scheduler, pods: int, weight: int
) -> Counter[str]:
    """Return the number of Pods that each node gets."""
    scheduling.delete_pods(api, NAMESPACE)
    scheduling.create_pods(api, NAMESPACE, map(_pod, range(pods)))
    extender = Extender(sandbox, Variant("load-aware", "ours", (("load-aware", 1),)))
    bindings = scheduling.Bindings(api, NAMESPACE)
    try:
        scheduler.start([{**extender.entry, "weight": weight}])
        bindings.wait(1, _FIRST_SECONDS, scheduler.log)
        seen, since = 0, time.monotonic()
        while time.monotonic() - since < QUIET_SECONDS:
            if len(bindings.seconds) != seen:
                seen, since = len(bindings.seconds), time.monotonic()
            time.sleep(0.05)
    finally:
        bindings.close()
        scheduler.stop()
        extender.stop()
    placed = api.request("GET", scheduling.pods_of(NAMESPACE))["items"]
    return Counter(pod["spec"]["nodeName"] for pod in placed if pod["spec"].get("nodeName"))


def _pod(number: int) -> Object:
    pod = scheduling.pod(f"burst-{number:03}", number)
    del pod["spec"]["containers"][0]["resources"]
    return pod


def _load() -> str:
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    level = MEASURED / 100
    return json.dumps({"at": at, "source": "bench", "cpu_usage_avg_5m": level})


def _cores(number: int) -> int:
    return int(hollow.node(number)["status"]["capacity"]["cpu"])


def _least_cores(nodes: int) -> int:
    return min(map(_cores, range(nodes)))


def _expected(placed: Counter[str]) -> dict[str, float]:
    """Return the expected load of each node in percent."""
    numbers = {hollow.name_of(number): number for number in range(max(dict(SIZES).values()))}
    return {
        name: MEASURED + 100 * count * CORES_OF_A_POD / _cores(numbers[name])
        for name, count in placed.items()
    }

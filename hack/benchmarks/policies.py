"""What a policy costs: the two calls for a pod, and how much incremental updates save.

No server and no scheduler: microseconds in the policy itself, with nodes that are measured, pods of
several kinds in turns, and a pod bound between any two that are asked for.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from benchmarks.table import REPOSITORY, Row

sys.path.insert(0, str(REPOSITORY / "operator"))

from kube_scheduler_operator.base.names import LOAD_ANNOTATION
from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.scheduling.policies.pods import Pod, read_pod
from kube_scheduler_operator.scheduling.policies.policy import Policy, catalogue, make

SIZES = ((500, 230), (5000, 500))
"""(nodes of the cluster, nodes that kube-scheduler sends)."""
KINDS = 5
TARGET = 60.0
"""Microseconds a call at 230 names; beyond that there is a yardstick only."""
OBJECTIVES = ("A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE")


def measure(repeat: int, only: str | None = None) -> Iterator[Row]:
    """Rows for each policy and size: filter, score, a kind never seen, a pod and a node event."""
    for size, asked in SIZES:
        for title, name, arguments in variants():
            if only in (None, name):
                yield from Bench(size, asked, title, name, arguments).rows(repeat)


def variants() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(title, policy, arguments)."""
    for name, entry in sorted(catalogue().items()):
        if entry.distribution:
            continue
        if name == "pigeon-holing":
            for objective in OBJECTIVES:
                yield f"{name} {objective}", name, {"objective": objective}
        else:
            yield name, name, {}


class Bench:
    """One policy in a cluster of `size` nodes, asked for `asked` of them at a time."""

    def __init__(
        self, size: int, asked: int, title: str, name: str, arguments: Mapping[str, Any]
    ) -> None:
        self.random = random.Random(size)
        self.size, self.asked, self.title = size, asked, f"{title} {asked}/{size}"
        self.cluster = Cluster(time.time)
        for at in range(size):
            self.cluster.set_node(self.node(at))
        self.bound = 0
        for _ in range(10 * size):
            self.bind()
        self.policy: Policy = make(name, arguments, self.cluster)
        self.pods = [self.pod(kind) for kind in range(KINDS)]

    def rows(self, repeat: int) -> Iterator[Row]:
        """What is measured, microseconds."""
        target = TARGET if self.size == SIZES[0][0] else None
        filters, scores = [], []
        for at in range(repeat + 4 * KINDS):
            pod, indices = self.pods[at % KINDS], self.sample()
            filtering = timed(lambda: self.policy.filter(pod, indices))  # noqa: B023
            scoring = timed(lambda: self.policy.score(pod, indices))  # noqa: B023
            if at >= 4 * KINDS:
                filters.append(filtering)
                scores.append(scoring)
            self.bind()
        if self.policy.filters:
            yield Row(f"{self.title}: filter", filters, "us", target)
        if self.policy.scores:
            yield Row(f"{self.title}: score", scores, "us", target)
        yield Row(f"{self.title}: new kind", self.unseen(repeat // 10), "us", None)
        yield Row(f"{self.title}: pod bound", self.binding(repeat), "us", None)
        yield Row(f"{self.title}: node measured", self.measuring(repeat), "us", None)

    def unseen(self, repeat: int) -> list[float]:
        """Filter and score of a pod with new requests."""
        found = []
        for at in range(max(repeat, 1)):
            pod, indices = self.pod(1000 + at), self.sample()
            filtering = timed(lambda: self.policy.filter(pod, indices))  # noqa: B023
            found.append(filtering + timed(lambda: self.policy.score(pod, indices)))  # noqa: B023
        return found

    def binding(self, repeat: int) -> list[float]:
        """Telling the cluster and so the policy of a pod."""
        return [self.bind() for _ in range(repeat)]

    def measuring(self, repeat: int) -> list[float]:
        """Telling them of a node whose annotation has changed."""
        found = []
        for _ in range(repeat):
            obj = self.node(self.random.randrange(self.size))
            found.append(timed(lambda: self.cluster.set_node(obj)))  # noqa: B023
        return found

    # --- what there is --------------------------------------------------------------------------

    def sample(self) -> Any:
        """The nodes of a request, at random (intp[asked])."""
        return np.array(self.random.sample(range(self.size), self.asked), np.intp)

    def pod(self, kind: int) -> Pod:
        """A pod to place; pods of one kind ask for the same."""
        return read_pod(self.pod_object(f"asked-{kind}", kind))

    def bind(self) -> float:
        """A pod is bound now; as many go as come."""
        self.bound += 1
        obj = self.pod_object(f"p{self.bound}", self.bound % KINDS)
        obj["spec"]["nodeName"] = f"node-{self.random.randrange(self.size):04}"
        obj["status"] = {"startTime": rfc3339(time.time())}
        took = timed(lambda: self.cluster.set_pod(obj))
        gone = self.bound - 10 * self.size
        if gone > 0:
            self.cluster.remove_pod({"metadata": {"uid": f"uid-p{gone}"}})
        return took

    def pod_object(self, name: str, kind: int) -> dict[str, Any]:
        """A pod of the API."""
        resources = {
            "requests": {"cpu": f"{100 + kind}m", "memory": "64Mi"},
            "limits": {"cpu": f"{500 + kind}m"},
        }
        return {
            "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}",
                         "labels": {"app": f"app-{kind}"}},
            "spec": {"containers": [{"name": "c", "resources": resources}]},
        }  # fmt: skip

    def node(self, at: int) -> dict[str, Any]:
        """A node of the API, half used, with an annotation that was written now."""
        share = self.random.random
        usage = {
            f"{resource}_usage_{window}": round(0.6 * share(), 5)
            for resource in ("cpu", "mem")
            for window in ("avg_5m", "max_avg_1h", "max_avg_1d")
        }
        free = {
            "free_cpu_mean": 12000 + 16000 * share(),
            "free_cpu_std": 4000 * share(),
            "free_memory_mean": (1 + share()) * 2**36,
            "free_memory_std": 2**34 * share(),
        }
        figures = {"at": rfc3339(time.time()), "source": "bench", "congestion": 0, **usage, **free}
        amounts = {"cpu": "32", "memory": "128Gi", "pods": "110"}
        return {
            "metadata": {
                "name": f"node-{at:04}",
                "annotations": {LOAD_ANNOTATION: json.dumps(figures)},
            },
            "status": {"allocatable": amounts, "capacity": amounts},
        }


def timed(work: Callable[[], object]) -> float:
    """Microseconds."""
    begun = time.perf_counter()
    work()
    return 1e6 * (time.perf_counter() - begun)


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")

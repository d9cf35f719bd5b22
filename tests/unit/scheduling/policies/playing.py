"""A cluster of API objects with a clock that tests set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from kube_scheduler_operator.base.names import LOAD_ANNOTATION
from kube_scheduler_operator.scheduling.policies.cluster import Cluster
from kube_scheduler_operator.scheduling.policies.pods import Pod, read_pod
from kube_scheduler_operator.scheduling.policies.policy import Policy, Rejections, make

from .... import builders

NOW = datetime(2026, 11, 23, tzinfo=UTC).timestamp()


class Clock:
    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def usage(at: float = NOW, **figures: float | None) -> dict[str, str]:
    """Our annotation."""
    output = {name: value for name, value in figures.items() if value is not None}
    return {LOAD_ANNOTATION: json.dumps({"at": rfc3339(at), "source": "test", **output})}


def node(
    name: str,
    cpu: str = "4",
    memory: str = "8Gi",
    annotations: Mapping[str, str] | None = None,
    **resources: str,
) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory, "pods": "110", **resources}
    return builders.node(name, resources=amounts, annotations=annotations, uid=f"uid-{name}")


def pod(
    name: str = "p",
    cpu: str | None = None,
    memory: str | None = None,
    on: str = "",
    *,
    limits: Mapping[str, str] | None = None,
    owner: str = "",
    bound: float | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A Pod; `owner` is the kind of its controller, `bound` when it was bound."""
    requests = {k: v for k, v in (("cpu", cpu), ("memory", memory)) if v is not None}
    made = {
        "containers": [builders.container(requests, limits)],
        "metadata": builders.controlled_by(owner) if owner else None,
        "status": builders.pod_status(bound=bound),
    }
    return builders.pod(name, node=on, **{**made, **fields})


class Play:
    """A policy in its cluster."""

    def __init__(
        self, name: str, nodes: Sequence[Mapping[str, Any]] = (), **arguments: Any
    ) -> None:
        self.clock = Clock()
        self.cluster = Cluster(self.clock)
        for each in nodes:
            self.cluster.set_node(each)
        self.policy: Policy = make(name, arguments, self.cluster)

    def indices(self, names: Sequence[str] | None = None) -> Any:
        known = self.cluster.index
        return np.array([known[name] for name in (names or sorted(known))], np.intp)

    def scores(self, obj: Mapping[str, Any] | None = None, *names: str) -> list[int]:
        """Scores by node, computed and from the cache, which must be equal."""
        read, indices = self.pod(obj), self.indices(names)
        first = self.policy.score(read, indices)
        second = self.policy.score(read, indices)
        assert first is not None
        assert second is not None
        assert list(first) == list(second)
        return [int(each) for each in first]

    def rejected(self, obj: Mapping[str, Any] | None = None, *names: str) -> dict[str, str]:
        """Node to reason."""
        ordered, found = self._filtered(obj, *names)
        return {ordered[at]: why for at, why in found.reasons.items()}

    def explained(self, obj: Mapping[str, Any] | None = None, *names: str) -> dict[str, str]:
        """Node to reason with figures."""
        ordered, found = self._filtered(obj, *names)
        return {ordered[at]: found.describe(at) for at in found.reasons}

    def _filtered(self, obj: Mapping[str, Any] | None, *names: str) -> tuple[list[str], Rejections]:
        ordered = list(names or sorted(self.cluster.index))
        return ordered, self.policy.filter(self.pod(obj), self.indices(ordered)) or Rejections()

    @staticmethod
    def pod(obj: Mapping[str, Any] | None) -> Pod:
        return read_pod(obj or pod())

"""The sources of load: one module for each, and the selection of the configured one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ....kube.client import ApiClient
from ...load.policy import KUBELET_SUMMARY, METRICS_SERVER, PROMETHEUS, LoadPolicy
from ..measurement import Measurement
from ..nodes import AnnotatedNode


class LoadSource(Protocol):
    warning: str
    """A problem to report although measurements succeed; "" for none."""

    per_node: bool
    """Whether each node is polled separately, so that back-off applies per node."""

    async def measure(self, node: AnnotatedNode) -> Measurement:
        """Measure one node. Raises MeasurementError."""

    async def close(self) -> None:
        """Close connections."""


def make_source(
    policy: LoadPolicy, api: ApiClient, namespace: str, now: Callable[[], float]
) -> LoadSource:
    """Return the source that a policy configures; `namespace` has the account that kubelets see.

    `now` is the API server's time in seconds since 1970. Each import is deferred: it loads
    dependencies of one source only.
    """
    kind = policy.source.type
    if kind == METRICS_SERVER:
        from .metrics_server import MetricsServer

        return MetricsServer(policy, api, now)
    if kind == KUBELET_SUMMARY:
        from .kubelet_summary import KubeletSummary

        return KubeletSummary(policy, api, namespace, now)
    if kind == PROMETHEUS:
        from .prometheus import Prometheus

        return Prometheus(policy, now)
    from .node_metrics import NodeMetrics

    return NodeMetrics(policy.source, now)

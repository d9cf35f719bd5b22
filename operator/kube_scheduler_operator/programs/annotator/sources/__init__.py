"""Where load is measured: one small module for each source, and the choice between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ....load.policy import KUBELET_SUMMARY, METRICS_SERVER, PROMETHEUS

if TYPE_CHECKING:
    from ....kube.client import ApiClient
    from ....load.policy import LoadPolicy
    from ..measurement import Measurement
    from ..nodes import Node


class Source(Protocol):
    """Says how busy nodes are."""

    warning: str
    """What people should know although there are answers; "" for nothing."""

    per_node: bool
    """Whether each node is asked itself, so that one which does not answer is asked less often."""

    async def measure(self, node: Node) -> Measurement:
        """The load of one node. Raises SourceError: there is nothing to say of it."""

    async def close(self) -> None:
        """Give connections back."""


def make_source(policy: LoadPolicy, api: ApiClient) -> Source:
    """The source that a policy names.

    Imports are here, for each brings what only it needs.
    """
    kind = policy.source.type
    if kind == METRICS_SERVER:
        from .metrics_server import MetricsServer

        return MetricsServer(policy, api)
    if kind == KUBELET_SUMMARY:
        from .kubelet_summary import KubeletSummary

        return KubeletSummary(policy, api)
    if kind == PROMETHEUS:
        from .prometheus import Prometheus

        return Prometheus(policy)
    from .node_metrics import NodeMetrics

    return NodeMetrics(policy)

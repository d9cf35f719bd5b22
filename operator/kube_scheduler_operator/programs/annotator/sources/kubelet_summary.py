"""Source KubeletSummary: `/stats/summary` of every kubelet, with the annotator's credentials.

Kubelets authorize `get` on `nodes/stats` through the API server. Like metrics-server, they provide
no history.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ....kube.client import ApiClient
from ....kube.credentials import Access
from ....kube.errors import CredentialsError
from ....load.policy import LoadPolicy
from ....policies.pods import seconds
from ..measurement import Measurement, MeasurementError
from ..nodes import AnnotatedNode
from .http import at_host, get_json, session
from .metrics_server import instant

PATH: Final = "/stats/summary?only_cpu_and_memory=true"


class KubeletSummary:
    """Polls each kubelet, with the credentials and the CA of the API client."""

    warning = ""
    per_node = True

    def __init__(
        self, policy: LoadPolicy, api: ApiClient, now: Callable[[], float] = time.time
    ) -> None:
        self._source, self._credentials, self._now = policy.source, api.credentials, now
        self._client = session(policy.source.timeout)
        self._tls: tuple[Access, ssl.SSLContext] | None = None

    async def measure(self, node: AnnotatedNode) -> Measurement:
        """The load of one node. Raises MeasurementError."""
        if not node.address:
            raise MeasurementError("the node has no address")
        try:
            access = await self._credentials.access()
            tls = self._context(access)
        except CredentialsError as error:
            raise MeasurementError(str(error)) from error
        summary = await get_json(
            self._client,
            at_host("https", node.address, self._source.port, PATH),
            headers={"Authorization": access.authorization} if access.authorization else {},
            tls=tls,
        )
        return read_summary(summary, node.capacities, self._now())

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()

    def _context(self, access: Access) -> ssl.SSLContext:
        """TLS context for kubelets: the cluster's CA and the client certificate, if any."""
        transport = access.transport
        if self._tls is None or self._tls[0] != transport:
            verify = not self._source.insecure_skip_verify
            context = replace(transport, server="https://", verify=verify).ssl_context()
            if context is None:
                raise CredentialsError("no TLS is configured")
            self._tls = (transport, context)
        return self._tls[1]


def read_summary(summary: Any, capacities: tuple[float, float], now: float) -> Measurement:
    """Parse a kubelet's summary, received at `now`. Raises MeasurementError."""
    node = summary.get("node") if isinstance(summary, Mapping) else None
    if not isinstance(node, Mapping):
        raise MeasurementError("the summary has no node")
    cpu, memory = node.get("cpu") or {}, node.get("memory") or {}
    nanos, used = cpu.get("usageNanoCores"), memory.get("workingSetBytes")
    at = min(seconds(cpu.get("time")) or now, now)
    return instant(
        at,
        capacities,
        nanos / 1e6 if isinstance(nanos, int) else None,
        float(used) if isinstance(used, int) else None,
    )

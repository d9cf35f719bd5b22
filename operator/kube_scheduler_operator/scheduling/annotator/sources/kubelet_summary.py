"""Source KubeletSummary: `/stats/summary` of every kubelet, with a token for nothing else.

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
from ...load.policy import LoadPolicy
from ..measurement import Measurement, MeasurementError
from ..nodes import AnnotatedNode
from .http import at_host, get_json, session
from .kubelet_token import KubeletToken
from .metrics_server import instant

DEFAULT_PORT: Final = 10250
PATH: Final = "/stats/summary?only_cpu_and_memory=true"


class KubeletSummary:
    """Polls each kubelet at its port, with the CA of the API client."""

    warning = ""
    per_node = True

    def __init__(
        self, policy: LoadPolicy, api: ApiClient, namespace: str, now: Callable[[], float]
    ) -> None:
        self._source, self._credentials, self._now = policy.source, api.credentials, now
        self._client = session(policy.source.timeout)
        self._token = KubeletToken(api, namespace, time.monotonic)
        self._tls: tuple[Access, ssl.SSLContext] | None = None

    async def measure(self, node: AnnotatedNode) -> Measurement:
        """Return the load of one node. Raises MeasurementError."""
        if not node.address:
            raise MeasurementError("the node has no address")
        if self._source.port != (node.kubelet_port or DEFAULT_PORT):
            raise MeasurementError(
                f"port {self._source.port} is not that of its kubelet, "
                f"{node.kubelet_port or DEFAULT_PORT}; correct source.kubeletSummary.port"
            )
        try:
            tls = self._context(await self._credentials.access())
        except CredentialsError as error:
            raise MeasurementError(str(error)) from error
        token = await self._token.get()
        summary = await get_json(
            self._client,
            at_host("https", node.address, self._source.port, PATH),
            headers={"Authorization": f"Bearer {token}"},
            tls=tls,
        )
        return read_summary(summary, node, self._now())

    async def close(self) -> None:
        await self._client.close()

    def _context(self, access: Access) -> ssl.SSLContext:
        """Make the TLS context for kubelets: the cluster's CA, no client certificate."""
        transport = access.transport
        if self._tls is None or self._tls[0] != transport:
            verify = not self._source.insecure_skip_verify
            bare = replace(transport, cert_file=None, key_file=None)
            context = replace(bare, server="https://", verify=verify).ssl_context()
            if context is None:
                raise CredentialsError("no TLS is configured")
            self._tls = (transport, context)
        return self._tls[1]


def read_summary(summary: Any, node: AnnotatedNode, now: float) -> Measurement:
    """Parse a kubelet's summary, received at `now`. Raises MeasurementError."""
    usage = summary.get("node") if isinstance(summary, Mapping) else None
    if not isinstance(usage, Mapping):
        raise MeasurementError("the summary has no node")
    cpu, memory = usage.get("cpu") or {}, usage.get("memory") or {}
    nanos, used = cpu.get("usageNanoCores"), memory.get("workingSetBytes")
    return instant(
        node.seen(cpu.get("time"), now),
        node.capacities,
        nanos / 1e6 if isinstance(nanos, int) else None,
        float(used) if isinstance(used, int) else None,
    )

"""Source KubeletSummary: `/stats/summary` of every kubelet, with a token for nothing else.

Kubelets authorize `get` on `nodes/stats` through the API server. Like metrics-server, they provide
no history. A kubelet's certificate may be self-signed, as kubeadm's are, so another process at its
address could receive what is sent there. The annotator's own token, which may patch nodes, goes to
the API server only.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from ....base import names
from ....kube.client import ApiClient
from ....kube.credentials import Access
from ....kube.errors import CredentialsError, KubeError
from ....kube.resource import SERVICE_ACCOUNTS
from ...load.policy import LoadPolicy
from ..measurement import Measurement, MeasurementError
from ..nodes import AnnotatedNode
from .http import NodeSource, get_json
from .metrics_server import instant

DEFAULT_PORT: Final = 10250
PATH: Final = "/stats/summary?only_cpu_and_memory=true"

LIFETIME: Final = 600
"""Seconds that a token is valid; the shortest time that the API server grants."""


class KubeletSummary(NodeSource):
    """Polls each kubelet at its port, with the CA of the API client."""

    def __init__(
        self, policy: LoadPolicy, api: ApiClient, namespace: str, now: Callable[[], float]
    ) -> None:
        super().__init__(policy.source, now)
        self._credentials = api.credentials
        self._token = KubeletToken(api, namespace, time.monotonic)
        self._tls: tuple[Access, ssl.SSLContext] | None = None

    async def measure(self, node: AnnotatedNode) -> Measurement:
        """Return the load of one node. Raises MeasurementError."""
        url = self.url("https", node, PATH)
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
            url,
            headers={"Authorization": f"Bearer {token}"},
            tls=tls,
        )
        return read_summary(summary, node, self._now())

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


class KubeletToken:
    """The token of an account in `namespace` that may read the statistics of kubelets only.

    A new one is requested after half of its lifetime; `clock` is in monotonic seconds.
    """

    def __init__(self, api: ApiClient, namespace: str, clock: Callable[[], float]) -> None:
        self._api, self._clock = api, clock
        self._account = SERVICE_ACCOUNTS.named(names.KUBELET_STATS, namespace)
        self._lock = asyncio.Lock()
        self._token, self._renew_at = "", float("-inf")

    async def get(self) -> str:
        async with self._lock:  # all nodes of a cycle need it at once
            if self._clock() >= self._renew_at:
                self._token = await self._request()
                self._renew_at = self._clock() + LIFETIME / 2
            return self._token

    async def _request(self) -> str:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFETIME},
        }
        try:
            response = await self._api.create_in(self._account, "token", body)
        except KubeError as error:
            raise MeasurementError(f"no token for kubelets: {error}") from error
        return str((response.get("status") or {}).get("token") or "")


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

"""Source KubeletSummary: `/stats/summary` of every kubelet, with the annotator's own identity.

Kubelets ask the API server whether that identity may `get` `nodes/stats`. Like metrics-server they
know nothing of the past.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ....kube.errors import CredentialsError
from ....policies.pods import seconds
from ..measurement import Measurement, SourceError
from .http import at_host, get_json, session
from .metrics_server import instant

if TYPE_CHECKING:
    from ....kube.client import ApiClient
    from ....kube.credentials import Access
    from ....load.policy import LoadPolicy
    from ..nodes import Node

PATH: Final = "/stats/summary?only_cpu_and_memory=true"


class KubeletSummary:
    """Asks each kubelet.

    Args:
        policy: with the port, the time-out and whether certificates are verified.
        api: whose identity and CA are used.
        now: seconds since 1970.
    """

    warning = ""
    per_node = True

    def __init__(
        self, policy: LoadPolicy, api: ApiClient, now: Callable[[], float] = time.time
    ) -> None:
        self._source, self._credentials, self._now = policy.source, api.credentials, now
        self._client = session(policy.source.timeout)
        self._tls: tuple[Access, ssl.SSLContext] | None = None

    async def measure(self, node: Node) -> Measurement:
        """The load of one node. Raises SourceError."""
        if not node.address:
            raise SourceError("the node has no address")
        try:
            access = await self._credentials.access()
            tls = self._context(access)
        except CredentialsError as error:
            raise SourceError(str(error)) from error
        said = await get_json(
            self._client,
            at_host("https", node.address, self._source.port, PATH),
            headers={"Authorization": access.authorization} if access.authorization else {},
            tls=tls,
        )
        return read_summary(said, node.capacities, self._now())

    async def close(self) -> None:
        """Give connections back."""
        await self._client.close()

    def _context(self, access: Access) -> ssl.SSLContext:
        """For kubelets: the cluster's CA, and our certificate if we have one."""
        transport = access.transport
        if self._tls is None or self._tls[0] != transport:
            verify = not self._source.insecure_skip_verify
            context = replace(transport, server="https://", verify=verify).ssl_context()
            if context is None:
                raise CredentialsError("there is no TLS")
            self._tls = (transport, context)
        return self._tls[1]


def read_summary(said: Any, capacities: tuple[float, float], now: float) -> Measurement:
    """What a kubelet says, received at `now`. Raises SourceError."""
    node = said.get("node") if isinstance(said, Mapping) else None
    if not isinstance(node, Mapping):
        raise SourceError("the summary has no node")
    cpu, memory = node.get("cpu") or {}, node.get("memory") or {}
    nanos, used = cpu.get("usageNanoCores"), memory.get("workingSetBytes")
    at = min(seconds(cpu.get("time")) or now, now)
    return instant(
        at,
        capacities,
        nanos / 1e6 if isinstance(nanos, int) else None,
        float(used) if isinstance(used, int) else None,
    )

"""A token for kubelets of an account that may read their statistics and nothing else.

A kubelet's certificate may be self-signed, as kubeadm's are, so another process at its address
could receive what is sent there. The annotator's own token, which may patch nodes, goes to the API
server only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ....base import names
from ....kube.client import ApiClient
from ....kube.errors import KubeError
from ....kube.resource import SERVICE_ACCOUNTS
from ..measurement import MeasurementError

LIFETIME: Final = 600
"""Seconds; the shortest that the API server grants."""


class KubeletToken:
    """Requests the token, and a new one after half of its lifetime.

    `namespace` is that of the account, `clock` is in monotonic seconds.
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

"""Reads Leases whose renewals the watch does not show.

A watch may stop for as long as an API server is replaced, while schedulers renew their Leases with
another one. A Lease counts as not renewed LEASE_GRACE after its duration; these reads come before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from ...kube.api import Api
from ...kube.errors import KubeError
from ...kube.resource import LEASES, ObjectRef, Resource

INTERVAL: Final = 1.0
"""Seconds between reads of a late Lease."""

LONGEST_READ: Final = 2.0
"""Seconds after which a read is given up."""

Event = Callable[[Resource, str | None, Mapping[str, Any]], None]


async def read_late_leases(api: Api, late: Callable[[], list[ObjectRef]], event: Event) -> None:
    """Pass the Leases that `late` lists to `event`, as they are in etcd."""
    while True:
        for ref in late():
            with suppress(KubeError, TimeoutError):
                async with asyncio.timeout(LONGEST_READ):
                    event(LEASES, None, await api.get(ref))
        await asyncio.sleep(INTERVAL)

"""Removes the annotator's annotations from all nodes."""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections.abc import Sequence
from typing import Final

from ...base.klog import kv
from ...base.names import OWN_LABELS
from ...base.tasks import until
from ...kube.api import Object
from ...kube.client import ApiClient
from ...kube.credentials import find
from ...kube.errors import Invalid, NotFound
from ...kube.lease import ElectionLease, LeaderElector
from ...kube.pages import PageSize
from ...kube.resource import NODES, ObjectRef
from .annotation import cleanup_patch
from .program import LEASE, LEASE_TIMINGS, NODES_PAGE

log = logging.getLogger(__name__)

_AT_ONCE: Final = 16


def run(kubeconfig: str | None, namespace: str, families: Sequence[str]) -> int:
    """Remove the annotations of these families from all nodes; return 0 on success."""
    return asyncio.run(_run(kubeconfig, namespace, families))


async def _run(kubeconfig: str | None, namespace: str, families: Sequence[str]) -> int:
    async with ApiClient(find(kubeconfig), field_manager="load-annotator") as api:
        # The Lease excludes an annotator that is still terminating.
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        elector = LeaderElector(
            api, ElectionLease(namespace, LEASE, OWN_LABELS), identity, timings=LEASE_TIMINGS
        )
        try:
            while True:
                await elector.acquire()
                cleaned = await until(elector.hold(), clean(api, families))
                if cleaned is not None:
                    break
                log.warning("Lost the Lease before all annotations were removed; waiting for it")
        finally:
            await elector.release()
    log.info("Removed all annotations", extra=kv(nodes=cleaned.result()))
    return 0


async def clean(api: ApiClient, families: Sequence[str]) -> int:
    """Remove the annotations of these families from all nodes; return how many nodes had some.

    What an earlier call has removed is left out.

    Raises KubeError.
    """
    cleaned = 0
    async for page in api.pages(NODES, None, PageSize(NODES_PAGE)).read({}):
        for begin in range(0, len(page.items), _AT_ONCE):
            part = page.items[begin : begin + _AT_ONCE]
            cleaned += sum(await asyncio.gather(*(_clean(api, node, families) for node in part)))
    return cleaned


async def _clean(api: ApiClient, node: Object, families: Sequence[str]) -> bool:
    ref = ObjectRef(NODES, None, node["metadata"]["name"])
    patch = cleanup_patch(node, families)
    if patch is None:
        return False
    try:
        await api.patch(ref, patch)
    except NotFound:
        return False
    except Invalid:
        # The API server's response to a different uid. A new node with that name was created after
        # the annotator had stopped, and has no annotations.
        if await _is_same(api, ref, node):
            raise
        return False
    return True


async def _is_same(api: ApiClient, ref: ObjectRef, node: Object) -> bool:
    """Return whether the node still has the uid that was read."""
    try:
        return bool((await api.get(ref))["metadata"]["uid"] == node["metadata"]["uid"])
    except NotFound:
        return False

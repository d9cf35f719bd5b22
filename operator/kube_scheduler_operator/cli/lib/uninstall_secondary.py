"""The way out of further schedulers: they are deleted, and what was made for them goes with them.

The garbage collector takes it away, and finds by its owner what is to go: so their kind must not be
deleted before it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...kube.client import ApiClient
    from ...kube.resource import Resource


class SecondaryWayOut:
    """Deletes all SecondarySchedulers.

    Args:
        api: of the cluster.
        say: prints a line.
    """

    def __init__(self, api: ApiClient, say: Callable[[str], None]) -> None:
        self._api = api
        self._say = say
        self._namespaces: set[str] = set()

    async def delete(self) -> None:
        """Delete them, if the kind is there at all."""
        from contextlib import suppress

        from ...kube.errors import NotFound
        from ...kube.resource import SECONDARY_SCHEDULERS

        with suppress(NotFound):
            for obj in (await self._api.list(SECONDARY_SCHEDULERS)).items:
                self._namespaces.add(obj["spec"]["namespace"])
                ref = SECONDARY_SCHEDULERS.ref(obj)
                with suppress(NotFound):
                    await self._api.delete(ref, uid=obj["metadata"]["uid"])
                self._say(f"deleted {ref}")

    async def leaving(self) -> str:
        """What the garbage collector has yet to delete; empty when that is nothing.

        Asked for is what would hurt most if it stayed: rights in the whole cluster, and schedulers.
        """
        from ...base.platform import AUTHENTICATION_NAMESPACE
        from ...kube.resource import CLUSTER_ROLE_BINDINGS, DEPLOYMENTS, ROLE_BINDINGS

        left = [
            *await self._left(CLUSTER_ROLE_BINDINGS),
            *await self._left(ROLE_BINDINGS, AUTHENTICATION_NAMESPACE),
        ]
        for namespace in sorted(self._namespaces):
            left += await self._left(DEPLOYMENTS, namespace)
        return f"the garbage collector has yet to delete {', '.join(left)}" if left else ""

    async def _left(self, resource: Resource, namespace: str | None = None) -> list[str]:
        from ...base import names

        selector = f"{names.SECONDARY_LABEL},{names.MANAGED_BY_LABEL}={names.PROGRAM}"
        found = await self._api.list(resource, namespace, label_selector=selector)
        return [str(resource.ref(obj)) for obj in found.items]

"""The way out of load policies: they are deleted, and the operator takes from nodes what it wrote.

What they own goes at once. Annotations are taken away by a Job, which a running operator starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...base.platform import Platform
    from ...kube.client import ApiClient


class LoadsWayOut:
    """Deletes all LoadPolicies.

    Args:
        api: of the cluster.
        platform: what the operator was installed for.
        say: prints a line.
    """

    def __init__(self, api: ApiClient, platform: Platform, say: Callable[[str], None]) -> None:
        self._api = api
        self._platform = platform
        self._say = say

    async def delete(self) -> None:
        """Delete them, if the kind is there at all."""
        from contextlib import suppress

        from ...kube.errors import NotFound
        from ...kube.resource import LOAD_POLICIES

        with suppress(NotFound):
            for obj in (await self._api.list(LOAD_POLICIES)).items:
                ref = LOAD_POLICIES.ref(obj)
                with suppress(NotFound):
                    await self._api.delete(ref, uid=obj["metadata"]["uid"])
                self._say(f"deleted {ref}")

    async def leaving(self) -> str:
        """What is still there because of them; empty when that is nothing."""
        from ...base import names
        from ...kube.resource import CONFIG_MAPS

        selector = f"{names.LOAD_LABEL},{names.MANAGED_BY_LABEL}={names.PROGRAM}"
        target = self._platform.target_namespace
        found = (await self._api.list(CONFIG_MAPS, target, label_selector=selector)).items
        left = {obj["metadata"]["name"] for obj in found}
        if names.LOAD_STATE in left:
            job = f"Job {target}/{names.LOAD_CLEANUP}"
            return f"the operator has yet to take annotations from nodes ({job})"
        if left:
            return f"the garbage collector has yet to delete {', '.join(sorted(left))}"
        return ""

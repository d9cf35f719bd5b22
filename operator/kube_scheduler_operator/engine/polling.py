"""What is looked at now and then: pods that wait for a scheduler, and who binds pods.

One page of a list each, never a watch. What is kept is a name and a few words each, and which pods
were told, up to a limit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ..diagnostics import unknown_scheduler_names, unmanaged_schedulers
from ..kube.errors import Forbidden, KubeError
from ..kube.events import Involved

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from ..kube.client import ApiClient
    from ..kube.events import EventRecorder
    from ..model.snapshot import Binder, PendingPod

log = logging.getLogger(__name__)

REMEMBERED: Final = 1024


class Looks:
    """What was seen at the last look.

    Args:
        interval: seconds between looks; 0: never.
        changed: called when there is something else to be seen than before.

    Attributes:
        pods: that no scheduler has looked at; empty if they may not be listed.
        binders: who binds pods; empty if events may not be listed.
    """

    def __init__(self, interval: float, changed: Callable[[], None]) -> None:
        self.pods: tuple[PendingPod, ...] = ()
        self.binders: tuple[Binder, ...] = ()
        self._interval = interval
        self._changed = changed
        self._told: OrderedDict[str, None] = OrderedDict()
        self._refused: set[str] = set()

    async def run(self, api: ApiClient) -> None:
        """Look until cancelled."""
        while self._interval > 0:
            await self._try("Pods without a scheduler", self.look_at_pods, api)
            await self._try("Schedulers that nobody knows", self.look_at_binders, api)
            await asyncio.sleep(self._interval)

    async def look_at_pods(self, api: ApiClient) -> None:
        """List the pods that wait.

        Raises:
            KubeError: it could not be done; what was seen before stays.
        """
        found = unknown_scheduler_names.untouched(
            (await api.get_path(unknown_scheduler_names.PATH)).get("items") or ()
        )
        # One that waits becomes one that waits for too long, so any of them is worth a pass.
        news, self.pods = bool(found) or found != self.pods, found
        if news:
            self._changed()

    async def look_at_binders(self, api: ApiClient) -> None:
        """List who has bound pods.

        Raises:
            KubeError: it could not be done; what was seen before stays.
        """
        found = unmanaged_schedulers.binders(
            (await api.get_path(unmanaged_schedulers.PATH)).get("items") or ()
        )
        before = {(each.scheduler, each.host) for each in self.binders}
        self.binders = found
        if {(each.scheduler, each.host) for each in found} != before:
            self._changed()

    def tell(self, recorder: EventRecorder, pods: Iterable[PendingPod]) -> None:
        """An event for each pod, once."""
        for pod in pods:
            if pod.uid in self._told:
                continue
            self._told[pod.uid] = None
            while len(self._told) > REMEMBERED:
                self._told.popitem(last=False)
            about = Involved("v1", "Pod", pod.name, pod.namespace, pod.uid)
            recorder.event(
                "Warning", "NoSuchScheduler", unknown_scheduler_names.sentence(pod), about
            )

    async def _try(
        self, what: str, look: Callable[[ApiClient], Awaitable[None]], api: ApiClient
    ) -> None:
        try:
            await look(api)
        except Forbidden as error:
            if what not in self._refused:
                log.warning("%s are not looked for: %s", what, error)
            self._refused.add(what)
        except KubeError as error:
            log.warning("%s were not looked for: %s", what, error)
        else:
            self._refused.discard(what)

"""Looking, now and then, at the pods that wait for a scheduler: one page of a list, never a watch.

What is kept of them is a name and a few words each, and which of them were told, up to a limit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from .kube.errors import Forbidden, KubeError
from .kube.events import Involved
from .secondary.unserved import PATH, sentence, untouched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .kube.client import ApiClient
    from .kube.events import EventRecorder
    from .snapshot import PendingPod

log = logging.getLogger(__name__)

REMEMBERED: Final = 1024


class PendingPods:
    """The pods that no scheduler has looked at, as last listed.

    Args:
        interval: seconds between looks; 0: never.
        changed: called when there are others than before.

    Attributes:
        pods: as last seen; empty if they may not be listed.
    """

    def __init__(self, interval: float, changed: Callable[[], None]) -> None:
        self.pods: tuple[PendingPod, ...] = ()
        self._interval = interval
        self._changed = changed
        self._told: OrderedDict[str, None] = OrderedDict()
        self._refused = False

    async def run(self, api: ApiClient) -> None:
        """Look until cancelled."""
        while self._interval > 0:
            try:
                await self.look(api)
            except Forbidden as error:
                if not self._refused:
                    log.warning("Pods without a scheduler are not looked for: %s", error)
                self._refused = True
            except KubeError as error:
                log.warning("Pods without a scheduler were not looked for: %s", error)
            await asyncio.sleep(self._interval)

    async def look(self, api: ApiClient) -> None:
        """List once.

        Raises:
            KubeError: it could not be done; what was seen before stays.
        """
        found = untouched((await api.get_path(PATH)).get("items") or ())
        self._refused = False
        # One that waits becomes one that waits for too long, so any of them is worth a pass.
        news, self.pods = bool(found) or found != self.pods, found
        if news:
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
            recorder.event("Warning", "NoSuchScheduler", sentence(pod), about)

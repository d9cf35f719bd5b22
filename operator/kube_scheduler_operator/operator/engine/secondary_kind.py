"""The definition of SecondarySchedulers, which is an owner of the one that the operator makes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ...base.objects import uid_of
from ...kube.api import Api
from ...kube.errors import Forbidden, KubeError, NotFound
from ...kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SECONDARY_SCHEDULERS

log = logging.getLogger(__name__)

INTERVAL: Final = 60.0
"""Seconds between two reads: a definition that was deleted and applied again has another uid."""


class SecondaryKind:
    """The uid of the definition, as it was last read."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.uid = ""  # empty if it is not known
        self._changed = changed
        self._problem = ""

    async def run(self, api: Api) -> None:
        while True:
            await self.read(api)
            await asyncio.sleep(INTERVAL)

    async def read(self, api: Api) -> None:
        """Read it once; after an error, what was read last stays, unless it does not exist.

        An operator whose rights are those of an earlier one may not read it.
        """
        uid, problem = self.uid, ""
        try:
            kind = CUSTOM_RESOURCE_DEFINITIONS.named(SECONDARY_SCHEDULERS.name)
            uid = uid_of(await api.get(kind))
        except (Forbidden, NotFound) as error:
            uid, problem = "", str(error)
        except KubeError as error:
            problem = str(error)
        if problem and problem != self._problem:
            log.warning("Cannot read the definition of SecondarySchedulers: %s", problem)
        changed = uid != self.uid
        self.uid, self._problem = uid, problem
        if changed:
            self._changed()

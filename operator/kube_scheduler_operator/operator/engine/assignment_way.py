"""Polls what applies `spec.assign` to new Pods: a policy, the operator's webhook, or nothing.

Both are installed with the operator, which only reads whether they exist.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from ...base import names
from ...base.defects import contained
from ...base.objects import Object, mapping
from ...kube.client import ApiClient
from ...kube.errors import Forbidden, KubeError, NotFound
from ...kube.resource import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    Resource,
)
from ..model.snapshot import AssignmentWay

log = logging.getLogger(__name__)

INTERVAL: Final = 5.0
"""Seconds between two polls, while a SecondaryScheduler has `spec.assign`."""

FIRST_INTERVAL: Final = 0.5
"""Seconds between two polls of a starting process, until it knows what applies assignments."""

STARTING: Final = 30.0
"""Seconds for which a process counts as starting."""


class WayPoller:
    """The result of the last poll.

    Polls only while `needed` returns true: while a SecondaryScheduler has `spec.assign`.
    """

    def __init__(self, needed: Callable[[], bool], changed: Callable[[], None]) -> None:
        self.way: AssignmentWay | None = None  # None: not known yet
        self.configuration: Object | None = None  # the MutatingWebhookConfiguration, if it exists
        self._needed = needed
        self._changed = changed
        self._problem = ""

    async def run(self, api: ApiClient) -> None:
        began = time.monotonic()
        while True:
            if self._needed():
                await self.poll(api)
            starts = self.way is None and time.monotonic() - began < STARTING
            await asyncio.sleep(FIRST_INTERVAL if starts else INTERVAL)

    async def poll(self, api: ApiClient) -> None:
        """Poll once; after an error, the last result stays."""
        try:
            way, self.configuration = await find_way(api)
        except KubeError as error:
            if str(error) != self._problem:
                log.warning("Cannot find out what applies spec.assign: %s", error)
            self._problem = str(error)
            if not isinstance(error, Forbidden):
                return
            way, self.configuration = AssignmentWay.UNREADABLE, None
        except Exception as error:  # the content of an object must not end the task
            contained("polling", names.ASSIGNMENT, error)
            return
        else:
            self._problem = ""
        changed, self.way = way is not self.way, way
        if changed:
            self._changed()


async def find_way(api: ApiClient) -> tuple[AssignmentWay | None, Object | None]:
    """Return (what applies assignments, the MutatingWebhookConfiguration if there is one).

    A webhook that the API server does not trust yet applies nothing, but will: None.

    Raises:
        KubeError: a request failed.
    """
    configuration = await _get(api, MUTATING_WEBHOOKS)
    served = await _serves_policies(api)
    if (
        served
        and await _get(api, MUTATING_POLICIES) is not None
        and await _get(api, MUTATING_POLICY_BINDINGS) is not None
    ):
        return AssignmentWay.POLICY, configuration
    if configuration is not None:
        return (AssignmentWay.WEBHOOK if _is_trusted(configuration) else None), configuration
    return (AssignmentWay.NONE_POLICY if served else AssignmentWay.NONE_WEBHOOK), None


def _is_trusted(configuration: Object) -> bool:
    return all(
        mapping(webhook.get("clientConfig")).get("caBundle")
        for webhook in configuration.get("webhooks") or ()
    )


async def _serves_policies(api: ApiClient) -> bool:
    group = await api.get_path(f"/apis/{MUTATING_POLICIES.api_version}")
    return any(kind.get("name") == MUTATING_POLICIES.plural for kind in group["resources"])


async def _get(api: ApiClient, resource: Resource) -> Object | None:
    try:
        return await api.get(resource.named(names.ASSIGNMENT))
    except NotFound:
        return None

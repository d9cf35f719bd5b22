"""Takes the annotator's report, and writes it to its ConfigMap when it changes."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable
from typing import Final

from ...base.klog import kv
from ...base.names import LOAD_STATE, LOAD_STATE_KEY
from ...base.times import rfc3339
from ...kube.api import Api
from ...kube.errors import KubeError, NotFound
from ...kube.resource import CONFIG_MAPS, ObjectRef
from ..load.reported_state import LISTED, ReportedState
from .cycle import Annotator
from .nodes import NodeRegistry

log = logging.getLogger(__name__)

REFRESH: Final = 300.0
"""Seconds after which an unchanged report is written again."""


def groups(nodes: NodeRegistry, valid: float, now: float) -> tuple[int, list[str], list[str]]:
    """Return the number of nodes with known load, and the names of stale and missing ones.

    A load is valid for `valid` seconds.
    """
    known, stale, missing = 0, [], []
    for node in nodes:
        if node.written is None:
            missing.append(node.name)
        elif now - node.written.at > valid:
            stale.append(node.name)
        else:
            known += 1
    return known, sorted(stale), sorted(missing)


def take_state(annotator: Annotator, digest: str, policy_error: str, now: float) -> ReportedState:
    """Return the current report; `digest` is that of the policy's text."""
    policy, nodes = annotator.policy, annotator.nodes
    known, stale, missing = groups(nodes, policy.rules.shortest_validity, now)
    counters = annotator.counters
    removed = [] if counters.first_cycle is None else list(annotator.removed())
    return ReportedState(
        at=rfc3339(datetime.datetime.fromtimestamp(int(now), datetime.UTC)),
        source=policy.source.type,
        policy=digest,
        write=list(policy.write),
        removed=removed,
        nodes=len(nodes),
        known=known,
        stale=stale[:LISTED],
        staleCount=len(stale),
        missing=missing[:LISTED],
        missingCount=len(missing),
        cycleSeconds=round(counters.cycle, 1),
        patches=counters.last_hour(now),
        error="; ".join(filter(None, (policy_error, annotator.error()))),
    )


class Publisher:
    """Writes reports; `namespace` is that of the ConfigMap, `clock` is in monotonic seconds."""

    def __init__(self, api: Api, namespace: str, clock: Callable[[], float]) -> None:
        self._api, self._clock = api, clock
        self._ref = ObjectRef(CONFIG_MAPS, namespace, LOAD_STATE)
        self._written: tuple[object, ...] | None = None
        self._written_at = float("-inf")
        self._error = ""

    async def publish(self, state: ReportedState) -> None:
        """Write the report if it has changed or is old; logs each failure once."""
        now = self._clock()
        if state.essence == self._written and now - self._written_at < REFRESH:
            return
        data = {"data": {LOAD_STATE_KEY: state.text()}}
        try:
            try:
                await self._api.patch(self._ref, data)
            except NotFound:
                metadata = {"name": self._ref.name, "namespace": self._ref.namespace}
                await self._api.create(CONFIG_MAPS, {"metadata": metadata, **data})
        except KubeError as error:
            if str(error) != self._error:
                log.warning("Failed to write the report", extra=kv(err=str(error)))
            self._error = str(error)
            return
        self._written, self._written_at, self._error = state.essence, now, ""

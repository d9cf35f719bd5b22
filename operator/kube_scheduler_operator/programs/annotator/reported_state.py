"""What the annotator tells the operator: one ConfigMap, written when something in it changes.

The operator copies it into the LoadPolicy's status. A ConfigMap and not the status itself, because
the annotator then needs no right on objects of people.
"""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from ...base.klog import kv
from ...kube.errors import KubeError, NotFound
from ...kube.resource import CONFIG_MAPS, ObjectRef

if TYPE_CHECKING:
    from ...kube.api import Api
    from .cycle import Annotator
    from .nodes import Fleet

log = logging.getLogger(__name__)

CONFIG_MAP: Final = "load-state"
KEY: Final = "state.json"
EXAMPLES: Final = 20
"""So many names are told of a group of nodes."""

AT_LEAST: Final = 300.0
"""It is written anew after so many seconds even if nothing has changed."""


@dataclass(frozen=True, slots=True)
class State:
    """How it is going.

    Attributes:
        at: RFC 3339.
        source: type of the source.
        policy: the first ten hexadecimal digits of the SHA-256 of the policy's text.
        write: families that are written beside our own.
        removed: families that were to be removed and of which no node has anything any more.
        nodes: how many there are.
        known: nodes whose load is known and recent.
        staleCount, stale: nodes whose load was known and has grown old, and names of some.
        missingCount, missing: nodes of which nothing was ever known, and names of some.
        cycleSeconds: how long the last cycle took.
        patches: of nodes, in the last hour.
        error: what is in the way; "" if nothing is.
    """

    at: str = ""
    source: str = ""
    policy: str = ""
    write: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    nodes: int = 0
    known: int = 0
    stale: list[str] = field(default_factory=list)
    staleCount: int = 0  # noqa: N815 - as in the JSON
    missing: list[str] = field(default_factory=list)
    missingCount: int = 0  # noqa: N815
    cycleSeconds: float = 0.0  # noqa: N815
    patches: int = 0
    error: str = ""

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @property
    def essence(self) -> tuple[object, ...]:
        """What makes it worth writing when it changes."""
        varying = ("at", "cycleSeconds", "patches")
        return tuple(value for name, value in asdict(self).items() if name not in varying)


def groups(fleet: Fleet, valid: float, now: float) -> tuple[int, list[str], list[str]]:
    """How many nodes are known, the names of the stale and of the missing ones.

    Args:
        fleet: the nodes.
        valid: for so many seconds load is believed.
        now: seconds since 1970.
    """
    known, stale, missing = 0, [], []
    for node in fleet:
        if node.written is None:
            missing.append(node.name)
        elif now - node.written.at > valid:
            stale.append(node.name)
        else:
            known += 1
    return known, sorted(stale), sorted(missing)


def take_state(annotator: Annotator, digest: str, problem: str, now: float) -> State:
    """How it is going now.

    Args:
        annotator: what is going.
        digest: of the policy's text.
        problem: what else is in the way.
        now: seconds since 1970.
    """
    policy, fleet = annotator.policy, annotator.fleet
    periods = [sync.period + policy.rules.grace for sync in policy.rules.sync]
    known, stale, missing = groups(fleet, min(periods, default=policy.rules.grace), now)
    counters = annotator.counters
    removed = [] if counters.first_cycle is None else list(annotator.removed())
    return State(
        at=datetime.datetime.fromtimestamp(int(now), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        source=policy.source.type,
        policy=digest,
        write=list(policy.write),
        removed=removed,
        nodes=len(fleet),
        known=known,
        stale=stale[:EXAMPLES],
        staleCount=len(stale),
        missing=missing[:EXAMPLES],
        missingCount=len(missing),
        cycleSeconds=round(counters.cycle, 1),
        patches=counters.last_hour(now),
        error="; ".join(filter(None, (problem, annotator.trouble()))),
    )


class Publisher:
    """Writes states.

    Args:
        api: where to.
        namespace: of the ConfigMap.
        clock: monotonic seconds.
    """

    def __init__(self, api: Api, namespace: str, clock: Callable[[], float]) -> None:
        self._api, self._clock = api, clock
        self._ref = ObjectRef(CONFIG_MAPS, namespace, CONFIG_MAP)
        self._told: tuple[object, ...] | None = None
        self._told_at = float("-inf")
        self._trouble = ""

    async def publish(self, state: State) -> None:
        """Write it if that is worth it; trouble is logged once."""
        now = self._clock()
        if state.essence == self._told and now - self._told_at < AT_LEAST:
            return
        data = {"data": {KEY: state.text()}}
        try:
            try:
                await self._api.patch(self._ref, data)
            except NotFound:
                metadata = {"name": self._ref.name, "namespace": self._ref.namespace}
                await self._api.create(CONFIG_MAPS, {"metadata": metadata, **data})
        except KubeError as error:
            if str(error) != self._trouble:
                log.warning("The state cannot be told", extra=kv(err=str(error)))
            self._trouble = str(error)
            return
        self._told, self._told_at, self._trouble = state.essence, now, ""

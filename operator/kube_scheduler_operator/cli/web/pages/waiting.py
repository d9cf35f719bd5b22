"""The page "waiting": Pods without a node, first as the API server shows them, then by cause.

The first part needs one list. The second one is that of `kubectl scheduler pending`: it runs
kube-scheduler, and follows when it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ....base.foreign_text import foreign
from ....base.limits import FOREIGN_MESSAGE, FOREIGN_NAME
from ....kube.pages import Kept
from ....kube.protobuf import (
    Message,
    begin_of_text,
    date,
    part,
    parts,
    present,
    text,
)
from ....kube.resource import PODS
from ....operator.diagnostics.waiting_pods import FIELD_SELECTOR, MOST_READ, PAGE, cause
from ....simulate.pending import WaitingPods
from ...simulation.waiting import waiting_pods
from ..page import ConsoleCluster, Question
from ..page import Page as WebPage
from ..simulations import simulated

FIXES: Final = 5
"""Groups for which changes are tried, as by `pending`."""

_NAMES: Final = 20
_CONDITION: Final = Message(
    text(1, "type"), text(2, "status"), begin_of_text(6, "message", 4 * FOREIGN_MESSAGE)
)
_FIELDS: Final = Message(
    part(
        1,
        "metadata",
        Message(
            text(1, "name"),
            text(3, "namespace"),
            date(8, "creationTimestamp"),
            present(9, "deletionTimestamp"),
        ),
    ),
    part(
        2,
        "spec",
        Message(
            begin_of_text(19, "schedulerName", FOREIGN_NAME + 1),
            present(38, "schedulingGates"),
            present(39, "resourceClaims"),
            present(42, "workloadRef"),
            present(43, "schedulingGroup"),
        ),
    ),
    part(3, "status", Message(parts(2, "conditions", _CONDITION))),
)


@dataclass(slots=True)
class ShownGroup:
    """Pods without a node whose objects show the same."""

    cause: str  # one of CAUSES of waiting_pods.py
    scheduler: str  # spec.schedulerName
    message: str  # of the condition PodScheduled, as a scheduler wrote it; empty: it has none
    count: int
    since: str  # when the oldest of them was created; empty: not known
    pods: list[str]  # the first of them, as namespace/name


@dataclass(slots=True)
class ShownWaiting:
    """Pods without a node, from what the API server shows of them."""

    total: int
    groups: list[ShownGroup]  # the largest first
    unread: bool  # whether there are more Pods, which were not read


class Groups:
    """Collects groups while Pods arrive, and keeps none of the Pods."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str, str], ShownGroup] = {}

    def __call__(self, pod: Mapping[str, Any]) -> bool:
        """Count a listed Pod; False, because the reader of the list need not keep it."""
        metadata, spec = pod["metadata"], pod.get("spec") or {}
        if "deletionTimestamp" in metadata:
            return False
        scheduler = foreign(str(spec.get("schedulerName") or "default-scheduler"), FOREIGN_NAME)
        message = foreign(_message(pod), FOREIGN_MESSAGE)
        key = cause(pod), scheduler, message
        group = self._groups.setdefault(key, ShownGroup(*key, 0, "", []))
        group.count += 1
        if len(group.pods) < _NAMES:
            group.pods.append(f"{metadata.get('namespace')}/{metadata.get('name')}")
        created = str(metadata.get("creationTimestamp") or "")
        if created and (not group.since or created < group.since):
            group.since = created
        return False

    def shown(self, *, unread: bool) -> ShownWaiting:
        groups = sorted(self._groups.values(), key=lambda group: (-group.count, group.since))
        return ShownWaiting(sum(group.count for group in groups), groups, unread)


def _message(pod: Mapping[str, Any]) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled":
            return str(condition.get("message") or "")
    return ""


async def _shown(cluster: ConsoleCluster, _question: Question) -> ShownWaiting:
    groups, token = Groups(), ""
    while True:
        listed = await cluster.api.select(
            PODS,
            _FIELDS,
            field_selector=FIELD_SELECTOR,
            at_most=PAGE,
            kept=Kept(groups, MOST_READ),
            token=token,
        )
        if not listed.more or listed.more == token:
            return groups.shown(unread=False)
        token = listed.more


async def _by_cause(cluster: ConsoleCluster, _question: Question) -> WaitingPods:
    return await simulated(cluster, lambda simulation: waiting_pods(simulation, None, FIXES))


PAGE_SHOWN: Final = WebPage(
    name="waiting",
    title="Waiting Pods",
    summary="Pods without a node, as the API server shows them.",
    type=ShownWaiting,
    answer=_shown,
    template="waiting.html.j2",
)

PAGE_CAUSES: Final = WebPage(
    name="causes",
    title="Causes of waiting",
    summary="Pods without a node by cause, as kube-scheduler decides now, and what would help.",
    type=WaitingPods,
    answer=_by_cause,
    template="causes.html.j2",
    part_of="waiting",
    fresh=30.0,
    limit=180.0,
)

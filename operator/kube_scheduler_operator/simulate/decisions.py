"""The decision of kube-scheduler about a pod, and the scores in its log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE, FOREIGN_NAME
from .kinds import Object

UNSCHEDULABLE: Final = "Unschedulable"
GATED: Final = "SchedulingGated"
ERROR: Final = "SchedulerError"
NO_SCHEDULER: Final = "NoScheduler"
NOT_SIMULATED: Final = "NotSimulated"
NOT_TRIED: Final = "NotTried"
"""Reasons of pods without a node. The first three are kube-scheduler's; a pod that it does not try
waits for something else, e.g. a claim or the other pods of its group."""

NOT_ELIGIBLE: Final = "preemption: not eligible"
"""What kube-scheduler's message contains if it did not look for pods to preempt."""
_OUTDATED: Final = "elsewhere in the meantime"
"""What the plugin DynamicResources reports of a claim that has changed (`bindClaim`)."""

_SCORE: Final = re.compile(
    rb'"(?:Plugin scored node|Extender scored node|Calculated node\'s final score) for pod" '
    rb'pod="([^"]+)"(?: (?:plugin|extender)="([^"]+)")? node="([^"]+)" score=(-?\d{1,18})\b'
)
SCORE_FLAGS: Final = ("--vmodule=schedule_one*=10",)
"""Make kube-scheduler log the scores of every plugin and node, and nothing else at that level."""
_LARGEST: Final = 128 * 2**20
"""Bytes of the lines whose scores are kept; one pod on 5,000 nodes has 12 MB."""


@dataclass(slots=True)
class PodDecision:
    pod: str  # namespace/name
    node: str = ""  # where it was bound; empty if it was not
    reason: str = ""  # one of the reasons above, of a pod that was not bound
    message: str = ""  # kube-scheduler's own, of a pod that was not bound
    nominated: str = ""  # the node on which preemption makes room
    # namespace/name of the pods that preemption deleted for it
    preempted: list[str] = field(default_factory=list)
    # nodes that all filters accept, by name; None: not known
    candidates: list[str] | None = None
    # node -> plugin -> score with its weight
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)  # node -> sum of the scores

    @property
    def decided(self) -> bool:
        """Whether kube-scheduler has decided about it at all."""
        return bool(self.node or self.reason)

    @property
    def best(self) -> list[str]:
        """The nodes with the highest total; several are a tie."""
        if not self.totals:
            return []
        most = max(self.totals.values())
        return sorted(node for node, total in self.totals.items() if total == most)


def scheduled_condition(pod: Mapping[str, Any]) -> Object:
    """Return the condition PodScheduled of a pod; empty without one."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled":
            return dict(condition)
    return {}


def failed_attempt(pod: Mapping[str, Any]) -> str:
    """Return the error of its scheduler's last attempt; empty if that ended without one."""
    last = scheduled_condition(pod)
    failed = last.get("status") == "False" and last.get("reason") == ERROR
    message = str(last.get("message") or "without a message")
    return foreign(message, FOREIGN_MESSAGE) if failed else ""


def last_message(pod: Mapping[str, Any]) -> str:
    """Return what its scheduler last reported of a pod without a node; empty: nothing."""
    last = scheduled_condition(pod)
    message = str(last.get("message") or "") if last.get("status") == "False" else ""
    return foreign(message, FOREIGN_MESSAGE)


def unknown_scheduler(scheduler_name: str, refused: str = "") -> str:
    """Return why nothing tries the pods of a schedulerName that no profile has.

    `refused` is the object that has the schedulerName, with the reason why it is not in use.
    """
    name = foreign(scheduler_name, FOREIGN_NAME)
    more = f": {refused}" if refused else ""
    return f'no scheduler serves spec.schedulerName "{name}"{more}'


class ScoreLog:
    """Reads the scores of pods out of kube-scheduler's log."""

    def __init__(self) -> None:
        self.scores: dict[str, dict[str, dict[str, int]]] = {}  # pod -> node -> plugin -> score
        self.totals: dict[str, dict[str, int]] = {}  # pod -> node -> total
        self._left = _LARGEST

    def take(self, line: bytes) -> None:
        """Take one line of the log; beyond a limit only scores of what is known already."""
        match = _SCORE.search(line) if b"score=" in line else None
        if match is None:
            return
        # A log may be any program's.
        pod, plugin, node = (part.decode(errors="replace") for part in match.groups(b"")[:3])
        totals = self.totals.get(pod, {})
        known = plugin in self.scores.get(pod, {}).get(node, {}) if plugin else node in totals
        if not known and not self._has_room(line):
            return
        if plugin:
            self.scores.setdefault(pod, {}).setdefault(node, {})[plugin] = int(match[4])
        else:
            self.totals.setdefault(pod, {})[node] = int(match[4])

    def _has_room(self, line: bytes) -> bool:
        self._left -= len(line)
        return self._left >= 0


def is_outdated(decision: PodDecision) -> bool:
    """Return whether an attempt failed because kube-scheduler knew an older state of a claim.

    It tries such a pod again in any case, after a back-off of one or two seconds.
    """
    return decision.reason == ERROR and _OUTDATED in decision.message

"""What the check of placements decides by, and what it decides, for one SecondaryScheduler.

The engine passes the gate (engine/secondary_gate.py): the check of the control plane's scheduler is
in a package that this one does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...base import names
from ...base.objects import Object
from ...config.effective.secondary.scheduler import EffectiveSecondary
from ..status.conditions import Condition, condition_in, problem_condition
from ..status.placement_check import HELD, PlacementCheck
from .content import SecondaryContent, running_hash
from .desired import DesiredScheduler
from .history import History, last_good


@dataclass(frozen=True, slots=True)
class GateInput:
    obj: Object  # the SecondaryScheduler
    made: EffectiveSecondary
    desired: DesiredScheduler
    content: SecondaryContent | None  # what is composed; None if it has errors
    deployment: Object | None
    contents: Mapping[str, SecondaryContent]  # that exist, by hash
    config_maps: Mapping[str, Object]  # by hash
    history: History

    @property
    def in_use(self) -> str:
        """The hash of the content that its Pods run, or are about to; empty without one.

        While there is no Deployment, it is the last known good one.
        """
        running = running_hash(self.deployment)
        if running in self.contents:
            return running
        return last_good(self.history, self.contents.__contains__)


SecondaryCheck = PlacementCheck[SecondaryContent]
Gate = Callable[[GateInput], SecondaryCheck | None]
"""Decides about a content; None: it is not checked."""


def checks_condition(
    status: Mapping[str, Any], checks: Mapping[str, SecondaryCheck]
) -> tuple[Condition, ...]:
    """The condition of KubeScheduler with the edits that wait, the held ones first.

    `status` is that of KubeScheduler: without an edit that waits, only an older condition changes.
    """
    waits = [
        (check.condition.reason, f"{name}: {check.condition.message}")
        for name, check in checks.items()
        if check.condition is not None and check.waits and not check.elsewhere
    ]
    if not waits and not condition_in(status, names.SECONDARY_CHECK_PROGRESSING):
        return ()
    waits.sort(key=lambda wait: wait[0] != HELD)
    return (problem_condition(names.SECONDARY_CHECK_PROGRESSING, waits),)


def no_gate(_: GateInput) -> SecondaryCheck | None:
    return None

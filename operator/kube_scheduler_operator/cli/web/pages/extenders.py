"""The page "extenders and load policies": what else takes part, as `status` has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ....base import names
from ...answers.status import (
    ExtenderState,
    LoadPolicyState,
    ObjectWarning,
    Status,
    StatusProblem,
    read_status,
)
from ..page import ConsoleCluster, Page, Question

_KINDS: Final = ("SchedulerExtender ", "LoadPolicy ")
_CONDITIONS: Final = (names.SCHEDULER_EXTENDERS_DEGRADED, names.LOAD_POLICIES_DEGRADED)


@dataclass(frozen=True, slots=True)
class ExtendersAnswer:
    """What takes part in decisions besides kube-scheduler's own plugins."""

    problems: Sequence[StatusProblem]  # with these
    scheduler_extenders: Sequence[ExtenderState]
    load_policies: Sequence[LoadPolicyState]
    warnings: Sequence[ObjectWarning]  # about these
    notes: Sequence[str]  # what the reader may not see
    managed: bool = False  # whether the provider runs the control plane's scheduler


def of_status(status: Status) -> ExtendersAnswer:
    return ExtendersAnswer(
        [one for one in status.problems if one.condition in _CONDITIONS],
        status.scheduler_extenders,
        status.load_policies,
        [one for one in status.warnings if one.object.startswith(_KINDS)],
        status.notes,
        status.managed,
    )


async def read(cluster: ConsoleCluster, _question: Question) -> ExtendersAnswer:
    return of_status(await read_status(cluster.api, cluster.platform))


PAGE: Final = Page(
    name="extenders",
    title="Extenders and load policies",
    summary="SchedulerExtenders with their agents, and LoadPolicies with the nodes they measure.",
    type=ExtendersAnswer,
    answer=read,
    template="extenders.html.j2",
)

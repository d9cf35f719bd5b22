"""The page "rollout": a lane for each node, and what every revision changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...answers.history import ContentEntry, RevisionEntry, summarize, summarize_contents
from ...cluster.operator_objects import get_kubescheduler
from ...cluster.revisions import list_revisions, nodes_by_revision
from ...cluster.scheduler_contents import find_scheduler, read_contents
from ...rollout.follow_rollout import (
    End,
    RolloutState,
    SchedulerRollout,
    control_plane_state,
    scheduler_state,
)
from ..page import ConsoleCluster, Page, Question
from ..parameters import SCHEDULER


@dataclass(frozen=True, slots=True)
class Lane:
    """The way of a node through revisions."""

    node: str
    current: int  # the revision that it runs; 0: none
    target: int  # the revision to which it is moved; 0: none
    waits_for: str  # empty: nothing
    failure: str  # its last one, while it counts; empty: none


@dataclass(frozen=True, slots=True)
class RolloutAnswer:
    """A rollout, and the revisions or configurations before it."""

    scheduler: str  # a SecondaryScheduler; empty: the control plane's scheduler in static pods
    outcome: str  # in progress, done or failed
    message: str  # the details of the outcome
    problem: str  # an error that the operator retries; empty: none
    target: str  # the revision, or the configuration, that is rolled out; empty: none
    pods: str  # of a SecondaryScheduler: how many are Ready
    lanes: Sequence[Lane]
    pending: Mapping[str, str]  # objects that will cause another rollout, and what they wait for
    revisions: Sequence[RevisionEntry]  # latest first
    configurations: Sequence[ContentEntry]  # of a SecondaryScheduler, latest first


async def read(cluster: ConsoleCluster, question: Question) -> RolloutAnswer:
    api, platform = cluster.api, cluster.platform
    scheduler = await find_scheduler(api, platform, question[SCHEDULER.name] or None)
    if scheduler is not None:
        name = str(scheduler["metadata"]["name"])
        state = await scheduler_state(api, platform, name)
        return _of_scheduler(name, state, summarize_contents(await read_contents(api, scheduler)))
    kubescheduler = await get_kubescheduler(api)
    revisions = summarize(await list_revisions(api, platform), nodes_by_revision(kubescheduler))
    return _of_control_plane(await control_plane_state(api, platform), revisions)


def _of_control_plane(state: RolloutState, revisions: Sequence[RevisionEntry]) -> RolloutAnswer:
    goal = state.goal or state.latest
    return RolloutAnswer(
        scheduler="",
        outcome=_outcome(state.end),
        message=state.message,
        problem=state.problem,
        target=str(goal) if goal else "",
        pods="",
        lanes=[
            Lane(
                name,
                entry.current,
                entry.target or (state.goal if name in state.waits else 0),
                state.waits.get(name, ""),
                entry.failure if name in state.failed else "",
            )
            for name, entry in sorted(state.nodes.items())
        ],
        pending=state.pending,
        revisions=revisions,
        configurations=(),
    )


def _of_scheduler(
    name: str, state: SchedulerRollout, configurations: Sequence[ContentEntry]
) -> RolloutAnswer:
    return RolloutAnswer(
        scheduler=name,
        outcome=_outcome(state.end),
        message=state.message,
        problem=state.problem,
        target=state.configuration,
        pods=state.pods,
        lanes=(),
        pending={**state.pending, **state.waits},
        revisions=(),
        configurations=configurations,
    )


def _outcome(end: End | None) -> str:
    return "in progress" if end is None else end.value


PAGE: Final = Page(
    name="rollout",
    title="Rollout",
    summary="The rollout now, node by node, and what every revision changed, as `history`.",
    type=RolloutAnswer,
    answer=read,
    template="rollout.html.j2",
    parameters=(SCHEDULER,),
    is_live=True,
    fresh=2.0,
)

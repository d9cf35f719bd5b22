"""`kubectl scheduler status`: the state of the scheduler, its problems and the next steps."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...base import names
from ...base.field_types import document_of
from ...operator.controlplane.revision.history import ended
from ..answers.status import (
    NodeWithScheduler,
    ObjectWarning,
    ProfileState,
    Status,
    StatusProblem,
    read_status,
)
from ..cluster.answers import ClusterAnswer, ClusterQuestion, answering
from ..cluster.connection import ClusterConnection
from ..cluster.operands import render_identity
from ..cluster.revisions import IN_PROGRESS, NOT_RECORDED
from ..console.flags import add_cluster_flags, add_output_flag
from ..console.output import format_table, print_remark, text_of

if TYPE_CHECKING:
    pass

_WARNINGS_SHOWN: Final = 10
_REVISIONS_SHOWN: Final = 5
"""The limits in text output; `-o json` has all."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "status",
        description="Shows the state of the cluster's scheduler on one screen, problems first. The "
        "exit code is 1 if there is a problem.",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also show the scheduler of each node: pod, image, revision and command line",
    )
    add_cluster_flags(parser, several=True)
    add_output_flag(parser)
    parser.set_defaults(run=answering(ClusterQuestion(_answer, subject="the status")))


async def _answer(connection: ClusterConnection) -> ClusterAnswer:
    verbose = connection.args.verbose
    report = await read_status(connection.api, await connection.platform(), verbose=verbose)
    for note in report.notes:
        print_remark(f"note: {note}")
    return ClusterAnswer(document_of(report), render(report), 0 if report.healthy else 1)


Columns: TypeAlias = Mapping[str, Callable[[Any], str]]
"""The columns of a table: heading -> the cell of an entry of the report."""

_NODES: Final[Columns] = {
    "NODE": lambda node: node.node,
    "REVISION": lambda node: str(node.revision or ("stock" if node.runs == 0 else "-")),
    "TARGET": lambda node: str(node.target or "-"),
    "READY": lambda node: "yes" if node.ready else "no",
    "RESTARTS": lambda node: str(node.restarts),
    "LEADER": lambda node: "yes" if node.leader else "",
    "IMAGE": lambda node: node.image,
}
_SECONDARIES: Final[Columns] = {
    "SECONDARYSCHEDULER": lambda scheduler: scheduler.name,
    "READY": lambda scheduler: f"{scheduler.ready}/{scheduler.replicas}",
    "AVAILABLE": lambda scheduler: scheduler.available,
    "LEADER": lambda scheduler: scheduler.leader,
    "IMAGE": lambda scheduler: scheduler.image,
}
_PROFILES: Final[Columns] = {
    "PROFILE": lambda profile: profile.name,
    "SCHEDULERNAME": lambda profile: profile.scheduler_name or profile.name,
    "SCHEDULER": lambda profile: profile.scheduler or "-",
    "STATE": lambda profile: profile.state or "not observed",
    "RUNS": lambda profile: (
        f"generation {profile.accepted_generation} of {profile.generation}"
        if profile.state == "LastAcceptedInUse" and profile.accepted_generation
        else "-"
    ),
}
_EXTENDERS: Final[Columns] = {
    "EXTENDER": lambda extender: extender.name,
    "SCHEDULER": lambda extender: extender.scheduler or "-",
    "STATE": lambda extender: extender.state or "not observed",
    "AVAILABLE": lambda extender: extender.available,
    "AGENTS": lambda extender: f"{extender.ready}/{extender.desired}" if extender.desired else "-",
    "ENDPOINT": lambda extender: extender.endpoint or "not called",
}


def _table(columns: Columns, entries: Sequence[Any]) -> list[str]:
    rows = [[cell(entry) for cell in columns.values()] for entry in entries]
    return format_table([list(columns), *rows])


def render(report: Status) -> str:
    lines = [
        *_render_problems(report.problems),
        *_render_scheduler(report),
        *_render_settings(report),
    ]
    if not report.managed:
        lines += ["", *_table(_NODES, report.nodes)]
    if report.managed or report.secondary_schedulers:
        lines += ["", *_table(_SECONDARIES, report.secondary_schedulers)]
    if report.scheduler_profiles:
        lines += ["", *_render_profiles(report.scheduler_profiles)]
    if report.scheduler_extenders:
        lines += ["", *_table(_EXTENDERS, report.scheduler_extenders)]
    if report.warnings:
        lines += ["", *_render_warnings(report.warnings)]
    if report.not_observed:
        lines += ["", *(f"Not known  {reason}" for reason in report.not_observed)]
    for node in report.nodes:
        if isinstance(node, NodeWithScheduler):
            lines += ["", *render_identity(node.node, node.scheduler)]
    lines += ["", *_next_steps(report)]
    return text_of(lines).rstrip()


def _render_problems(problems: Sequence[StatusProblem]) -> list[str]:
    lines = []
    for problem in problems:
        lines.append(f"PROBLEM  {problem.condition} ({problem.reason})")
        lines += [f"         {line}" for line in str(problem.message).splitlines()]
    return [*lines, ""] if lines else []


def _render_scheduler(report: Status) -> list[str]:
    """Render the control plane's scheduler; one that the provider runs has no nodes here."""
    states = "  ".join(
        f"{type_}={report.conditions.get(type_, 'Unknown')}"
        for type_ in ("Available", "Progressing", "Degraded", "Upgradeable")
    )
    if report.silence:
        since = "observed before the operator stopped"
        states += f"  ({since if report.conditions else 'no operator has observed them'})"
    changes = f", changed by {report.profile_changed_by}" if report.profile_changed_by else ""
    lines = [
        f"Scheduler  {states}",
        f"Profile    {report.profile}{changes}   logLevel {report.log_level}   "
        f"managementState {report.management_state}",
    ]
    if report.managed:
        return [*lines, f"Platform   {report.platform}"]
    return [
        *lines,
        f"Revision   {_revision(report)}",
        f"Leader     {report.lease_holder or '- (' + report.lease_problem + ')'}",
    ]


_OPEN: Final = {
    IN_PROGRESS: "is in progress",
    NOT_RECORDED: "has no recorded outcome",
    names.OUTCOME_INSTALLED: "is installed",
}
"""The outcomes of revisions that nodes may move to, as predicates."""


def _revision(report: Status) -> str:
    """Render the latest revision, or what happened to those after the ones that nodes run."""
    later = report.later_revisions
    if not later:
        return str(report.revision or "none yet")
    shown = [
        f"{each.revision} {_OPEN.get(each.outcome) or ended(each.outcome)}"
        for each in later[:_REVISIONS_SHOWN]
    ]
    if len(later) > len(shown):
        shown.append(f"and {len(later) - len(shown)} more before")
    runs = sorted({node.revision for node in report.nodes if node.revision})
    places = " and ".join(map(str, runs)) or "no revision"
    one = len(report.nodes) == 1
    who, are, stay = ("node", "is", "stays") if one else ("nodes", "are", "stay")
    verb = are if any(each.outcome in _OPEN for each in later) else stay
    see = "; see kubectl scheduler history" if any(each.message for each in later) else ""
    return f"{', '.join(shown)}; the {who} {verb} at {places}{see}"


def _render_settings(report: Status) -> list[str]:
    lines = []
    if report.profiling_since:
        lines.append(
            f"Profiling  on since revision {report.profiling_since}; to turn it off, remove "
            "enableProfiling from the KubeScheduler's spec.unsupportedConfigOverrides"
        )
    for settings in report.operator_settings:
        fields = [f"pods.{name}" for name in settings.pods]
        if settings.placement_check:
            fields.append(f"placementCheck {settings.placement_check}")
        state = settings.state or "not observed"
        lines.append(f"Settings   {state}: {', '.join(fields) or 'nothing is set'}")
    for policy in report.load_policies:
        source = f" ({policy.source})" if policy.source else ""
        message = policy.message or "not observed by the operator yet"
        lines.append(f"Load       {policy.name}{source}: {message}")
    for assignment in report.assignments:
        state = "" if assignment.assigned else "not assigned: "
        lines.append(f"Assigned   {assignment.scheduler}: {state}{assignment.message}")
    if report.progressing:
        lines.append(f"Rollout    {report.progress}")
    return lines


def _render_profiles(profiles: Sequence[ProfileState]) -> list[str]:
    """Render the number of accepted profiles, and a table of the others."""
    accepted = [p for p in profiles if p.state == "Accepted"]
    others = [p for p in profiles if p.state != "Accepted"]
    summary = f"SchedulerProfiles  {len(accepted)} of {len(profiles)} accepted"
    return [summary, *(_table(_PROFILES, others) if others else ())]


def _render_warnings(warnings: Sequence[ObjectWarning]) -> list[str]:
    lines = [f"Warnings   {len(warnings)}:"]
    shown = warnings[:_WARNINGS_SHOWN]
    lines += [f"  {warning.object}: {warning.message}" for warning in shown]
    if len(warnings) > _WARNINGS_SHOWN:
        lines.append(
            f"  and {len(warnings) - _WARNINGS_SHOWN} more; see kubectl scheduler status -o json"
        )
    return lines


def _next_steps(report: Status) -> list[str]:
    problems = report.problems
    if not problems:
        if report.revision or report.managed:
            return []
        return ["Next: none; the operator creates the first revision when it runs."]
    lines = [
        *report.hints,
        "Events:",
        f"kubectl -n {report.events_in} get events --sort-by=.lastTimestamp",
    ]
    return [f"{'Next: ' if number == 0 else ' ' * 6}{line}" for number, line in enumerate(lines)]

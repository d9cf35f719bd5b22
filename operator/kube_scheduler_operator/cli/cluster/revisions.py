"""Reads revisions from the API and selects one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...base.platform import Platform
from ...kube.api import Api
from ...operator.controlplane.revision.history import Revision, read
from ..console.errors import CommandError
from .operator_objects import list_config_maps

IN_PROGRESS: Final = "in progress"
NOT_RECORDED: Final = "not recorded"
"""Outcomes for users beside names.OUTCOME_*."""


@dataclass(frozen=True, slots=True)
class LaterRevision:
    """What happened to a revision after those that nodes run."""

    revision: int
    outcome: str
    message: str


async def list_revisions(api: Api, platform: Platform) -> tuple[Revision, ...]:
    """Return the complete revisions in the API, oldest first."""
    history = read(await list_config_maps(api, platform), platform.parts)
    return tuple(revision for revision in history if revision.ready)


def find_revision(revisions: Sequence[Revision], number: str) -> Revision:
    """Return the revision with that number.

    Raises:
        CommandError: it is not a number, or does not exist; the message lists those that do.
    """
    if not number.isdecimal():
        raise CommandError(f'"{number}" is not the number of a revision')
    for revision in revisions:
        if revision.number == int(number):
            return revision
    kept = ", ".join(str(revision.number) for revision in revisions) or "none"
    raise CommandError(
        f"revision {int(number)} does not exist; existing revisions: {kept} (the KubeScheduler's "
        "spec.succeededRevisionLimit and spec.failedRevisionLimit set how many are kept)"
    )


def find_running_revision(
    revisions: Sequence[Revision], nodes: Mapping[int, Sequence[str]]
) -> Revision:
    """Return the newest revision that a node runs.

    Raises:
        CommandError: no node runs one.
    """
    for revision in reversed(revisions):
        if revision.number in nodes and revision.complete:
            return revision
    raise CommandError("no node runs a revision yet; see `kubectl scheduler status`")


def later_revisions(
    revisions: Sequence[Revision], nodes: Mapping[int, Sequence[str]], latest: int
) -> list[LaterRevision]:
    """Return what happened to the revisions after those that nodes run, newest first.

    `latest` is the number that the status advertises; its record may be lost.
    """
    if not nodes:
        return []
    first = min(nodes)
    later = {
        revision.number: LaterRevision(revision.number, outcome_of(revision), revision.message)
        for revision in revisions
        if revision.number > first
    }
    if latest > first:
        later.setdefault(latest, LaterRevision(latest, NOT_RECORDED, ""))
    return [later[number] for number in sorted(later, reverse=True)]


def outcome_of(revision: Revision) -> str:
    """Return the outcome of a revision for users, in JSON and text."""
    return revision.outcome or IN_PROGRESS


def nodes_by_revision(kubescheduler: Mapping[str, Any]) -> dict[int, list[str]]:
    """Return the nodes that run each revision, from `status.nodeStatuses`; 0: no revision yet."""
    nodes: dict[int, list[str]] = {}
    for entry in (kubescheduler.get("status") or {}).get("nodeStatuses") or ():
        nodes.setdefault(int(entry.get("currentRevision") or 0), []).append(entry["nodeName"])
    return {number: sorted(names) for number, names in nodes.items()}

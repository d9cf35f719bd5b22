"""Reads revisions from the API and selects one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base.platform import Platform
from ...kube.api import Api
from ...operator.controlplane.revision.history import Revision, read
from ..console.errors import CommandError
from .operator_objects import list_config_maps


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


def nodes_by_revision(kubescheduler: Mapping[str, Any]) -> dict[int, list[str]]:
    """Return the nodes that run each revision, from `status.nodeStatuses`; 0: no revision yet."""
    nodes: dict[int, list[str]] = {}
    for entry in (kubescheduler.get("status") or {}).get("nodeStatuses") or ():
        nodes.setdefault(int(entry.get("currentRevision") or 0), []).append(entry["nodeName"])
    return {number: sorted(names) for number, names in nodes.items()}

"""Counting what became of revisions, from one pass to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import names
from ..revision.history import read
from ..rollout.nodes import Entry, read_entry
from ..snapshot import Object, annotation, timestamp
from .metrics import ClusterState, Metrics, NodeRevision, SchedulerSpec

if TYPE_CHECKING:
    from ..snapshot import Snapshot


class Accountant:
    """Turns snapshots into metrics; what was there before the first one is not counted again."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._outcomes: dict[int, str] | None = None
        self._failures: dict[str, int] = {}

    def observe(self, snapshot: Snapshot) -> None:
        """Take in what a pass saw."""
        history = read(snapshot.config_maps, snapshot.platform.parts)
        entries = [read_entry(raw) for raw in snapshot.status.get("nodeStatuses") or ()]
        outcomes = {revision.number: revision.outcome for revision in history}
        failures = {e.node: e.failed_count + e.fallback_count for e in entries}
        if self._outcomes is not None:
            for revision in history:
                if revision.outcome and self._outcomes.get(revision.number, "") != revision.outcome:
                    self._ended(revision.status, revision.outcome)
            for entry in entries:
                if failures[entry.node] > self._failures.get(entry.node, 0):
                    self._metrics.installer_failures.labels(entry.failed_reason).inc()
        self._outcomes, self._failures = outcomes, failures
        self._metrics.state = _state(snapshot, entries)

    def _ended(self, status: Object, outcome: str) -> None:
        if outcome == names.OUTCOME_REFUSED:
            self._metrics.preflight_failures.inc()
        begun = timestamp(status["metadata"].get("creationTimestamp"))
        ended = timestamp(annotation(status, names.OUTCOME_TIME_ANNOTATION))
        if begun and ended:
            seconds = (ended - begun).total_seconds()
            self._metrics.rollout_duration.labels(outcome).observe(seconds)


def _state(snapshot: Snapshot, entries: Sequence[Entry]) -> ClusterState:
    scheduler = None
    if snapshot.scheduler is not None:
        spec = snapshot.scheduler.get("spec") or {}
        scheduler = SchedulerSpec(
            masters_schedulable=bool(spec.get("mastersSchedulable")),
            has_policy=bool((spec.get("policy") or {}).get("name")),
            has_default_node_selector=bool(spec.get("defaultNodeSelector")),
        )
    latest = None
    if snapshot.kubescheduler is not None:
        latest = int(snapshot.status.get("latestAvailableRevision") or 0)
    nodes = tuple(NodeRevision(entry.node, entry.current, entry.target) for entry in entries)
    return ClusterState(scheduler, latest, nodes)

"""What metrics show of a snapshot: the state as it is, and what became of revisions since."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ..base import names, x509
from ..base.objects import Object, annotation
from ..base.times import timestamp
from ..controlplane.conditions import REVISION_FAILED
from ..controlplane.revision.history import Revision, read
from ..controlplane.rollout.drift import is_astray
from ..controlplane.rollout.node_statuses import Entry, read_entry, readiness
from ..model import operand_pods as operands
from ..model.operand_pods import Operand
from ..status.scheduler_lease import LEASE_GRACE
from ..telemetry.cluster_metrics import (
    CLIENT_CERTIFICATE,
    SERVING_CERTIFICATE,
    ClusterState,
    LeaseState,
    NodeState,
    SchedulerSpec,
)

if TYPE_CHECKING:
    from ..model.snapshot import Snapshot
    from ..telemetry.metrics import Metrics


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
        self._metrics.state = _state(snapshot, entries, history)

    def _ended(self, status: Object, outcome: str) -> None:
        if outcome == names.OUTCOME_REFUSED:
            self._metrics.preflight_failures.inc()
        begun = timestamp(status["metadata"].get("creationTimestamp"))
        ended = timestamp(annotation(status, names.OUTCOME_TIME_ANNOTATION))
        if begun and ended:
            seconds = (ended - begun).total_seconds()
            self._metrics.rollout_duration.labels(outcome).observe(seconds)


def _state(
    snapshot: Snapshot, entries: Sequence[Entry], history: Sequence[Revision]
) -> ClusterState:
    scheduler = None
    if snapshot.scheduler is not None:
        spec = snapshot.scheduler.get("spec") or {}
        scheduler = SchedulerSpec(
            masters_schedulable=bool(spec.get("mastersSchedulable")),
            has_policy=bool((spec.get("policy") or {}).get("name")),
            has_default_node_selector=bool(spec.get("defaultNodeSelector")),
        )
    lease = _lease_state(snapshot)
    if snapshot.kubescheduler is None:
        return ClusterState(scheduler, lease=lease)
    pods = {node: operands.read(pod) for node, pod in snapshot.operand_pods.items()}
    conditions = {c["type"]: c for c in snapshot.status.get("conditions") or ()}
    return ClusterState(
        scheduler,
        latest_available_revision=int(snapshot.status.get("latestAvailableRevision") or 0),
        nodes=tuple(_node(snapshot, entry, pods.get(entry.node)) for entry in entries),
        lease=lease,
        conditions={
            type_: (str(c.get("reason", "")), c.get("status") == "True")
            for type_, c in conditions.items()
        },
        quarantined=_quarantined(conditions),
        last_outcomes=_last_outcomes(history),
        rollout_started=_rollout_started(conditions, history),
        certificates=_certificates(snapshot, pods),
    )


def _node(snapshot: Snapshot, entry: Entry, pod: Operand | None) -> NodeState:
    node = snapshot.nodes.get(entry.node)
    reachable = node is not None and readiness(node)[0]
    # While the same revision is put back the node is still astray.
    settled = bool(entry.current) and entry.target in (0, entry.current)
    return NodeState(
        entry.node,
        current=entry.current,
        target=entry.target,
        running=pod.revision if pod is not None else 0,
        ready=pod is not None and pod.ready,
        drifted=reachable and settled and (pod is None or is_astray(entry, pod)),
    )


def _lease_state(snapshot: Snapshot) -> LeaseState:
    """Who schedules; kube-scheduler's identity in its Lease is HOSTNAME_UUID."""
    spec = (snapshot.operand_lease or {}).get("spec") or {}
    holder = str(spec.get("holderIdentity") or "").rpartition("_")
    allowed = float(spec.get("leaseDurationSeconds") or 15) + LEASE_GRACE
    return LeaseState(holder[0] or holder[2], allowed)


def _quarantined(conditions: Mapping[str, Object]) -> dict[str, bool]:
    """Told by what the last pass made of it: undoing the edit ends it before any revision does."""
    failing = conditions.get(names.NODE_INSTALLER_DEGRADED, {})
    refused = conditions.get(names.PREFLIGHT_DEGRADED, {})
    return {
        names.OUTCOME_REFUSED: refused.get("status") == "True",
        names.OUTCOME_FAILED: failing.get("status") == "True"
        and failing.get("reason") == REVISION_FAILED,
    }


def _last_outcomes(history: Sequence[Revision]) -> dict[str, float]:
    found: dict[str, float] = {}
    for revision in history:
        ended = timestamp(annotation(revision.status, names.OUTCOME_TIME_ANNOTATION))
        if revision.outcome and ended:
            found[revision.outcome] = max(ended.timestamp(), found.get(revision.outcome, 0.0))
    return found


def _rollout_started(conditions: Mapping[str, Object], history: Sequence[Revision]) -> float | None:
    """Since when nodes move; a new revision that takes over begins anew."""
    moving = conditions.get(names.NODE_INSTALLER_PROGRESSING, {})
    if moving.get("status") != "True":
        return None
    newest = [revision for revision in history if revision.ready][-1:]
    moments = [moving.get("lastTransitionTime")]
    moments += [revision.status["metadata"].get("creationTimestamp") for revision in newest]
    known = [moment.timestamp() for text in moments if (moment := timestamp(text))]
    return max(known, default=None)


def _certificates(snapshot: Snapshot, pods: Mapping[str, Operand]) -> dict[tuple[str, str], float]:
    """Those of schedulers, from the cluster's Secrets or as installers found them on the nodes."""
    found = {
        (CLIENT_CERTIFICATE, node): pod.kubeconfig_expires.timestamp()
        for node, pod in pods.items()
        if pod.kubeconfig_expires
    }
    if kept := snapshot.platform.credentials:
        client, serving = kept.client_certificate, kept.serving_certificate
        secrets = {
            CLIENT_CERTIFICATE: snapshot.source_secrets.get(client) or snapshot.secrets.get(client),
            SERVING_CERTIFICATE: snapshot.secrets.get(serving),
        }
        for certificate, secret in secrets.items():
            text = str(((secret or {}).get("data") or {}).get("tls.crt") or "")
            if moment := _expires(text):
                found[certificate, ""] = moment
    return found


# Every pass asks for the same ones again.
@lru_cache(maxsize=8)
def _expires(encoded: str) -> float | None:
    try:
        moment = x509.expires(base64.b64decode(encoded))
    except ValueError:
        return None
    return moment.timestamp() if moment else None

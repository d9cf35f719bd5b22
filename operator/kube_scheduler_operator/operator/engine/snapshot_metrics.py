"""Metrics of snapshots: the state of the cluster, and the outcomes of revisions."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ...base import names, x509
from ...base.objects import Object, annotation
from ...base.times import timestamp
from ..controlplane.conditions import REVISION_FAILED
from ..controlplane.revision.history import Revision, read
from ..controlplane.rollout import kubeadm_upgrades as upgrades
from ..controlplane.rollout.drift import hand_edits, has_drifted
from ..controlplane.rollout.node_statuses import NodeStatus, read_node_status, readiness
from ..controlplane.rollout.observe import observe
from ..controlplane.versions import versions
from ..model.operand_pods import NodeDisk, OperandPod
from ..model.snapshot import Snapshot
from ..secondary.assignment import assigned_pods, in_effect
from ..status.scheduler_lease import lease_allowance
from ..telemetry.cluster_metrics import (
    CLIENT_CERTIFICATE,
    SERVING_CERTIFICATE,
    ClusterState,
    Samples,
)
from ..telemetry.metrics import OperatorMetrics


class SnapshotMetrics:
    """Updates metrics from snapshots; counters ignore what the first snapshot already contains."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        self._metrics = metrics
        self._outcomes: dict[int, str] | None = None
        self._failures: dict[str, int] = {}

    def observe(self, snapshot: Snapshot) -> None:
        history = read(snapshot.config_maps, snapshot.platform.parts)
        entries = [read_node_status(raw) for raw in snapshot.status.get("nodeStatuses") or ()]
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
    snapshot: Snapshot, entries: Sequence[NodeStatus], history: Sequence[Revision]
) -> ClusterState:
    lease = (snapshot.operand_lease or {}).get("spec") or {}
    # kube-scheduler's identity in its Lease is HOSTNAME_UUID.
    host, _, identity = str(lease.get("holderIdentity") or "").rpartition("_")
    holder = host or identity
    nodes = {entry.node for entry in entries} | ({holder} - {""})
    samples: dict[str, Samples] = {
        "active_scheduler": {(node,): node == holder for node in nodes},
        "assigned": {
            (name,): bool(in_effect(obj))
            for name, obj in snapshot.secondaries.schedulers.items()
            if assigned_pods(obj) is not None
        },
    }
    if snapshot.scheduler is not None:
        spec = snapshot.scheduler.get("spec") or {}
        samples |= {
            "cluster_master_schedulable": {(): bool(spec.get("mastersSchedulable"))},
            "cluster_legacy_scheduler_policy": {(): bool((spec.get("policy") or {}).get("name"))},
            "cluster_default_node_selector": {(): bool(spec.get("defaultNodeSelector"))},
        }
    if snapshot.kubescheduler is not None:
        samples |= _control_plane(snapshot, entries, history) | _rollout(snapshot, history)
    return ClusterState(samples, lease_allowance(lease))


def _control_plane(
    snapshot: Snapshot, entries: Sequence[NodeStatus], history: Sequence[Revision]
) -> dict[str, Samples]:
    observation = observe(snapshot)
    pods, disks = observation.operands, observation.disks
    # Upgrades by kubeadm do not count as drift.
    upgraded = {node for node, disk in disks.items() if disk.work}
    imaged = upgrades.with_images(disks, entries, history)
    upgraded |= upgrades.requests(snapshot, imaged).keys()
    nodes = {entry.node: pods.get(entry.node) for entry in entries}
    return {
        "node_current_revision": {(entry.node,): entry.current for entry in entries},
        "node_target_revision": {(entry.node,): entry.target for entry in entries},
        "node_running_revision": {(n,): pod.revision if pod else 0 for n, pod in nodes.items()},
        "node_scheduler_ready": {(n,): bool(pod and pod.ready) for n, pod in nodes.items()},
        "node_drifted": {
            (entry.node,): entry.node not in upgraded
            and _drifts(snapshot, entry, pods.get(entry.node), disks.get(entry.node))
            for entry in entries
        },
        "node_version_skew": {
            (version.node,): version.skew
            for version in versions(snapshot, pods, disks)
            if version.node in nodes and version.skew is not None
        },
        "certificate_expiry_timestamp_seconds": _certificates(snapshot, pods),
    }


def _drifts(
    snapshot: Snapshot, entry: NodeStatus, pod: OperandPod | None, disk: NodeDisk | None
) -> bool:
    node = snapshot.nodes.get(entry.node)
    reachable = node is not None and readiness(node)[0]
    # A node still drifts while its revision is being restored.
    settled = bool(entry.current) and entry.target in (0, entry.current)
    return (
        reachable
        and settled
        and (pod is None or has_drifted(entry, pod, disk) or bool(hand_edits(entry, disk)))
    )


def _rollout(snapshot: Snapshot, history: Sequence[Revision]) -> dict[str, Samples]:
    conditions = {c["type"]: c for c in snapshot.status.get("conditions") or ()}
    failing = conditions.get(names.NODE_INSTALLER_DEGRADED, {})
    refused = conditions.get(names.PREFLIGHT_DEGRADED, {})
    return {
        "latest_available_revision": {(): int(snapshot.status.get("latestAvailableRevision") or 0)},
        "rollout_started_timestamp_seconds": _rollout_started(conditions, history),
        "last_outcome_timestamp_seconds": _last_outcomes(history),
        "futile_writes": Counter(
            (write.ref.resource.plural, write.why.value) for write in snapshot.futile_writes
        ),
        # by the last conditions: undoing an edit ends a quarantine without a new revision
        "quarantined": {
            (names.OUTCOME_REFUSED,): refused.get("status") == "True",
            (names.OUTCOME_FAILED,): failing.get("status") == "True"
            and failing.get("reason") == REVISION_FAILED,
        },
        "condition": {
            (type_, str(c.get("reason", ""))): c.get("status") == "True"
            for type_, c in conditions.items()
        },
    }


def _last_outcomes(history: Sequence[Revision]) -> Samples:
    outcomes: dict[tuple[str, ...], float] = {}
    for revision in history:
        ended = timestamp(annotation(revision.status, names.OUTCOME_TIME_ANNOTATION))
        if revision.outcome and ended:
            key = (revision.outcome,)
            outcomes[key] = max(ended.timestamp(), outcomes.get(key, 0.0))
    return outcomes


def _rollout_started(conditions: Mapping[str, Object], history: Sequence[Revision]) -> Samples:
    """Return the start of the current rollout; a newer revision starts a new one."""
    moving = conditions.get(names.NODE_INSTALLER_PROGRESSING, {})
    if moving.get("status") != "True":
        return {}
    newest = [revision for revision in history if revision.ready][-1:]
    moments = [moving.get("lastTransitionTime")]
    moments += [revision.status["metadata"].get("creationTimestamp") for revision in newest]
    known = [moment.timestamp() for text in moments if (moment := timestamp(text))]
    return {(): max(known)} if known else {}


def _certificates(snapshot: Snapshot, pods: Mapping[str, OperandPod]) -> Samples:
    """Read when the schedulers' certificates expire, from Secrets and installers' reports."""
    expiries: dict[tuple[str, ...], float] = {
        (CLIENT_CERTIFICATE, node): pod.kubeconfig_expires.timestamp()
        for node, pod in pods.items()
        if pod.kubeconfig_expires
    }
    if credentials := snapshot.platform.credentials:
        client, serving = credentials.client_certificate, credentials.serving_certificate
        secrets = {
            CLIENT_CERTIFICATE: snapshot.source_secrets.get(client) or snapshot.secrets.get(client),
            SERVING_CERTIFICATE: snapshot.secrets.get(serving),
        }
        for certificate, secret in secrets.items():
            text = str(((secret or {}).get("data") or {}).get("tls.crt") or "")
            if moment := _expires(text):
                expiries[certificate, ""] = moment
    return expiries


# Every reconcile reads the same certificates.
@lru_cache(maxsize=8)
def _expires(encoded: str) -> float | None:
    try:
        moment = x509.expires(base64.b64decode(encoded))
    except ValueError:
        return None
    return moment.timestamp() if moment else None

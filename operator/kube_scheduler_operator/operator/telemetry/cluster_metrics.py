"""Metrics of the cluster, from the snapshot of the last reconcile.

Only the leader reconciles, so a standby exports none of these, and a sum over both counts nothing
twice. Two metrics are read at the scrape, by every process: the age of the schedulers' Lease, which
is renewed every two seconds, and the process's own certificates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_NAME

PREFIX: Final = "kube_scheduler_operator_"

# Values of the label `certificate`.
CLIENT_CERTIFICATE: Final = "client"
SERVING_CERTIFICATE: Final = "serving"
OWN_CERTIFICATE: Final = "operator"
WEBHOOK_CERTIFICATE: Final = "webhook"

# in order of the exposition: name without PREFIX -> (help, *labels)
GAUGES: Final[Mapping[str, tuple[str, ...]]] = {
    # under the names of OpenShift's operator, which have no PREFIX
    "cluster_master_schedulable": ("Whether control-plane nodes accept workloads",),
    "cluster_legacy_scheduler_policy": (
        "Whether the removed field spec.policy of the Scheduler is set",
    ),
    "cluster_default_node_selector": ("Whether a default node selector is set",),
    "latest_available_revision": ("The newest complete revision",),
    "node_current_revision": ("The current revision of a node; 0 if none", "node"),
    "node_target_revision": ("The revision that is being installed on a node; 0 if none", "node"),
    "node_running_revision": ("The revision of a node's scheduler Pod; 0 if none", "node"),
    "node_scheduler_ready": ("Whether a node's scheduler is Ready", "node"),
    "node_drifted": (
        "Whether a node runs no scheduler or another revision than its current one, or files of it "
        "were edited by hand",
        "node",
    ),
    "node_version_skew": (
        "Minor versions by which a node's scheduler is older than its API server",
        "node",
    ),
    "lease_age_seconds": ("Time since the last observed renewal of the schedulers' Lease",),
    "active_scheduler": (
        "Whether a node's scheduler is active: it holds the Lease and renews it",
        "node",
    ),
    "rollout_started_timestamp_seconds": ("Start of the current rollout; absent without one",),
    "last_outcome_timestamp_seconds": ("Time of the last revision with this outcome", "outcome"),
    "futile_writes": ("Objects whose writes do not last and are delayed", "resource", "reason"),
    "quarantined": (
        "Whether the desired configuration is quarantined because it was refused or failed",
        "outcome",
    ),
    "condition": ("Whether a condition of the KubeScheduler is True", "type", "reason"),
    "assigned": (
        "Whether new Pods that spec.assign of a SecondaryScheduler selects get its schedulerName",
        "scheduler",
    ),
    "waiting_pods": ("Pods without a node", "cause", "scheduler"),
    "waiting_pods_oldest_timestamp_seconds": (
        "Creation of the oldest of these Pods",
        "cause",
        "scheduler",
    ),
    "certificate_expiry_timestamp_seconds": (
        "Expiry of a scheduler's client or serving certificate, or of the operator's",
        "certificate",
        "node",
    ),
}

# label values -> value
Samples: TypeAlias = Mapping[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The part of a snapshot that metrics export."""

    # by their keys in GAUGES; `active_scheduler`: whether the node's scheduler holds the Lease
    samples: Mapping[str, Samples] = field(default_factory=dict)
    # seconds without a renewal after which the Lease's holder counts as inactive
    lease_allowance: float = 0.0


def gauge(
    name: str,
    documentation: str,
    labels: Sequence[str],
    samples: Iterable[tuple[tuple[str, ...], float]],
) -> Metric:
    """Make a gauge from (label values, value); the labels may be foreign text."""
    family = GaugeMetricFamily(name, documentation, labels=labels)
    for values, value in sorted(samples):
        family.add_metric([foreign(label, FOREIGN_NAME) for label in values], value)
    return family


def families(
    state: ClusterState, lease_age: float | None, own_certificates: Mapping[str, datetime | None]
) -> Iterator[Metric]:
    """Yield all metrics of the state of the last reconcile.

    `lease_age` is the time in seconds since the last observed renewal of the schedulers' Lease;
    `own_certificates` has the expiry of each certificate of this process; None: it is not in use.
    """
    samples = dict(state.samples)
    if lease_age is not None:
        samples["lease_age_seconds"] = {(): lease_age}
    if (holding := samples.get("active_scheduler")) is not None:
        renewed = lease_age is not None and lease_age <= state.lease_allowance
        samples["active_scheduler"] = {node: holds and renewed for node, holds in holding.items()}
    expiry = "certificate_expiry_timestamp_seconds"
    samples[expiry] = dict(samples.get(expiry, {})) | {
        (name, ""): moment.timestamp() for name, moment in own_certificates.items() if moment
    }
    for name, (documentation, *labels) in GAUGES.items():
        # Without samples, a gauge has a help text if it has labels; `active_scheduler` is absent
        # before the first reconcile.
        if samples.get(name) or (labels and (name in samples or name != "active_scheduler")):
            exported = name if name.startswith("cluster_") else f"{PREFIX}{name}"
            yield gauge(exported, documentation, labels, samples.get(name, {}).items())

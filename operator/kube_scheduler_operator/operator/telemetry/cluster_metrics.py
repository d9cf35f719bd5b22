"""Metrics of the cluster, from the snapshot of the last reconcile.

Only the leader reconciles, so a standby exports none of these, and a sum over both counts nothing
twice. Two metrics are read at the scrape, by every process: the age of the schedulers' Lease, which
is renewed every two seconds, and the process's own certificates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

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


@dataclass(frozen=True, slots=True)
class SchedulerSpec:
    """Fields of the Scheduler "cluster" that only metrics use."""

    masters_schedulable: bool
    has_policy: bool
    has_default_node_selector: bool


@dataclass(frozen=True, slots=True)
class NodeState:
    """A control-plane node and its scheduler."""

    node: str
    current: int = 0  # its current revision; 0: none
    target: int = 0  # the revision that is being installed; 0: none
    running: int = 0  # the revision of its scheduler Pod; 0: none
    ready: bool = False  # whether that Pod is Ready
    drifted: bool = False  # whether it runs another revision than its current one
    # by how many minor versions it is older than the API server; None: unknown
    skew: int | None = None


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The active scheduler according to the schedulers' Lease."""

    node: str = ""  # the holder's node; empty if the Lease has no holder
    allowed: float = 0.0  # seconds without a renewal after which the holder counts as inactive


@dataclass(frozen=True, slots=True)
class MetricsState:
    """The part of a snapshot that metrics export; metrics of unknown values are absent."""

    # None without a Scheduler "cluster"; its three gauges are then absent
    scheduler: SchedulerSpec | None = None
    latest_available_revision: int | None = None  # 0: no revision; None (absent): no KubeScheduler
    nodes: tuple[NodeState, ...] = ()
    lease: LeaseState | None = None  # None before the first reconcile
    # of the KubeScheduler: type -> (reason, whether it is True)
    conditions: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    # outcome -> whether the desired configuration is quarantined because of it
    quarantined: Mapping[str, bool] = field(default_factory=dict)
    # outcome -> time of the last revision with it, seconds since 1970
    last_outcomes: Mapping[str, float] = field(default_factory=dict)
    # start of the current rollout, seconds since 1970; None: no rollout
    rollout_started: float | None = None
    # (certificate, node or "") -> expiry, seconds since 1970
    certificates: Mapping[tuple[str, str], float] = field(default_factory=dict)
    # (resource, reason) -> number of objects whose writes do not last
    futile_writes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    # SecondaryScheduler with `spec.assign` -> whether new pods get its schedulerName
    assigned: Mapping[str, bool] = field(default_factory=dict)


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
    state: MetricsState, lease_age: float | None, own_certificates: Mapping[str, datetime | None]
) -> Iterator[Metric]:
    """Yield all metrics of the state of the last reconcile.

    `lease_age` is the time in seconds since the last observed renewal of the schedulers' Lease;
    `own_certificates` has the expiry of each certificate of this process; None: it is not in use.
    """
    for name, attribute, documentation in _SCHEDULER_GAUGES if state.scheduler else ():
        yield GaugeMetricFamily(name, documentation, value=getattr(state.scheduler, attribute))
    if state.latest_available_revision is not None:
        yield GaugeMetricFamily(
            f"{PREFIX}latest_available_revision",
            "The newest complete revision",
            value=state.latest_available_revision,
        )
    yield from _nodes(state.nodes)
    yield from _lease(state, lease_age)
    yield from _rollout(state)
    yield gauge(
        f"{PREFIX}condition",
        "Whether a condition of the KubeScheduler is True",
        ["type", "reason"],
        (((type_, reason), is_true) for type_, (reason, is_true) in state.conditions.items()),
    )
    yield gauge(
        f"{PREFIX}assigned",
        "Whether new Pods that spec.assign of a SecondaryScheduler selects get its schedulerName",
        ["scheduler"],
        (((name,), assigned) for name, assigned in state.assigned.items()),
    )
    own = {(name, ""): expiry.timestamp() for name, expiry in own_certificates.items() if expiry}
    yield gauge(
        f"{PREFIX}certificate_expiry_timestamp_seconds",
        "Expiry of a scheduler's client or serving certificate, or of the operator's",
        ["certificate", "node"],
        {**state.certificates, **own}.items(),
    )


_SCHEDULER_GAUGES: Final = (
    (
        "cluster_master_schedulable",
        "masters_schedulable",
        "Whether control-plane nodes accept workloads",
    ),
    (
        "cluster_legacy_scheduler_policy",
        "has_policy",
        "Whether the removed field spec.policy of the Scheduler is set",
    ),
    (
        "cluster_default_node_selector",
        "has_default_node_selector",
        "Whether a default node selector is set",
    ),
)
"""The gauges of OpenShift's operator, under its names."""

_NODE_GAUGES: Final = (
    ("current_revision", "current", "The current revision of a node; 0 if none"),
    ("target_revision", "target", "The revision that is being installed on a node; 0 if none"),
    ("running_revision", "running", "The revision of a node's scheduler Pod; 0 if none"),
    ("scheduler_ready", "ready", "Whether a node's scheduler is Ready"),
    ("drifted", "drifted", "Whether a node runs another revision than its current one"),
)


def _nodes(nodes: tuple[NodeState, ...]) -> Iterator[Metric]:
    for name, attribute, documentation in _NODE_GAUGES:
        samples = (((node.node,), getattr(node, attribute)) for node in nodes)
        yield gauge(f"{PREFIX}node_{name}", documentation, ["node"], samples)
    yield gauge(
        f"{PREFIX}node_version_skew",
        "Minor versions by which a node's scheduler is older than its API server",
        ["node"],
        (((node.node,), node.skew) for node in nodes if node.skew is not None),
    )


def _lease(state: MetricsState, age: float | None) -> Iterator[Metric]:
    if age is not None:
        yield GaugeMetricFamily(
            f"{PREFIX}lease_age_seconds",
            "Time since the last observed renewal of the schedulers' Lease",
            value=age,
        )
    if state.lease is None:
        return
    renewed = age is not None and age <= state.lease.allowed
    holder = state.lease.node
    nodes = {node.node for node in state.nodes} | ({holder} - {""})
    yield gauge(
        f"{PREFIX}active_scheduler",
        "Whether a node's scheduler is active: it holds the Lease and renews it",
        ["node"],
        (((node,), node == holder and renewed) for node in nodes),
    )


def _rollout(state: MetricsState) -> Iterator[Metric]:
    if state.rollout_started is not None:
        yield GaugeMetricFamily(
            f"{PREFIX}rollout_started_timestamp_seconds",
            "Start of the current rollout; absent without one",
            value=state.rollout_started,
        )
    yield gauge(
        f"{PREFIX}last_outcome_timestamp_seconds",
        "Time of the last revision with this outcome",
        ["outcome"],
        (((outcome,), moment) for outcome, moment in state.last_outcomes.items()),
    )
    yield gauge(
        f"{PREFIX}futile_writes",
        "Objects whose writes do not last and are delayed",
        ["resource", "reason"],
        state.futile_writes.items(),
    )
    yield gauge(
        f"{PREFIX}quarantined",
        "Whether the desired configuration is quarantined because it was refused or failed",
        ["outcome"],
        (((outcome,), active) for outcome, active in state.quarantined.items()),
    )

"""Metrics of the cluster: what a pass saw, shown at every scrape and forgotten with the next pass.

Only the process that leads has passes, so a standby shows none of these, and no sum over both
counts anything twice. Two things are asked for at the scrape instead, by every process: the age of
the schedulers' Lease, which is renewed every two seconds, and the process's own certificate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

PREFIX: Final = "kube_scheduler_operator_"

# Values of the label `certificate`.
CLIENT_CERTIFICATE: Final = "client"
SERVING_CERTIFICATE: Final = "serving"
OWN_CERTIFICATE: Final = "operator"


@dataclass(frozen=True, slots=True)
class SchedulerSpec:
    """What Scheduler "cluster" says that only metrics look at."""

    masters_schedulable: bool
    has_policy: bool
    has_default_node_selector: bool


@dataclass(frozen=True, slots=True)
class NodeState:
    """A control-plane node and its scheduler.

    Attributes:
        node: its name.
        current: the revision that it was brought to; 0 stands for none.
        target: the revision that it is being brought to; likewise.
        running: the revision that its scheduler pod is of; likewise.
        ready: whether that pod is Ready.
        drifted: whether it runs something else than the revision that it was brought to.
    """

    node: str
    current: int = 0
    target: int = 0
    running: int = 0
    ready: bool = False
    drifted: bool = False


@dataclass(frozen=True, slots=True)
class LeaseState:
    """Who schedules, says the schedulers' Lease.

    Attributes:
        node: the holder's; empty if nobody holds it.
        allowed: seconds without a renewal after which it counts as given up.
    """

    node: str = ""
    allowed: float = 0.0


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What a pass saw, as far as metrics show it; what is not known is absent.

    Attributes:
        scheduler: None if there is no Scheduler "cluster"; its three gauges are then absent.
        latest_available_revision: 0 stands for none; None (absent) if there is no KubeScheduler.
        nodes: the control-plane nodes.
        lease: None if nothing was seen yet.
        conditions: of KubeScheduler: type -> (reason, whether it is True).
        quarantined: outcome -> whether a content that ended like this is asked for and held back.
        last_outcomes: outcome -> when a revision last ended like this, seconds since 1970.
        rollout_started: since when nodes are on their way, seconds since 1970; None: none is.
        certificates: (certificate, node or "") -> when it expires, seconds since 1970.
    """

    scheduler: SchedulerSpec | None = None
    latest_available_revision: int | None = None
    nodes: tuple[NodeState, ...] = ()
    lease: LeaseState | None = None
    conditions: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    quarantined: Mapping[str, bool] = field(default_factory=dict)
    last_outcomes: Mapping[str, float] = field(default_factory=dict)
    rollout_started: float | None = None
    certificates: Mapping[tuple[str, str], float] = field(default_factory=dict)


def families(
    state: ClusterState, lease_age: float | None, own_certificate: float | None
) -> Iterator[Metric]:
    """All metrics of a state.

    Args:
        state: what the last pass saw.
        lease_age: seconds since the schedulers' Lease was seen renewed; None: it never was.
        own_certificate: when that of the HTTPS port expires, seconds since 1970, if known.
    """
    yield from _spec(state.scheduler)
    if state.latest_available_revision is not None:
        yield GaugeMetricFamily(
            f"{PREFIX}latest_available_revision",
            "The newest complete revision",
            value=state.latest_available_revision,
        )
    yield from _nodes(state.nodes)
    yield from _lease(state, lease_age)
    yield from _rollout(state)
    conditions = GaugeMetricFamily(
        f"{PREFIX}condition",
        "Whether a condition of the KubeScheduler is True",
        labels=["type", "reason"],
    )
    for type_, (reason, holds) in sorted(state.conditions.items()):
        conditions.add_metric([type_, reason], holds)
    yield conditions
    expiries = GaugeMetricFamily(
        f"{PREFIX}certificate_expiry_timestamp_seconds",
        "When a certificate expires: a scheduler's own, its serving one, or the operator's",
        labels=["certificate", "node"],
    )
    certificates = dict(state.certificates)
    if own_certificate is not None:
        certificates[OWN_CERTIFICATE, ""] = own_certificate
    for labels, moment in sorted(certificates.items()):
        expiries.add_metric(labels, moment)
    yield expiries


def _spec(scheduler: SchedulerSpec | None) -> Iterator[Metric]:
    """The reference's gauges, under its names."""
    if scheduler is None:
        return
    yield GaugeMetricFamily(
        "cluster_master_schedulable",
        "Whether control-plane nodes are meant to run workloads",
        value=scheduler.masters_schedulable,
    )
    yield GaugeMetricFamily(
        "cluster_legacy_scheduler_policy",
        "Whether the removed field spec.policy of the Scheduler is set",
        value=scheduler.has_policy,
    )
    yield GaugeMetricFamily(
        "cluster_default_node_selector",
        "Whether a default node selector is set",
        value=scheduler.has_default_node_selector,
    )


_NODE_GAUGES: Final = (
    ("current_revision", "current", "The revision that a node was brought to; 0 if none"),
    ("target_revision", "target", "The revision that is being installed on a node; 0 if none"),
    ("running_revision", "running", "The revision that a node's scheduler is of; 0 if of none"),
    ("scheduler_ready", "ready", "Whether a node's scheduler is Ready"),
    ("drifted", "drifted", "Whether a node runs something else than its revision"),
)


def _nodes(nodes: tuple[NodeState, ...]) -> Iterator[Metric]:
    for name, attribute, documentation in _NODE_GAUGES:
        gauge = GaugeMetricFamily(f"{PREFIX}node_{name}", documentation, labels=["node"])
        for node in nodes:
            gauge.add_metric([node.node], getattr(node, attribute))
        yield gauge


def _lease(state: ClusterState, age: float | None) -> Iterator[Metric]:
    if age is not None:
        yield GaugeMetricFamily(
            f"{PREFIX}lease_age_seconds",
            "Time since the schedulers' Lease was seen renewed",
            value=age,
        )
    if state.lease is None:
        return
    active = GaugeMetricFamily(
        f"{PREFIX}active_scheduler",
        "Whether a node's scheduler is the one that schedules: it holds the Lease and renews it",
        labels=["node"],
    )
    renewed = age is not None and age <= state.lease.allowed
    holder = state.lease.node
    for node in sorted({node.node for node in state.nodes} | ({holder} - {""})):
        active.add_metric([node], node == holder and renewed)
    yield active


def _rollout(state: ClusterState) -> Iterator[Metric]:
    if state.rollout_started is not None:
        yield GaugeMetricFamily(
            f"{PREFIX}rollout_started_timestamp_seconds",
            "Since when nodes are on their way to what is wanted now; absent if none is",
            value=state.rollout_started,
        )
    outcomes = GaugeMetricFamily(
        f"{PREFIX}last_outcome_timestamp_seconds",
        "When a revision last came to an outcome",
        labels=["outcome"],
    )
    for outcome, moment in sorted(state.last_outcomes.items()):
        outcomes.add_metric([outcome], moment)
    quarantined = GaugeMetricFamily(
        f"{PREFIX}quarantined",
        "Whether what is asked for is held back because it was refused, or failed",
        labels=["outcome"],
    )
    for outcome, held in sorted(state.quarantined.items()):
        quarantined.add_metric([outcome], held)
    yield from (outcomes, quarantined)

"""Metrics of the operator: the managed cluster, reconciles, requests, watches and the work queue.

Gauges of the cluster are not instruments: a collector reads one immutable `ClusterState` at every
scrape, so a deleted node leaves no stale series. Metrics that OpenShift's operator or client-go
also export have their names, so that existing dashboards and alerts work.
"""

from __future__ import annotations

import platform as python_platform
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

import prometheus_client
from prometheus_client.core import UnknownMetricFamily
from prometheus_client.registry import Collector

from . import cluster_metrics
from .cluster_metrics import PREFIX, ClusterState, Samples, gauge

# Seconds. Reconciles and requests take milliseconds, a rollout on one node about ten seconds.
PASS_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
REQUEST_BUCKETS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)  # as client-go
QUEUE_BUCKETS: Final = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROLLOUT_BUCKETS: Final = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 3600)


class OperatorMetrics(Collector):
    """All metrics of one operator process, in a registry of their own. Any thread may use them."""

    def __init__(self, version: str, *, clock: Callable[[], float] = time.time) -> None:
        # The switch is global in prometheus_client. Series named …_created double the size of a
        # scrape, and no dashboard here uses them.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # has no types
        # for tests and for further collectors
        self.registry = prometheus_client.CollectorRegistry()
        self.state = ClusterState()  # replaced by every reconcile
        self._version = version
        self._clock = clock
        self._leaders: dict[str, bool] = {}
        self._events: Tally[str] = Tally()
        # called at every scrape: (resource, namespace or "") -> seconds since the last event or
        # bookmark of the watch
        self.watch_ages: Callable[[], Mapping[tuple[str, str], float]] = dict
        # called at every scrape: time of the last observed renewal of the schedulers' Lease
        self.lease_seen: Callable[[], datetime | None] = lambda: None
        # called at every scrape: samples of the Pods without a node, by their keys in GAUGES
        self.waiting_pods: Callable[[], Mapping[str, Samples]] = dict
        # called at every scrape: expiry of each certificate of this process
        self.certificates: dict[str, Callable[[], datetime | None]] = {}
        self._has_passed = False  # whether a reconcile has completed
        self.registry.register(self)
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.GCCollector(registry=self.registry)

        counter = partial(prometheus_client.Counter, registry=self.registry)
        instrument = partial(prometheus_client.Gauge, registry=self.registry)
        histogram = partial(prometheus_client.Histogram, registry=self.registry)
        # label `outcome`: installed, refused, failed or superseded
        self.rollout_duration = histogram(
            f"{PREFIX}rollout_duration_seconds",
            "Time from a complete revision to its outcome on all nodes",
            ["outcome"],
            buckets=ROLLOUT_BUCKETS,
        )
        self.preflight_failures = counter(
            f"{PREFIX}preflight_failures", "Revisions that kube-scheduler refused in the preflight"
        )
        # label `reason` as in node statuses
        self.installer_failures = counter(
            f"{PREFIX}installer_failures",
            "Failed installations of a revision on a node",
            ["reason"],
        )
        # label `result`: success or error
        self.reconciles = counter(f"{PREFIX}passes", "Reconciles", ["result"])
        self.reconcile_duration = histogram(
            f"{PREFIX}pass_duration_seconds",
            "Duration of a reconcile including its writes",
            buckets=PASS_BUCKETS,
        )
        self.last_success = instrument(
            f"{PREFIX}last_successful_pass_timestamp_seconds",
            "End of the last successful reconcile; 0 before the first",
        )
        self.time_to_first_reconcile = instrument(
            f"{PREFIX}start_to_first_pass_seconds",
            "Time from the start of the process to its first complete reconcile; 0 before it",
        )
        self._requests = counter(
            "rest_client_requests", "Requests to the Kubernetes API", ["code", "method", "host"]
        )
        self._request_duration = histogram(
            "rest_client_request_duration_seconds",
            "Duration of requests to the Kubernetes API",
            ["verb", "host"],
            buckets=REQUEST_BUCKETS,
        )
        self._defects = counter(
            f"{PREFIX}contained_errors",
            "Unexpected errors that were contained in one object or step",
            ["scope"],
        )
        self._reviews = counter(
            f"{PREFIX}assignment_reviews",
            "New Pods that the API server asked the webhook about: assigned, unchanged, or "
            "without a decision (invalid, busy, error)",
            ["result"],
        )
        self.queue = QueueMetrics(self.registry, "reconcile")
        self._rewinds = counter(
            f"{PREFIX}etcd_restores", "Times that the API server had an older state than before"
        )

    def reviewed(self, result: str, number: int = 1) -> None:
        """Count requests to the webhook."""
        self._reviews.labels(result).inc(number)

    def rewound(self) -> None:
        """Count an etcd that was restored from a backup."""
        self._rewinds.inc()

    def first_pass(self) -> None:
        """Note the end of the first complete reconcile; the start time comes from the kernel.

        A process that leads again later has had it already.
        """
        started = self.registry.get_sample_value("process_start_time_seconds")
        if started is not None and not self._has_passed:
            self._has_passed = True
            self.time_to_first_reconcile.set(self._clock() - started)

    def passed(self, seconds: float, *, success: bool) -> None:
        self.reconciles.labels("success" if success else "error").inc()
        self.reconcile_duration.observe(seconds)
        if success:
            self.last_success.set(self._clock())

    def defect_contained(self, scope: str) -> None:
        """Note an unexpected error that stopped one object of a kind, or one step, only."""
        self._defects.labels(scope).inc()

    def requested(self, *, method: str, host: str, code: str, seconds: float) -> None:
        """Note a request to the API; a `kube.client.RequestObserver`."""
        self._requests.labels(code, method, host).inc()
        self._request_duration.labels(method, host).observe(seconds)

    def leading(self, name: str, leads: bool) -> None:
        """Set whether this process holds the Lease `name`."""
        self._leaders[name] = leads

    def event_sent(self, severity: str) -> None:
        """Note an Event; `severity` is its type, Normal or Warning."""
        self._events[severity] += 1

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics in the format that `accept` prefers, and its Content-Type."""
        encode, content_type = prometheus_client.exposition.choose_encoder(accept)
        return encode(self.registry), content_type

    def collect(self) -> Iterator[prometheus_client.Metric]:
        """Yield the metrics that are read at every scrape."""
        yield gauge(
            f"{PREFIX}build_info",
            "Always 1; the versions are in the labels",
            ["version", "python_version"],
            [((self._version, python_platform.python_version()), 1)],
        )
        seen = self.lease_seen()
        age = None if seen is None else max(self._clock() - seen.timestamp(), 0.0)
        certificates = {name: expires() for name, expires in tuple(self.certificates.items())}
        state = replace(self.state, samples={**self.state.samples, **self.waiting_pods()})
        yield from cluster_metrics.families(state, age, certificates)
        yield gauge(
            f"{PREFIX}watch_age_seconds",
            "Time since the last event or bookmark of a watch",
            ["resource", "namespace"],
            self.watch_ages().items(),
        )
        yield gauge(
            "leader_election_master_status",
            "Whether this process leads; 0 on a standby",
            ["name"],
            [((name,), leads) for name, leads in tuple(self._leaders.items())],
        )
        # Not a Counter, whose name would be exported with the suffix _total.
        events = UnknownMetricFamily(
            "event_recorder_total_events_count", "Events sent", labels=["severity"]
        )
        for severity, count in sorted(self._events.items()):
            events.add_metric([severity], count)
        yield events


class QueueMetrics:
    """The metrics of a work queue, under client-go's names; a `kube.queue.QueueObserver`."""

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
        name: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._began: float | None = None
        named = ["name"]
        gauge = partial(prometheus_client.Gauge, labelnames=named, registry=registry)
        counter = partial(prometheus_client.Counter, labelnames=named, registry=registry)
        histogram = partial(
            prometheus_client.Histogram, labelnames=named, buckets=QUEUE_BUCKETS, registry=registry
        )
        self._depth = gauge("workqueue_depth", "Current depth of the work queue").labels(name)
        self._adds = counter("workqueue_adds", "Items added to the work queue").labels(name)
        self._retries = counter("workqueue_retries", "Items added again after a failure").labels(
            name
        )
        self._queue_duration = histogram(
            "workqueue_queue_duration_seconds", "Time that an item stays in the work queue"
        ).labels(name)
        self._work_duration = histogram(
            "workqueue_work_duration_seconds", "Time to process an item"
        ).labels(name)
        # The queue has one item, which is the longest running one.
        for metric, documentation in (
            (
                "workqueue_unfinished_work_seconds",
                "Duration of unfinished work; large values indicate that it is stuck",
            ),
            (
                "workqueue_longest_running_processor_seconds",
                "Duration of the longest unfinished work",
            ),
        ):
            gauge(metric, documentation).labels(name).set_function(self._unfinished)

    def added(self) -> None:
        self._adds.inc()
        self._depth.set(1)

    def got(self, waited: float) -> None:
        self._queue_duration.observe(waited)
        self._depth.set(0)
        self._began = self._clock()

    def finished(self, worked: float) -> None:
        self._work_duration.observe(worked)
        self._began = None

    def retried(self) -> None:
        self._retries.inc()

    def _unfinished(self) -> float:
        began = self._began  # a scrape is in another thread
        return 0.0 if began is None else self._clock() - began

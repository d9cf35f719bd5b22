"""Metrics of the operator itself: what it manages, what it did, and how its machinery is doing.

Gauges that describe the cluster are not kept as instruments: a collector reads one immutable
`ClusterState` at every scrape, so a node that is gone leaves no stale series behind. Names that
OpenShift's operator and client-go have are kept, so that existing dashboards and alerts work.
Nothing here knows prometheus_client's global registry.
"""

from __future__ import annotations

import platform as python_platform
import time
from collections import Counter as Tally
from typing import TYPE_CHECKING, Final

import prometheus_client
from prometheus_client.core import GaugeMetricFamily, UnknownMetricFamily
from prometheus_client.registry import Collector

from . import cluster_metrics
from .cluster_metrics import PREFIX, ClusterState
from .queue_metrics import QueueInstruments, QueueMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

# Seconds. Passes and requests take milliseconds, a rollout on one node takes about ten seconds.
PASS_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
REQUEST_BUCKETS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)  # as client-go
ROLLOUT_BUCKETS: Final = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200, 3600)


class Metrics:
    """All metrics of one operator process, in a registry of their own.

    Attributes:
        registry: for tests and for further collectors.
        state: replaced by every pass.
        watch_ages: asked at every scrape: (resource, namespace or "") -> seconds since the watch
            was heard, bookmarks included.
        lease_seen: asked at every scrape: when the schedulers' Lease was last seen renewed.
        certificate_expires: likewise: when the certificate of the HTTPS port expires.
        rollout_duration: from the moment a revision is complete to its outcome; label `outcome`:
            installed, refused, failed or superseded.
        preflight_failures: revisions that kube-scheduler itself refused.
        installer_failures: installations that failed on a node; label `reason` as in node statuses.
        passes: label `result`: success or error.
        pass_duration: of passes, including their writes.
        last_successful_pass: seconds since 1970.
        start_to_first_pass: seconds; a standby that waits for the Lease counts its wait.
    """

    def __init__(self, version: str, *, clock: Callable[[], float] = time.time) -> None:
        # The switch is global in prometheus_client; series named …_created double what a
        # scrape has to carry and no dashboard of ours reads them.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # has no types
        self.registry = prometheus_client.CollectorRegistry()
        self.state = ClusterState()
        self._version = version
        self._clock = clock
        self._leaders: dict[str, bool] = {}
        self._events: Tally[str] = Tally()
        self.watch_ages: Callable[[], Mapping[tuple[str, str], float]] = dict
        self.lease_seen: Callable[[], datetime | None] = lambda: None
        self.certificate_expires: Callable[[], datetime | None] = lambda: None
        self.registry.register(_StateCollector(self._families))
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.GCCollector(registry=self.registry)

        registry = self.registry
        self.rollout_duration = prometheus_client.Histogram(
            f"{PREFIX}rollout_duration_seconds",
            "Time from a complete revision to its outcome on all nodes",
            ["outcome"],
            buckets=ROLLOUT_BUCKETS,
            registry=registry,
        )
        self.preflight_failures = prometheus_client.Counter(
            f"{PREFIX}preflight_failures",
            "Revisions that kube-scheduler itself refused before any node was touched",
            registry=registry,
        )
        self.installer_failures = prometheus_client.Counter(
            f"{PREFIX}installer_failures",
            "Installations of a revision that failed on a node",
            ["reason"],
            registry=registry,
        )
        self.passes = prometheus_client.Counter(
            f"{PREFIX}passes", "Reconcile passes", ["result"], registry=registry
        )
        self.pass_duration = prometheus_client.Histogram(
            f"{PREFIX}pass_duration_seconds",
            "Duration of a reconcile pass including its writes",
            buckets=PASS_BUCKETS,
            registry=registry,
        )
        self.last_successful_pass = prometheus_client.Gauge(
            f"{PREFIX}last_successful_pass_timestamp_seconds",
            "When the last pass without an error ended; 0 if there was none",
            registry=registry,
        )
        self.start_to_first_pass = prometheus_client.Gauge(
            f"{PREFIX}start_to_first_pass_seconds",
            "Time from the start of the process to its first complete pass; 0 before it",
            registry=registry,
        )
        self._requests = prometheus_client.Counter(
            "rest_client_requests",
            "Requests to the Kubernetes API",
            ["code", "method", "host"],
            registry=registry,
        )
        self._request_duration = prometheus_client.Histogram(
            "rest_client_request_duration_seconds",
            "Duration of requests to the Kubernetes API",
            ["verb", "host"],
            buckets=REQUEST_BUCKETS,
            registry=registry,
        )
        self._queues = QueueInstruments(registry)

    def first_pass(self) -> None:
        """The first complete pass has just ended; the kernel knows when the process started."""
        started = self.registry.get_sample_value("process_start_time_seconds")
        if started is not None:
            self.start_to_first_pass.set(self._clock() - started)

    def passed(self, seconds: float, *, success: bool) -> None:
        """A pass ended after `seconds`."""
        self.passes.labels("success" if success else "error").inc()
        self.pass_duration.observe(seconds)
        if success:
            self.last_successful_pass.set(self._clock())

    def requested(self, *, method: str, host: str, code: str, seconds: float) -> None:
        """A request to the API ended; a `kube.client.RequestObserver`."""
        self._requests.labels(code, method, host).inc()
        self._request_duration.labels(method, host).observe(seconds)

    def leading(self, name: str, leads: bool) -> None:
        """Whether this process holds the Lease `name`."""
        self._leaders[name] = leads

    def event_sent(self, severity: str) -> None:
        """An Event was sent; `severity` is its type, Normal or Warning."""
        self._events[severity] += 1

    def queue(self, name: str) -> QueueMetrics:
        """The metrics of one work queue, all zero until something happens."""
        return QueueMetrics(self._queues, name)

    def render(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that the header `accept` prefers, and its Content-Type."""
        encode, content_type = prometheus_client.exposition.choose_encoder(accept)
        return encode(self.registry), content_type

    def _families(self) -> Iterator[prometheus_client.Metric]:
        """What is read at every scrape."""
        build = GaugeMetricFamily(
            f"{PREFIX}build_info",
            "Always 1; what this program is",
            labels=["version", "python_version"],
        )
        build.add_metric([self._version, python_platform.python_version()], 1)
        yield build
        seen = self.lease_seen()
        age = None if seen is None else max(self._clock() - seen.timestamp(), 0.0)
        expires = self.certificate_expires()
        own = None if expires is None else expires.timestamp()
        yield from cluster_metrics.families(self.state, age, own)
        ages = GaugeMetricFamily(
            f"{PREFIX}watch_age_seconds",
            "Time since the last sign of life of a watch; grows if the watch is dead",
            labels=["resource", "namespace"],
        )
        for labels, age in sorted(self.watch_ages().items()):
            ages.add_metric(labels, age)
        yield ages
        leaders = GaugeMetricFamily(
            "leader_election_master_status",
            "Whether this process leads; 0 is a standby",
            labels=["name"],
        )
        for name, leads in sorted(self._leaders.items()):
            leaders.add_metric([name], leads)
        yield leaders
        # A counter in all but name: as a Counter it would be exported with the suffix _total.
        events = UnknownMetricFamily(
            "event_recorder_total_events_count", "Events sent", labels=["severity"]
        )
        for severity, count in sorted(self._events.items()):
            events.add_metric([severity], count)
        yield events


class _StateCollector(Collector):
    def __init__(self, families: Callable[[], Iterator[prometheus_client.Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterator[prometheus_client.Metric]:
        return self._families()

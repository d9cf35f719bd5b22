"""Metrics of work queues under client-go's names, so that its dashboards and alerts apply."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import prometheus_client

QUEUE_BUCKETS: Final = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # seconds


class QueueMetrics:
    """What one work queue reports, under client-go's names; a `kube.queue.QueueObserver`."""

    def __init__(self, instruments: QueueInstruments, name: str) -> None:
        self._depth = instruments.depth.labels(name)
        self._adds = instruments.adds.labels(name)
        self._retries = instruments.retries.labels(name)
        self._queue_duration = instruments.queue_duration.labels(name)
        self._work_duration = instruments.work_duration.labels(name)
        self._clock = instruments.clock
        self._began: float | None = None
        # One worker: what is longest in work is all that is.
        instruments.unfinished.labels(name).set_function(self._in_work)
        instruments.longest.labels(name).set_function(self._in_work)

    def added(self, depth: int) -> None:
        """Something was added; `depth` things wait now."""
        self._adds.inc()
        self._depth.set(depth)

    def got(self, depth: int, waited: float) -> None:
        """Work began on something that had waited for `waited` seconds; `depth` things wait now."""
        self._queue_duration.observe(waited)
        self._depth.set(depth)
        self._began = self._clock()

    def finished(self, worked: float) -> None:
        """Work ended after `worked` seconds."""
        self._work_duration.observe(worked)
        self._began = None

    def retried(self) -> None:
        """Something was put back because it failed."""
        self._retries.inc()

    def _in_work(self) -> float:
        return 0.0 if self._began is None else self._clock() - self._began


class QueueInstruments:
    """The instruments that all work queues of a process share, told apart by the label `name`."""

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        name = ["name"]
        self.depth = prometheus_client.Gauge(
            "workqueue_depth", "Things that wait", name, registry=registry
        )
        self.adds = prometheus_client.Counter(
            "workqueue_adds", "Things that were added", name, registry=registry
        )
        self.retries = prometheus_client.Counter(
            "workqueue_retries", "Things that were put back", name, registry=registry
        )
        self.queue_duration = prometheus_client.Histogram(
            "workqueue_queue_duration_seconds",
            "How long things wait",
            name,
            buckets=QUEUE_BUCKETS,
            registry=registry,
        )
        self.work_duration = prometheus_client.Histogram(
            "workqueue_work_duration_seconds",
            "How long work takes",
            name,
            buckets=QUEUE_BUCKETS,
            registry=registry,
        )
        self.unfinished = prometheus_client.Gauge(
            "workqueue_unfinished_work_seconds",
            "How long what is in work has been in work; large: it is stuck",
            name,
            registry=registry,
        )
        self.longest = prometheus_client.Gauge(
            "workqueue_longest_running_processor_seconds",
            "How long the longest work has been going on",
            name,
            registry=registry,
        )

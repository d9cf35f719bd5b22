"""Metrics of an extender, built from plain counters at each scrape.

They have their own registry instead of prometheus_client's global one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import prometheus_client
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from ... import __version__
from ...kube.reflector import Reflector
from ...serving.http_server import HttpServer
from .agent import PolicyAgent
from .verbs import BIND, BUCKETS, PREEMPT, CallCounters

PREFIX: Final = "kube_scheduler_operator_extender_"


@dataclass(slots=True)
class MetricSources:
    """Callables that return the current values at a scrape."""

    calls: Callable[[], Iterable[CallCounters]] = tuple
    agents: Callable[[], Iterable[PolicyAgent]] = tuple
    servers: Callable[[], Iterable[HttpServer]] = tuple
    watched: Callable[[], Iterable[Reflector]] = tuple
    nodes: Callable[[], int] = int  # numbers in the node view
    pods: Callable[[], int] = int
    decisions: Callable[[], int] = int  # number of Pods with recorded decisions
    config_valid: Callable[[], bool] = bool  # whether the current file is in use
    events: Callable[[], tuple[int, int]] = field(default=lambda: (0, 0))  # (recorded, dropped)
    # responses that waited (without an event, with one)
    waits: Callable[[], Sequence[int]] = field(default=lambda: (0, 0))


class ExtenderMetrics(Collector):
    def __init__(self, sources: MetricSources) -> None:
        self._sources = sources
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # has no types
        self.registry = prometheus_client.CollectorRegistry()
        self.registry.register(self)
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.GCCollector(registry=self.registry)

    def render(self) -> bytes:
        return prometheus_client.generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        sources = self._sources
        yield from _calls(sources.calls())
        yield from _policies(sources.agents())
        yield from _ports(sources.servers())
        yield from _watches(list(sources.watched()))
        yield _gauge("nodes", "Nodes in the node view", sources.nodes())
        yield _gauge("pods", "Bound Pods in the node view", sources.pods())
        yield _gauge("decisions", "Pods with recorded decisions", sources.decisions())
        text = "1 if the current configuration file is in use, 0 if it is invalid"
        yield _gauge("config_valid", text, sources.config_valid())
        sent, dropped = sources.events()
        text = "Events recorded for Pods whose nodes were all rejected"
        yield _family(CounterMetricFamily, "events", text, [], [([], sent)])
        text = "Events not recorded because of the rate limit"
        yield _family(CounterMetricFamily, "events_dropped", text, [], [([], dropped)])
        text = "Filter calls that waited for the node view, by whether it changed"
        waits = zip((["no"], ["yes"]), sources.waits(), strict=True)
        yield _family(CounterMetricFamily, "filters_waited", text, ["news"], waits)
        text = "Always 1, with the version of the program"
        yield _family(GaugeMetricFamily, "build_info", text, ["version"], [([__version__], 1)])


def _calls(calls: Iterable[CallCounters]) -> Iterator[Metric]:
    labels = ["agent", "verb"]
    durations = HistogramMetricFamily(
        PREFIX + "call_duration_seconds",
        "Time from a complete request to its response",
        labels=labels,
    )
    counted = []
    for call in calls:
        if call.verb in (BIND, PREEMPT) and not any(call.counts):
            continue  # most schedulers never call these verbs
        counted.append(([call.agent, call.verb], call))
        buckets = zip((*map(str, BUCKETS), "+Inf"), accumulate(call.counts), strict=True)
        durations.add_metric([call.agent, call.verb], list(buckets), call.seconds)
    yield durations
    for name, text, attribute in (
        ("call_errors", "Calls that failed", "errors"),
        ("nodes_asked", "Nodes in requests", "nodes"),
        ("nodes_unknown", "Nodes in requests that are not in the node view", "unknown"),
        ("nodes_rejected", "Nodes in requests that were rejected", "rejected"),
    ):
        rows = [(values, getattr(call, attribute)) for values, call in counted]
        yield _family(CounterMetricFamily, name, text, labels, rows)


def _policies(agents: Iterable[PolicyAgent]) -> Iterator[Metric]:
    labels = ["agent", "policy"]
    members = [([agent.name, member.name], member) for agent in agents for member in agent.members]
    errors = [(values, member.errors) for values, member in members]
    yield _family(CounterMetricFamily, "policy_errors", "Errors of a policy", labels, errors)
    rejected = [(values, member.rejected) for values, member in members]
    text = "Nodes rejected by a policy"
    yield _family(CounterMetricFamily, "policy_rejected_nodes", text, labels, rejected)


def _ports(servers: Iterable[HttpServer]) -> Iterator[Metric]:
    connections = 0
    refused: Counter[int] = Counter()
    for server in servers:
        connections += len(server.connections)
        refused.update(server.refused)
    yield _gauge("connections", "Open client connections", connections)
    text = "Requests refused as invalid HTTP or over a limit"
    rows = [([str(status)], count) for status, count in sorted(refused.items())]
    yield _family(CounterMetricFamily, "refused_requests", text, ["code"], rows)


def _watches(watched: Sequence[Reflector]) -> Iterator[Metric]:
    states = [([watch.resource.plural], watch.state) for watch in watched]
    rows: list[tuple[list[str], float]] = [(values, state.synced) for values, state in states]
    text = "1 after the initial list of a resource"
    yield _family(GaugeMetricFamily, "watch_synced", text, ["resource"], rows)
    rows = [([watch.resource.plural], watch.age) for watch in watched]
    text = "Time since a watch last received data"
    yield _family(GaugeMetricFamily, "watch_age_seconds", text, ["resource"], rows)
    for name, text, attribute in (
        ("watch_events", "Events received by a watch", "events"),
        ("watch_lists", "Full lists of a resource", "lists"),
        ("watch_failures", "Failed list and watch requests", "failures"),
    ):
        rows = [(values, getattr(state, attribute)) for values, state in states]
        yield _family(CounterMetricFamily, name, text, ["resource"], rows)


def _gauge(name: str, text: str, value: float) -> Metric:
    return _family(GaugeMetricFamily, name, text, [], [([], value)])


def _family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    text: str,
    labels: Sequence[str],
    rows: Iterable[tuple[Sequence[str], float]],
) -> Metric:
    """Return a metric with a sample for each row: (values of the labels, value)."""
    family = kind(PREFIX + name, text, labels=labels)
    for values, value in rows:
        family.add_metric(values, value)
    return family

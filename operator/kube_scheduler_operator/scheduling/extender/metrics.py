"""Metrics of an extender, built from plain counters at each scrape.

They have their own registry instead of prometheus_client's global one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import prometheus_client
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
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


class ExtenderMetrics:
    def __init__(self, sources: MetricSources) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # has no types
        self.registry = prometheus_client.CollectorRegistry()
        self.registry.register(_Collector(sources))
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.GCCollector(registry=self.registry)

    def render(self) -> bytes:
        return prometheus_client.generate_latest(self.registry)


class _Collector(Collector):
    def __init__(self, sources: MetricSources) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Any]:
        sources = self._sources
        yield from _calls(sources.calls())
        yield from _policies(sources.agents())
        yield from _ports(sources.servers())
        yield from _watches(sources.watched())
        yield _gauge("nodes", "Nodes in the node view", sources.nodes())
        yield _gauge("pods", "Bound Pods in the node view", sources.pods())
        yield _gauge("decisions", "Pods with recorded decisions", sources.decisions())
        yield _gauge(
            "config_valid",
            "1 if the current configuration file is in use, 0 if it is invalid",
            sources.config_valid(),
        )
        sent, dropped = sources.events()
        yield CounterMetricFamily(
            PREFIX + "events", "Events recorded for Pods whose nodes were all rejected", value=sent
        )
        yield CounterMetricFamily(
            PREFIX + "events_dropped",
            "Events not recorded because of the rate limit",
            value=dropped,
        )
        waits = _counter(
            "filters_waited",
            "Filter calls that waited for the node view, by whether it changed",
            ["news"],
        )
        for news, count in zip(("no", "yes"), sources.waits(), strict=True):
            waits.add_metric([news], count)
        yield waits
        build = _family("build_info", "Always 1, with the version of the program", ["version"])
        build.add_metric([__version__], 1)
        yield build


def _calls(calls: Iterable[CallCounters]) -> Iterator[Any]:
    labels = ["agent", "verb"]
    durations = HistogramMetricFamily(
        PREFIX + "call_duration_seconds",
        "Time from a complete request to its response",
        labels=labels,
    )
    errors = _counter("call_errors", "Calls that failed", labels)
    nodes = _counter("nodes_asked", "Nodes in requests", labels)
    unknown = _counter("nodes_unknown", "Nodes in requests that are not in the node view", labels)
    rejected = _counter("nodes_rejected", "Nodes in requests that were rejected", labels)
    for call in calls:
        if call.verb in (BIND, PREEMPT) and not any(call.counts):
            continue  # most schedulers never call these verbs
        values = [call.agent, call.verb]
        total, buckets = 0, []
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), call.counts, strict=True):
            total += count
            buckets.append((bound, total))
        durations.add_metric(values, buckets, call.seconds)
        errors.add_metric(values, call.errors)
        nodes.add_metric(values, call.nodes)
        unknown.add_metric(values, call.unknown)
        rejected.add_metric(values, call.rejected)
    yield from (durations, errors, nodes, unknown, rejected)


def _policies(agents: Iterable[PolicyAgent]) -> Iterator[Any]:
    labels = ["agent", "policy"]
    errors = _counter("policy_errors", "Errors of a policy", labels)
    rejected = _counter("policy_rejected_nodes", "Nodes rejected by a policy", labels)
    for agent in agents:
        for member in agent.members:
            errors.add_metric([agent.name, member.name], member.errors)
            rejected.add_metric([agent.name, member.name], member.rejected)
    yield from (errors, rejected)


def _ports(servers: Iterable[HttpServer]) -> Iterator[Any]:
    connections = 0
    refused: dict[int, int] = {}
    for server in servers:
        connections += len(server.connections)
        for status, count in server.refused.items():
            refused[status] = refused.get(status, 0) + count
    yield _gauge("connections", "Open client connections", connections)
    family = _counter(
        "refused_requests", "Requests refused as invalid HTTP or over a limit", ["code"]
    )
    for status, count in sorted(refused.items()):
        family.add_metric([str(status)], count)
    yield family


def _watches(watched: Iterable[Reflector]) -> Iterator[Any]:
    labels = ["resource"]
    synced = _family("watch_synced", "1 after the initial list of a resource", labels)
    ages = _family("watch_age_seconds", "Time since a watch last received data", labels)
    events = _counter("watch_events", "Events received by a watch", labels)
    lists = _counter("watch_lists", "Full lists of a resource", labels)
    failures = _counter("watch_failures", "Failed list and watch requests", labels)
    for watch in watched:
        values, state = [watch.resource.plural], watch.state
        synced.add_metric(values, state.synced)
        ages.add_metric(values, watch.age)
        events.add_metric(values, state.events)
        lists.add_metric(values, state.lists)
        failures.add_metric(values, state.failures)
    yield from (synced, ages, events, lists, failures)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, text, value=value)


def _family(name: str, text: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, text, labels=labels)


def _counter(name: str, text: str, labels: list[str]) -> CounterMetricFamily:
    return CounterMetricFamily(PREFIX + name, text, labels=labels)

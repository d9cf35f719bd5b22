"""Metrics of an extender, made of plain numbers when somebody scrapes.

Nothing here knows prometheus_client's global registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import prometheus_client
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from ... import __version__
from .call_counters import BUCKETS
from .verbs import BIND, PREEMPT

if TYPE_CHECKING:
    from .agent import Agent
    from .call_counters import Calls
    from .cluster_feed import Watched
    from .http_server import Server

PREFIX: Final = "kube_scheduler_operator_extender_"


@dataclass(slots=True)
class Sources:
    """What metrics are made of, asked at every scrape.

    Attributes:
        calls: one for each verb of each agent.
        agents: what is served.
        servers: the ports.
        watched: what is watched.
        nodes, pods: how many the view has.
        decisions: how many pods are remembered.
        config_valid: whether the file that is there now is the one in use.
        events: (sent, left out or dropped).
        waits: answers that waited for news (in vain, and not).
    """

    calls: Callable[[], Iterable[Calls]] = tuple
    agents: Callable[[], Iterable[Agent]] = tuple
    servers: Callable[[], Iterable[Server]] = tuple
    watched: Callable[[], Iterable[Watched]] = tuple
    nodes: Callable[[], int] = int
    pods: Callable[[], int] = int
    decisions: Callable[[], int] = int
    config_valid: Callable[[], bool] = bool
    events: Callable[[], tuple[int, int]] = field(default=lambda: (0, 0))
    waits: Callable[[], Sequence[int]] = field(default=lambda: (0, 0))


class Metrics:
    """Renders them."""

    def __init__(self, sources: Sources) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # has no types
        self.registry = prometheus_client.CollectorRegistry()
        self.registry.register(_Collector(sources))
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.GCCollector(registry=self.registry)

    def render(self) -> bytes:
        """In the text format."""
        return prometheus_client.generate_latest(self.registry)


class _Collector(Collector):
    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Any]:
        sources = self._sources
        yield from _calls(sources.calls())
        yield from _policies(sources.agents())
        yield from _ports(sources.servers())
        yield from _watches(sources.watched())
        yield _gauge("nodes", "Nodes in the view", sources.nodes())
        yield _gauge("pods", "Bound pods in the view", sources.pods())
        yield _gauge("decisions", "Pods whose decisions are remembered", sources.decisions())
        yield _gauge(
            "config_valid",
            "Whether the configuration file is the one in use; 0: it cannot be read",
            sources.config_valid(),
        )
        sent, dropped = sources.events()
        yield CounterMetricFamily(
            PREFIX + "events", "Events about pods that no node was left for", value=sent
        )
        yield CounterMetricFamily(
            PREFIX + "events_dropped", "Of them, those that were one too many", value=dropped
        )
        waits = _counter("filters_waited", "Answers of filter that waited for news", ["news"])
        for news, count in zip(("no", "yes"), sources.waits(), strict=True):
            waits.add_metric([news], count)
        yield waits
        build = _family("build_info", "Always 1; what this program is", ["version"])
        build.add_metric([__version__], 1)
        yield build


def _calls(calls: Iterable[Calls]) -> Iterator[Any]:
    labels = ["agent", "verb"]
    durations = HistogramMetricFamily(
        PREFIX + "call_duration_seconds", "Time from a whole request to its answer", labels=labels
    )
    errors = _counter("call_errors", "Calls that were answered with an error", labels)
    nodes = _counter("nodes_asked", "Nodes that calls were about", labels)
    unknown = _counter("nodes_unknown", "Of them, those that the view does not have", labels)
    rejected = _counter("nodes_rejected", "Of them, those that were rejected", labels)
    for call in calls:
        if call.verb in (BIND, PREEMPT) and not any(call.counts):
            continue  # most schedulers never ask
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


def _policies(agents: Iterable[Agent]) -> Iterator[Any]:
    labels = ["agent", "policy"]
    errors = _counter("policy_errors", "How often a policy failed", labels)
    rejected = _counter("policy_rejected_nodes", "Nodes that a policy rejected", labels)
    for agent in agents:
        for member in agent.members:
            errors.add_metric([agent.name, member.name], member.errors)
            rejected.add_metric([agent.name, member.name], member.rejected)
    yield from (errors, rejected)


def _ports(servers: Iterable[Server]) -> Iterator[Any]:
    connections = 0
    refused: dict[int, int] = {}
    for server in servers:
        connections += len(server.connections)
        for status, count in server.refused.items():
            refused[status] = refused.get(status, 0) + count
    yield _gauge("connections", "Open connections of clients", connections)
    family = _counter("refused_requests", "Requests that are no proper HTTP, or too much", ["code"])
    for status, count in sorted(refused.items()):
        family.add_metric([str(status)], count)
    yield family


def _watches(watched: Iterable[Watched]) -> Iterator[Any]:
    labels = ["resource"]
    synced = _family("watch_synced", "Whether all objects of a kind were read once", labels)
    ages = _family("watch_age_seconds", "Time since the last sign of life of a watch", labels)
    events = _counter("watch_events", "Changes that were watched", labels)
    lists = _counter("watch_lists", "How often all objects were read", labels)
    failures = _counter("watch_failures", "How often reading or watching failed", labels)
    for one in watched:
        synced.add_metric([one.resource], one.synced)
        ages.add_metric([one.resource], one.age)
        events.add_metric([one.resource], one.events)
        lists.add_metric([one.resource], one.lists)
        failures.add_metric([one.resource], one.failures)
    yield from (synced, ages, events, lists, failures)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, text, value=value)


def _family(name: str, text: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, text, labels=labels)


def _counter(name: str, text: str, labels: list[str]) -> CounterMetricFamily:
    return CounterMetricFamily(PREFIX + name, text, labels=labels)

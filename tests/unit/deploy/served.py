"""The metrics that dashboards and alerts can use: of kube-scheduler by version, and our own."""

from __future__ import annotations

from functools import cache
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kube_scheduler_operator.scheduling.annotator.counters import Counters
from kube_scheduler_operator.scheduling.exporter.recorder import UsageRecorder, exposition
from kube_scheduler_operator.scheduling.exporter.usage_source import Reading
from kube_scheduler_operator.scheduling.extender.metrics import ExtenderMetrics, MetricSources
from kube_scheduler_operator.scheduling.extender.verbs import CallCounters
from monitoring.exposition import Family, families, read_record
from monitoring.promql import named

from ..operator.telemetry.exposition import busy_operator

RECORD = read_record(Path(__file__).resolve().parents[2] / "monitoring" / "scheduler-metrics.txt")
"""Version -> what its kube-scheduler serves; hack/scheduler-metrics records it."""

PROMETHEUS = Family("up", "gauge", frozenset())
TARGET = frozenset({"job", "instance", "namespace", "pod", "container", "endpoint", "service"})
"""Labels that Prometheus adds to all series of a target."""


OF_SCHEDULERS = ("scheduler_", "kube_pod_resource_", "kubernetes_build_info")


@cache
def ours() -> frozenset[Family]:
    """What the programs of this project serve."""
    texts = (
        busy_operator().render("")[0].decode(),
        _extender(),
        _annotator(),
        _exporter(),
    )
    return frozenset(family for text in texts for family in families(text)) | {PROMETHEUS}


def series(found: frozenset[Family] | set[Family]) -> dict[str, frozenset[str]]:
    """Return name -> labels of all series."""
    labels: dict[str, frozenset[str]] = {}
    for family in found:
        for name in family.series:
            more = {"le"} if name.endswith("_bucket") else set()
            labels[name] = labels.get(name, frozenset()) | family.labels | more
    return labels


def not_served(expression: str) -> list[str]:
    """What an expression names that a version of kube-scheduler, or our programs, do not serve."""
    found, missing = named(expression), []
    known = TARGET | {"le"}
    for metric, labels in found.selectors:
        of_scheduler = metric.startswith(OF_SCHEDULERS)
        sources = RECORD if of_scheduler else {"our programs": ours()}
        for source, found_there in sources.items():
            served = series(found_there)
            if metric not in served:
                missing.append(f"{metric} of {source}")
            else:
                missing += [
                    f"{metric}{{{label}}} of {source}"
                    for label in sorted(labels - served[metric] - TARGET)
                ]
                known |= served[metric]
    return missing + [f"label {label}" for label in sorted(found.grouping - known)]


def labels_of(expression: str) -> frozenset[str]:
    served = series(frozenset(chain(ours(), *RECORD.values())))
    return frozenset(chain(*(served[metric] for metric in named(expression).metrics)))


def _extender() -> str:
    member: Any = SimpleNamespace(name="p", errors=0, rejected=0)
    agent: Any = SimpleNamespace(name="a", members=[member])
    server: Any = SimpleNamespace(connections=(), refused={413: 1})
    state = SimpleNamespace(synced=True, events=0, lists=0, failures=0)
    watch: Any = SimpleNamespace(resource=SimpleNamespace(plural="nodes"), state=state, age=0.0)
    sources = MetricSources(
        calls=lambda: [CallCounters("a", "filter")],
        agents=lambda: [agent],
        servers=lambda: [server],
        watched=lambda: [watch],
    )
    return ExtenderMetrics(sources).render().decode()


def _annotator() -> str:
    counters = Counters()
    counters.patched("changed", 0)
    return counters.exposition(leading=True, nodes={"known": 1})


class _Source:
    def read(self, now: float) -> Reading:
        return Reading(now, now * 2, now * 4, 750.0, 1000.0, 4)


def _exporter() -> str:
    now = 0.0
    recorder = UsageRecorder(_Source(), lambda: now)
    for now in (15.0, 30.0):  # noqa: B007 - the recorder's clock reads it
        recorder.sample()
    return exposition(recorder.statistics(), recorder)

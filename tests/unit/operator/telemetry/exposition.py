"""The /metrics of an operator after every event that it counts."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from kube_scheduler_operator.operator.telemetry.cluster_metrics import GAUGES, ClusterState
from kube_scheduler_operator.operator.telemetry.metrics import OperatorMetrics


def busy_operator() -> OperatorMetrics:
    """Metrics with a series of every kind."""
    metrics = OperatorMetrics("1.0.0", clock=lambda: 1000.0)
    metrics.state = ClusterState(
        {name: {tuple(labels): 1.0} for name, (_, *labels) in GAUGES.items()}, 20
    )
    metrics.watch_ages = lambda: {("pods", "kube-system"): 1.0}
    metrics.lease_seen = lambda: datetime.fromtimestamp(999, UTC)
    metrics.certificates["operator"] = lambda: datetime.fromtimestamp(3000, UTC)
    metrics.first_pass()
    metrics.passed(0.1, success=True)
    metrics.requested(method="GET", host="api:6443", code="200", seconds=0.01)
    metrics.leading("lock", True)
    metrics.event_sent("Normal")
    metrics.reviewed("assigned")
    metrics.defect_contained("SchedulerProfile")
    metrics.rollout_duration.labels("installed").observe(10)
    metrics.installer_failures.labels("InstallerFailed").inc()
    metrics.queue.added()
    return metrics


def served_metrics() -> dict[str, tuple[str, set[str]]]:
    """Name, as Prometheus stores it (a histogram without its suffixes) -> type and labels."""
    text = busy_operator().render("")[0].decode()
    found = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = (family.type, labels)
    return found


def helps() -> dict[str, str]:
    """Name of a metric, as Prometheus stores it -> its HELP."""
    text = busy_operator().render("")[0].decode()
    return {
        f"{family.name}_total" if family.type == "counter" else family.name: family.documentation
        for family in text_string_to_metric_families(text)
    }


def served_samples() -> set[str]:
    """The names of all series, as a query has them."""
    text = busy_operator().render("")[0].decode()
    return {
        sample.name for family in text_string_to_metric_families(text) for sample in family.samples
    }

"""The content and names of /metrics, without stale series."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from prometheus_client import REGISTRY
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from kube_scheduler_operator.operator.telemetry.cluster_metrics import ClusterState
from kube_scheduler_operator.operator.telemetry.metrics import OperatorMetrics

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
REFERENCE_GAUGES = (
    "cluster_master_schedulable",
    "cluster_legacy_scheduler_policy",
    "cluster_default_node_selector",
)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> OperatorMetrics:
    return OperatorMetrics("0.1.0", clock=clock)


def value(metrics: OperatorMetrics, metric: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(metric, labels)


def test_reference_gauges_are_absent_without_a_scheduler_object(metrics: OperatorMetrics) -> None:
    assert [value(metrics, name) for name in REFERENCE_GAUGES] == [None, None, None]


def test_deleted_node_leaves_no_series(metrics: OperatorMetrics) -> None:
    metrics.state = ClusterState(
        {
            "latest_available_revision": {(): 4},
            "node_current_revision": {("a",): 3, ("b",): 3},
            "node_target_revision": {("a",): 4, ("b",): 0},
        }
    )
    current = "kube_scheduler_operator_node_current_revision"
    target = "kube_scheduler_operator_node_target_revision"
    assert value(metrics, "kube_scheduler_operator_latest_available_revision") == 4
    assert value(metrics, current, node="b") == 3
    assert (value(metrics, target, node="a"), value(metrics, target, node="b")) == (4, 0)
    metrics.state = ClusterState({"node_current_revision": {("a",): 4}})
    assert value(metrics, current, node="a") == 4
    assert value(metrics, current, node="b") is None


def test_age_of_the_lease_decides_at_the_scrape_which_scheduler_is_active(
    metrics: OperatorMetrics, clock: Clock
) -> None:
    age, active = (
        f"kube_scheduler_operator_{name}" for name in ("lease_age_seconds", "active_scheduler")
    )
    metrics.state = ClusterState({"active_scheduler": {("a",): False, ("b",): True}}, 20)
    assert value(metrics, age) is None
    assert [value(metrics, active, node=node) for node in "ab"] == [0, 0]
    metrics.lease_seen = lambda: datetime.fromtimestamp(990, UTC)
    assert value(metrics, age) == 10
    assert [value(metrics, active, node=node) for node in "ab"] == [0, 1]
    clock.now += 11
    assert [value(metrics, active, node=node) for node in "ab"] == [0, 0]


def test_active_scheduler_is_absent_before_the_first_reconcile(
    metrics: OperatorMetrics,
) -> None:
    exported = [family.name for family in metrics.collect()]
    assert "kube_scheduler_operator_active_scheduler" not in exported
    assert "kube_scheduler_operator_node_current_revision" in exported  # without a sample


def test_certificates_of_schedulers_and_of_the_port(metrics: OperatorMetrics) -> None:
    name = "kube_scheduler_operator_certificate_expiry_timestamp_seconds"
    assert value(metrics, name, certificate="operator", node="") is None
    metrics.certificates["operator"] = lambda: datetime.fromtimestamp(5000, UTC)
    metrics.state = ClusterState({"certificate_expiry_timestamp_seconds": {("client", "a"): 2000}})
    assert value(metrics, name, certificate="operator", node="") == 5000
    assert value(metrics, name, certificate="client", node="a") == 2000
    assert value(metrics, name, certificate="webhook", node="") is None
    metrics.certificates["webhook"] = lambda: datetime.fromtimestamp(6000, UTC)
    assert value(metrics, name, certificate="webhook", node="") == 6000


def test_assignments_in_effect_and_withdrawn(metrics: OperatorMetrics) -> None:
    name = "kube_scheduler_operator_assigned"
    metrics.state = ClusterState({"assigned": {("a",): True, ("b",): False}})
    assert [value(metrics, name, scheduler=each) for each in "abc"] == [1, 0, None]


def test_requests_to_the_webhook_by_result(metrics: OperatorMetrics) -> None:
    for result in ("assigned", "assigned", "invalid"):
        metrics.reviewed(result)
    name = "kube_scheduler_operator_assignment_reviews_total"
    assert [value(metrics, name, result=each) for each in ("assigned", "invalid")] == [2, 1]


def test_only_a_successful_reconcile_updates_its_time(
    metrics: OperatorMetrics, clock: Clock
) -> None:
    name = "kube_scheduler_operator_last_successful_pass_timestamp_seconds"
    assert value(metrics, name) == 0
    metrics.passed(0.02, success=True)
    clock.now += 60
    metrics.passed(0.03, success=False)
    assert value(metrics, name) == 1000
    total = "kube_scheduler_operator_passes_total"
    assert value(metrics, total, result="success") == value(metrics, total, result="error") == 1
    assert value(metrics, "kube_scheduler_operator_pass_duration_seconds_count") == 2


def test_ages_of_watches_are_read_at_every_scrape(metrics: OperatorMetrics) -> None:
    name = "kube_scheduler_operator_watch_age_seconds"
    assert value(metrics, name, resource="pods", namespace="a") is None
    ages = {("pods", "a"): 90.0, ("nodes", ""): 0.5}
    metrics.watch_ages = lambda: ages
    assert value(metrics, name, resource="pods", namespace="a") == 90
    ages["pods", "a"] = 0.0
    assert value(metrics, name, resource="pods", namespace="a") == 0
    assert value(metrics, name, resource="nodes", namespace="") == 0.5


def test_leader_and_standby(metrics: OperatorMetrics) -> None:
    for leads in (True, False):
        metrics.leading("lock", leads)
        assert value(metrics, "leader_election_master_status", name="lock") == leads


def test_events_keep_the_name_that_dashboards_know(metrics: OperatorMetrics) -> None:
    for severity in ("Normal", "Warning", "Normal"):
        metrics.event_sent(severity)
    assert value(metrics, "event_recorder_total_events_count", severity="Normal") == 2
    assert "event_recorder_total_events_count_total" not in metrics.render("")[0].decode()


def test_requests_under_client_go_names(metrics: OperatorMetrics) -> None:
    metrics.requested(method="GET", host="api:6443", code="200", seconds=0.01)
    metrics.requested(method="GET", host="api:6443", code="<error>", seconds=5)
    labels = {"method": "GET", "host": "api:6443"}
    assert value(metrics, "rest_client_requests_total", code="200", **labels) == 1
    assert value(metrics, "rest_client_requests_total", code="<error>", **labels) == 1
    duration = "rest_client_request_duration_seconds_count"
    assert value(metrics, duration, verb="GET", host="api:6443") == 2


def test_queue_under_client_go_names(metrics: OperatorMetrics) -> None:
    queue = metrics.queue
    assert value(metrics, "workqueue_adds_total", name="reconcile") == 0
    queue.added()
    assert value(metrics, "workqueue_depth", name="reconcile") == 1
    queue.got(waited=0.5)
    queue.finished(0.25)
    queue.retried()
    names = ("depth", "adds_total", "retries_total")
    assert [value(metrics, f"workqueue_{n}", name="reconcile") for n in names] == [0, 1, 1]
    waited = "workqueue_queue_duration_seconds_sum"
    assert value(metrics, waited, name="reconcile") == 0.5
    assert value(metrics, "workqueue_work_duration_seconds_sum", name="reconcile") == 0.25


def test_unfinished_work_is_exported(metrics: OperatorMetrics, clock: Clock) -> None:
    queue = metrics.queue
    queue._clock = clock
    names = ("unfinished_work_seconds", "longest_running_processor_seconds")

    def shown() -> list[float | None]:
        return [value(metrics, f"workqueue_{name}", name="reconcile") for name in names]

    assert shown() == [0, 0]
    queue.got(waited=0)
    clock.now += 7
    assert shown() == [7, 7]
    queue.finished(7)
    assert shown() == [0, 0]


def test_rollouts_and_failures(metrics: OperatorMetrics) -> None:
    metrics.rollout_duration.labels("installed").observe(12)
    metrics.preflight_failures.inc()
    metrics.installer_failures.labels("OperandFailedFallback").inc()
    prefix = "kube_scheduler_operator_"
    assert value(metrics, f"{prefix}rollout_duration_seconds_count", outcome="installed") == 1
    assert value(metrics, f"{prefix}preflight_failures_total") == 1
    failures = f"{prefix}installer_failures_total"
    assert value(metrics, failures, reason="OperandFailedFallback") == 1


def test_build_info_names_the_version(metrics: OperatorMetrics) -> None:
    family = next(
        f for f in metrics.registry.collect() if f.name == "kube_scheduler_operator_build_info"
    )
    assert [(s.labels["version"], s.value) for s in family.samples] == [("0.1.0", 1)]


@pytest.mark.parametrize(
    ("accept", "content_type", "parser"),
    [
        pytest.param(OPENMETRICS, "application/openmetrics-text", parse_openmetrics, id="open"),
        pytest.param("", "text/plain", parse_text, id="none"),
        pytest.param("*/*", "text/plain", parse_text, id="curl"),
    ],
)
def test_output_has_the_preferred_format_and_parses(
    metrics: OperatorMetrics, accept: str, content_type: str, parser: object
) -> None:
    metrics.state = ClusterState(
        {"cluster_master_schedulable": {(): True}, "node_current_revision": {("a",): 1}}
    )
    metrics.event_sent("Normal")
    metrics.leading("lock", True)
    metrics.watch_ages = lambda: {("pods", "a"): 1.0}
    metrics.passed(0.1, success=True)
    metrics.queue.added()
    body, actual = metrics.render(accept)
    assert actual.startswith(content_type)
    families = {f.name for f in parser(body.decode())}  # type: ignore[operator]
    assert {"cluster_master_schedulable", "event_recorder_total_events_count"} <= families


def test_no_created_series(metrics: OperatorMetrics) -> None:
    metrics.passed(0.1, success=True)
    for accept in ("", OPENMETRICS):
        assert "_created" not in metrics.render(accept)[0].decode()


def test_two_operators_in_one_process_do_not_share_a_registry(metrics: OperatorMetrics) -> None:
    other = OperatorMetrics("0.2.0")
    metrics.passed(0.1, success=True)
    assert value(other, "kube_scheduler_operator_passes_total", result="success") is None
    assert REGISTRY.get_sample_value("kube_scheduler_operator_preflight_failures_total") is None


def test_every_metric_has_help_and_a_lower_case_name(metrics: OperatorMetrics) -> None:
    for family in metrics.registry.collect():
        assert family.documentation, family.name
        assert family.name == family.name.lower()

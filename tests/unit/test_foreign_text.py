"""Foreign text on its way through the operator: conditions, events, errors, logs and metrics."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families as parse_text

from kube_scheduler_operator.base import klog, limits
from kube_scheduler_operator.base.findings import Finding, Problem
from kube_scheduler_operator.base.foreign_text import foreign, one_line
from kube_scheduler_operator.base.klog import JSONFormatter, TextFormatter, kv
from kube_scheduler_operator.base.source.yaml_text import BlockText, yaml_text
from kube_scheduler_operator.base.termination_message import message_error
from kube_scheduler_operator.cli.console.errors import CommandError, UsageError
from kube_scheduler_operator.kube.errors import (
    ApiError,
    ApiRequest,
    CredentialsError,
    from_response,
)
from kube_scheduler_operator.kube.events import EventRecorder, Involved
from kube_scheduler_operator.node.config_reader.report import ConfigReport
from kube_scheduler_operator.node.protocol.result import Result
from kube_scheduler_operator.node.static_pod import program
from kube_scheduler_operator.operator.controlplane.rollout import installer_pods
from kube_scheduler_operator.operator.controlplane.rollout.node_statuses import readiness
from kube_scheduler_operator.operator.diagnostics import (
    unknown_scheduler_names,
    unmanaged_schedulers,
)
from kube_scheduler_operator.operator.model import operand_pods
from kube_scheduler_operator.operator.model.pod_status import crashing, waiting, words
from kube_scheduler_operator.operator.status.conditions import Condition, merge_conditions
from kube_scheduler_operator.operator.telemetry.cluster_metrics import ClusterState
from kube_scheduler_operator.operator.telemetry.metrics import OperatorMetrics
from kube_scheduler_operator.serving.health import check_result
from kube_scheduler_operator.simulate.process import KubeSchedulerProcess, SimulationError

from .. import builders
from ..hostile import HOSTILE, STORED, TEXTS, expect_harmless

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
LINES = {name: text for name, text in TEXTS.items() if name != "long"}
REQUEST = ApiRequest("create", "/api/v1/pods")

each_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def expect_line(text: str, limit: int = limits.MESSAGE_LENGTH) -> None:
    """One harmless line of a limited length; it is quoted, so it may begin as it likes."""
    expect_harmless(f"quoted: {text}")
    assert "\n" not in text
    assert len(text) <= limit + 400  # the words around it


# --- names of schedulers --------------------------------------------------------------------------


@each_text
def test_a_pod_of_an_unknown_scheduler_is_reported_without_its_controls(text: str) -> None:
    pod = builders.pod("p", namespace="n", status={"phase": "Pending"}, schedulerName=text)
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    pods = unknown_scheduler_names.not_attempted([pod])
    assert [each.scheduler for each in pods] == [text]  # raw, because it is compared
    assert not unknown_scheduler_names.without_scheduler(pods, {text}, LATER)
    assert not unknown_scheduler_names.without_scheduler(pods, {text, one_line(text)}, LATER)
    found = unknown_scheduler_names.without_scheduler(pods, {one_line(text)}, LATER)
    expect_line(unknown_scheduler_names.event_message(found[0]), limits.FOREIGN_NAME)
    expect_line(unknown_scheduler_names.condition(found).message, limits.FOREIGN_NAME)


@each_text
def test_an_unmanaged_scheduler_is_reported_without_its_controls(text: str) -> None:
    name, host = f"a{text}", f"b{text}"
    event = {
        "reportingController": name,
        "reportingInstance": f"{name}-{host}",
        "metadata": {"namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "regarding": {"kind": "Pod", "name": "p", "uid": "u"},
    }
    others = {**event, "metadata": {**event["metadata"], "namespace": "m"}}  # type: ignore[dict-item]
    known = unmanaged_schedulers.claims([event, others])
    found = unmanaged_schedulers.binding_schedulers(known, {claim.key for claim in known})
    assert [(each.scheduler, each.host) for each in found] == [(name, host)]
    expect_line(unmanaged_schedulers.condition(found).message, 2 * limits.FOREIGN_NAME)


# --- statuses of Pods and nodes -------------------------------------------------------------------


def container(name: str, text: str, reason: str = "") -> dict[str, Any]:
    ended = builders.terminated(1, text, reason=text)
    state = {"waiting": {"reason": reason or text, "message": text}}
    return {"name": name, "restartCount": 1, "state": state, "lastState": ended}


@each_text
def test_statuses_of_containers(text: str) -> None:
    pod = builders.operand_pod("a", 1)
    pod["status"]["containerStatuses"] = [container("kube-scheduler", text)]
    found = operand_pods.read(pod)
    expect_line(found.trouble)
    expect_line(found.last_error)
    expect_line(words(container("c", text)))
    expect_line(waiting(pod, [container("c", text)]))
    unscheduled = {"type": "PodScheduled", "status": "False", "message": text, "reason": text}
    expect_line(waiting({"status": {"conditions": [unscheduled]}}, []))
    looping = container("c", text, "CrashLoopBackOff")
    expect_line(crashing({"status": {"containerStatuses": [looping]}}))
    pull = container("c", text, "ErrImagePull")
    expect_line(waiting({"spec": {"containers": [{"name": "c", "image": text}]}}, [pull]))


@each_text
def test_statuses_of_installers(text: str) -> None:
    failed = builders.terminated(3, text)
    for status in (
        builders.installer_status(preflight=builders.terminated(1, text)),
        builders.installer_status(preflight=failed),
        builders.installer_status(preflight=builders.terminated(0), installer=failed),
        builders.installer_status("Failed", installer=failed),
        {"phase": "Failed", "message": text, "reason": text},
        {"phase": "Pending", "message": text},
        builders.installer_status(preflight={"waiting": {"reason": text, "message": text}}),
    ):
        found = installer_pods.read(builders.installer_pod(status=status))
        for shown in (found.message, found.problem, *(found.waiting or ())):
            expect_line(shown)


@each_text
def test_the_condition_of_a_node(text: str) -> None:
    ready = builders.ready_condition(False, reason=text, message=text, lastTransitionTime="t")
    node = {"metadata": {"name": "a"}, "status": {"conditions": [ready]}}
    expect_line(readiness(node)[1])


@each_text
def test_termination_messages_and_results(text: str) -> None:
    expect_line(message_error(f'E0101 00:00:00.000000       1 a.go:1] "failed" err="{text}"'))
    expect_line(message_error(text))
    report = ConfigReport.parse(json.dumps({"error": text}))
    assert report is not None
    expect_line(report.error)
    document = {
        "result": "RolledBack", "revision": 2, "node": "a", "lastGoodRevision": 1,
        "reason": text, "lastWords": text, "strangers": [text],
    }  # fmt: skip
    result = Result.parse(json.dumps(document))
    assert result is not None
    for shown in (result.reason, result.last_error, *result.strangers):
        expect_line(shown)


# --- errors ---------------------------------------------------------------------------------------


@each_text
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 429, 500])
def test_errors_of_an_api_server_or_a_webhook(text: str, status: int) -> None:
    for body in ({"kind": "Status", "message": text, "reason": text}, text):
        error = from_response(REQUEST, status, body)
        assert isinstance(error, ApiError)
        expect_line(error.message, limits.FOREIGN_MESSAGE)
        expect_line(error.reason, limits.FOREIGN_REASON)
        expect_line(str(error))


def test_a_long_message_leaves_room_for_the_remedy() -> None:
    body = {"kind": "Status", "message": "x cannot y" + "z" * 100_000}
    error = from_response(REQUEST, 401, body)
    assert str(error).endswith("belongs to this cluster)")


@each_text
def test_errors_of_credentials_simulations_and_findings(text: str) -> None:
    expect_line(str(CredentialsError(text)))
    expect_line(str(SimulationError(text)))
    expect_line(Problem("R", (), text, text).sentence, 2 * limits.MESSAGE_LENGTH)
    expect_line(Finding("C", "R", text, text, True).text, 2 * limits.MESSAGE_LENGTH)
    assert Problem("R", (text,), "m").path == (text,)  # it finds the field


def test_each_line_of_a_commands_error_is_its_own() -> None:
    error = UsageError(f"first{HOSTILE}", "second")
    first, second = str(error).split("\n")
    assert (first, second) == (f"first{one_line(HOSTILE)}", "second")
    assert str(CommandError(*str(error).split("\n"))) == str(error)


def test_the_line_of_a_log_that_explains_an_end() -> None:
    process = KubeSchedulerProcess(Path("kube-scheduler"), lambda _line: None)
    process.lines.append(f"E0101 {HOSTILE}")
    expect_line(process.failure(), limits.FOREIGN_LINE)
    asyncio.run(process.stop())


# --- what the operator writes ---------------------------------------------------------------------


def test_conditions_have_lines_of_the_operator_only() -> None:
    message = "first\n" + "".join(LINES.values()).replace("\n", "")
    (raw,) = merge_conditions([], [Condition("A", "True", f"R{HOSTILE}", message)], NOW)
    expect_harmless(raw["reason"].replace("\n", "\\n"))
    expect_harmless(raw["message"])
    assert raw["message"].split("\n")[0] == "first"


async def test_events_and_their_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    written: list[dict[str, Any]] = []

    class Api:
        async def create(self, _resource: Any, body: dict[str, Any]) -> Any:
            written.append(body)
            return body

    involved = Involved("v1", "Pod", "p", "n")
    text = STORED.replace("\n", "")  # pytest cannot report the half of a surrogate pair
    recorder = EventRecorder(
        Api(),  # type: ignore[arg-type]
        component="c",
        instance="i",
        involved=involved,
    )
    with caplog.at_level(logging.INFO):
        async with recorder:
            recorder.event("Warning", "R", text)
    (body,) = written
    expect_harmless(body["message"])
    for record in caplog.records:
        expect_line(TextFormatter().format(record), 10_000)


def logged(formatter: logging.Formatter, text: str) -> str:
    log = logging.Logger("test")  # noqa: LOG001  # a logger of its own
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    handler.addFilter(klog.summarize_objects)
    log.addHandler(handler)
    log.info("message %s", text, extra=kv(value=text, values=[text]))
    try:
        raise ValueError(text) from KeyError(text)
    except ValueError as error:
        error.add_note(text)
        log.exception("failed: %s", text)
    return stream.getvalue()


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
def test_a_line_of_the_log_is_one_line(text: str) -> None:
    own = [line for line in logged(TextFormatter(), text).split("\n") if line[:1].strip()]
    assert [line[0] for line in own] == ["I", "E"]
    for line in own:
        expect_line(line)
    expect_harmless(logged(TextFormatter(), text), indented=False)
    lines = logged(JSONFormatter(), text).splitlines()
    assert len(lines) == 2
    for line in lines:
        expect_line(line)
    first, second = map(json.loads, lines)
    assert (first["value"], first["msg"]) == (text, f"message {text}")  # nothing is lost
    assert second["err"] == text


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
def test_a_line_of_a_program_on_a_node_is_one_line(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    program.configure_logging(2)
    logging.getLogger("node").info("message %s", text)
    expect_line(capsys.readouterr().err.removesuffix("\n"))


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text;version=1.0.0"])
def test_labels_of_metrics(accept: str) -> None:
    metrics = OperatorMetrics("1")
    metrics.state = ClusterState(
        {
            "node_current_revision": {(HOSTILE,): 0},
            "condition": {(HOSTILE, HOSTILE): True},
            "assigned": {(HOSTILE,): True},
        }
    )
    body, _ = metrics.render(accept)
    expect_harmless(body.decode())
    if not accept:
        values = {
            label
            for family in parse_text(body.decode())
            for sample in family.samples
            for label in sample.labels.values()
        }
        assert foreign(HOSTILE, limits.FOREIGN_NAME) in values


@each_text
def test_health_checks(text: str) -> None:
    _, body = check_result(lambda: {"a": text, "b": None})
    expect_harmless(body)
    assert len(body.splitlines()) == 3


# --- documents ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
def test_yaml_loses_nothing(text: str) -> None:
    import yaml

    value = {"a": text, text: [text], "b": f"{text} {text} " * 5}
    shown = yaml_text([value])
    expect_harmless(shown, indented=False)
    if "\ud800" not in text:
        assert yaml.safe_load(shown) == value
    block = yaml_text([{"a": BlockText(f"x: 1\n{text}\n")}])
    expect_harmless(block, indented=False)


def test_yaml_of_visible_texts_is_as_before() -> None:
    value = {"a": "日本語", "b": BlockText("x: 1\ny: 2\n"), "c": "y", "d": "first second"}
    assert yaml_text([value]) == ("a: 日本語\nb: |\n  x: 1\n  y: 2\nc: 'y'\nd: first second\n")


@pytest.mark.parametrize(
    "text",
    [
        "x\nPROBLEM  Degraded (Forged)",
        "\nPROBLEM  Degraded (Forged)\n",
        f"{'x' * 90} PROBLEM  Degraded (Forged)",
        f"{'x' * 90}\n{'y ' * 90} PROBLEM  Degraded (Forged)",
        f"{'x' * 90}: PROBLEM  Degraded (Forged)",
    ],
)
def test_a_text_in_yaml_forges_no_line(text: str) -> None:
    import yaml

    value = [{"schedulerName": text, text: [text]}]
    shown = yaml_text(value)
    assert not [line for line in shown.splitlines() if line.lstrip(" \\'\"?:-").startswith("PROB")]
    assert yaml.safe_load(shown) == value[0]


@given(st.text("ab :-#'\"\\\n{}[],&*!|>%@`", max_size=200))
def test_a_text_in_yaml_is_one_line(text: str) -> None:
    import yaml

    shown = yaml_text([{"a": text}])
    assert shown.count("\n") == 1
    assert yaml.safe_load(shown) == {"a": text}

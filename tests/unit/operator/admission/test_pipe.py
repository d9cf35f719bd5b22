"""What the operator and the webhook's process report to each other."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.operator.admission.pipe import (
    PipeOrder,
    SchedulersOrder,
    ServeOrder,
    StartOrder,
    WebhookReport,
    order_line,
    read_order,
)

REPORT = WebhookReport(8443, "PEM", "", {"assigned": 2}, [(30, "a message")])


@pytest.mark.parametrize(
    "order",
    [
        StartOrder("0.0.0.0", 10250, None, ("kube-system",), 1),
        ServeOrder("certificate\nPEM", "key\nPEM"),
        SchedulersOrder([{"metadata": {}, "status": {"assignment": {"schedulerName": "ä\ud800"}}}]),
    ],
    ids=["start", "serving", "schedulers"],
)
def test_an_order_is_one_line(order: PipeOrder) -> None:
    line = order_line(order)
    assert line.count(b"\n") == 1
    found = read_order(line)
    assert type(found) is type(order)
    assert order_line(found) == line


def test_the_text_of_an_order_does_not_contain_the_key() -> None:
    assert "secret" not in repr(ServeOrder("certificate", "secret"))


def test_a_report_is_one_line() -> None:
    assert REPORT.line().count(b"\n") == 1
    assert WebhookReport.read(REPORT.line()) == REPORT


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{", b"[]", b"{}", b"\xff\n", b"1",
        REPORT.line().replace(b"assigned", b"another"),
        REPORT.line().replace(b": 2", b": -2"),
        REPORT.line().replace(b": 2", b': "x"'),
        REPORT.line().replace(b"8443", b"null"),
        REPORT.line().replace(b'"a message"', b'"a", 1'),
        REPORT.line().replace(b"8443", b"[" * 100_000),
    ],
)  # fmt: skip
def test_what_is_not_a_report_is_an_error(line: bytes) -> None:
    """Any client may have taken over the process, which must not harm the operator."""
    with pytest.raises(ValueError, match=r"."):
        WebhookReport.read(line)

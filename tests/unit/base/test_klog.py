"""Log lines: klog's shape, a level that can be switched, and never an object's content."""

from __future__ import annotations

import io
import json
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.base import klog
from kube_scheduler_operator.base.klog import kv

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = re.compile(
    r"^(?P<severity>[IWEF])(?P<date>\d{4}) (?P<time>\d\d:\d\d:\d\d\.\d{6}) (?P<pid> *\d+) "
    r"(?P<file>[\w.]+):(?P<line>\d+)\] (?P<rest>.*)$"
)
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s", "namespace": "n"},
    "data": {"password": "aHVudGVyMg=="},
}


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    """Restores the process-wide settings that klog.configure changes."""
    loggers = [logging.getLogger(name) for name in (None, "test", *klog._LOWEST_LEVELS)]
    before = [(logger, logger.level) for logger in loggers]
    handlers = list(logging.getLogger().handlers)
    yield
    logging.getLogger().handlers[:] = handlers
    for logger, level in before:
        logger.setLevel(level)


@pytest.fixture
def log() -> logging.Logger:
    return logging.getLogger("test")


def configured(level: str = "TraceAll", *, json_format: bool = False) -> io.StringIO:
    stream = io.StringIO()
    klog.configure(level, json_format=json_format, stream=stream)
    return stream


def rest(stream: io.StringIO) -> str:
    match = HEADER.match(stream.getvalue().splitlines()[0])
    assert match, stream.getvalue()
    return match["rest"]


def test_header_is_klogs(log: logging.Logger) -> None:
    stream = configured()
    record = log.makeRecord("test", logging.INFO, "/a/file.py", 569, "msg", (), None)
    record.created, record.process = 0.128676, 8293
    line = klog.TextFormatter().format(record)
    assert re.fullmatch(r'I\d{4} \d\d:\d\d:00\.128676    8293 file\.py:569\] "msg"', line)
    log.info("real one")
    match = HEADER.match(stream.getvalue())
    assert match
    assert (match["severity"], match["file"], len(match["pid"])) == ("I", "test_klog.py", 7)


@pytest.mark.parametrize(
    ("level", "severity"),
    [
        (klog.TRACE_ALL, "I"),
        (klog.TRACE, "I"),
        (logging.DEBUG, "I"),
        (logging.INFO, "I"),
        (logging.WARNING, "W"),
        (logging.ERROR, "E"),
        (logging.CRITICAL, "F"),
    ],
)
def test_severity_letter(log: logging.Logger, level: int, severity: str) -> None:
    stream = configured()
    log.log(level, "x")
    assert stream.getvalue()[0] == severity


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("a b", '"a b"', id="string"),
        pytest.param('say "hi"\n', r'"say \"hi\"\n"', id="quotes-and-newline"),
        pytest.param("Übung", '"Übung"', id="not-ascii"),
        pytest.param(5, "5", id="int"),
        pytest.param(0.5, "0.5", id="float"),
        pytest.param(True, "true", id="bool"),
        pytest.param(["a", 1], '["a", 1]', id="list"),
        pytest.param(None, "null", id="none"),
        pytest.param(ValueError("bad"), '"bad"', id="exception"),
        pytest.param(SECRET, '"Secret/n/s"', id="object"),
        pytest.param({"a": 1, "b": 2}, '"<2 keys>"', id="mapping"),
        pytest.param([SECRET], '["Secret/n/s"]', id="list-of-objects"),
        pytest.param(b"token", '"<5 bytes>"', id="bytes"),
    ],
)
def test_values_follow_the_message(log: logging.Logger, value: object, shown: str) -> None:
    stream = configured()
    log.info("msg", extra=kv(key=value))
    assert rest(stream) == f'"msg" key={shown}'


def test_a_line_stays_one_line(log: logging.Logger) -> None:
    stream = configured()
    log.info("first\nI1121 00:00:00.000000 1 fake.py:1] forged")
    assert len(stream.getvalue().splitlines()) == 1


def test_exception_is_a_value_and_its_traceback_follows(log: logging.Logger) -> None:
    stream = configured()
    try:
        raise ValueError("no such node")
    except ValueError:
        log.exception("Pass failed")
    assert rest(stream) == '"Pass failed" err="no such node"'
    assert stream.getvalue().splitlines()[1] == "    Traceback (most recent call last):"


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        pytest.param(("read %s", SECRET), "read Secret/n/s", id="single-mapping"),
        pytest.param(("%s and %s", 1, SECRET), "1 and Secret/n/s", id="one-of-several"),
        pytest.param(("read %(a)s", {"a": SECRET}), "read Secret/n/s", id="by-name"),
        pytest.param(("read %r", [SECRET]), "read ['Secret/n/s']", id="in-a-list"),
    ],
)
def test_objects_in_arguments_are_named_and_not_shown(
    log: logging.Logger, call: tuple[Any, ...], shown: str
) -> None:
    stream = configured()
    log.info(*call)
    assert rest(stream) == f'"{shown}"'


def test_json_has_the_fields_of_kubernetes_components(log: logging.Logger) -> None:
    stream = configured(json_format=True)
    log.debug("msg %d", 1, extra=kv(node="a", revision=5, msg="must not win"))
    line = json.loads(stream.getvalue())
    assert re.fullmatch(r"test_klog\.py:\d+", line.pop("caller"))
    assert 1.7e12 < line.pop("ts") < 1e13
    assert line == {"v": 4, "msg": "msg 1", "node": "a", "revision": 5}


def test_json_error_has_its_traceback_and_no_verbosity(log: logging.Logger) -> None:
    stream = configured(json_format=True)
    try:
        raise ValueError("bad")
    except ValueError:
        log.exception("Pass failed", extra=kv(obj=SECRET))
    (text,) = stream.getvalue().splitlines()
    line = json.loads(text)
    assert (line["err"], line["severity"], line["obj"]) == ("bad", "error", "Secret/n/s")
    assert "ValueError: bad" in line["stacktrace"]
    assert "v" not in line


@pytest.mark.parametrize(
    ("level", "v"),
    [(logging.INFO, 0), (logging.DEBUG, 4), (klog.TRACE, 6), (klog.TRACE_ALL, 8)],
)
def test_json_verbosity(log: logging.Logger, level: int, v: int) -> None:
    stream = configured(json_format=True)
    log.log(level, "x")
    assert json.loads(stream.getvalue())["v"] == v


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("Normal", ["info"]),
        ("", ["info"]),
        ("Debug", ["info", "debug"]),
        ("Trace", ["info", "debug", "trace"]),
        ("TraceAll", ["info", "debug", "trace", "all"]),
    ],
)
def test_level_can_be_switched_while_running(
    log: logging.Logger, level: str, shown: list[str]
) -> None:
    stream = configured("TraceAll" if level == "Normal" else "Normal")
    assert klog.set_level(level) is True
    for threshold, text in [
        (logging.INFO, "info"),
        (logging.DEBUG, "debug"),
        (klog.TRACE, "trace"),
        (klog.TRACE_ALL, "all"),
    ]:
        log.log(threshold, text)
    assert re.findall(r'"(\w+)"', stream.getvalue()) == shown


def test_unknown_level_is_reported_and_means_normal() -> None:
    configured("TraceAll")
    assert klog.set_level("Loud") is False
    assert logging.getLogger().level == logging.INFO


def test_libraries_that_print_objects_stay_quiet_at_every_level() -> None:
    stream = configured("TraceAll")
    logging.getLogger("kopf.activities").debug("body: {'password': 'hunter2'}")
    logging.getLogger("kopf.objects").info("Handler 'x' succeeded.")
    logging.getLogger("aiohttp.access").info("GET /metrics")
    assert stream.getvalue() == ""
    logging.getLogger("kopf.objects").warning("shown")
    assert rest(stream) == '"shown"'


def test_configuring_twice_does_not_double_lines(log: logging.Logger) -> None:
    configured()
    stream = configured()
    log.info("once")
    assert len(stream.getvalue().splitlines()) == 1

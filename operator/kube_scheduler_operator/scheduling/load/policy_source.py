"""Parses the source of load in a policy.json or a LoadPolicy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from ...base.decoding import REFUSED, Anything, DecodingRun, MapOf, Record, RecordField, Type
from ...base.findings import Path, Problem, did_you_mean, listing
from ...base.go_values import seconds
from .policy import KUBELET_SUMMARY, METRICS_SERVER, NODE_METRICS, PROMETHEUS, SOURCES, SourceSpec
from .policy_types import WITHOUT_EFFECT, Setting

CREDENTIALS: Final = "/etc/kube-scheduler-operator/prometheus"
"""Directory in which the annotator mounts the Secret and ConfigMap of a LoadPolicy."""

_UNITS: Final = ("Percent", "Fraction")
_KUBELET_PORT: Final = 10250

MEASURING: Final = ("args", "mountHost", "resources", "nodeSelector", "tolerations")
"""Fields of a LoadPolicy for the node-metrics workload."""

_SECTIONS: Final[Mapping[str, str]] = {
    NODE_METRICS: "nodeMetrics",
    METRICS_SERVER: "",
    KUBELET_SUMMARY: "kubeletSummary",
    PROMETHEUS: "prometheus",
}
"""The type of a source -> the field with its settings in a LoadPolicy."""


@dataclass(frozen=True, slots=True)
class SourceShape:
    """The field names of a format."""

    # whether each type has an object of its own; that of node-metrics also has fields that are
    # parsed elsewhere (MEASURING)
    sections: bool
    timeout: str
    secrets: tuple[str, str]  # Prometheus: token and CA


FILE_SOURCE: Final = SourceShape(False, "timeoutSeconds", ("tokenFile", "caFile"))
SPEC_SOURCE: Final = SourceShape(True, "timeout", ("tokenSecret", "caConfigMap"))


# --- values -------------------------------------------------------------------------------------


class UnlessEmpty:
    """The decoder of a value that may also be empty, of any type; an empty value becomes None."""

    def __init__(self, kind: Type) -> None:
        self._kind = kind

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        return self._kind(value, path, run) if value else None


class _File:
    """The decoder of a file's path: as given, or as mounted from a Secret or ConfigMap."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if isinstance(value, str):
            return value
        if isinstance(value, Mapping) and isinstance(value.get("name"), str) and value["name"]:
            return f"{CREDENTIALS}/{self._name}"
        return run.invalid((*path, "name"), "this must be the name of an object")


def _port(value: Any, path: Path, run: DecodingRun) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 65536:
        return run.invalid(path, f"{value} is not a valid port; use 1 to 65535")
    return value


def _url_path(value: Any, path: Path, run: DecodingRun) -> Any:
    if not isinstance(value, str) or not value.startswith("/"):
        return run.invalid(path, f"{value!r} is not a URL path; write one such as /statistics")
    return value


def _url(value: Any, path: Path, run: DecodingRun) -> Any:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_url = False
    if is_url:
        return str(value).rstrip("/")
    what = "this is required" if value is None else f"{value!r} is not an HTTP URL"
    message = f"{what}; write the URL of Prometheus, http://prometheus.monitoring:9090"
    return run.invalid(path, message)


def _percent(value: Any, path: Path, run: DecodingRun) -> Any:
    if value not in _UNITS:
        return run.invalid(path, f'"{value}" is not a unit; use {listing(_UNITS)}')
    return value == _UNITS[0]


def _query(value: Any, path: Path, run: DecodingRun) -> Any:
    return value if isinstance(value, str) and value else run.wrong_type(path, value, "a query")


def _truth(value: Any, _path: Path, _run: DecodingRun) -> bool:
    return bool(value)


def _timeout(value: Any, path: Path, run: DecodingRun) -> Any:
    try:
        timeout = seconds(value) if isinstance(value, str) else float(value)
        if isinstance(value, bool) or not math.isfinite(timeout) or not 0 < timeout <= 60:
            raise ValueError
    except (TypeError, ValueError):
        message = f"{value!r} is not a valid timeout; use more than 0 and at most 60 s"
        return run.invalid(path, message)
    return timeout


# --- the source ---------------------------------------------------------------------------------

_PORT: Final = RecordField("port", UnlessEmpty(_port))
_INSECURE: Final = RecordField("insecure_skip_verify", _truth)
_QUERIES: Final = MapOf(_query, Anything(), expected="an object that maps metric names to queries")


class SourceType:
    """The decoder of a source, whose fields depend on its `type`."""

    def __init__(self, shape: SourceShape) -> None:
        self._shape = shape

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if not isinstance(value, Mapping):
            return run.wrong_type(path, value, "an object with a type")
        kind = value.get("type") or NODE_METRICS
        if kind not in SOURCES:
            hint = did_you_mean(str(kind), SOURCES)
            message = f'"{kind}" is not a source{hint}; use {listing(SOURCES)}'
            return run.invalid((*path, "type"), message)
        shape, section = self._shape, _SECTIONS[kind]
        # Without its settings, the URL of Prometheus is missing in them.
        absent = {"url": None} if kind == PROMETHEUS else {}
        if not shape.sections:
            attributes = _flat(kind, shape)({**absent, **value}, path, run)
        else:
            own = value.get(section, {}) if section else {}
            settings = {section: {**absent, **own}} if section and isinstance(own, Mapping) else {}
            attributes = _sectioned(kind, shape)({**value, **settings}, path, run)
        if attributes is REFUSED:
            return REFUSED
        attributes |= attributes.pop("section", None) or {}
        given = {name: setting for name, setting in attributes.items() if setting is not None}
        default_port = _KUBELET_PORT if kind == KUBELET_SUMMARY else SourceSpec().port
        return SourceSpec(**{"port": default_port, **given, "type": kind})


@cache
def _flat(kind: str, shape: SourceShape) -> Record:
    return Record({**_shared(shape), **_settings(kind, shape)})


@cache
def _sectioned(kind: str, shape: SourceShape) -> Record:
    """Return the object of a type, beside `type`; those of other types have no effect."""

    def other(_value: Any, path: Path, run: DecodingRun) -> Any:
        return run.report(Problem(WITHOUT_EFFECT, path, f"no effect with type {kind}; remove it"))

    fields = _shared(shape)
    for section_kind, section in _SECTIONS.items():
        if section and section_kind == kind:
            record = Record(_settings(kind, shape))
            fields[section] = RecordField("section", record, null_is_absent=False)
        elif section:
            fields[section] = RecordField(section, other, null_is_absent=False)
    return Record(fields)


def _shared(shape: SourceShape) -> dict[str, RecordField]:
    return {
        "type": RecordField("type", Anything()),
        shape.timeout: RecordField("timeout", Setting(_timeout)),
    }


def _settings(kind: str, shape: SourceShape) -> dict[str, RecordField]:
    if kind == PROMETHEUS:
        token, ca = shape.secrets
        return {
            "url": RecordField("url", _url, null_is_absent=False),
            "insecureSkipVerify": _INSECURE,
            "unit": RecordField("percent", UnlessEmpty(_percent)),
            "queries": RecordField("queries", _QUERIES),
            token: RecordField("token_file", Setting(_File("token"))),
            ca: RecordField("ca_file", Setting(_File("ca.crt"))),
        }
    if kind == KUBELET_SUMMARY:
        return {"port": _PORT, "insecureSkipVerify": _INSECURE}
    if kind == METRICS_SERVER:
        return {}
    fields = {"port": _PORT, "path": RecordField("path", UnlessEmpty(_url_path))}
    if shape.sections:
        # For operator/loadpolicy/request.py; no attribute of a source has their values.
        fields |= {name: RecordField("measuring", _nothing) for name in MEASURING}
    return fields


def _nothing(_value: Any, _path: Path, _run: DecodingRun) -> None:
    """Ignore a field that is read elsewhere."""

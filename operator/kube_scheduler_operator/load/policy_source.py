"""Parses the source of load in a policy.json or a LoadPolicy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from ..base.findings import Path, Problem, did_you_mean, listing
from ..schedulerconfig.go_values import seconds
from .policy import KUBELET_SUMMARY, METRICS_SERVER, NODE_METRICS, PROMETHEUS, SOURCES, SourceSpec

CREDENTIALS: Final = "/etc/kube-scheduler-operator/prometheus"
"""Directory in which the annotator mounts the Secret and ConfigMap of a LoadPolicy."""

_UNITS: Final = ("Percent", "Fraction")
_KUBELET_PORT: Final = 10250

MEASURING: Final = ("args", "mountHost", "resources", "nodeSelector", "tolerations")
"""Fields of a LoadPolicy for the node-metrics workload."""

_SECTIONS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    NODE_METRICS: ("nodeMetrics", ("port", "path")),
    METRICS_SERVER: ("", ()),
    KUBELET_SUMMARY: ("kubeletSummary", ("port", "insecureSkipVerify")),
    PROMETHEUS: ("prometheus", ("url", "insecureSkipVerify", "unit", "queries")),
}


@dataclass(frozen=True, slots=True)
class SourceShape:
    """The format of a source.

    Attributes:
        sections: whether each type has an object of its own; that of node-metrics also has fields
            that are parsed elsewhere (MEASURING).
        timeout: name of the time-out field.
        secrets: Prometheus: names of the fields for token and CA.
    """

    sections: bool
    timeout: str
    secrets: tuple[str, str]


FILE_SOURCE: Final = SourceShape(False, "timeoutSeconds", ("tokenFile", "caFile"))
SPEC_SOURCE: Final = SourceShape(True, "timeout", ("tokenSecret", "caConfigMap"))


def read_source(value: Any, path: Path, shape: SourceShape) -> tuple[SourceSpec, list[Problem]]:
    """(source, problems)."""
    problems: list[Problem] = []
    if value is None:
        return SourceSpec(), problems
    if not isinstance(value, Mapping):
        return SourceSpec(), [Problem("InvalidType", path, "this must be an object with a type")]
    kind = value.get("type") or NODE_METRICS
    if kind not in SOURCES:
        hint = did_you_mean(str(kind), SOURCES)
        message = f'"{kind}" is not a source{hint}; use {listing(SOURCES)}'
        return SourceSpec(), [Problem("InvalidValue", (*path, "type"), message)]
    fields, at = _fields(value, path, shape, kind, problems)
    port = _KUBELET_PORT if kind == KUBELET_SUMMARY else SourceSpec().port
    source = SourceSpec(
        type=kind,
        port=_port(fields.get("port") or port, (*at, "port"), problems),
        path=_path(fields.get("path") or SourceSpec().path, (*at, "path"), problems),
        url=_url(fields.get("url"), (*at, "url"), problems) if kind == PROMETHEUS else "",
        token_file=_file(fields.get(shape.secrets[0]), "token", (*at, shape.secrets[0]), problems),
        ca_file=_file(fields.get(shape.secrets[1]), "ca.crt", (*at, shape.secrets[1]), problems),
        insecure_skip_verify=bool(fields.get("insecureSkipVerify", False)),
        percent=_unit(fields.get("unit") or _UNITS[0], (*at, "unit"), problems),
        queries=_queries(fields.get("queries"), (*at, "queries"), problems),
        timeout=_timeout(value.get(shape.timeout), (*path, shape.timeout), problems),
    )
    return source, problems


def _fields(
    value: Mapping[str, Any], path: Path, shape: SourceShape, kind: str, problems: list[Problem]
) -> tuple[Mapping[str, Any], Path]:
    """(fields of this type, their path)."""
    section, known = _SECTIONS[kind]
    if kind == PROMETHEUS:
        known = (*known, *shape.secrets)
    if kind == NODE_METRICS and shape.sections:
        known = (*known, *MEASURING)
    if not shape.sections:
        problems += _unknown(value, path, ("type", shape.timeout, *known))
        return value, path
    sections = [name for name, _ in _SECTIONS.values() if name]
    problems += _unknown(value, path, ("type", shape.timeout, *sections))
    for other in sections:
        if other != section and other in value:
            message = f"no effect with type {kind}; remove it"
            problems.append(Problem("WithoutEffect", (*path, other), message))
    fields = value.get(section, {}) if section else {}
    if not isinstance(fields, Mapping):
        problems.append(Problem("InvalidType", (*path, section), "this must be an object"))
        return {}, (*path, section)
    problems += _unknown(fields, (*path, section), known)
    return fields, (*path, section)


def _unknown(value: Mapping[str, Any], path: Path, known: Sequence[str]) -> Iterator[Problem]:
    for key in value:
        if key not in known:
            hint = did_you_mean(key, known) or "; remove it"
            message = f'unknown field "{key}"{hint}'
            yield Problem("UnknownField", (*path, key), message)


def _port(value: Any, at: Path, problems: list[Problem]) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 65536:
        problems.append(Problem("InvalidValue", at, f"{value} is not a valid port; use 1 to 65535"))
        return 0
    return value


def _path(value: Any, at: Path, problems: list[Problem]) -> str:
    if not isinstance(value, str) or not value.startswith("/"):
        message = f"{value!r} is not a URL path; write one such as /statistics"
        problems.append(Problem("InvalidValue", at, message))
    return str(value)


def _url(value: Any, at: Path, problems: list[Problem]) -> str:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        what = "this is required" if value is None else f"{value!r} is not an HTTP URL"
        message = f"{what}; write the URL of Prometheus, http://prometheus.monitoring:9090"
        problems.append(Problem("InvalidValue", at, message))
    return str(value).rstrip("/")


def _file(value: Any, name: str, at: Path, problems: list[Problem]) -> str:
    """The path of a file: as given, or as mounted from a Secret or ConfigMap."""
    if value in (None, ""):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("name"), str) and value["name"]:
        return f"{CREDENTIALS}/{name}"
    problems.append(Problem("InvalidValue", (*at, "name"), "this must be the name of an object"))
    return ""


def _unit(value: Any, at: Path, problems: list[Problem]) -> bool:
    if value not in _UNITS:
        problems.append(
            Problem("InvalidValue", at, f'"{value}" is not a unit; use {listing(_UNITS)}')
        )
    return bool(value == _UNITS[0])


def _queries(value: Any, at: Path, problems: list[Problem]) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(query, str) and query for query in value.values()
    ):
        message = "this must be an object that maps metric names to queries"
        problems.append(Problem("InvalidType", at, message))
        return {}
    return {str(name): str(query) for name, query in value.items()}


def _timeout(value: Any, at: Path, problems: list[Problem]) -> float:
    if value in (None, ""):
        return SourceSpec().timeout
    try:
        timeout = seconds(value) if isinstance(value, str) else float(value)
        if isinstance(value, bool) or not math.isfinite(timeout) or not 0 < timeout <= 60:
            raise ValueError
    except (TypeError, ValueError):
        message = f"{value!r} is not a valid timeout; use more than 0 and at most 60 s"
        problems.append(Problem("InvalidValue", at, message))
        return SourceSpec().timeout
    return timeout

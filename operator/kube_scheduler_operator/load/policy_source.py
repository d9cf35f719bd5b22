"""Where load is measured, as read from a policy.json or a LoadPolicy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from ..base.findings import Path, Problem, did_you_mean, listing
from ..schedulerconfig.go_values import seconds
from .policy import KUBELET_SUMMARY, METRICS_SERVER, NODE_METRICS, PROMETHEUS, SOURCES, Source

CREDENTIALS: Final = "/etc/kube-scheduler-operator/prometheus"
"""Where the annotator finds what a LoadPolicy names in Secrets and ConfigMaps."""

_UNITS: Final = ("Percent", "Fraction")
_KUBELET_PORT: Final = 10250

MEASURING: Final = ("args", "mountHost", "resources", "nodeSelector", "tolerations")
"""How node-metrics is run, in a LoadPolicy."""

_SECTIONS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    NODE_METRICS: ("nodeMetrics", ("port", "path")),
    METRICS_SERVER: ("", ()),
    KUBELET_SUMMARY: ("kubeletSummary", ("port", "insecureSkipVerify")),
    PROMETHEUS: ("prometheus", ("url", "insecureSkipVerify", "unit", "queries")),
}


@dataclass(frozen=True, slots=True)
class SourceShape:
    """How a source is written.

    Attributes:
        sections: the fields of a type are in an object of its own, and that of node-metrics has
            some that are read elsewhere (MEASURING).
        timeout: the field.
        secrets: Prometheus: fields that say what to show and whom to trust.
    """

    sections: bool
    timeout: str
    secrets: tuple[str, str]


FILE_SOURCE: Final = SourceShape(False, "timeoutSeconds", ("tokenFile", "caFile"))
SPEC_SOURCE: Final = SourceShape(True, "timeout", ("tokenSecret", "caConfigMap"))


def read_source(value: Any, path: Path, shape: SourceShape) -> tuple[Source, list[Problem]]:
    """(the source, what is wrong with it)."""
    problems: list[Problem] = []
    if value is None:
        return Source(), problems
    if not isinstance(value, Mapping):
        return Source(), [Problem("InvalidType", path, "this must be an object with a type")]
    kind = value.get("type", NODE_METRICS)
    if kind not in SOURCES:
        hint = did_you_mean(str(kind), SOURCES)
        message = f'"{kind}" is no source{hint}; use {listing(SOURCES)}'
        return Source(), [Problem("InvalidValue", (*path, "type"), message)]
    fields, at = _fields(value, path, shape, kind, problems)
    port = _KUBELET_PORT if kind == KUBELET_SUMMARY else Source().port
    source = Source(
        type=kind,
        port=_port(fields.get("port", port), (*at, "port"), problems),
        path=_path(fields.get("path", Source().path), (*at, "path"), problems),
        url=_url(fields.get("url"), (*at, "url"), problems) if kind == PROMETHEUS else "",
        token_file=_file(fields.get(shape.secrets[0]), "token", (*at, shape.secrets[0]), problems),
        ca_file=_file(fields.get(shape.secrets[1]), "ca.crt", (*at, shape.secrets[1]), problems),
        insecure_skip_verify=bool(fields.get("insecureSkipVerify", False)),
        percent=_unit(fields.get("unit", _UNITS[0]), (*at, "unit"), problems),
        queries=_queries(fields.get("queries"), (*at, "queries"), problems),
        timeout=_timeout(value.get(shape.timeout), (*path, shape.timeout), problems),
    )
    return source, problems


def _fields(
    value: Mapping[str, Any], path: Path, shape: SourceShape, kind: str, problems: list[Problem]
) -> tuple[Mapping[str, Any], Path]:
    """(the fields of this type, where they are)."""
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
            message = f"the type is {kind}, so this counts for nothing; remove it"
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
            message = f'there is no field "{key}" here{hint}'
            yield Problem("UnknownField", (*path, key), message)


def _port(value: Any, at: Path, problems: list[Problem]) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 65536:
        problems.append(Problem("InvalidValue", at, f"{value} is no port; use 1 to 65535"))
        return 0
    return value


def _path(value: Any, at: Path, problems: list[Problem]) -> str:
    if not isinstance(value, str) or not value.startswith("/"):
        message = f"{value!r} is no path of a URL; write one such as /statistics"
        problems.append(Problem("InvalidValue", at, message))
    return str(value)


def _url(value: Any, at: Path, problems: list[Problem]) -> str:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        message = (
            f"{value!r} is no URL; write where Prometheus is, http://prometheus.monitoring:9090"
        )
        problems.append(Problem("InvalidValue", at, message.replace("None", "nothing")))
    return str(value).rstrip("/")


def _file(value: Any, name: str, at: Path, problems: list[Problem]) -> str:
    """A file: as it is written, or where the operator mounts what a Secret or ConfigMap has."""
    if value in (None, ""):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("name"), str) and value["name"]:
        return f"{CREDENTIALS}/{name}"
    problems.append(Problem("InvalidValue", (*at, "name"), "this must be an object's name"))
    return ""


def _unit(value: Any, at: Path, problems: list[Problem]) -> bool:
    if value not in _UNITS:
        problems.append(Problem("InvalidValue", at, f'"{value}" is no unit; use {listing(_UNITS)}'))
    return bool(value == _UNITS[0])


def _queries(value: Any, at: Path, problems: list[Problem]) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(query, str) and query for query in value.values()
    ):
        message = "this must be an object of queries; write a metric's name and its query"
        problems.append(Problem("InvalidType", at, message))
        return {}
    return {str(name): str(query) for name, query in value.items()}


def _timeout(value: Any, at: Path, problems: list[Problem]) -> float:
    if value is None:
        return Source().timeout
    try:
        timeout = seconds(value) if isinstance(value, str) else float(value)
        if isinstance(value, bool) or not math.isfinite(timeout) or not 0 < timeout <= 60:
            raise ValueError
    except (TypeError, ValueError):
        message = f"{value!r} is no time-out; use more than 0 and at most 60 s"
        problems.append(Problem("InvalidValue", at, message))
        return Source().timeout
    return timeout

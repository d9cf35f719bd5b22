"""The three formats of a load policy: the names of their fields, and the types of their values."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ...base.decoding import (
    INVALID_TYPE,
    REFUSED,
    UNKNOWN_FIELD,
    Absent,
    Anything,
    Converted,
    DecodingRun,
    MapOf,
    Record,
    RecordField,
    Type,
    UnlessEmpty,
)
from ...base.field_types import camel_case
from ...base.findings import WARNING, Path, Problem, did_you_mean, listing
from ...base.go_values import seconds
from .policy import KUBELET_SUMMARY, METRICS_SERVER, NODE_METRICS, PROMETHEUS, SOURCES, SourceSpec

WITHOUT_EFFECT: Final = "WithoutEffect"

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


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """The names and conventions of a format."""

    names: Mapping[str, str]  # attribute of LoadPolicy and its parts -> field, unless in camelCase
    durations: bool = True  # whether times are durations such as `3m` instead of numbers of seconds
    sections: bool = True  # whether each type of source has an object of its own for its settings
    # whether absent lists are empty, limits may be percentages, and errors that crane ignores are
    # warnings
    crane: bool = False
    optional: tuple[str, ...] = ()  # attributes of rules that may be absent

    def name(self, attribute: str) -> str:
        return self.names.get(attribute) or camel_case(attribute)

    def fields(self, kinds: Mapping[str, Type], **options: bool) -> dict[str, RecordField]:
        """Return the fields of the attributes in `kinds`; `options` are those of RecordField."""
        return {self.name(name): RecordField(name, kind, **options) for name, kind in kinds.items()}


_CRANE_LISTS: Final = {
    "sync": "syncPolicy",
    "predicates": "predicate",
    "priorities": "priority",
    "hot_values": "hotValue",
}

FILE: Final = Format(
    {
        **_CRANE_LISTS,
        "period": "periodSeconds",
        "limit": "maxLimit",
        "cycle": "cycleSeconds",
        "refresh": "refreshSeconds",
        "grace": "graceSeconds",
        "timeout": "timeoutSeconds",
        "percent": "unit",
        "crane_zone": "craneTimeZone",
    },
    durations=False,
    sections=False,
)
SPEC: Final = Format(
    {
        "limit": "maxLimit",
        "seconds": "timeRange",
        "percent": "unit",
        "crane_zone": "craneTimeZone",
        "token_file": "tokenSecret",
        "ca_file": "caConfigMap",
    }
)
CRANE: Final = Format(
    {**_CRANE_LISTS, "limit": "maxLimitPecent", "seconds": "timeRange"},
    crane=True,
    optional=("limit", "weight"),
)


class PolicyRun(DecodingRun):
    def __init__(self, form: Format) -> None:
        super().__init__()
        self.form = form
        self.notes: list[Problem] = []  # warnings about ignored or reinterpreted values

    def void(self, path: Path, message: str, fix: str = "") -> None:
        """Add a warning about an ignored value."""
        self.notes.append(Problem(WITHOUT_EFFECT, path, message, fix, WARNING))

    def missing(self, path: Path) -> Absent:
        return self.report(Problem(INVALID_TYPE, path, "this is missing; add it"))

    def unknown_field(
        self,
        path: Path,
        key: str,
        parent: Mapping[str, Any],  # noqa: ARG002 - as in DecodingRun
        record: Record,
    ) -> None:
        """Add an error, or a warning if crane ignores the field."""
        hint = did_you_mean(key, record.fields)
        if self.form.crane:
            self.void((*path, key), f"crane ignores this unknown field{hint}")
        else:
            message = f'unknown field "{key}"{hint or "; remove it"}'
            self.report(Problem(UNKNOWN_FIELD, (*path, key), message))


class Placed(NamedTuple):
    """A value with its path; also of a rejected value, so that the others are checked."""

    value: Any
    path: Path


class RuleEntry(Record):
    """The decoder of an object in a list of rules."""

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Placed:
        return Placed(super().__call__(value, path, run), path)

    def refuse(self, value: Any, path: Path, run: DecodingRun) -> Absent:
        return run.wrong_type(path, value, f"an object with {' and '.join(self.fields)}")


class Finite:
    """The decoder of a finite number; `expected` describes it in messages."""

    def __init__(self, expected: str) -> None:
        self._expected = expected

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not -sys.float_info.max <= value <= sys.float_info.max:
            return run.wrong_type(path, value, self._expected)
        return value


_SECONDS: Final = Finite("a number of seconds")


class Time:
    """The decoder of a time in seconds: a duration such as `3m`, or a number."""

    def __init__(self, *, durations: bool) -> None:
        self._durations = durations

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if not self._durations:
            number = _SECONDS(value, path, run)
            return number if isinstance(number, Absent) else float(number)
        if not isinstance(value, str):
            return run.wrong_type(path, value, "a duration; write one such as 3m")
        try:
            return seconds(value)
        except ValueError as error:
            return run.invalid(path, f"{error}; write one such as 3m")


class Setting:
    """The decoder of a value; null and an empty string become None."""

    def __init__(self, kind: Type, least: float = -math.inf) -> None:
        self._kind, self._least = kind, least

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if value in (None, ""):
            return None
        read = self._kind(value, path, run)
        if isinstance(read, float) and read < self._least:
            return run.invalid(path, f"{read:g} s is too short; use {self._least:g} s or more")
        return read


class Word:
    """The decoder of a known word."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if value in self._known:
            return value
        return run.invalid(path, f'"{value}" is not supported; use {listing(self._known)}')


# --- the source ---------------------------------------------------------------------------------


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


def _timeout(value: Any, path: Path, run: DecodingRun) -> Any:
    try:
        timeout = seconds(value) if isinstance(value, str) else float(value)
        if isinstance(value, bool) or not math.isfinite(timeout) or not 0 < timeout <= 60:
            raise ValueError
    except (TypeError, ValueError):
        message = f"{value!r} is not a valid timeout; use more than 0 and at most 60 s"
        return run.invalid(path, message)
    return timeout


_PORT: Final = UnlessEmpty(_port)
_INSECURE: Final = Converted(Anything(), bool)
_SHARED: Final[Mapping[str, Type]] = {"type": Anything(), "timeout": Setting(_timeout)}
_SETTINGS: Final[Mapping[str, Mapping[str, Type]]] = {
    NODE_METRICS: {"port": _PORT, "path": UnlessEmpty(_url_path)},
    METRICS_SERVER: {},
    KUBELET_SUMMARY: {"port": _PORT, "insecure_skip_verify": _INSECURE},
    PROMETHEUS: {
        "insecure_skip_verify": _INSECURE,
        "percent": UnlessEmpty(_percent),
        "queries": MapOf(
            _query, Anything(), expected="an object that maps metric names to queries"
        ),
        "token_file": Setting(_File("token")),
        "ca_file": Setting(_File("ca.crt")),
    },
}
"""The type of a source -> the attributes of SourceSpec that apply to it."""


class SourceType:
    """The decoder of a source, whose fields depend on its `type`."""

    def __init__(self, form: Format) -> None:
        self._form = form

    def __call__(self, value: Any, path: Path, run: DecodingRun) -> Any:
        if not isinstance(value, Mapping):
            return run.wrong_type(path, value, "an object with a type")
        kind = value.get("type") or NODE_METRICS
        if kind not in SOURCES:
            hint = did_you_mean(str(kind), SOURCES)
            message = f'"{kind}" is not a source{hint}; use {listing(SOURCES)}'
            return run.invalid((*path, "type"), message)
        # Without its settings, the URL of Prometheus is missing in them.
        absent = {"url": None} if kind == PROMETHEUS else {}
        section = _SECTIONS[kind] if self._form.sections else ""
        if section:
            own = value.get(section, {})
            value = {**value, section: {**absent, **own} if isinstance(own, Mapping) else own}
        elif not self._form.sections:
            value = {**absent, **value}
        attributes = _source_type(kind, self._form)(value, path, run)
        if attributes is REFUSED:
            return REFUSED
        attributes |= attributes.pop("section", None) or {}
        given = {name: setting for name, setting in attributes.items() if setting is not None}
        default_port = _KUBELET_PORT if kind == KUBELET_SUMMARY else SourceSpec().port
        return SourceSpec(**{"port": default_port, **given, "type": kind})


@cache
def _source_type(kind: str, form: Format) -> Record:
    """Return the object of a type; the sections of other types have no effect."""

    def other(_value: Any, path: Path, run: DecodingRun) -> Any:
        return run.report(Problem(WITHOUT_EFFECT, path, f"no effect with type {kind}; remove it"))

    shared, settings = form.fields(_SHARED), form.fields(_SETTINGS[kind])
    if kind == PROMETHEUS:
        settings = form.fields({"url": _url}, null_is_absent=False) | settings
    if not form.sections:
        return Record({**shared, **settings})
    if kind == NODE_METRICS:
        # For operator/loadpolicy/request.py; no attribute of a source has their values.
        settings |= form.fields(dict.fromkeys(MEASURING, _nothing))
    for section_kind, section in _SECTIONS.items():
        if section and section_kind == kind:
            shared[section] = RecordField("section", Record(settings), null_is_absent=False)
        elif section:
            shared[section] = RecordField(section, other, null_is_absent=False)
    return Record(shared)


def _nothing(_value: Any, _path: Path, _run: DecodingRun) -> None:
    """Ignore a field that is read elsewhere."""

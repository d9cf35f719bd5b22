"""Parses load policies in their three formats with one reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

from ...base.decoding import (
    REFUSED,
    Anything,
    Converted,
    DecodingRun,
    ListOf,
    Record,
    RecordField,
    Type,
)
from ...base.findings import WARNING, Path, Problem, did_you_mean, listing
from .policy import (
    FAMILIES,
    METRICS,
    OWN,
    READABLE,
    WRITABLE,
    HotValue,
    LoadPolicy,
    Predicate,
    Priority,
    Rules,
    SourceSpec,
    Sync,
    time_zone,
)
from .policy_source import FILE_SOURCE, SPEC_SOURCE, SourceShape, SourceType, UnlessEmpty
from .policy_types import Finite, Placed, PolicyRun, RuleEntry, Setting, Time, Word

T = TypeVar("T")

_METRIC: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}", re.ASCII)
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)%", re.ASCII)
_LOWEST_PERCENTAGE: Final = 2.0
"""Below this percentage, a limit is most likely a fraction by mistake."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The field names and conventions of a format."""

    sync: str  # names of the lists
    predicates: str
    priorities: str
    hot_values: str
    period: str  # names of their fields
    limit: str
    window: str
    # names of cycle, refresh, grace and crane's time zone
    others: tuple[str, str, str, str] = ("", "", "", "")
    further: tuple[str, ...] = ()  # more known fields, parsed elsewhere or only in this format
    durations: bool = True  # whether times are durations such as `3m` instead of numbers of seconds
    # whether absent lists are empty, limits may be percentages, and errors that crane ignores are
    # warnings
    crane: bool = False
    source: SourceShape = SPEC_SOURCE


FILE: Final = Shape(
    "syncPolicy", "predicate", "priority", "hotValue", "periodSeconds", "maxLimit", "seconds",
    ("cycleSeconds", "refreshSeconds", "graceSeconds", "craneTimeZone"), ("remove",),
    durations=False, source=FILE_SOURCE,
)  # fmt: skip
SPEC: Final = Shape(
    "sync", "predicates", "priorities", "hotValues", "period", "maxLimit", "timeRange",
    ("cycle", "refresh", "grace", "craneTimeZone"), ("annotator",),
)  # fmt: skip
CRANE: Final = Shape(
    "syncPolicy", "predicate", "priority", "hotValue", "period", "maxLimitPecent", "timeRange",
    crane=True,
)  # fmt: skip


# --- types --------------------------------------------------------------------------------------


def _metric(value: Any, path: Path, run: DecodingRun) -> Any:
    if isinstance(value, str) and _METRIC.fullmatch(value):
        return value
    return run.wrong_type(path, value, "the name of a metric such as cpu_usage_avg_5m")


def _own_limit(value: Any, path: Path, run: DecodingRun) -> Any:
    """Decode a fraction, or a percentage in a string."""
    if not isinstance(value, str):
        return _FRACTION(value, path, run)
    match = _PERCENT.fullmatch(value)
    if match is None:
        fix = 'write a fraction (0.65) or "65%"'
        return run.invalid(path, f'"{value}" is not a valid limit; {fix}')
    limit = float(match[1]) / 100
    if limit > 1:
        return run.invalid(path, f"{value} is not a fraction between 0 and 1; use 0..1")
    return limit


def _count(value: Any, path: Path, run: DecodingRun) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        return run.wrong_type(path, value, "an integer; write one such as 5")
    if value < 1:
        return run.invalid(path, f"{value} is less than 1; use 1 or more")
    return value


_FRACTION: Final = Finite('a fraction such as 0.65, or "65%"')
_WEIGHT: Final = Finite("a number such as 0.2")


def _entries(attribute: str, key: str, kind: Type, *, required: bool = True) -> ListOf:
    """Decode a list of objects with a metric and another field."""
    name = RecordField("name", _metric, is_required=True, null_is_absent=False)
    other = RecordField(attribute, kind, required, null_is_absent=False)
    return ListOf(RuleEntry({"name": name, key: other}))


@cache
def _policy_type(shape: Shape) -> Record:
    time, strict = Time(durations=shape.durations), not shape.crane
    window = RecordField("window", time, is_required=True, null_is_absent=False)
    count = RecordField("count", _count, is_required=True, null_is_absent=False)
    limit = _FRACTION if shape.crane else _own_limit
    fields: dict[str, RecordField] = {
        shape.sync: RecordField("sync", _entries("period", shape.period, time)),
        shape.predicates: RecordField(
            "predicates", _entries("limit", shape.limit, limit, required=strict)
        ),
        shape.priorities: RecordField(
            "priorities", _entries("weight", "weight", _WEIGHT, required=strict)
        ),
        shape.hot_values: RecordField(
            "hot_values", ListOf(RuleEntry({shape.window: window, "count": count}))
        ),
    }
    if strict:
        cycle, refresh, grace, zone = shape.others
        fields |= {
            "source": RecordField("source", SourceType(shape.source)),
            cycle: RecordField("cycle", Setting(time, 1.0)),
            refresh: RecordField("refresh", Setting(time, 1.0)),
            grace: RecordField("grace", Setting(time, 0.0)),
            zone: RecordField("crane_zone", UnlessEmpty(Converted(Anything(), str))),
            "write": RecordField("write", _words(WRITABLE)),
            "read": RecordField("read", UnlessEmpty(Word(READABLE))),
            **{name: RecordField(name, Anything()) for name in shape.further},
        }
        if "remove" in shape.further:
            fields["remove"] = RecordField("remove", _words(FAMILIES))
    return Record(fields)


def _words(known: tuple[str, ...]) -> ListOf:
    """Decode a list of words, without duplicates."""
    return ListOf(Word(known), _distinct, expected=f"a list of {listing(known)}")


def _distinct(words: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


# --- policies -----------------------------------------------------------------------------------


class PolicyReader(PolicyRun):
    def __init__(self, shape: Shape) -> None:
        super().__init__(is_lenient=shape.crane)
        self.shape = shape

    def policy(self, document: Any, path: Path) -> LoadPolicy:
        """Return the policy; meaningless if there are problems."""
        fields = self._fields(document, path)
        source = fields.get("source") or SourceSpec()
        rules = self._rules(fields, path, frozenset(source.queries))
        default = LoadPolicy()
        policy = LoadPolicy(
            rules,
            source,
            cycle=fields.get("cycle") or default.cycle,
            refresh=fields.get("refresh") or default.refresh,
            write=fields.get("write") or (),
            remove=fields.get("remove") or (),
            read=fields.get("read") or OWN,
            crane_zone=fields.get("crane_zone") or default.crane_zone,
        )
        self._check(policy, path)
        return policy

    def rules(self, document: Mapping[str, Any], path: Path) -> Rules:
        """Return the rules; meaningless if there are problems."""
        return self._rules(self._fields(document, path), path, frozenset())

    def _fields(self, document: Any, path: Path) -> dict[str, Any]:
        fields = _policy_type(self.shape)(document, path, self)
        return {} if fields is REFUSED else fields

    def _rules(self, fields: Mapping[str, Any], path: Path, queries: frozenset[str]) -> Rules:
        """Return the rules; `queries` are additional metrics."""
        default = Rules((), (), (), ()) if self.shape.crane else Rules()
        periods = self._made(
            fields.get("sync"), default.sync, lambda entry: self._sync(entry, queries)
        )
        known = {period.name for period in periods}
        percent = self.shape.crane and self._in_percent(fields.get("predicates") or ())
        predicates = self._made(
            fields.get("predicates"),
            default.predicates,
            lambda entry: self._predicate(entry, known, percent=percent),
        )
        weighed = self._made(
            fields.get("priorities"), default.priorities, lambda entry: self._priority(entry, known)
        )
        if weighed and not sum(priority.weight for priority in weighed):
            message = "all weights are 0; set one greater than 0, or remove all entries"
            self.invalid((*path, self.shape.priorities), message)
        grace = fields.get("grace")
        return Rules(
            periods,
            # Default rules of metrics without a period are dropped silently.
            tuple(rule for rule in predicates if rule.name in known),
            tuple(rule for rule in weighed if rule.name in known),
            self._made(fields.get("hot_values"), default.hot_values, self._hot),
            default.grace if grace is None else grace,
        )

    @staticmethod
    def _made(
        entries: Iterable[Placed] | None,
        default: tuple[T, ...],
        make: Callable[[Placed], T | None],
    ) -> tuple[T, ...]:
        """Make a rule of each entry of a list; return the default if there is no list."""
        if entries is None:
            return default
        rules = (make(entry) for entry in entries if entry.value is not REFUSED)
        return tuple(rule for rule in rules if rule is not None)

    # --- the four lists -------------------------------------------------------------------------

    def _sync(self, entry: Placed, queries: frozenset[str]) -> Sync | None:
        name, period = entry.value["name"], entry.value["period"]
        if period <= 0:
            at = (*entry.path, self.shape.period)
            self._wrong_or_void(at, "a period of 0", "turns the metric off")
            return None
        if name in METRICS or name in queries:
            return Sync(name, period)
        message = f'no source measures "{name}" without a query for Prometheus'
        if self.shape.crane:
            self.void((*entry.path, "name"), message)
        else:
            fix = did_you_mean(name, METRICS) or f"; use {listing(METRICS)}, or add a query"
            self.invalid((*entry.path, "name"), message + fix)
        return None

    def _predicate(self, entry: Placed, known: set[str], *, percent: bool) -> Predicate | None:
        name, limit = entry.value["name"], entry.value.get("limit", 0)
        at = (*entry.path, self.shape.limit)
        fraction = limit / 100 if percent else float(limit)
        if not 0 <= fraction <= 1:
            fix = f'write {limit / 100:g} or "{limit:g}%"' if _is_percentage(limit) else "use 0..1"
            self.invalid(at, f"{limit} is not a fraction between 0 and 1; {fix}")
        elif fraction == 0:
            self._wrong_or_void(at, "a limit of 0", "turns the rule off")
        elif self._is_synced(name, known, entry.path):
            return Predicate(name, fraction)
        return None

    def _priority(self, entry: Placed, known: set[str]) -> Priority | None:
        name, weight = entry.value["name"], float(entry.value.get("weight", 0))
        if weight < 0:
            self.invalid((*entry.path, "weight"), f"{weight:g} is negative; use 0 or more")
        elif self._is_synced(name, known, entry.path):
            return Priority(name, weight)
        return None

    def _hot(self, entry: Placed) -> HotValue | None:
        if entry.value["window"] > 0:
            return HotValue(entry.value["window"], entry.value["count"])
        message = "this must be longer than 0; write a duration such as 5m"
        self.invalid((*entry.path, self.shape.window), message)
        return None

    def _is_synced(self, name: str, known: set[str], at: Path) -> bool:
        """Report whether a rule's metric has a period; if not, add the problem."""
        if name in known:
            return True
        lists = self.shape.sync
        if self.shape.crane:
            self.void((*at, "name"), f'"{name}" has no entry in {lists}: the rule never applies')
        else:
            hint = did_you_mean(name, known)
            message = f'"{name}" has no entry in {lists}{hint}; add one with its period'
            self.invalid((*at, "name"), message)
        return False

    # --- values ---------------------------------------------------------------------------------

    def _in_percent(self, predicates: Iterable[Placed]) -> bool:
        """Report whether limits are percentages, as in crane-scheduler-plus."""
        limits = [
            (entry.value["limit"], (*entry.path, self.shape.limit))
            for entry in predicates
            if entry.value is not REFUSED and "limit" in entry.value
        ]
        percent = any(value > 1 for value, _ in limits)
        for value, at in limits:
            if percent and 0 < value < _LOWEST_PERCENTAGE:
                message = (
                    f"other limits are greater than 1, so {value:g} would mean {value:g} %; "
                    "write all limits as fractions, or all as percentages"
                )
                self.invalid(at, message)
        if percent:
            message = "limits above 1 are read as percentages, as in crane-scheduler-plus"
            self.notes.append(Problem("Percentages", limits[0][1], message, severity=WARNING))
        return percent

    def _check(self, policy: LoadPolicy, path: Path) -> None:
        """Validate combinations of fields."""
        cycle, refresh, _, zone = self.shape.others
        validities = [policy.rules.valid_for(name) or 0.0 for name in policy.rules.metrics]
        if policy.refresh < policy.cycle:
            message = f"shorter than {cycle} ({policy.cycle:g} s); use {policy.cycle:g} s or more"
            self.invalid((*path, refresh), message)
        if validities and policy.refresh + policy.cycle >= min(validities):
            message = (
                f"with {policy.refresh:g} s and a {cycle} of {policy.cycle:g} s, values expire "
                f"(after {min(validities):g} s) before they are refreshed; use a shorter time"
            )
            self.invalid((*path, refresh), message)
        try:
            time_zone(policy.crane_zone)
        except ValueError as error:
            self.invalid(
                (*path, zone), f"{error}; write UTC, +08:00 or a name such as Asia/Shanghai"
            )

    def _wrong_or_void(self, at: Path, what: str, effect: str) -> None:
        if self.shape.crane:
            self.void(at, f"{what} {effect}, as in crane")
        else:
            self.invalid(at, f"{what} {effect}; remove the entry or use a value greater than 0")


def _is_percentage(value: Any) -> bool:
    return isinstance(value, int | float) and _LOWEST_PERCENTAGE <= value <= 100

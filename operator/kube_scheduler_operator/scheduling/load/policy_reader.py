"""Parses load policies in their three formats with one reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
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
    UnlessEmpty,
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
from .policy_fields import (
    Finite,
    Format,
    Placed,
    PolicyRun,
    RuleEntry,
    Setting,
    SourceType,
    Time,
    Word,
)

T = TypeVar("T")

_METRIC: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}", re.ASCII)
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)%", re.ASCII)
_LOWEST_PERCENTAGE: Final = 2.0
"""Below this percentage, a limit is most likely a fraction by mistake."""


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


def _entries(form: Format, **kinds: Type) -> ListOf:
    """Decode a list of objects with these attributes."""
    fields = {
        form.name(attribute): RecordField(
            attribute, kind, attribute not in form.optional, null_is_absent=False
        )
        for attribute, kind in kinds.items()
    }
    return ListOf(RuleEntry(fields))


@cache
def _policy_type(form: Format) -> Record:
    time = Time(durations=form.durations)
    lists: dict[str, Type] = {
        "sync": _entries(form, name=_metric, period=time),
        "predicates": _entries(form, name=_metric, limit=_FRACTION if form.crane else _own_limit),
        "priorities": _entries(form, name=_metric, weight=_WEIGHT),
        "hot_values": _entries(form, seconds=time, count=_count),
    }
    if form.crane:
        return Record(form.fields(lists))
    others: dict[str, Type] = {
        "source": SourceType(form),
        "cycle": Setting(time, 1.0),
        "refresh": Setting(time, 1.0),
        "grace": Setting(time, 0.0),
        "crane_zone": UnlessEmpty(Converted(Anything(), str)),
        "write": _words(WRITABLE),
        "read": UnlessEmpty(Word(READABLE)),
        # `annotator` is read in operator/loadpolicy/request.py.
        **({"annotator": Anything()} if form.sections else {"remove": _words(FAMILIES)}),
    }
    return Record(form.fields({**lists, **others}))


def _words(known: tuple[str, ...]) -> ListOf:
    """Decode a list of words, without duplicates."""
    return ListOf(Word(known), _distinct, expected=f"a list of {listing(known)}")


def _distinct(words: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


# --- policies -----------------------------------------------------------------------------------


class PolicyReader(PolicyRun):
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
        fields = _policy_type(self.form)(document, path, self)
        return {} if fields is REFUSED else fields

    def _rules(self, fields: Mapping[str, Any], path: Path, queries: frozenset[str]) -> Rules:
        """Return the rules; `queries` are additional metrics."""
        default = Rules((), (), (), ()) if self.form.crane else Rules()
        periods = self._made(
            fields.get("sync"), default.sync, lambda entry: self._sync(entry, queries)
        )
        known = {period.name for period in periods}
        percent = self.form.crane and self._in_percent(fields.get("predicates") or ())
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
            self.invalid((*path, self.form.name("priorities")), message)
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
            at = (*entry.path, self.form.name("period"))
            self._wrong_or_void(at, "a period of 0", "turns the metric off")
            return None
        if name in METRICS or name in queries:
            return Sync(name, period)
        message = f'no source measures "{name}" without a query for Prometheus'
        if self.form.crane:
            self.void(
                (*entry.path, "name"), message, f"remove the entry, or name {listing(METRICS)}"
            )
        else:
            fix = did_you_mean(name, METRICS) or f"; use {listing(METRICS)}, or add a query"
            self.invalid((*entry.path, "name"), message + fix)
        return None

    def _predicate(self, entry: Placed, known: set[str], *, percent: bool) -> Predicate | None:
        name, limit = entry.value["name"], entry.value.get("limit", 0)
        at = (*entry.path, self.form.name("limit"))
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
        if entry.value["seconds"] > 0:
            return HotValue(entry.value["seconds"], entry.value["count"])
        message = "this must be longer than 0; write a duration such as 5m"
        self.invalid((*entry.path, self.form.name("seconds")), message)
        return None

    def _is_synced(self, name: str, known: set[str], at: Path) -> bool:
        """Report whether a rule's metric has a period; if not, add the problem."""
        if name in known:
            return True
        lists = self.form.name("sync")
        if self.form.crane:
            message = f'"{name}" has no entry in {lists}: the rule never applies'
            self.void((*at, "name"), message, f"add one to {lists}, or remove the rule")
        else:
            hint = did_you_mean(name, known)
            message = f'"{name}" has no entry in {lists}{hint}; add one with its period'
            self.invalid((*at, "name"), message)
        return False

    # --- values ---------------------------------------------------------------------------------

    def _in_percent(self, predicates: Iterable[Placed]) -> bool:
        """Report whether limits are percentages, as in crane-scheduler-plus."""
        limits = [
            (entry.value["limit"], (*entry.path, self.form.name("limit")))
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
            fix = "write fractions between 0 and 1 if crane-scheduler itself reads the policy"
            self.notes.append(Problem("Percentages", limits[0][1], message, fix, WARNING))
        return percent

    def _check(self, policy: LoadPolicy, path: Path) -> None:
        """Validate combinations of fields."""
        cycle, refresh, zone = map(self.form.name, ("cycle", "refresh", "crane_zone"))
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
        fix = "remove the entry or use a value greater than 0"
        if self.form.crane:
            self.void(at, f"{what} {effect}, as in crane", fix)
        else:
            self.invalid(at, f"{what} {effect}; {fix}")


def _is_percentage(value: Any) -> bool:
    return isinstance(value, int | float) and _LOWEST_PERCENTAGE <= value <= 100

"""Parses load policies in their three formats with one reader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.findings import WARNING, Path, Problem, did_you_mean, listing
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
    Sync,
    time_zone,
)
from .policy_source import FILE_SOURCE, SPEC_SOURCE, SourceShape, read_source
from .policy_values import Values

_METRIC: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}", re.ASCII)
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)%", re.ASCII)
_LOWEST_PERCENTAGE: Final = 2.0
"""Below this percentage, a limit is most likely a fraction by mistake."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The field names and conventions of a format.

    Attributes:
        sync, predicates, priorities, hot_values: names of the lists.
        period, limit, window: names of their fields.
        others: names of cycle, refresh, grace and crane's time zone.
        further: additional known fields, parsed elsewhere or only in this format.
        durations: whether times are durations such as `3m` instead of numbers of seconds.
        crane: whether absent lists are empty, limits may be percentages, and errors that crane
            ignores are warnings.
        source: format of the source.
    """

    sync: str
    predicates: str
    priorities: str
    hot_values: str
    period: str
    limit: str
    window: str
    others: tuple[str, str, str, str] = ("", "", "", "")
    further: tuple[str, ...] = ()
    durations: bool = True
    crane: bool = False
    source: SourceShape = SPEC_SOURCE

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields of a policy."""
        lists = (self.sync, self.predicates, self.priorities, self.hot_values)
        return (*lists, "source", *self.others, "write", "read", *self.further)


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


class PolicyReader(Values):
    """Parses one policy.

    Attributes:
        shape: its format.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(durations=shape.durations, lenient=shape.crane)
        self.shape = shape

    def policy(self, document: Mapping[str, Any], path: Path) -> LoadPolicy:
        """The policy; meaningless if there are problems."""
        cycle, refresh, _, zone = self.shape.others
        source, problems = read_source(document.get("source"), (*path, "source"), self.shape.source)
        self.problems += problems
        rules = self.rules(document, path, frozenset(source.queries))
        default = LoadPolicy()
        policy = LoadPolicy(
            rules,
            source,
            cycle=self.time(document, cycle, path, default.cycle, least=1.0),
            refresh=self.time(document, refresh, path, default.refresh, least=1.0),
            write=tuple(self.words(document, "write", path, WRITABLE)),
            remove=tuple(self.words(document, "remove", path, FAMILIES)),
            read=self.word(document.get("read") or OWN, (*path, "read"), READABLE),
            crane_zone=str(document.get(zone) or default.crane_zone),
        )
        self._check(policy, path)
        return policy

    def rules(
        self, document: Mapping[str, Any], path: Path, queries: frozenset[str] = frozenset()
    ) -> Rules:
        """The rules, with additional metrics in `queries`; meaningless if there are problems."""
        shape = self.shape
        default = Rules((), (), (), ()) if shape.crane else Rules()
        sync = self.entries(document, shape.sync, path, default.sync)
        predicates = self.entries(document, shape.predicates, path, default.predicates)
        priorities = self.entries(document, shape.priorities, path, default.priorities)
        hot = self.entries(document, shape.hot_values, path, default.hot_values)
        percent = shape.crane and self._in_percent(predicates)
        periods = tuple(s for item, at in sync for s in self._sync(item, at, queries))
        known = {period.name for period in periods}
        weighed = tuple(
            p
            for item, at in priorities
            for p in self._priority(item, at)
            if self._synced(p.name, known, at, default=item is p)
        )
        if weighed and not sum(priority.weight for priority in weighed):
            message = "all weights are 0; set one greater than 0, or remove all entries"
            self.wrong((*path, shape.priorities), message)
        return Rules(
            periods,
            tuple(
                p
                for item, at in predicates
                for p in self._predicate(item, at, percent=percent)
                if self._synced(p.name, known, at, default=item is p)
            ),
            weighed,
            tuple(each for item, at in hot for each in self._hot(item, at)),
            self.time(document, shape.others[2], path, default.grace, least=0.0),
        )

    # --- the four lists -------------------------------------------------------------------------

    def _sync(self, item: Any, at: Path, queries: frozenset[str]) -> Iterator[Sync]:
        if isinstance(item, Sync):
            yield item
            return
        fields = self.fields(item, at, ("name", self.shape.period))
        name = self._metric(fields, at)
        period = self.seconds(fields.get(self.shape.period), (*at, self.shape.period))
        if name is None or period is None:
            return
        if period <= 0:
            self._wrong_or_void((*at, self.shape.period), "a period of 0", "turns the metric off")
        elif name not in METRICS and name not in queries:
            message = f'no source measures "{name}" without a query for Prometheus'
            if self.shape.crane:
                self.void((*at, "name"), message)
                return
            fix = did_you_mean(name, METRICS) or f"; use {listing(METRICS)}, or add a query"
            self.wrong((*at, "name"), message + fix)
        else:
            yield Sync(name, period)

    def _predicate(self, item: Any, at: Path, *, percent: bool) -> Iterator[Predicate]:
        if isinstance(item, Predicate):
            yield item
            return
        key = self.shape.limit
        fields = self.fields(item, at, ("name", key))
        name = self._metric(fields, at)
        limit = self._limit(fields.get(key, 0 if self.shape.crane else None), (*at, key), percent)
        if name is None or limit is None:
            return
        if limit == 0:
            self._wrong_or_void((*at, key), "a limit of 0", "turns the rule off")
        else:
            yield Predicate(name, limit)

    def _priority(self, item: Any, at: Path) -> Iterator[Priority]:
        if isinstance(item, Priority):
            yield item
            return
        fields = self.fields(item, at, ("name", "weight"))
        name = self._metric(fields, at)
        absent = 0 if self.shape.crane else None
        weight = self.number(fields.get("weight", absent), (*at, "weight"), "a number such as 0.2")
        if name is None or weight is None:
            return
        if weight < 0:
            self.wrong((*at, "weight"), f"{weight:g} is negative; use 0 or more")
        else:
            yield Priority(name, weight)

    def _hot(self, item: Any, at: Path) -> Iterator[HotValue]:
        if isinstance(item, HotValue):
            yield item
            return
        key = self.shape.window
        fields = self.fields(item, at, (key, "count"))
        window = self.seconds(fields.get(key), (*at, key))
        count = fields.get("count")
        if isinstance(count, bool) or not isinstance(count, int):
            self.wrong((*at, "count"), "this must be an integer; write one such as 5")
        elif count < 1:
            self.wrong((*at, "count"), f"{count} is less than 1; use 1 or more")
        elif window is not None and window <= 0:
            self.wrong((*at, key), "this must be longer than 0; write a duration such as 5m")
        elif window is not None:
            yield HotValue(window, count)

    def _synced(self, name: str, known: set[str], at: Path, *, default: bool) -> bool:
        """Whether a rule's metric has a period; default rules without one are dropped silently."""
        if name in known or default:
            return name in known
        lists = self.shape.sync
        if self.shape.crane:
            self.void((*at, "name"), f'"{name}" has no entry in {lists}: the rule never applies')
        else:
            hint = did_you_mean(name, known)
            message = f'"{name}" has no entry in {lists}{hint}; add one with its period'
            self.wrong((*at, "name"), message)
        return False

    # --- values ---------------------------------------------------------------------------------

    def _in_percent(self, predicates: Iterable[tuple[Any, Path]]) -> bool:
        """Whether limits are percentages, as in crane-scheduler-plus."""
        limits = [
            (value, (*at, self.shape.limit))
            for item, at in predicates
            if isinstance(item, Mapping)
            and isinstance(value := item.get(self.shape.limit), int | float)
            and not isinstance(value, bool)
        ]
        percent = any(value > 1 for value, _ in limits)
        for value, at in limits:
            if percent and 0 < value < _LOWEST_PERCENTAGE:
                message = (
                    f"other limits are greater than 1, so {value:g} would mean {value:g} %; "
                    "write all limits as fractions, or all as percentages"
                )
                self.wrong(at, message)
        if percent:
            message = "limits above 1 are read as percentages, as in crane-scheduler-plus"
            self.notes.append(Problem("Percentages", limits[0][1], message, severity=WARNING))
        return percent

    def _limit(self, value: Any, at: Path, percent: bool) -> float | None:
        if isinstance(value, str) and not self.shape.crane:
            match = _PERCENT.fullmatch(value)
            if match is None:
                self.wrong(at, f'"{value}" is not a valid limit; write a fraction (0.65) or "65%"')
                return None
            limit = float(match[1]) / 100
        else:
            number = self.number(value, at, 'a fraction such as 0.65, or "65%"')
            if number is None:
                return None
            limit = number / 100 if percent else number
        if limit < 0 or limit > 1:
            fix = f'write {value / 100:g} or "{value:g}%"' if _is_percentage(value) else "use 0..1"
            self.wrong(at, f"{value} is not a fraction between 0 and 1; {fix}")
            return None
        return limit

    def _metric(self, fields: Mapping[str, Any], at: Path) -> str | None:
        name = fields.get("name")
        if not isinstance(name, str) or not _METRIC.fullmatch(name):
            self.wrong((*at, "name"), "this must be the name of a metric such as cpu_usage_avg_5m")
            return None
        return name

    def _check(self, policy: LoadPolicy, path: Path) -> None:
        """Validate combinations of fields."""
        cycle, refresh, _, zone = self.shape.others
        validities = [policy.rules.valid_for(name) or 0.0 for name in policy.rules.metrics]
        if policy.refresh < policy.cycle:
            message = f"shorter than {cycle} ({policy.cycle:g} s); use {policy.cycle:g} s or more"
            self.wrong((*path, refresh), message)
        if validities and policy.refresh + policy.cycle >= min(validities):
            message = (
                f"with {policy.refresh:g} s and a {cycle} of {policy.cycle:g} s, values expire "
                f"(after {min(validities):g} s) before they are refreshed; use a shorter time"
            )
            self.wrong((*path, refresh), message)
        try:
            time_zone(policy.crane_zone)
        except ValueError as error:
            self.wrong((*path, zone), f"{error}; write UTC, +08:00 or a name such as Asia/Shanghai")

    def _wrong_or_void(self, at: Path, what: str, effect: str) -> None:
        if self.shape.crane:
            self.void(at, f"{what} {effect}, as in crane")
        else:
            self.wrong(at, f"{what} {effect}; remove the entry or use a value greater than 0")


def _is_percentage(value: Any) -> bool:
    return isinstance(value, int | float) and _LOWEST_PERCENTAGE <= value <= 100

"""The load policy: limits and weights of usage, and the source that measures it.

All components share this definition: the operator writes it as `policy.json`, the annotator and the
policy load-aware reload it when it changes, and LoadPolicies and the files of crane-scheduler are
parsed into it (policy_files.py). Usage and limits are fractions of a node's capacity, 0..1; times
are in seconds.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...base.decoding import DecodeError

METRICS: Final = (
    "cpu_usage_avg_5m", "cpu_usage_max_avg_1h", "cpu_usage_max_avg_1d",
    "mem_usage_avg_5m", "mem_usage_max_avg_1h", "mem_usage_max_avg_1d",
)  # fmt: skip
"""Metrics of every source: the five-minute average, and its maximum in an hour and a day."""

FILE: Final = "policy.json"
DIRECTORY: Final = "/etc/kube-scheduler-operator/load"
"""Directory in which pods mount the file."""

NODE_METRICS: Final = "NodeMetrics"
METRICS_SERVER: Final = "MetricsServer"
KUBELET_SUMMARY: Final = "KubeletSummary"
PROMETHEUS: Final = "Prometheus"
SOURCES: Final = (NODE_METRICS, METRICS_SERVER, KUBELET_SUMMARY, PROMETHEUS)

OWN: Final = "own"
CRANE: Final = "crane"
CRANE_PLUS: Final = "crane-plus"
SAFE: Final = "safe"
READABLE: Final = (OWN, CRANE, CRANE_PLUS, SAFE)
"""Annotation families that scheduling can read."""
WRITABLE: Final = (CRANE, SAFE)
"""Annotation families that can be written in addition to the operator's own."""
FAMILIES: Final = (OWN, *WRITABLE)
"""All annotation families that can be written."""

CYCLE: Final = 60.0
REFRESH: Final = 240.0

HOT_VALUE: Final = "node_hot_value"
"""crane's annotation with the hot value of a node."""
SAFE_KEYS: Final[Mapping[str, str]] = {
    "free_cpu_mean": "mean-free-cpu",
    "free_cpu_std": "std-free-cpu",
    "free_cpu_forecast": "forcasted-free-cpu",  # as the original spells it
    "free_memory_mean": "mean-free-memory",
    "free_memory_std": "std-free-memory",
    "free_memory_forecast": "forcasted-free-memory",
    "congestion": "congestion-factor",
}
"""Metric -> annotation of kube-safe-scheduler's node-annotator."""

GRACE: Final = 300.0
"""crane: a value is valid for its period plus five minutes (its constant ExtraActivePeriod)."""
CRANE_ZONE: Final = "Asia/Shanghai"
"""crane's default for TZ; the Z at the end of its times is literal and not a time zone."""

_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}", re.ASCII)
_OFFSET: Final = re.compile(r"([+-])(\d\d):?(\d\d)")


class LoadPolicyError(DecodeError):
    """An invalid load policy."""


@dataclass(frozen=True, slots=True)
class Sync:
    """The synchronization period of a metric."""

    name: str
    period: float  # seconds


@dataclass(frozen=True, slots=True)
class Predicate:
    """A filter: a node is rejected if the metric is above the limit."""

    name: str
    limit: float  # fraction of capacity, greater than 0 and at most 1


@dataclass(frozen=True, slots=True)
class Priority:
    """The weight of a metric in the score."""

    name: str
    weight: float  # at least 0, relative to the sum of all weights


@dataclass(frozen=True, slots=True)
class HotValue:
    """A penalty of one point of ten for every `count` pods bound to a node within `seconds`."""

    seconds: float
    count: int  # at least 1


def hot_value(rules: Iterable[HotValue], bound: Sequence[float], now: float) -> int:
    """Sum over the rules of the bindings within `seconds`, divided by `count` and rounded down."""
    return sum(sum(map((now - rule.seconds).__lt__, bound)) // rule.count for rule in rules)


_PERIODS: Final[Mapping[str, float]] = {"5m": 180.0, "1h": 900.0, "1d": 10800.0}
_WEIGHTS: Final[Mapping[str, float]] = {"5m": 0.2, "1h": 0.3, "1d": 0.5}


@dataclass(frozen=True, slots=True)
class Rules:
    """The effect of load on scheduling; the defaults are those of crane-scheduler.

    Order matters: scores are sums of floats, and equal rules give equal sums.
    """

    sync: tuple[Sync, ...] = tuple(
        Sync(name, _PERIODS[name.rpartition("_")[2]]) for name in METRICS
    )
    # filters, which all must pass
    predicates: tuple[Predicate, ...] = (
        Predicate("cpu_usage_avg_5m", 0.65),
        Predicate("cpu_usage_max_avg_1h", 0.75),
        Predicate("mem_usage_avg_5m", 0.65),
        Predicate("mem_usage_max_avg_1h", 0.75),
    )
    # components of the score; if empty, load does not affect scores
    priorities: tuple[Priority, ...] = tuple(
        Priority(name, _WEIGHTS[name.rpartition("_")[2]]) for name in METRICS
    )
    # penalties for recently bound pods, which add up
    hot_values: tuple[HotValue, ...] = (HotValue(300.0, 5), HotValue(60.0, 2))
    grace: float = GRACE  # seconds beyond its period for which a metric stays valid

    @property
    def shortest_validity(self) -> float:
        """Seconds for which all measured metrics are valid."""
        return min((sync.period for sync in self.sync), default=0.0) + self.grace

    def valid_for(self, name: str) -> float | None:
        """Return the seconds for which a measured metric is valid; None if it has no period."""
        # As in crane, the first entry of a name is used.
        period = next((sync.period for sync in self.sync if sync.name == name), None)
        return None if period is None else period + self.grace

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics with a period, without duplicates."""
        return tuple(dict.fromkeys(sync.name for sync in self.sync))

    def document(self) -> dict[str, Any]:
        return {
            "syncPolicy": [{"name": s.name, "periodSeconds": _plain(s.period)} for s in self.sync],
            "predicate": [{"name": p.name, "maxLimit": p.limit} for p in self.predicates],
            "priority": [{"name": p.name, "weight": p.weight} for p in self.priorities],
            "hotValue": [
                {"seconds": _plain(hot.seconds), "count": hot.count} for hot in self.hot_values
            ],
            "graceSeconds": _plain(self.grace),
        }


@dataclass(frozen=True, slots=True)
class SourceSpec:
    type: str = NODE_METRICS  # one of SOURCES
    port: int = 19101  # port of node-metrics or of the kubelet on every node
    path: str = "/statistics"  # NodeMetrics: URL path of its JSON
    url: str = ""  # Prometheus: base URL, without `/api`
    token_file: str = ""  # Prometheus: file with a bearer token; empty for none
    ca_file: str = ""  # Prometheus: file with CA certificates; empty for those of the system
    insecure_skip_verify: bool = False  # Prometheus, KubeletSummary: accept any certificate
    percent: bool = True  # Prometheus: series are percentages, as with crane's recording rules
    # Prometheus: metric -> query with one sample per instance; the default is the series with the
    # metric's name
    queries: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 10.0  # seconds per request

    def document(self) -> dict[str, Any]:
        """Return the non-empty fields that apply to its type, in the format of policy.json."""
        fields: dict[str, Any] = {"type": self.type}
        if self.type in (NODE_METRICS, KUBELET_SUMMARY):
            fields["port"] = self.port
        if self.type == NODE_METRICS:
            fields["path"] = self.path
        if self.type == PROMETHEUS:
            fields |= {
                "url": self.url,
                "tokenFile": self.token_file,
                "caFile": self.ca_file,
                "queries": dict(self.queries),
                "unit": "Percent" if self.percent else "Fraction",
            }
        if self.type in (PROMETHEUS, KUBELET_SUMMARY):
            fields["insecureSkipVerify"] = self.insecure_skip_verify
        fields["timeoutSeconds"] = _plain(self.timeout)
        return {key: value for key, value in fields.items() if value not in ("", {})}


@dataclass(frozen=True, slots=True)
class LoadPolicy:
    rules: Rules = field(default_factory=Rules)
    source: SourceSpec = field(default_factory=SourceSpec)
    cycle: float = CYCLE  # seconds in which all nodes are polled once
    refresh: float = REFRESH  # maximum age of a node's annotation in seconds
    write: tuple[str, ...] = ()  # families of WRITABLE to write in addition to the operator's own
    remove: tuple[str, ...] = ()  # families of FAMILIES to remove
    read: str = OWN  # family of READABLE that scheduling reads
    crane_zone: str = CRANE_ZONE  # of crane's annotations: a name or an offset such as `+08:00`

    def document(self) -> dict[str, Any]:
        return {
            **self.rules.document(),
            "source": self.source.document(),
            "cycleSeconds": _plain(self.cycle),
            "refreshSeconds": _plain(self.refresh),
            "write": list(self.write),
            "remove": list(self.remove),
            "read": self.read,
            "craneTimeZone": self.crane_zone,
        }

    @property
    def families(self) -> tuple[str, ...]:
        """All annotation families that are written."""
        return (OWN, *self.write)

    def text(self) -> str:
        """Return the content of policy.json, deterministic."""
        return json.dumps(self.document(), indent=1, ensure_ascii=False) + "\n"


def time_zone(text: str) -> datetime.tzinfo:
    """Return the time zone for `UTC`, an offset (`+08:00`) or a name.

    crane's default works without a time zone database, which a small image lacks.

    Raises:
        ValueError: the time zone is unknown.
    """
    if text in ("", "UTC", "Z"):
        return datetime.UTC
    if text == CRANE_ZONE:
        return datetime.timezone(datetime.timedelta(hours=8))
    if match := _OFFSET.fullmatch(text):
        sign, hours, minutes = match.groups()
        delta = datetime.timedelta(hours=int(hours), minutes=int(minutes))
        return datetime.timezone(-delta if sign == "-" else delta)
    if not _ZONE.fullmatch(text):  # zoneinfo imports a package for each part of any name
        raise ValueError(f'"{text[:80]}" is not the name of a time zone')
    import zoneinfo  # deferred: it searches for files

    try:
        return zoneinfo.ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:  # not found is a KeyError
        raise ValueError(f'unknown time zone "{text}"') from error


def _plain(number: float) -> float | int:
    """Write integers without `.0`."""
    return int(number) if number == int(number) else number

"""The load policy: which usage keeps pods away, how usage is weighed, where it is measured.

One definition for everybody: the operator writes it as `policy.json`, the annotator and the policy
load-aware read it again whenever it changes, and LoadPolicies and the files of crane-scheduler
(load_policy_files.py) are read into it. Usage and limits are fractions of a node's capacity, 0..1;
times are in seconds.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.findings import Problem, format_path

METRICS: Final = (
    "cpu_usage_avg_5m", "cpu_usage_max_avg_1h", "cpu_usage_max_avg_1d",
    "mem_usage_avg_5m", "mem_usage_max_avg_1h", "mem_usage_max_avg_1d",
)  # fmt: skip
"""What every source measures: the mean of five minutes, and its maximum in an hour and a day."""

FILE: Final = "policy.json"
DIRECTORY: Final = "/etc/kube-scheduler-operator/load"
"""Where pods find the file."""

NODE_METRICS: Final = "NodeMetrics"
METRICS_SERVER: Final = "MetricsServer"
KUBELET_SUMMARY: Final = "KubeletSummary"
PROMETHEUS: Final = "Prometheus"
SOURCES: Final = (NODE_METRICS, METRICS_SERVER, KUBELET_SUMMARY, PROMETHEUS)

OWN: Final = "own"
READABLE: Final = (OWN, "crane", "crane-plus", "safe")
"""Whose annotations scheduling may go by."""
WRITABLE: Final = ("crane", "safe")
"""Whose annotations may be written beside our own."""
FAMILIES: Final = (OWN, *WRITABLE)
"""All annotations that may be written, by whose they are."""

CYCLE: Final = 60.0
REFRESH: Final = 240.0
GRACE: Final = 300.0
"""crane: a value is good for its period and five minutes (its constant ExtraActivePeriod)."""
CRANE_ZONE: Final = "Asia/Shanghai"
"""crane's default for TZ; the Z at the end of its times is a letter, not a zone."""

_OFFSET: Final = re.compile(r"([+-])(\d\d):?(\d\d)")


class LoadPolicyError(ValueError):
    """What was given is no load policy.

    Attributes:
        problems: what is wrong, each with its field and the fix.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(sentence(problem) for problem in problems))
        self.problems = tuple(problems)


def sentence(problem: Problem) -> str:
    """What is wrong and what to do, after the field that it is about."""
    return f"{format_path(problem.path)}: {problem.sentence}" if problem.path else problem.sentence


@dataclass(frozen=True, slots=True)
class Sync:
    """How often a metric is worth a new look.

    Attributes:
        name: of the metric.
        period: seconds.
    """

    name: str
    period: float


@dataclass(frozen=True, slots=True)
class Predicate:
    """A node on which a metric is above its limit gets no pod.

    Attributes:
        name: of the metric.
        limit: fraction of capacity, more than 0 and at most 1; usage above it is too much.
    """

    name: str
    limit: float


@dataclass(frozen=True, slots=True)
class Priority:
    """How much a metric counts in the score.

    Attributes:
        name: of the metric.
        weight: at least 0, against the sum of all weights.
    """

    name: str
    weight: float


@dataclass(frozen=True, slots=True)
class HotValue:
    """Every `count` pods that a node got within `seconds` cost it one point of ten.

    Attributes:
        seconds: how far back pods count.
        count: at least 1.
    """

    seconds: float
    count: int


_PERIODS: Final[Mapping[str, float]] = {"5m": 180.0, "1h": 900.0, "1d": 10800.0}
_WEIGHTS: Final[Mapping[str, float]] = {"5m": 0.2, "1h": 0.3, "1d": 0.5}


def _default_sync() -> tuple[Sync, ...]:
    return tuple(Sync(name, _PERIODS[name.rpartition("_")[2]]) for name in METRICS)


def _default_priorities() -> tuple[Priority, ...]:
    return tuple(Priority(name, _WEIGHTS[name.rpartition("_")[2]]) for name in METRICS)


@dataclass(frozen=True, slots=True)
class Rules:
    """What load means for scheduling; the defaults are those that crane-scheduler ships.

    Order matters: scores are sums of floats, and equal rules give equal sums.

    Attributes:
        sync: of each metric.
        predicates: all of them must hold.
        priorities: what scores are made of; none: load has no say in them.
        hot_values: what pods that have just arrived cost; they add up.
        grace: for so many seconds beyond its period a metric is still believed.
    """

    sync: tuple[Sync, ...] = field(default_factory=_default_sync)
    predicates: tuple[Predicate, ...] = (
        Predicate("cpu_usage_avg_5m", 0.65),
        Predicate("cpu_usage_max_avg_1h", 0.75),
        Predicate("mem_usage_avg_5m", 0.65),
        Predicate("mem_usage_max_avg_1h", 0.75),
    )
    priorities: tuple[Priority, ...] = field(default_factory=_default_priorities)
    hot_values: tuple[HotValue, ...] = (HotValue(300.0, 5), HotValue(60.0, 2))
    grace: float = GRACE

    def valid_for(self, name: str) -> float | None:
        """For how many seconds after it was measured a metric is believed; None: it has no period.

        The first entry of a name counts, as in crane.
        """
        for sync in self.sync:
            if sync.name == name:
                return sync.period + self.grace
        return None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics that have a period, each once."""
        return tuple(dict.fromkeys(sync.name for sync in self.sync))

    def document(self) -> dict[str, Any]:
        """The rules as policy.json has them."""
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
class Source:
    """Where load is measured.

    Attributes:
        type: one of SOURCES.
        port: of node-metrics or of the kubelet, on every node.
        path: NodeMetrics: where its JSON is.
        url: Prometheus: where it is, up to and without `/api`.
        token_file: Prometheus: what to show; empty: nothing.
        ca_file: Prometheus: whom to trust; empty: what the system trusts.
        insecure_skip_verify: Prometheus, KubeletSummary: trust anybody.
        percent: Prometheus: its series are percentages, as those of crane's recording rules are.
        queries: Prometheus: metric -> query with one sample for each instance, where it is not
            the series of that name.
        timeout: seconds for one answer.
    """

    type: str = NODE_METRICS
    port: int = 19101
    path: str = "/statistics"
    url: str = ""
    token_file: str = ""
    ca_file: str = ""
    insecure_skip_verify: bool = False
    percent: bool = True
    queries: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 10.0

    def document(self) -> dict[str, Any]:
        """The source as policy.json has it: what concerns its type and is not empty."""
        said: dict[str, Any] = {"type": self.type}
        if self.type in (NODE_METRICS, KUBELET_SUMMARY):
            said["port"] = self.port
        if self.type == NODE_METRICS:
            said["path"] = self.path
        if self.type == PROMETHEUS:
            said |= {
                "url": self.url,
                "tokenFile": self.token_file,
                "caFile": self.ca_file,
                "queries": dict(self.queries),
                "unit": "Percent" if self.percent else "Fraction",
            }
        if self.type in (PROMETHEUS, KUBELET_SUMMARY):
            said["insecureSkipVerify"] = self.insecure_skip_verify
        said["timeoutSeconds"] = _plain(self.timeout)
        return {key: value for key, value in said.items() if value not in ("", {})}


@dataclass(frozen=True, slots=True)
class LoadPolicy:
    """All of it.

    Attributes:
        rules: for scheduling.
        source: where load is measured.
        cycle: every so many seconds all nodes are looked at.
        refresh: a node's annotation is written anew at least every so many seconds.
        write: whose annotations are written beside our own; of WRITABLE.
        remove: whose annotations were written once and are to go; of FAMILIES.
        read: whose annotations scheduling goes by; one of READABLE.
        crane_zone: the time zone of crane's annotations, read or written: a name or `+08:00`.
    """

    rules: Rules = field(default_factory=Rules)
    source: Source = field(default_factory=Source)
    cycle: float = CYCLE
    refresh: float = REFRESH
    write: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    read: str = OWN
    crane_zone: str = CRANE_ZONE

    def document(self) -> dict[str, Any]:
        """The policy as policy.json has it."""
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
        """Whose annotations are written, our own among them."""
        return (OWN, *self.write)

    def text(self) -> str:
        """policy.json: the same policy is always the same text."""
        return json.dumps(self.document(), indent=1, ensure_ascii=False) + "\n"


def time_zone(text: str) -> datetime.tzinfo:
    """A time zone by `UTC`, offset (`+08:00`) or name.

    crane's default is known without a database of zones, which a small image has not.

    Raises:
        ValueError: there is none of that name.
    """
    if text in ("", "UTC", "Z"):
        return datetime.UTC
    if text == CRANE_ZONE:
        return datetime.timezone(datetime.timedelta(hours=8))
    if match := _OFFSET.fullmatch(text):
        sign, hours, minutes = match.groups()
        delta = datetime.timedelta(hours=int(hours), minutes=int(minutes))
        return datetime.timezone(-delta if sign == "-" else delta)
    import zoneinfo  # it looks for files

    try:
        return zoneinfo.ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:  # not found is a KeyError
        raise ValueError(f'there is no time zone "{text}"') from error


def _plain(number: float) -> float | int:
    """Whole numbers without their `.0`."""
    return int(number) if number == int(number) else number

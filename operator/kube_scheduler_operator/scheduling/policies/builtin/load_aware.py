"""load-aware: schedules by measured load, with the rules of a load policy.

crane-scheduler's plugin Dynamic (pkg/plugins/dynamic/stats.go): nodes above a limit are rejected,
the load determines the score, and recently bound Pods reduce it. In addition, and each can be
disabled:

* The expected load of Pods that measurements do not include yet is added to the means
  (in_flight.py), as is that of the Pod itself. A maximum is at least the expected mean.
* The standard deviation of a node's load is added to it, as in LoadVariationRiskBalancing.
* A node without load data is accepted and gets the median score of the others.

The load of a Pod is estimated as in koordinator's LoadAwareScheduling.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from ....base.quantities import CPU, MEMORY
from ...load.policy import CRANE_ZONE, READABLE, Predicate, Rules, time_zone
from ...load.policy_files import read_rules
from ...load.policy_follower import PolicyFollower
from ..arrays import Bools, Floats, Ints, clip, np
from ..hot_values import HotValues
from ..in_flight import InFlight
from ..node_loads import CRANE, CRANE_PLUS, OWN, VALID, LoadColumns
from ..node_policy import NodePolicy, rows_of, shown, ten, ten_one
from ..pod_estimates import SCALING, PodEstimator
from ..pods import Pod
from ..policy import argument

MEANS: Final = ("cpu_usage_avg_5m", "mem_usage_avg_5m")
DEVIATIONS: Final = ("free_cpu_std", "free_memory_std")
PREFIXES: Final = ("cpu_", "mem_")
WINDOW: Final = 300.0
"""Window of the means in seconds."""
HOT: Final = "hot"
DAEMON_SET: Final = "DaemonSet"
Kind = tuple[float, float]


def _objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("this must be a list of objects")
    return tuple(value)


@dataclass(frozen=True, slots=True)
class LoadAwareArguments:
    """A load policy, in a file or inline, and extensions; the defaults are crane's policy."""

    policy_file: str = argument(
        "",
        "path of a load policy (LoadPolicy or crane's DynamicSchedulerPolicy) that replaces the "
        "next five arguments; reloaded when it changes",
    )
    sync_policy: tuple[Mapping[str, Any], ...] | None = argument(
        None, "measuring period of each metric: `[{name, periodSeconds}]`", read=_objects
    )
    predicate: tuple[Mapping[str, Any], ...] | None = argument(
        None, "limits, as fractions: `[{name, maxLimit}]`", read=_objects
    )
    priority: tuple[Mapping[str, Any], ...] | None = argument(
        None, "weights in the score: `[{name, weight}]`", read=_objects
    )
    hot_value: tuple[Mapping[str, Any], ...] | None = argument(
        None,
        "one point of ten less for every `count` Pods within `seconds`: `[{seconds, count}]`",
        read=_objects,
    )
    grace_seconds: float = argument(
        300.0, "seconds after its period during which a measurement remains valid", least=0
    )
    variance: float = argument(
        1.0, "number of standard deviations added to the means, in the score only", least=0
    )
    in_flight: bool = argument(
        default=True, text="add the expected load of Pods that measurements do not include yet"
    )
    own_demand: bool = argument(
        default=True, text="add the expected load of the Pod itself, in the score only"
    )
    scaling_factors: Mapping[str, float] = argument(
        SCALING,
        "expected load of a Pod in percent of its requests or limits",
        least=0,
        most=100,
        choices=(CPU, MEMORY),
    )
    annotations: str = argument(
        "", "annotations to read; empty: as in the policy file, else `own`",
        choices=("", *READABLE[:3]),
    )  # fmt: skip
    time_zone: str = argument(
        "", "time zone of crane's annotations; empty: as in the policy file, else crane's default"
    )
    compatibility: bool = argument(
        default=False,
        text="as in crane: unknown load counts as full load in the score, nothing is added to "
        "measurements, hot values come from crane's annotation, and rejections allow preemption",
    )

    def __post_init__(self) -> None:
        lists = self.lists()
        if self.policy_file and lists:
            fix = f"set {' and '.join(lists)} in the file or omit policyFile"
            raise ValueError(f"policyFile has its own rules; {fix}")
        if not self.policy_file:
            self.rules()
        time_zone(self.time_zone)

    def lists(self) -> dict[str, Any]:
        """Return the configured rules under the names of a policy file."""
        rules = {
            "syncPolicy": self.sync_policy,
            "predicate": self.predicate,
            "priority": self.priority,
            "hotValue": self.hot_value,
        }
        return {name: list(value) for name, value in rules.items() if value is not None}

    def rules(self) -> Rules:
        """Return the configured rules, with crane's policy as default. Raises LoadPolicyError."""
        return read_rules({**self.lists(), "graceSeconds": self.grace_seconds})


class LoadAware(NodePolicy):
    name = "load-aware"
    Arguments: ClassVar[type] = LoadAwareArguments
    filters = True
    scores = True
    resources = (CPU, MEMORY)
    singly = True
    arguments: LoadAwareArguments
    loads: LoadColumns
    in_flight: InFlight

    def start(self) -> None:
        arguments = self.arguments
        self.preemption_helps = arguments.compatibility
        self._estimates = PodEstimator(arguments.scaling_factors)
        self._file = (
            PolicyFollower(arguments.policy_file, self.cluster.now)
            if arguments.policy_file
            else None
        )
        self._follow()

    def refresh(self) -> None:
        if self._file is not None and self._file.changed():
            self._follow()
            for index, node in enumerate(self.cluster.nodes):
                if node is not None:
                    self.loads.read(index, node)
            for index in range(len(self.cluster)):
                for pod in self.cluster.pods_on(index):
                    self._pod(index, pod, True)
            self._changes.mark_all()
        self.loads.expire()
        self._hot.expire()

    def kind(self, pod: Pod) -> Kind | None:
        arguments = self.arguments
        if arguments.own_demand and not arguments.compatibility:
            return self._estimates.of(pod)
        return None

    def filter_kind(self, pod: Pod) -> Hashable:
        """Accept Pods of DaemonSets: each fits only one node."""
        return None if pod.owner_kind == DAEMON_SET else "any"

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        return ten(self._score(kind, indices))

    def score_one(self, kind: Hashable, index: int) -> float:
        hot = self.loads.columns[HOT][index] if self._from_annotation else self._hot.column[index]
        percent = crane_score_one(
            self._scored.expected_one(index, cast("Kind | None", kind), self._variance),
            self._weights,
            hot if hot == hot else 0.0,
            original=self.arguments.compatibility,
        )
        return ten_one(percent)

    def rejects(self, kind: Hashable, indices: Ints) -> Bools:
        above = self._filtered.expected(indices) > np.array(self._limits).reshape(-1, 1)
        rejected: Bools = np.logical_or.reduce(above, 0)
        return rejected

    def rejects_one(self, kind: Hashable, index: int) -> bool:
        return any(map(operator.gt, self._filtered.expected_one(index), self._limits))

    def reasons(self, kind: Hashable, indices: Ints) -> list[tuple[str, str]]:
        rules = self.rules.predicates
        expected = self._filtered.expected(indices).T.tolist()
        measured = self._filtered.measured(indices).T.tolist()
        return [
            _reason([row for row in zip(rules, *levels, strict=True) if row[1] > row[0].limit])
            for levels in zip(expected, measured, strict=True)
        ]

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        size = len(self.cluster)
        measured = self._scored.measured(indices)
        expected = self._scored.expected(indices, kind, self._variance)
        columns: dict[str, Any] = {}
        for at, rule in enumerate(self.rules.priorities):
            columns[rule.name] = shown(measured[at])
            columns[f"{rule.name}Expected"] = shown(expected[at])
        for resource, column in zip(self.resources, self.in_flight.columns, strict=True):
            columns[f"{resource}InFlight"] = shown(column.take(indices, size))
        columns["hotValue"] = shown(self._hot_values(indices))
        columns["percent"] = shown(self._score(kind, indices))
        return rows_of(columns)

    # --- inside ---------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Apply the rules of the file, or those of the arguments."""
        arguments = self.arguments
        policy = self._file.policy if self._file else None
        self.rules: Rules = policy.rules if policy else arguments.rules()
        annotations = arguments.annotations or (policy.read if policy else OWN)
        zone = arguments.time_zone or (policy.crane_zone if policy else CRANE_ZONE)
        predicates = [rule.name for rule in self.rules.predicates]
        priorities = [rule.name for rule in self.rules.priorities]
        valid = {name: self.rules.valid_for(name) or 0.0 for name in (*predicates, *priorities)}
        shortest = min(valid.values(), default=VALID)
        names = [*MEANS, *DEVIATIONS, *predicates, *priorities]
        for name in names:
            valid.setdefault(name, shortest)
        self._from_annotation = arguments.compatibility and annotations in (CRANE, CRANE_PLUS)
        if self._from_annotation:
            names.append(HOT)
        self.loads = LoadColumns(
            self.cluster,
            names,
            self.changed,
            annotations=annotations,
            valid=valid,
            zone=time_zone(zone),
        )
        self.in_flight = InFlight(
            2, self._estimates.of, self.cluster.now, self.loads.measured, WINDOW, fades=True
        )
        self._hot = HotValues(self.cluster, self.rules.hot_values, self.changed)
        self._variance = 0.0 if arguments.compatibility else arguments.variance
        self._limits = [rule.limit for rule in self.rules.predicates]
        self._weights = [rule.weight for rule in self.rules.priorities]
        self._filtered = Expectation(self, predicates)
        self._scored = Expectation(self, priorities)

    def _score(self, kind: Hashable, indices: Ints) -> Floats:
        """Return 0..100, as crane does; see Expectation.expected."""
        return crane_score(
            self._scored.expected(indices, kind, self._variance),
            np.array(self._weights),
            self._hot_values(indices),
            original=self.arguments.compatibility,
        )

    def _hot_values(self, indices: Ints) -> Floats:
        size = len(self.cluster)
        if self._from_annotation:
            return np.nan_to_num(self.loads.columns[HOT].take(indices, size))
        return self._hot.column.take(indices, size)

    def _named(self, index: int, name: str) -> None:
        self._hot.forget(index)
        super()._named(index, name)

    def _pod(self, index: int, pod: Pod, added: bool) -> None:
        hotter = self._hot.pod(index, pod, added)
        more = self.in_flight.pod(index, pod, added)
        if hotter or more:
            self.changed(index)


class Expectation:
    """Computes the expected values of several metrics at once, from a policy's measurements."""

    def __init__(self, policy: LoadAware, names: Sequence[str]) -> None:
        self._policy = policy
        known = list(policy.loads.columns)
        self._rows = [known.index(name) for name in names]
        of = [next((at for at, p in enumerate(PREFIXES) if n.startswith(p)), -1) for n in names]
        self._resources = of  # -1, the last row of `added`: nothing is added
        # The base of an addition: a maximum rises to the expected mean.
        self._from = [
            resource if resource >= 0 and "_max_" in name else row
            for name, row, resource in zip(names, self._rows, of, strict=True)
        ]

    def measured(self, indices: Ints) -> Floats:
        """Return float64[metrics, n]."""
        return self._figures(indices).take(self._rows, 0)

    def expected(self, indices: Ints, kind: Hashable = None, variance: float = 0.0) -> Floats:
        """Return expected values (float64[metrics, n]), including Pods that are not measured yet.

        They include the Pod's own expected load `kind`, if given, and `variance` times the standard
        deviation.
        """
        policy, size = self._policy, len(self._policy.cluster)
        figures = self._figures(indices)
        measured = figures.take(self._rows, 0)
        if policy.arguments.compatibility or not self._rows:
            return measured
        added = np.zeros((len(policy.resources) + 1, len(indices)))
        amounts = added[:-1]
        if policy.arguments.in_flight:
            amounts += policy.in_flight.matrix.take(indices, size)
        if kind is not None:
            amounts += np.array(kind).reshape(-1, 1)
        if variance:
            amounts += np.where(np.isnan(figures[2:4]), 0.0, variance * figures[2:4])
        amounts /= policy.capacities.take(indices, size)
        raised = np.fmax(measured, figures.take(self._from, 0) + added.take(self._resources, 0))
        return np.where(np.isnan(measured), measured, raised)

    def expected_one(
        self, index: int, kind: Kind | None = None, variance: float = 0.0
    ) -> list[float]:
        """Return exactly the same for one node."""
        policy = self._policy
        figures = policy.loads.matrix.of(index)
        if policy.arguments.compatibility:
            return [figures[row] for row in self._rows]
        added = policy.in_flight.matrix.of(index) if policy.arguments.in_flight else [0.0, 0.0]
        for at, capacity in enumerate(policy.capacities.of(index)):
            amount = added[at]
            if kind is not None:
                amount += kind[at]
            if variance and figures[2 + at] == figures[2 + at]:
                amount += variance * figures[2 + at]
            added[at] = amount / capacity
        added.append(0.0)
        expected = []
        for row, start, resource in zip(self._rows, self._from, self._resources, strict=True):
            measured, raised = figures[row], figures[start] + added[resource]
            expected.append(raised if raised > measured else measured)
        return expected

    def _figures(self, indices: Ints) -> Floats:
        return self._policy.loads.matrix.take(indices, len(self._policy.cluster))


def _reason(beyond: Sequence[tuple[Predicate, float, float]]) -> tuple[str, str]:
    """Return (reason, figures) of a node: the exceeded limits, with expected and measured load."""
    limits = (f"{rule.name} above {100 * rule.limit:g} percent" for rule, _, _ in beyond)
    figures = (
        f"{rule.name}: {100 * expected:.1f} percent"
        + (f" ({100 * measured:.1f} measured)" if expected > measured else "")
        for rule, expected, measured in beyond
    )
    return f"the load is too high: {', '.join(limits)}", ", ".join(figures)


def crane_score(usages: Floats, weights: Floats, hot: Floats, *, original: bool = False) -> Floats:
    """Return trunc(Σ(1 - u)·w·100 / Σw) - trunc(10·hot), 0..100; 100 for an idle node.

    Sums are in the order of the metrics as in the original, because the result is truncated. An
    unknown usage (float64[metrics, n]) is NaN; in the original, it counts as full use. Otherwise,
    only the known metrics of a node count, and without any the score is NaN.
    """
    if not len(weights):
        return np.zeros(len(hot))
    known = ~np.isnan(usages)
    by = weights[:, None]
    total = np.add.reduce(np.where(known, (1.0 - usages) * by * 100.0, 0.0), 0)
    weighed = weights.sum() if original else np.add.reduce(known * by, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.trunc(total / weighed) - np.trunc(10.0 * hot)
    if original and not weighed > 0.0:
        return np.zeros(len(hot))
    clipped: Floats = clip(score, 0.0, 100.0)
    return clipped


def crane_score_one(
    usages: Sequence[float], weights: Sequence[float], hot: float, *, original: bool = False
) -> float:
    """Return exactly the same for one node."""
    if not weights:
        return 0.0
    total = weighed = 0.0
    for usage, weight in zip(usages, weights, strict=True):
        if usage == usage:
            total += (1.0 - usage) * weight * 100.0
            weighed += weight
    if original:
        weighed = sum(weights)
    if not weighed > 0.0:
        return 0.0 if original else math.nan
    return min(max(math.trunc(total / weighed) - math.trunc(10.0 * hot), 0), 100)

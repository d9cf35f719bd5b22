"""load-aware: places pods by how much nodes are really used, by the rules of a load policy.

crane-scheduler's plugin Dynamic (formulas/crane.py): nodes above a limit get no pod, use is weighed
into a score, and pods that have just arrived cost points. Beyond that, and each can be turned off:

* Pods that measurements do not show yet are added to the means (in_flight.py), and so is what the
  pod itself will use. A maximum over an hour or a day is at least the mean that is to be expected.
* A node whose use varies counts as used more, as in LoadVariationRiskBalancing.
* A node of which nothing is known is accepted and gets the median of the others.

What a pod will use is estimated as in koordinator's LoadAwareScheduling.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from ...base.quantities import CPU, MEMORY
from ...load.policy import CRANE_ZONE, Predicate, Rules, time_zone
from ...load.policy_follower import PolicyFile
from ..arrays import np
from ..formulas import crane
from ..hot_values import HotValues
from ..in_flight import InFlight
from ..node_loads import CRANE, CRANE_PLUS, OWN, VALID, Loads
from ..node_policy import NodePolicy, shown, ten, ten_one
from ..pod_estimates import Estimates
from .load_aware_arguments import LoadAwareArguments

if TYPE_CHECKING:
    from ..arrays import Bools, Floats, Ints
    from ..cluster import Cluster
    from ..pods import Pod

MEANS: Final = ("cpu_usage_avg_5m", "mem_usage_avg_5m")
DEVIATIONS: Final = ("free_cpu_std", "free_memory_std")
PREFIXES: Final = ("cpu_", "mem_")
WINDOW: Final = 300.0
"""Seconds that the means go back."""
HOT: Final = "hot"
DAEMON_SET: Final = "DaemonSet"
Kind = tuple[float, float]


class LoadAware(NodePolicy):
    """Rejects above a limit of use, and prefers nodes that are used little."""

    name = "load-aware"
    Arguments: ClassVar[type] = LoadAwareArguments
    filters = True
    scores = True
    resources = (CPU, MEMORY)
    singly = True
    arguments: LoadAwareArguments
    loads: Loads

    def __init__(self, arguments: LoadAwareArguments, cluster: Cluster) -> None:
        super().__init__(arguments, cluster)
        self.listen(on_pod=self._pod)

    def start(self) -> None:
        """See NodePolicy."""
        given = self.arguments
        self.preemption_helps = given.compatibility
        self._estimates = Estimates(given.scaling_factors)
        self._file = PolicyFile(given.policy_file, self.cluster.now) if given.policy_file else None
        self._follow()

    def refresh(self) -> None:
        """See NodePolicy."""
        if self._file is not None and self._file.changed():
            self._follow()
            for index, node in enumerate(self.cluster.nodes):
                if node is not None:
                    self.loads.read(index, node)
            for pods in range(len(self.cluster)):
                for pod in self.cluster.pods_on(pods):
                    self._pod(pods, pod, True)
            self._changes.mark_all()
        self.loads.expire()
        self._hot.expire()

    def kind(self, pod: Pod) -> Kind | None:
        """See NodePolicy."""
        given = self.arguments
        if given.own_demand and not given.compatibility:
            return self._estimates.of(pod)
        return None

    def filter_kind(self, pod: Pod) -> Hashable:
        """A DaemonSet's pod has one node only, and belongs there."""
        return None if pod.owner_kind == DAEMON_SET else "any"

    def scores_of(self, kind: Hashable, indices: Ints) -> Floats:
        """See NodePolicy."""
        return ten(self._score(kind, indices))

    def score_one(self, kind: Hashable, index: int) -> float:
        """See NodePolicy."""
        hot = self.loads.columns[HOT][index] if self._from_annotation else self._hot.column[index]
        percent = crane.score_one(
            self._scored.expected_one(index, cast("Kind | None", kind), self._variance),
            self._weights,
            hot if hot == hot else 0.0,
            original=self.arguments.compatibility,
        )
        return ten_one(percent)

    def rejects(self, kind: Hashable, indices: Ints) -> Bools:
        """See NodePolicy."""
        above = self._filtered.expected(indices) > np.array(self._limits).reshape(-1, 1)
        found: Bools = np.logical_or.reduce(above, 0)
        return found

    def rejects_one(self, kind: Hashable, index: int) -> bool:
        """See NodePolicy."""
        return any(map(operator.gt, self._filtered.expected_one(index), self._limits))

    def reasons(self, kind: Hashable, indices: Ints) -> list[tuple[str, str]]:
        """See NodePolicy."""
        rules = self.rules.predicates
        expected = self._filtered.expected(indices).T.tolist()
        measured = self._filtered.measured(indices).T.tolist()
        return [
            _too_much(
                [each for each in zip(rules, *levels, strict=True) if each[1] > each[0].limit]
            )
            for levels in zip(expected, measured, strict=True)
        ]

    def details(self, kind: Hashable, indices: Ints) -> list[dict[str, Any]]:
        """See NodePolicy."""
        size = len(self.cluster)
        measured = self._scored.measured(indices)
        expected = self._scored.expected(indices, kind, self._variance)
        columns: dict[str, Any] = {}
        for at, rule in enumerate(self.rules.priorities):
            columns[rule.name] = shown(measured[at])
            columns[f"{rule.name}Expected"] = shown(expected[at])
        for resource, column in zip(self.resources, self._in_flight.columns, strict=True):
            columns[f"{resource}InFlight"] = shown(column.take(indices, size))
        columns["hotValue"] = shown(self._hot_values(indices))
        columns["percent"] = shown(self._score(kind, indices))
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def on_load(self, index: int) -> None:
        """See NodePolicy."""
        self._in_flight.renew(index)

    # --- inside ---------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Go by the rules as they are now."""
        given = self.arguments
        policy = self._file.policy if self._file else None
        self.rules: Rules = policy.rules if policy else given.rules()
        annotations = given.annotations or (policy.read if policy else OWN)
        zone = given.time_zone or (policy.crane_zone if policy else CRANE_ZONE)
        predicates = [rule.name for rule in self.rules.predicates]
        priorities = [rule.name for rule in self.rules.priorities]
        valid = {name: self.rules.valid_for(name) or 0.0 for name in (*predicates, *priorities)}
        shortest = min(valid.values(), default=VALID)
        names = [*MEANS, *DEVIATIONS, *predicates, *priorities]
        for name in names:
            valid.setdefault(name, shortest)
        self._from_annotation = given.compatibility and annotations in (CRANE, CRANE_PLUS)
        if self._from_annotation:
            names.append(HOT)
        self.loads = Loads(
            self.cluster,
            names,
            self.changed,
            annotations=annotations,
            valid=valid,
            zone=time_zone(zone),
        )
        self._in_flight = InFlight(
            2, self._estimates.of, self.cluster.now, self.loads.measured, WINDOW, fades=True
        )
        self._hot = HotValues(self.cluster, self.rules.hot_values, self.changed)
        self._variance = 0.0 if given.compatibility else given.variance
        self._limits = [rule.limit for rule in self.rules.predicates]
        self._weights = [rule.weight for rule in self.rules.priorities]
        self._filtered = Expectation(self, predicates)
        self._scored = Expectation(self, priorities)

    def _score(self, kind: Hashable, indices: Ints) -> Floats:
        """0..100, as crane's; see Expectation.expected."""
        return crane.score(
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
        flies = self._in_flight.pod(index, pod, added)
        if hotter or flies:
            self.changed(index)


class Expectation:
    """What is to be expected of some metrics, of all of them at a time.

    Args:
        policy: whose figures.
        names: of the metrics.
    """

    def __init__(self, policy: LoadAware, names: Sequence[str]) -> None:
        self._policy = policy
        known = list(policy.loads.columns)
        self._rows = [known.index(name) for name in names]
        of = [next((at for at, p in enumerate(PREFIXES) if n.startswith(p)), -1) for n in names]
        self._resources = of  # -1: of none, so nothing is added; it is the last row of what is
        # From where what is added counts: a maximum of hours becomes as high as the mean will be.
        self._from = [
            resource if resource >= 0 and "_max_" in name else row
            for name, row, resource in zip(names, self._rows, of, strict=True)
        ]

    def measured(self, indices: Ints) -> Floats:
        """As nodes say (float64[metrics, n])."""
        return self._figures(indices).take(self._rows, 0)

    def expected(self, indices: Ints, kind: Hashable = None, variance: float = 0.0) -> Floats:
        """With pods that are not measured yet, and what else is given (float64[metrics, n]).

        Args:
            indices: of nodes.
            kind: what the pod itself will use, of each resource; None: nothing.
            variance: so many standard deviations.
        """
        policy, size = self._policy, len(self._policy.cluster)
        figures = self._figures(indices)
        measured = figures.take(self._rows, 0)
        if policy.arguments.compatibility or not self._rows:
            return measured
        added = np.zeros((len(policy.resources) + 1, len(indices)))
        amounts = added[:-1]
        if policy.arguments.in_flight:
            amounts += policy._in_flight.matrix.take(indices, size)
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
        """The same of one node, to the last digit."""
        policy = self._policy
        figures = policy.loads.matrix.of(index)
        if policy.arguments.compatibility:
            return [figures[row] for row in self._rows]
        added = policy._in_flight.matrix.of(index) if policy.arguments.in_flight else [0.0, 0.0]
        for at, capacity in enumerate(policy.capacities.of(index)):
            amount = added[at]
            if kind is not None:
                amount += kind[at]
            if variance and figures[2 + at] == figures[2 + at]:
                amount += variance * figures[2 + at]
            added[at] = amount / capacity
        added.append(0.0)
        found = []
        for row, start, resource in zip(self._rows, self._from, self._resources, strict=True):
            measured, raised = figures[row], figures[start] + added[resource]
            found.append(raised if raised > measured else measured)
        return found

    def _figures(self, indices: Ints) -> Floats:
        return self._policy.loads.matrix.take(indices, len(self._policy.cluster))


def _too_much(beyond: Sequence[tuple[Predicate, float, float]]) -> tuple[str, str]:
    """Reason and figures of a node: the rules that it breaks, with expected and measured levels."""
    limits = (f"{rule.name} above {100 * rule.limit:g} percent" for rule, _, _ in beyond)
    figures = (
        f"{rule.name}: {100 * expected:.1f} percent"
        + (f" of which {100 * measured:.1f} are measured" if expected > measured else "")
        for rule, expected, measured in beyond
    )
    return f"too much is used: {', '.join(limits)}", ", ".join(figures)

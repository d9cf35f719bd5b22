"""Many conditions of the operator become one condition of its ClusterOperator.

`…Degraded` conditions become Degraded, `…Available` ones Available, and so on. A bad condition
counts only once it has been bad for its inertia, so that a planned restart raises no alarm. Those
that are not old enough yet appear neither in the reason nor in the message of a bad result
(OpenShift's operator lets them leak in as soon as any other is old enough; see
docs/openshift-differences.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..base import names
from .conditions import AS_EXPECTED, Condition, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

NO_DATA: Final = "NoData"


@dataclass(frozen=True, slots=True)
class Inertia:
    """How long a condition must have been bad before the ClusterOperator shows it.

    Attributes:
        default: seconds.
        by_type: (condition type, seconds) for those that differ.
    """

    default: float = 0.0
    by_type: tuple[tuple[str, float], ...] = ()

    def of(self, type_: str) -> float:
        """The inertia of conditions of this type, in seconds."""
        return dict(self.by_type).get(type_, self.default)


NO_INERTIA: Final = Inertia()

# Precise verdicts about what a user just wrote are shown at once. The others also arise from
# disturbances that go away by themselves: an API server that restarts, a node that reboots.
DEGRADED_INERTIA: Final = Inertia(
    default=120.0,
    by_type=(
        (names.CONFIG_OBSERVATION_DEGRADED, 0.0),
        (names.TARGET_CONFIG_DEGRADED, 0.0),
        (names.OVERRIDES_DEGRADED, 0.0),
        (names.SCHEDULER_PROFILES_DEGRADED, 0.0),
        (names.SCHEDULER_EXTENDERS_DEGRADED, 0.0),
        (names.PREFLIGHT_DEGRADED, 0.0),
        (names.NODE_INSTALLER_DEGRADED, 0.0),
        (names.STATIC_PODS_DEGRADED, 30.0),
        (names.NODES_DEGRADED, 600.0),
    ),
)

# Longer than a planned restart of the only scheduler of a cluster takes.
AVAILABLE_INERTIA: Final = Inertia(default=30.0)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A condition of the ClusterOperator: which ones it is made of and what is good.

    Attributes:
        type: its type, and the suffix of the types that belong to it.
        good: the status that means that all is well.
        inertia: how long members must have been bad.
    """

    type: str
    good: Status
    inertia: Inertia = NO_INERTIA


AGGREGATES: Final = (
    Aggregate("Available", "True", AVAILABLE_INERTIA),
    Aggregate("Degraded", "False", DEGRADED_INERTIA),
    Aggregate("EvaluationConditionsDetected", "False"),
    Aggregate("Progressing", "False"),
    Aggregate("Upgradeable", "True"),
)


@dataclass(frozen=True, slots=True)
class Union:
    """A result, and when to look again.

    Attributes:
        condition: for the ClusterOperator; `last_transition_time` is not set.
        requeue_after: seconds until the first condition that is bad but too young outgrows its
            inertia; None if there is none.
    """

    condition: Condition
    requeue_after: float | None = None


def union(aggregate: Aggregate, conditions: Iterable[Condition], now: datetime) -> Union:
    """One condition out of those whose type ends in `aggregate.type`.

    Nothing matches: Unknown, reason NoData. Nothing is bad for long enough: the good status, reason
    AsExpected, and all messages. Otherwise the opposite of the good status if a bad condition has
    it, else Unknown, with the reasons and messages of the bad ones.

    Args:
        aggregate: what to make.
        conditions: any conditions, in the order in which messages are listed when all is well.
        now: time zone aware.
    """
    matching = [c for c in conditions if c.type.endswith(aggregate.type)]
    if not matching:
        return Union(Condition(aggregate.type, "Unknown", NO_DATA))

    bad: list[Condition] = []
    waits: list[float] = []
    for condition in sorted(matching, key=lambda c: c.type):
        if condition.status == aggregate.good:
            continue
        wait = _wait(condition, aggregate.inertia.of(condition.type), now)
        if wait > 0:
            waits.append(wait)
        else:
            bad.append(condition)
    requeue_after = min(waits, default=None)

    if not bad:
        message = _message(matching) or "All is well"
        return Union(Condition(aggregate.type, aggregate.good, AS_EXPECTED, message), requeue_after)
    opposite: Status = "False" if aggregate.good == "True" else "True"
    status: Status = opposite if any(c.status == opposite for c in bad) else "Unknown"
    reason = "::".join(sorted(_reason(c, aggregate.type) for c in bad))
    return Union(Condition(aggregate.type, status, reason, _message(bad)), requeue_after)


def _wait(condition: Condition, inertia: float, now: datetime) -> float:
    """Seconds until `condition` counts; not positive if it does already."""
    since = condition.last_transition_time
    if since is None:  # nobody knows for how long: do not hide it
        return 0.0
    # A time in the future comes from another replica's clock; it must not add to the wait.
    return inertia - max(0.0, (now - since).total_seconds())


def _reason(condition: Condition, suffix: str) -> str:
    prefix = condition.type.removesuffix(suffix)
    return f"{prefix}_{condition.reason}" if condition.reason else prefix


def _message(conditions: Sequence[Condition]) -> str:
    lines: list[str] = []
    for condition in conditions:
        distinct = dict.fromkeys(condition.message.splitlines())
        lines += [f"{condition.type}: {line}" for line in distinct]
    return "\n".join(lines)

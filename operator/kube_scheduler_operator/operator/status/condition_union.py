"""The union of KubeScheduler's conditions: one condition of the ClusterOperator for each suffix.

`…Degraded` conditions become Degraded, `…Available` ones Available, and so on. A bad condition
counts only after its inertia, so that a planned restart raises no alarm. Until then it appears
neither in the reason nor in the message of a bad result. (OpenShift's operator includes it as soon
as any other condition counts; see docs/openshift-differences.md.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ...base import names
from ...base.times import seconds_left
from .conditions import AS_EXPECTED, Condition, Status

NO_DATA: Final = "NoData"


@dataclass(frozen=True, slots=True)
class Inertia:
    """How long a condition must have been bad before the ClusterOperator shows it."""

    default: float = 0.0  # seconds
    by_type: tuple[tuple[str, float], ...] = ()  # (condition type, seconds) where it differs

    def of(self, type_: str) -> float:
        return dict(self.by_type).get(type_, self.default)


NO_INERTIA: Final = Inertia()

# Errors in an edit are shown at once. Other conditions also arise from temporary
# disturbances: an API server that restarts, a node that reboots.
DEGRADED_INERTIA: Final = Inertia(
    default=120.0,
    by_type=(
        (names.CONFIG_OBSERVATION_DEGRADED, 0.0),
        (names.TARGET_CONFIG_DEGRADED, 0.0),
        (names.OVERRIDES_DEGRADED, 0.0),
        (names.ADOPTION_DEGRADED, 0.0),
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
    """A condition of the ClusterOperator, made of those whose type ends in its own."""

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
    condition: Condition  # without `last_transition_time`
    # seconds until the first condition that is bad but too young outgrows its inertia
    requeue_after: float | None = None


def union(
    aggregate: Aggregate,
    conditions: Iterable[Condition],
    now: datetime,
    *,
    prefix_healthy: bool = True,
) -> Union:
    """One condition from those whose type ends in `aggregate.type`.

    If none matches: Unknown, reason NoData. If none has been bad for its inertia: the good status,
    reason AsExpected, and all messages, each after its type if `prefix_healthy`. Otherwise the
    opposite of the good status if a bad condition has it, else Unknown, with the reasons and
    messages of the bad conditions.
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
        message = _message(matching, "" if prefix_healthy else aggregate.good) or "All is well"
        return Union(Condition(aggregate.type, aggregate.good, AS_EXPECTED, message), requeue_after)
    opposite: Status = "False" if aggregate.good == "True" else "True"
    status: Status = opposite if any(c.status == opposite for c in bad) else "Unknown"
    reason = "::".join(sorted(_reason(c, aggregate.type) for c in bad))
    return Union(Condition(aggregate.type, status, reason, _message(bad)), requeue_after)


def _wait(condition: Condition, inertia: float, now: datetime) -> float:
    """Seconds until `condition` counts; 0 or less if it does already."""
    since = condition.last_transition_time
    if since is None:  # an unknown duration does not hide a condition
        return 0.0
    # A time in the future comes from another clock; it must not add to the wait, or never end it.
    return min(seconds_left(now, since, inertia), inertia)


def _reason(condition: Condition, suffix: str) -> str:
    prefix = condition.type.removesuffix(suffix)
    return f"{prefix}_{condition.reason}" if condition.reason else prefix


def _message(conditions: Sequence[Condition], unprefixed: str = "") -> str:
    """All messages, each after its condition's type unless its status is `unprefixed`."""
    lines: list[str] = []
    for condition in conditions:
        distinct = dict.fromkeys(condition.message.splitlines())
        prefix = "" if condition.status == unprefixed else f"{condition.type}: "
        lines += [f"{prefix}{line}" for line in distinct]
    return "\n".join(lines)

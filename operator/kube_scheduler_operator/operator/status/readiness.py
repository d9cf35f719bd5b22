"""Ready, Reconciling and Stalled: the state of an object in the words of kstatus.

kstatus is the library by which Flux, Helm and others wait (sigs.k8s.io/cli-utils/pkg/kstatus).
Every kind of this group has the three, and `readiness` alone derives them, from the other
conditions of the object and those of its scheduler. At most one of them is True; none is while the
state is not observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...base import names
from ...base.objects import Object, mapping
from .conditions import AS_EXPECTED, Condition, Status, condition_in

TYPES: Final = (names.READY, names.RECONCILING, names.STALLED)

UNSEEN: Final = -1
"""The observedGeneration of an object that the operator has not seen, by default in its CRD."""
ON_SOME_NODES: Final = frozenset({"NodesUnknown", "ExporterNotReady"})
"""Reasons of Degraded of an object that is in use all the same: some nodes are without it."""

HELD: Final = (
    "the edit is held; approve it with `kubectl scheduler rollout approve`, or revert it: "
    f"{names.PLACEMENT_CHECK_PROGRESSING} of {{}} has the reason"
)
CHECKED: Final = (
    "the edit is valid and waits, because it may change placements; "
    f"{names.PLACEMENT_CHECK_PROGRESSING} of {{}} has its state"
)


class _Rule(NamedTuple):
    outcome: str  # the condition that is True then; empty: none
    type: str
    status: Status
    only: frozenset[str] = frozenset()  # reasons; empty: all
    but: frozenset[str] = frozenset()


_RULES: Final = (
    _Rule(names.STALLED, names.ACCEPTED, "False", but=frozenset({names.REASON_WAITING})),
    _Rule(names.STALLED, names.DEGRADED, "True", but=ON_SOME_NODES),
    _Rule(
        names.STALLED,
        names.PLACEMENT_CHECK_PROGRESSING,
        "True",
        only=frozenset({names.REASON_HELD}),
    ),
    _Rule(names.RECONCILING, names.PLACEMENT_CHECK_PROGRESSING, "True"),
    _Rule(names.RECONCILING, names.ACCEPTED, "False"),
    _Rule(names.RECONCILING, names.AVAILABLE, "False"),
    _Rule(names.RECONCILING, names.PROGRESSING, "True"),
    _Rule("", names.AVAILABLE, "Unknown", but=frozenset({names.REASON_NOT_MANAGED})),
)
"""The first one with a condition decides; without any, the object is Ready."""


def readiness(conditions: Iterable[Condition]) -> tuple[Condition, Condition, Condition]:
    """Ready, Reconciling and Stalled of an object with these conditions.

    `conditions` are those of the object, and those of its scheduler that say why the object does
    not schedule; other types do not count. The condition that decides gives reason and message.
    """
    known = tuple(conditions)
    for rule in _RULES:
        for condition in known:
            if _matches(rule, condition):
                return _decided(rule.outcome, condition)
    return _decided(names.READY, Condition(names.READY, "True", AS_EXPECTED))


def _matches(rule: _Rule, condition: Condition) -> bool:
    return (
        (condition.type, condition.status) == (rule.type, rule.status)
        and (not rule.only or condition.reason in rule.only)
        and condition.reason not in rule.but
    )


def _decided(outcome: str, by: Condition) -> tuple[Condition, Condition, Condition]:
    ready: Status = "Unknown" if not outcome else "True" if outcome == names.READY else "False"
    reason = by.reason or by.type
    reconciling, stalled = (
        Condition(type_, "True", reason, by.message)
        if type_ == outcome
        else Condition(type_, "False", AS_EXPECTED)
        for type_ in (names.RECONCILING, names.STALLED)
    )
    return Condition(names.READY, ready, reason, by.message), reconciling, stalled


def with_readiness(
    obj: Object, conditions: Sequence[Condition], scheduler: Sequence[Condition] | None
) -> tuple[Condition, ...]:
    """`conditions` of an object, and Ready, Reconciling and Stalled.

    `scheduler` are the conditions of its scheduler; None while they are not known. Then the three
    stay as they are if neither the object nor another of its conditions changed.
    """
    if scheduler is not None:
        return (*conditions, *readiness((*conditions, *scheduler)))
    own = readiness(conditions)
    before = mapping(obj.get("status"))
    edited = before.get("observedGeneration") != obj["metadata"].get("generation")
    if own[0].status != "True":
        return (*conditions, *own)
    if not edited and not any(_changed(before, condition) for condition in conditions):
        known = (condition_in(before, type_) for type_ in TYPES)
        return (*conditions, *(Condition.from_raw(raw) for raw in known if raw))
    return (*conditions, *readiness((NOT_EVERYWHERE,)))


def _changed(before: Mapping[str, Any], condition: Condition) -> bool:
    was = condition_in(before, condition.type)
    return (was.get("status"), was.get("reason")) != (condition.status, condition.reason)


def rolling_out(message: str) -> Condition:
    return Condition(names.PROGRESSING, "True", "RollingOut", message)


NOT_EVERYWHERE: Final = rolling_out(
    "it is not rolled out everywhere yet; Progressing conditions of KubeScheduler have its state"
)


def check_condition(reason: str, whose: str) -> Condition:
    """PlacementCheckProgressing of `whose`, as the objects say it whose edit waits for it.

    What the simulation found is in the original: it changes with every repetition.
    """
    message = (HELD if reason == names.REASON_HELD else CHECKED).format(whose)
    return Condition(names.PLACEMENT_CHECK_PROGRESSING, "True", reason, message)

"""Conditions: one finding each, written to `status.conditions` without moving what did not change.

A status write that changes nothing must be byte for byte what is there already, or every pass would
write. So the list is sorted by type, keys have a fixed order, empty texts are left out, and
`lastTransitionTime` is carried over as the string that was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Status: TypeAlias = Literal["True", "False", "Unknown"]
RawCondition: TypeAlias = dict[str, Any]

AS_EXPECTED: Final = "AsExpected"


@dataclass(frozen=True, slots=True)
class Condition:
    """One finding.

    Attributes:
        type: what was looked at, e.g. "NodeInstallerDegraded".
        status: "True", "False" or "Unknown".
        reason: the cause in one CamelCase word, for programs; may be empty.
        message: the cause and the fix, for people; may be empty, may have several lines.
        last_transition_time: when `status` last changed, as read from the API. Ignored when a
            condition is written: see `merge_conditions`.
    """

    type: str
    status: Status
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None

    @classmethod
    def from_raw(cls, raw: Mapping[str, Any]) -> Condition:
        """The condition `raw` as the API sends it; an unknown status reads as "Unknown"."""
        status = raw.get("status")
        return cls(
            type=raw["type"],
            status=cast("Status", status) if status in ("True", "False") else "Unknown",
            reason=raw.get("reason") or "",
            message=raw.get("message") or "",
            last_transition_time=parse_time(raw.get("lastTransitionTime")),
        )


def merge_conditions(
    old: Sequence[Mapping[str, Any]], new: Sequence[Condition], now: datetime
) -> list[RawCondition]:
    """The list to write: `new` over `old`.

    Conditions of `old` that `new` does not mention belong to somebody else and are kept.
    `lastTransitionTime` stays while the status is the same and is `now` otherwise.

    Args:
        old: `status.conditions` as read.
        new: what this operator found.
        now: time zone aware.

    Returns:
        Sorted by type; equal to `old` (if that is sorted) when nothing changed.

    Raises:
        ValueError: `new` has a type twice.
    """
    merged: dict[str, RawCondition] = {raw["type"]: dict(raw) for raw in old}
    seen: set[str] = set()
    for condition in new:
        if condition.type in seen:
            raise ValueError(f"condition {condition.type} is reported twice in one pass")
        seen.add(condition.type)
        merged[condition.type] = _raw(condition, merged.get(condition.type), now)
    return [merged[type_] for type_ in sorted(merged)]


def condition_in(status: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    """The condition of that type in a status as it was read; empty if there is none."""
    conditions = status.get("conditions") or ()
    return next((raw for raw in conditions if raw["type"] == type_), {})


def aggregate(errors: Iterable[BaseException | str | None]) -> str:
    """Several errors as one message: None dropped, sorted, one per line.

    Sorted, because the order in which errors are found may differ between passes and the message
    must not.
    """
    return "\n".join(sorted(str(error) for error in errors if error is not None))


def format_time(time: datetime) -> str:
    """`time` as the API writes it, e.g. "2026-11-21T01:20:17Z" (whole seconds, rounded down)."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str | None) -> datetime | None:
    """The time that `text` (RFC 3339) says; None if it is missing or malformed."""
    try:
        time = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time and time.tzinfo is None else time


def _raw(condition: Condition, old: RawCondition | None, now: datetime) -> RawCondition:
    kept = old.get("lastTransitionTime") if old and old.get("status") == condition.status else None
    raw: RawCondition = {"lastTransitionTime": kept or format_time(now)}
    if condition.message:
        raw["message"] = condition.message
    if condition.reason:
        raw["reason"] = condition.reason
    raw["status"] = condition.status
    raw["type"] = condition.type
    return raw

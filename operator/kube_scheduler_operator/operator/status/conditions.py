"""Conditions, and how they are merged into `status.conditions` without needless changes.

Unchanged conditions must be byte for byte what the API has, or every reconcile would write. So the
list is sorted by type, keys have a fixed order, empty texts are omitted, and `lastTransitionTime`
is copied as the string that was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, cast

from ...base.findings import Finding
from ...base.foreign_text import visible
from ...base.limits import MESSAGE_LENGTH
from ...base.times import rfc3339, timestamp

Status: TypeAlias = Literal["True", "False", "Unknown"]
RawCondition: TypeAlias = dict[str, Any]

AS_EXPECTED: Final = "AsExpected"
NOT_ALL_READ: Final = "NotAllRead"
"""The status is Unknown because there are more objects than were read."""
MOST_LINES: Final = 10
"""Of a condition of warnings."""
MOST_CHARACTERS: Final = 600
"""Of a line in it. The longest message has some 450, but messages contain names of any length."""
ALWAYS_FALSE: Final = "always False: "
"""Begins the message of a condition that never becomes True and exists for OpenShift's tools."""


@dataclass(frozen=True, slots=True)
class Condition:
    type: str  # e.g. "NodeInstallerDegraded"
    status: Status
    reason: str = ""  # the cause in one CamelCase word, for programs; may be empty
    message: str = ""  # the cause and the fix, for people; may be empty or have several lines
    # when `status` last changed, as read from the API; `merge_conditions` sets its own
    last_transition_time: datetime | None = None

    def __post_init__(self) -> None:
        # Control characters of foreign texts that were not escaped where they entered.
        object.__setattr__(self, "reason", visible(self.reason))
        object.__setattr__(self, "message", visible(self.message))

    @classmethod
    def from_raw(cls, raw: Mapping[str, Any]) -> Condition:
        """Read the API's form; an unknown status becomes "Unknown"."""
        status = raw.get("status")
        return cls(
            type=raw["type"],
            status=cast("Status", status) if status in ("True", "False") else "Unknown",
            reason=raw.get("reason") or "",
            message=raw.get("message") or "",
            last_transition_time=timestamp(raw.get("lastTransitionTime")),
        )


def merge_conditions(
    old: Sequence[Mapping[str, Any]], new: Sequence[Condition], now: datetime
) -> list[RawCondition]:
    """The list to write: `new` over `old`, sorted by type; a sorted `old` if nothing changed.

    Conditions of `old` whose type is not in `new` belong to another controller and stay.
    `lastTransitionTime` stays while the status is the same and is `now` otherwise.

    Raises:
        ValueError: `new` has a type twice.
    """
    merged: dict[str, RawCondition] = {raw["type"]: dict(raw) for raw in old}
    seen: set[str] = set()
    for condition in new:
        if condition.type in seen:
            raise ValueError(f"condition {condition.type} is reported twice in one reconcile")
        seen.add(condition.type)
        merged[condition.type] = _raw(condition, merged.get(condition.type), now)
    return [merged[type_] for type_ in sorted(merged)]


def condition_in(status: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    """The condition of that type; empty if it is not set."""
    conditions = status.get("conditions") or ()
    return next((raw for raw in conditions if raw["type"] == type_), {})


def is_true(obj: Mapping[str, Any], type_: str) -> bool:
    """Whether the status of an object has this condition with status True."""
    return bool(condition_in(obj.get("status") or {}, type_).get("status") == "True")


def problem_condition(type_: str, problems: Iterable[tuple[str, str]]) -> Condition:
    """True with the reason of the first problem and all messages; False without problems.

    `problems` are pairs of reason and message.
    """
    pairs = tuple(problems)
    if not pairs:
        return Condition(type_, "False", AS_EXPECTED)
    return Condition(type_, "True", pairs[0][0], aggregate(message for _, message in pairs))


def warnings_condition(
    type_: str, findings: Iterable[Finding], owner: str = "", unused: str = ""
) -> Condition:
    """The condition that lists `findings`: True if there are any.

    `owner` is the prefix to omit from every line, because the condition is in that object; `unused`
    is why the settings that the findings are about do not run, empty if they do. The
    message is sorted, so that an order that changes does not cause a write in every reconcile.
    """
    messages = sorted({(f.text.removeprefix(owner), f.reason) for f in findings})
    if not messages:
        return Condition(type_, "False", AS_EXPECTED)
    remark = f" ({unused})" if unused else ""
    lines = [f"{_short_line(text)}{remark}" for text, _ in messages[:MOST_LINES]]
    more = len(messages) - len(lines)
    if more:
        lines.append(f"and {more} more: `kubectl scheduler validate -f FILE` lists all")
    return Condition(type_, "True", messages[0][1], "\n".join(lines))


def _short_line(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def aggregate(messages: Iterable[str]) -> str:
    """One line for each message; sorted, because the next reconcile may find another order."""
    return "\n".join(sorted(messages))


def _shortened(message: str) -> str:
    """A message of at most MESSAGE_LENGTH: one object must not make a status too large to write."""
    if len(message) <= MESSAGE_LENGTH:
        return message
    left = len(message) - MESSAGE_LENGTH
    return f"{message[:MESSAGE_LENGTH]}… ({left} more characters)"


def _raw(condition: Condition, old: RawCondition | None, now: datetime) -> RawCondition:
    kept = old.get("lastTransitionTime") if old and old.get("status") == condition.status else None
    raw: RawCondition = {"lastTransitionTime": kept or rfc3339(now)}
    if condition.message:
        raw["message"] = _shortened(condition.message)
    if condition.reason:
        raw["reason"] = condition.reason
    raw["status"] = condition.status
    raw["type"] = condition.type
    return raw

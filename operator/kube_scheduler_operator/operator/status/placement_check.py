"""Decides whether an edit of a scheduler is rolled out, waits for a simulation, or is held.

The decision is the same for every scheduler; what differs is in `CheckedEdit`: what of it decides
placements, what may be rolled out without it, and its memory. A memory has which rules were
compared, since when and with which result, and which ones ran. Without the memory of a comparison
it is repeated.

A held edit is simulated again, because Pods and Nodes change. Each wait for a repetition is twice
as long as the one before it, up to a limit; the result before it counts until there is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from ...base import names
from ...base.objects import entries, mapping
from ...base.times import ALWAYS, rfc3339, seconds_left, timestamp
from ...config.effective.settings.validate import GATE, OFF, PlacementSettings
from ...kube.api import EventType
from ..model.plan import Event, PlacementQuestion, PlacementRules
from ..model.snapshot import CheckIdentity, PlacementAnswer, Snapshot
from .conditions import Condition, Status

SIMULATING: Final = "Simulating"
NOTHING_WORSE: Final = "NothingWorse"
WORSE: Final = "Worse"
NOT_KNOWN: Final = "NotKnown"
FAILED: Final = "Failed"
"""Results of a simulation; NOT_KNOWN: it does not try all that the edit may change."""

HELD: Final = names.REASON_HELD
PASSED: Final = "Passed"
APPROVED: Final = "Approved"
"""States of a check, beside SIMULATING."""

UNCHANGED: Final = "Unchanged"
BLOCKED: Final = "ConfigurationBlocked"
NOT_COMPARABLE: Final = "NoRunningRevision"
WAY_BACK: Final = "RanBefore"
VERSION: Final = "VersionChange"

GRACE_SECONDS: Final = 30.0
"""After the time limit, until a simulation without an answer counts as failed."""
RETRY_SECONDS: Final = 300.0
"""From a simulation that failed to the next one while its edit is held, at least."""
REPEAT_SECONDS: Final = 300.0
"""From the result for which an edit is held to the first repetition of its simulation."""
REPEAT_LIMIT: Final = 1800.0
"""Between two repetitions, at most, unless the time limit is longer: 49 in the first day."""
MOST_REMEMBERED: Final = 20
"""Configurations that ran, and that never wait when they return."""

NOTHING_TO_COMPARE: Final = "no revision is in use whose placements could be compared"
APPROVE: Final = "kubectl scheduler rollout approve"

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class PlacementCheck(Generic[Content]):
    content: Content | None  # what may be rolled out; None if nothing may
    record: Mapping[str, Any]  # its memory; empty without a check
    condition: Condition | None = None  # None if the check is off and was never on
    question: PlacementQuestion | None = None  # the simulation to run
    events: tuple[Event, ...] = ()
    requeue_after: float | None = None  # seconds until a wait ends
    passes: bool = False  # whether the edit may be rolled out, with those of agents
    placements: str = ""  # what the edit changes for Pods, in words; empty if it was not checked
    elsewhere: bool = False  # whether its memory and events belong to OperatorSettings

    @property
    def waits(self) -> bool:
        return self.condition is not None and self.condition.status == "True"


@dataclass(frozen=True, slots=True)
class CheckedEdit(Generic[Content]):
    """An edit of the rules of one scheduler, and what its check is based on."""

    snapshot: Snapshot
    settings: PlacementSettings  # with the approval of this scheduler
    recorded: Mapping[str, Any]  # its memory as it was before
    content: Content  # what was composed
    kept: Callable[[], Content | None]  # what may be rolled out without the edit
    before: PlacementRules | None  # the rules in use; None without any
    after: PlacementRules  # the composed rules
    configuration: str  # hash of `after`
    in_use: str  # hash of `before`; empty without one
    has_run: bool  # whether the rules in use are those of healthy schedulers
    image: str  # of `content`
    command: tuple[str, ...]
    has_other_image: bool = False  # not that of the rules in use
    has_same_settings: bool = False  # whether users have set what they had set for those
    ran_without_gate: Callable[[], str] = str  # which content ran with `after`; empty: none
    edits_agents: bool = False  # of those that are called before and after
    not_tried: str = ""  # what no simulation tries of it; empty if all is tried
    is_simulated: bool = True  # whether a simulation tries any of it
    is_remembered: bool = True  # whether the memory can be written
    whose: str = ""  # the scheduler, before the message of an event
    scheduler: str = ""  # the option of the command that approves it
    approved_by: str = "spec.placementCheck.approved"  # the field with its approval
    turn: str = ""  # simulations with the same turn run one after the other


def off(content: Content | None, known: Mapping[str, Any]) -> PlacementCheck[Content]:
    """The check while it is off; `known` is its condition from before."""
    condition = _condition("False", OFF, "") if known else None
    return PlacementCheck(content, {}, condition, passes=True)


def blocked(recorded: Mapping[str, Any]) -> PlacementCheck[Content]:
    """The check while a finding blocks the configuration."""
    message = "there is no valid configuration to check"
    return PlacementCheck(None, recorded, _condition("False", BLOCKED, message))


def decide(edit: CheckedEdit[Content]) -> PlacementCheck[Content]:
    check = _decide(edit)
    ran = _ran(edit)
    return replace(check, record={**check.record, "ran": ran}) if ran else check


def _decide(edit: CheckedEdit[Content]) -> PlacementCheck[Content]:
    if _is_unchanged(edit):
        return _unchanged(edit)
    reason, message = _exemption(edit)
    if reason:
        condition = _condition("False", reason, message)
        words = f"not simulated: {message}"
        return PlacementCheck(edit.content, {}, condition, passes=True, placements=words)
    return _checked(edit)


def _ran(edit: CheckedEdit[Content]) -> list[str]:
    """The configurations that ran, the newest last.

    Whatever runs was checked, or there was no Gate; so it may return without a check.
    """
    known = [str(value) for value in entries(edit.recorded.get("ran"))]
    if edit.before is None or not edit.has_run or known[-1:] == [edit.in_use]:
        return known
    return [*(value for value in known if value != edit.in_use), edit.in_use][-MOST_REMEMBERED:]


def _is_unchanged(edit: CheckedEdit[Content]) -> bool:
    """Whether the rules are those in use; flags that come with another image do not count."""
    if edit.configuration == edit.in_use:
        return True
    same = edit.before is not None and replace(edit.before, flags=edit.after.flags) == edit.after
    return same and edit.has_other_image and edit.has_same_settings


def _unchanged(edit: CheckedEdit[Content]) -> PlacementCheck[Content]:
    """Keep the result of an earlier check visible after its rollout."""
    recorded = edit.recorded
    if recorded.get("configuration") != edit.configuration or recorded.get("state") == SIMULATING:
        message = "the configuration in use places Pods as the desired one"
        condition = _condition("False", UNCHANGED, message)
        return PlacementCheck(edit.content, {}, condition, passes=True)
    approved = recorded.get("state") == APPROVED
    record = {**recorded, "state": APPROVED if approved else PASSED}
    reason = APPROVED if approved else str(record.get("result"))
    condition = _condition("False", reason, str(record.get("message")))
    return PlacementCheck(edit.content, record, condition, passes=True)


def _exemption(edit: CheckedEdit[Content]) -> tuple[str, str]:
    """(reason, message) why these rules need no simulation; empty: they do."""
    ran = entries(edit.recorded.get("ran"))
    if same := edit.ran_without_gate():
        return WAY_BACK, f"{same} ran with this configuration"
    if edit.configuration in ran:
        return WAY_BACK, "this configuration ran before"
    if edit.before is None:
        if ran or edit.snapshot.operator_settings is None:
            return "", ""  # after Removed, or after a loss of the revisions
        return NOT_COMPARABLE, NOTHING_TO_COMPARE
    if edit.has_other_image and not edit.edits_agents and edit.has_same_settings:
        return VERSION, "another kube-scheduler changes the configuration, not a setting"
    return "", ""


def _checked(edit: CheckedEdit[Content]) -> PlacementCheck[Content]:
    recorded, settings = edit.recorded, edit.settings
    same = recorded.get("configuration") == edit.configuration
    # While it is rolled out, agents already decide by it.
    reported = settings.mode != GATE and recorded.get("state") == PASSED
    if same and (reported or recorded.get("running", "") == edit.in_use):
        record = dict(recorded)
    else:
        again = {"state": HELD} if same and recorded.get("state") == HELD else {}
        record = _begun(edit) | again
    if edit.before is None or not edit.is_simulated:
        record |= {"result": NOT_KNOWN, "effect": edit.not_tried}
        if settings.approved == edit.configuration:
            return _decided(edit, record, APPROVED)
        return _held(edit, record) if settings.mode == GATE else _decided(edit, record, NOT_KNOWN)
    if settings.approved == edit.configuration:
        return _decided(edit, record, APPROVED)
    return _simulated(edit, _answered(edit, record))


def _simulated(edit: CheckedEdit[Content], record: dict[str, Any]) -> PlacementCheck[Content]:
    """Decide by the result of the simulation, if there is one."""
    result, gate = record["result"], edit.settings.mode == GATE
    if result == FAILED and gate and not _retry_after(edit, record):
        now = rfc3339(edit.snapshot.now)
        record |= {"result": SIMULATING, "started": now, "state": HELD}
        result = SIMULATING
    if result == SIMULATING:
        return _simulating(edit, record)
    if result == NOTHING_WORSE or not gate:
        return _decided(edit, record, result)
    if result in (WORSE, NOT_KNOWN):
        return _repeating(edit, record)
    check = _held(edit, record)
    wait = _retry_after(edit, record) if result == FAILED else None
    return replace(check, requeue_after=wait)


def _begun(edit: CheckedEdit[Content]) -> dict[str, Any]:
    return {
        "configuration": edit.configuration,
        "running": edit.in_use,
        "started": rfc3339(edit.snapshot.now),
        "result": SIMULATING,
        "state": SIMULATING,
    }


def _answered(edit: CheckedEdit[Content], record: dict[str, Any]) -> dict[str, Any]:
    """The record with the answer, if there is one by now, or if it is overdue."""
    limit = edit.settings.seconds
    if not _awaits(record):
        return record
    answer = edit.snapshot.placement_answers.get(_identity(record))
    if answer is None:
        if _left(edit, record, limit + GRACE_SECONDS):
            return record
        overdue = f"there was no answer within {limit} s"
        answer = PlacementAnswer(_identity(record), error=overdue)
    repetition = mapping(record.get("repetition"))
    if repetition:
        record = {**record, "repetition": {**repetition, "answered": True}}
        if answer.error or answer.unchanged:
            return record
    if answer.error:
        return {**record, "result": FAILED, "effect": answer.error}
    effect = "; ".join(filter(None, (answer.effect, edit.not_tried)))
    unknown = NOT_KNOWN if answer.unknown or edit.not_tried else NOTHING_WORSE
    result = WORSE if answer.worse else unknown
    return {**record, "result": result, "effect": effect, "situation": answer.situation}


def _awaits(record: Mapping[str, Any]) -> bool:
    """Whether a simulation was requested and has no answer."""
    repetition = mapping(record.get("repetition"))
    return not repetition.get("answered") if repetition else record.get("result") == SIMULATING


def _identity(record: Mapping[str, Any]) -> CheckIdentity:
    configuration, running = (str(record.get(key) or "") for key in ("configuration", "running"))
    return CheckIdentity(configuration, running, _requested(record))


def _requested(record: Mapping[str, Any]) -> str:
    source = mapping(record.get("repetition")) or record
    return str(source.get("started") or "")


def _left(edit: CheckedEdit[Content], record: Mapping[str, Any], period: float) -> float:
    started = timestamp(_requested(record)) or ALWAYS
    return seconds_left(edit.snapshot.now, started, period)


def _retry_after(edit: CheckedEdit[Content], record: Mapping[str, Any]) -> float:
    return _left(edit, record, max(RETRY_SECONDS, 2.0 * edit.settings.seconds))


def _repeating(edit: CheckedEdit[Content], record: dict[str, Any]) -> PlacementCheck[Content]:
    """Hold the edit, and simulate it again when it is time: its Pods may no longer exist."""
    wait = _repeat_wait(edit.settings, record)
    if not _awaits(record) and not _left(edit, record, wait):
        repetition = {"number": _repetitions(record) + 1, "started": rfc3339(edit.snapshot.now)}
        record["repetition"] = {**repetition, "answered": False}
    question = None
    if _awaits(record):
        wait = edit.settings.seconds + GRACE_SECONDS
        question = _question(edit, record)
    check = _held(edit, record)
    return replace(check, question=question, requeue_after=_left(edit, record, wait))


def _repetitions(record: Mapping[str, Any]) -> int:
    return int(mapping(record.get("repetition")).get("number") or 0)


def _repeat_wait(settings: PlacementSettings, record: Mapping[str, Any]) -> float:
    """Seconds from the last simulation to the next one."""
    doublings = min(_repetitions(record), 16)  # enough for the limit, and far from an overflow
    wait = min(REPEAT_SECONDS * 2.0**doublings, REPEAT_LIMIT)
    return max(wait, 2.0 * settings.seconds)


def _question(edit: CheckedEdit[Content], record: Mapping[str, Any]) -> PlacementQuestion | None:
    """The simulation of the edit, once its identity is on record, so that it stays the same."""
    identity = _identity(record)
    if edit.before is None or identity != _identity(edit.recorded):
        return None
    return PlacementQuestion(
        identity,
        edit.before,
        edit.after,
        edit.image,
        edit.command,
        edit.settings.seconds,
        str(record.get("situation") or ""),
        edit.turn,
    )


def _simulating(edit: CheckedEdit[Content], record: dict[str, Any]) -> PlacementCheck[Content]:
    """Wait for the answer, with the rules in use."""
    question, settings = _question(edit, record), edit.settings
    limit = settings.seconds + GRACE_SECONDS
    if not edit.is_remembered:
        effect = "OperatorSettings, where its result would be kept, is not served, or too large"
        failed = {**record, "result": FAILED, "effect": effect}
        if settings.mode == GATE:
            return _held(edit, failed)
        return _decided(edit, failed, FAILED)
    if record["state"] == HELD:
        check = _held(edit, record)
        return replace(check, question=question, requeue_after=_left(edit, record, limit))
    message = (
        f"the edit waits while its effect on the cluster's Pods is simulated, at most "
        f"{settings.seconds} s from {record['started']}"
    )
    record["message"] = message
    return PlacementCheck(
        edit.kept(),
        record,
        _condition("True", SIMULATING, message),
        question,
        requeue_after=_left(edit, record, limit),
    )


def _decided(
    edit: CheckedEdit[Content], record: Mapping[str, Any], reason: str
) -> PlacementCheck[Content]:
    """Roll the edit out, and say why it may be."""
    effect = str(record.get("effect") or "")
    unknown = record["result"] == SIMULATING
    message = {
        APPROVED: f"approved: {'not simulated' if unknown else _described(record)}",
        NOTHING_WORSE: f"no Pod loses its place: {effect}",
        WORSE: f"reported only (Warn): {effect}",
        NOT_KNOWN: f"reported only (Warn): {_described(record)}",
        FAILED: f"rolled out without a simulation (Warn), which could not be run: {effect}",
    }[reason]
    state = APPROVED if reason == APPROVED else PASSED
    kept = {**record, "state": state, "message": message}
    events: tuple[Event, ...] = ()
    if _state(kept) != _state(edit.recorded):
        worrying = reason in (WORSE, NOT_KNOWN, FAILED)
        type_: EventType = "Warning" if worrying else "Normal"
        events = (Event("PlacementCheckPassed", f"{edit.whose}{message}", type_),)
    condition = _condition("False", reason, message)
    return PlacementCheck(
        edit.content, kept, condition, events=events, passes=True, placements=message
    )


def _held(edit: CheckedEdit[Content], record: Mapping[str, Any]) -> PlacementCheck[Content]:
    """Keep the rules in use until the edit is approved or reverted."""
    recorded, settings = edit.recorded, edit.settings
    what = _described(record)
    command = f"{APPROVE}{edit.scheduler}"
    message = f"the edit is held: {what}; approve it with `{command}`, or revert it"
    if settings.approved:
        message += (
            f" ({edit.approved_by} of OperatorSettings names another configuration, "
            f"{settings.approved[:12]}…, not {edit.configuration[:12]}…)"
        )
    kept = {**record, "state": HELD, "message": message}
    events: tuple[Event, ...] = ()
    first = (recorded.get("configuration"), recorded.get("state")) != (edit.configuration, HELD)
    other = record["result"] != SIMULATING and record.get("effect") != recorded.get("effect")
    if first or other:
        events = (Event("PlacementCheckHeld", f"{edit.whose}{message}", "Warning"),)
    return PlacementCheck(
        edit.kept(),
        kept,
        _condition("True", HELD, message),
        events=events,
    )


def _described(record: Mapping[str, Any]) -> str:
    effect = str(record.get("effect") or "")
    result = record.get("result")
    if result == FAILED:
        return f"what it changes is not known, because the simulation could not be run: {effect}"
    if result == NOT_KNOWN:
        return f"what it changes is not known: {effect}"
    if result == SIMULATING:
        last = f"could not be run ({effect})" if effect else "was of another revision in use"
        return f"the last simulation {last}, and another one runs"
    return effect


def _state(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return record.get("configuration"), record.get("state"), record.get("result")


def _condition(status: Status, reason: str, message: str) -> Condition:
    return Condition(names.PLACEMENT_CHECK_PROGRESSING, status, reason, message)

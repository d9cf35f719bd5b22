"""Decides whether an edit is rolled out, waits for a simulation, or is held until its approval.

The rules of `placement_rules.py` wait before a revision is made of them; other changes go into a
revision with the rules in use. So no revision exists that must not be installed, and nothing has to
be undone. Agents and LoadPolicies, which need no revision, keep the version that was accepted last
(engine/held_edits.py). The memory is `status.placementCheck` of OperatorSettings: which rules were
compared, since when and with which result, and which ones ran. Without the memory of a comparison
it is repeated.

A held edit is simulated again, because Pods and Nodes change. Each wait for a repetition is twice
as long as the one before it, up to a limit; the result before it counts until there is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...base import names
from ...base.objects import entries, mapping
from ...base.times import ALWAYS, rfc3339, seconds_left, timestamp
from ...config.effective.attachment import last_accepted
from ...config.effective.control_plane.recorded_inputs import RecordedInputs, read_inputs
from ...config.effective.settings.validate import (
    GATE,
    OFF,
    PlacementSettings,
    SettingsResult,
    placement_settings,
    settings_of_check,
)
from ..model.plan import Event, PlacementQuestion, PlacementRules
from ..model.snapshot import CheckIdentity, PlacementAnswer, Snapshot
from ..status.conditions import Condition, Status, condition_in
from .placement_rules import AgentSpecs, agent_edits, rules_hash, rules_of, with_rules_of
from .revision.content import RevisionContent
from .revision.history import Revision
from .revision.revise import RevisionResult

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


@dataclass(frozen=True, slots=True)
class PlacementCheck:
    content: RevisionContent | None  # what may be rolled out; None if nothing may
    record: Mapping[str, Any]  # `status.placementCheck`; empty without a check
    condition: Condition | None = None  # None if the check is off and was never on
    question: PlacementQuestion | None = None  # the simulation to run
    events: tuple[Event, ...] = ()
    requeue_after: float | None = None  # seconds until a wait ends
    passes: bool = False  # whether the edit may be rolled out, with those of agents


@dataclass(frozen=True, slots=True)
class CheckedSpecs:
    """What agents decide by."""

    # the versions that were accepted last
    in_use: AgentSpecs = field(default_factory=AgentSpecs)
    # the versions that would be in use after the edit
    desired: AgentSpecs = field(default_factory=AgentSpecs)


@dataclass(frozen=True, slots=True)
class _Edit:
    """An edit of the rules, and what its check is based on."""

    snapshot: Snapshot
    settings: PlacementSettings
    recorded: Mapping[str, Any]  # `status.placementCheck` as it was before
    content: RevisionContent  # what was composed
    running: Revision | None  # the revision in use; None if no revision is
    before: PlacementRules | None  # its rules
    after: PlacementRules  # the composed rules
    configuration: str  # hash of `after`
    in_use: str  # hash of `before`; empty if no revision is in use

    @property
    def kept(self) -> RevisionContent | None:
        """What may be rolled out without the edit; None if no revision is in use."""
        return with_rules_of(self.content, self.running.content) if self.running else None

    @property
    def has_other_image(self) -> bool:
        return self.running is not None and self.content.image != self.running.content.image

    @property
    def changes_agents_only(self) -> bool:
        before, after = self.before, self.after
        return before is not None and after == replace(
            before, agents=after.agents, load_policies=after.load_policies
        )

    @property
    def not_tried(self) -> str:
        """What no simulation tries of it; empty if all is tried."""
        if self.before is None:
            return NOTHING_TO_COMPARE
        edited = ", ".join(agent_edits(self.before, self.after))
        return f"no simulation tries edits of agents and LoadPolicies: {edited}" if edited else ""


def settings_in_effect(snapshot: Snapshot, result: SettingsResult | None) -> PlacementSettings:
    """Return `spec.placementCheck`, also while other settings have an error.

    While OperatorSettings cannot be read, because the API does not serve the kind, as after a
    restart of the API server, or because the object is too large, those in `result` count, and a
    check that was on is a Gate.
    """
    if snapshot.operator_settings is not None:
        obj = mapping(snapshot.operator_settings.get(names.CLUSTER))
        return settings_of_check(mapping(obj.get("spec")), last_accepted(obj))
    recorded = placement_settings(result.spec if result is not None else None)
    was_on = condition_in(snapshot.status, names.PLACEMENT_CHECK_PROGRESSING).get("reason", OFF)
    return recorded if was_on == OFF else replace(recorded, mode=GATE)


def check_placements(
    snapshot: Snapshot,
    content: RevisionContent | None,
    settings: PlacementSettings,
    specs: CheckedSpecs,
    existing: Callable[[], RevisionResult],
) -> PlacementCheck:
    """Decide about the composed content.

    `existing` returns the revisions without this edit; their `desired` one is in use.
    """
    recorded = recorded_check(snapshot)
    if settings.mode == OFF:
        known = condition_in(snapshot.status, names.PLACEMENT_CHECK_PROGRESSING)
        condition = _condition("False", OFF, "") if known else None
        return PlacementCheck(content, {}, condition, passes=True)
    after = rules_of(content, specs.desired) if content is not None else None
    if content is None or after is None:
        message = "there is no valid configuration to check"
        return PlacementCheck(None, recorded, _condition("False", BLOCKED, message))
    revisions = existing()
    running = revisions.desired
    before = None
    if running is not None and running.intact:
        before = rules_of(running.content, specs.in_use)
    edit = _Edit(
        snapshot,
        settings,
        recorded,
        content,
        running if before is not None else None,
        before,
        after,
        configuration=rules_hash(after),
        in_use=rules_hash(before) if before is not None else "",
    )
    check = _decide(edit, revisions.history)
    ran = _ran(edit)
    return replace(check, record={**check.record, "ran": ran}) if ran else check


def recorded_check(snapshot: Snapshot) -> Mapping[str, Any]:
    obj = (snapshot.operator_settings or {}).get(names.CLUSTER)
    return mapping(mapping(mapping(obj).get("status")).get("placementCheck"))


def remembered_check(snapshot: Snapshot) -> Mapping[str, Any]:
    """What of the status of OperatorSettings outlives the removal of all schedulers."""
    ran = entries(recorded_check(snapshot).get("ran"))
    return {"placementCheck": {"ran": list(ran)}} if ran else {}


def _decide(edit: _Edit, history: tuple[Revision, ...]) -> PlacementCheck:
    if _is_unchanged(edit):
        return _unchanged(edit)
    reason, message = _exemption(edit, history)
    if reason:
        passed = replace(edit.content, placements=f"not simulated: {message}")
        return PlacementCheck(passed, {}, _condition("False", reason, message), passes=True)
    return _checked(edit)


def _ran(edit: _Edit) -> list[str]:
    """The configurations that ran, the newest last.

    Whatever runs was checked, or there was no Gate; so it may return without a check.
    """
    known = [str(value) for value in entries(edit.recorded.get("ran"))]
    running = edit.running
    if running is None or running.outcome != names.OUTCOME_INSTALLED or known[-1:] == [edit.in_use]:
        return known
    return [*(value for value in known if value != edit.in_use), edit.in_use][-MOST_REMEMBERED:]


def _is_unchanged(edit: _Edit) -> bool:
    """Whether the rules are those in use; flags that come with another image do not count."""
    if edit.configuration == edit.in_use:
        return True
    same = edit.before is not None and replace(edit.before, flags=edit.after.flags) == edit.after
    return same and edit.has_other_image and _has_same_settings(edit)


def _unchanged(edit: _Edit) -> PlacementCheck:
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


def _exemption(edit: _Edit, history: tuple[Revision, ...]) -> tuple[str, str]:
    """(reason, message) why these rules need no simulation; empty: they do."""
    number, ran = _ran_without_gate(edit, history), entries(edit.recorded.get("ran"))
    if number:
        return WAY_BACK, f"revision {number} ran with this configuration"
    if edit.configuration in ran:
        return WAY_BACK, "this configuration ran before"
    if edit.before is None:
        if ran or edit.snapshot.operator_settings is None:
            return "", ""  # after Removed, or after a loss of the revisions
        return NOT_COMPARABLE, NOTHING_TO_COMPARE
    edits_agents = any(agent_edits(edit.before, edit.after))
    if edit.has_other_image and not edits_agents and _has_same_settings(edit):
        return VERSION, "another kube-scheduler changes the configuration, not a setting"
    return "", ""


def _ran_without_gate(edit: _Edit, history: tuple[Revision, ...]) -> int:
    """The newest revision with these rules that ran, or was tried, while there was no Gate.

    Of one that calls agents, the versions of their objects at that time are not known.
    """
    ready = tuple(revision for revision in history if revision.ready)
    newest = ready[-1] if ready else None
    for revision in reversed(ready):
        decided = revision is newest and not revision.withdrawn
        if not (decided or revision.outcome == names.OUTCOME_INSTALLED):
            continue
        inputs = read_inputs(revision.inputs)
        if inputs is None or placement_settings(inputs.operator_settings).mode == GATE:
            continue
        rules = rules_of(revision.content, AgentSpecs()) if revision.intact else None
        if rules is not None and rules_hash(rules) == edit.configuration:
            return revision.number
    return 0


def _has_same_settings(edit: _Edit) -> bool:
    """Whether users have set what they had set for the revision in use."""
    running = edit.running
    then = read_inputs(running.inputs) if running is not None else None
    now = read_inputs(edit.content.inputs)
    return then is not None and now is not None and _settings(then) == _settings(now)


def _settings(inputs: RecordedInputs) -> RecordedInputs:
    """What users set for the configuration.

    OperatorSettings have no part in it, and agents are compared by what they decide by.
    """
    extenders = {
        name: {key: value for key, value in spec.items() if key != "agent"}
        for name, spec in inputs.extenders.items()
    }
    return replace(inputs, operator_settings=None, extenders=extenders)


def _checked(edit: _Edit) -> PlacementCheck:
    recorded, settings = edit.recorded, edit.settings
    same = recorded.get("configuration") == edit.configuration
    # While it is rolled out, agents already decide by it.
    reported = settings.mode != GATE and recorded.get("state") == PASSED
    if same and (reported or recorded.get("running", "") == edit.in_use):
        record = dict(recorded)
    else:
        again = {"state": HELD} if same and recorded.get("state") == HELD else {}
        record = _begun(edit) | again
    if edit.before is None or edit.changes_agents_only:
        record |= {"result": NOT_KNOWN, "effect": edit.not_tried}
        if settings.approved == edit.configuration:
            return _decided(edit, record, APPROVED)
        return _held(edit, record) if settings.mode == GATE else _decided(edit, record, NOT_KNOWN)
    if settings.approved == edit.configuration:
        return _decided(edit, record, APPROVED)
    return _simulated(edit, _answered(edit, record))


def _simulated(edit: _Edit, record: dict[str, Any]) -> PlacementCheck:
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


def _begun(edit: _Edit) -> dict[str, Any]:
    return {
        "configuration": edit.configuration,
        "running": edit.in_use,
        "started": rfc3339(edit.snapshot.now),
        "result": SIMULATING,
        "state": SIMULATING,
    }


def _answered(edit: _Edit, record: dict[str, Any]) -> dict[str, Any]:
    """The record with the answer, if there is one by now, or if it is overdue."""
    limit = edit.settings.seconds
    if not _awaits(record):
        return record
    answer = edit.snapshot.placement_answer
    if answer is None or answer.identity != _identity(record):
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


def _left(edit: _Edit, record: Mapping[str, Any], period: float) -> float:
    started = timestamp(_requested(record)) or ALWAYS
    return seconds_left(edit.snapshot.now, started, period)


def _retry_after(edit: _Edit, record: Mapping[str, Any]) -> float:
    return _left(edit, record, max(RETRY_SECONDS, 2.0 * edit.settings.seconds))


def _repeating(edit: _Edit, record: dict[str, Any]) -> PlacementCheck:
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


def _question(edit: _Edit, record: Mapping[str, Any]) -> PlacementQuestion | None:
    """The simulation of the edit, once its identity is on record, so that it stays the same."""
    identity = _identity(record)
    if edit.before is None or identity != _identity(edit.recorded):
        return None
    return PlacementQuestion(
        identity,
        edit.before,
        edit.after,
        edit.content.image,
        tuple(edit.content.operand.get("command") or edit.snapshot.platform.operand_command),
        edit.settings.seconds,
        str(record.get("situation") or ""),
    )


def _simulating(edit: _Edit, record: dict[str, Any]) -> PlacementCheck:
    """Wait for the answer, with the rules in use."""
    question, settings = _question(edit, record), edit.settings
    limit = settings.seconds + GRACE_SECONDS
    if edit.snapshot.operator_settings is None:
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
        edit.kept,
        record,
        _condition("True", SIMULATING, message),
        question,
        requeue_after=_left(edit, record, limit),
    )


def _decided(edit: _Edit, record: Mapping[str, Any], reason: str) -> PlacementCheck:
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
        event = Event("PlacementCheckPassed", message, "Warning" if worrying else "Normal")
        events = (event,)
    content = replace(edit.content, placements=message)
    condition = _condition("False", reason, message)
    return PlacementCheck(content, kept, condition, events=events, passes=True)


def _held(edit: _Edit, record: Mapping[str, Any]) -> PlacementCheck:
    """Keep the rules in use until the edit is approved or reverted."""
    recorded, settings = edit.recorded, edit.settings
    what = _described(record)
    message = f"the edit is held: {what}; approve it with `{APPROVE}`, or revert it"
    if settings.approved:
        message += (
            f" (spec.placementCheck.approved of OperatorSettings names another configuration, "
            f"{settings.approved[:12]}…, not {edit.configuration[:12]}…)"
        )
    kept = {**record, "state": HELD, "message": message}
    events: tuple[Event, ...] = ()
    first = (recorded.get("configuration"), recorded.get("state")) != (edit.configuration, HELD)
    other = record["result"] != SIMULATING and record.get("effect") != recorded.get("effect")
    if first or other:
        events = (Event("PlacementCheckHeld", message, "Warning"),)
    return PlacementCheck(
        edit.kept,
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

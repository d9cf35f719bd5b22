"""The decision about an edit that changes placements, from what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.times import rfc3339
from kube_scheduler_operator.config.effective.control_plane.recorded_inputs import record
from kube_scheduler_operator.config.effective.settings.validate import (
    PlacementSettings,
    SettingsResult,
)
from kube_scheduler_operator.operator.controlplane.placement_gate import (
    CheckedSpecs,
    RevisionCheck,
    check_placements,
    remembered_check,
    settings_in_effect,
)
from kube_scheduler_operator.operator.controlplane.placement_rules import (
    AgentSpecs,
    rules_hash,
    rules_of,
)
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent
from kube_scheduler_operator.operator.controlplane.revision.history import Revision, read
from kube_scheduler_operator.operator.controlplane.revision.revise import RevisionResult
from kube_scheduler_operator.operator.model.snapshot import CheckIdentity, PlacementAnswer
from kube_scheduler_operator.operator.status.placement_check import (
    GRACE_SECONDS,
    MOST_REMEMBERED,
    REPEAT_LIMIT,
    REPEAT_SECONDS,
)

from ....builders import operator_settings, snapshot
from ...cli.conftest import IMAGE, content, objects

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NEWER = IMAGE.replace("1.35.4", "1.36.1")
RUNNING, EDITED = content(), content("HighNodeUtilization")
LOST = "12 running pods could no longer be placed: node(s) had untolerated taint(s) (default/a)"


NO_AGENTS = CheckedSpecs()


def hash_of(made: RevisionContent, specs: AgentSpecs = NO_AGENTS.desired) -> str:
    rules = rules_of(made, specs)
    assert rules is not None
    return rules_hash(rules)


def recorded(state: str, result: str, effect: str = "", *, ago: float = 10.0) -> dict[str, Any]:
    """`status.placementCheck` about the edit."""
    return {
        "configuration": hash_of(EDITED),
        "running": hash_of(RUNNING),
        "started": rfc3339(NOW - timedelta(seconds=ago)),
        "result": result,
        "state": state,
        **({"effect": effect} if effect else {}),
    }


def revisions(*made: tuple[RevisionContent, str]) -> tuple[Revision, ...]:
    maps: dict[str, Any] = {}
    for number, (each, outcome) in enumerate(made, 1):
        maps |= objects(number, each, outcome)
    return read(maps, tuple(RUNNING.parts))


def check(
    edited: RevisionContent | None = EDITED,
    record: Mapping[str, Any] | None = None,
    *,
    history: tuple[Revision, ...] | None = None,
    answer: PlacementAnswer | None = None,
    served: bool = True,
    specs: CheckedSpecs = NO_AGENTS,
    **settings: Any,
) -> RevisionCheck:
    found = revisions((RUNNING, names.OUTCOME_INSTALLED)) if history is None else history
    good = [one for one in found if one.outcome in ("", names.OUTCOME_INSTALLED)]
    status = {"placementCheck": dict(record)} if record else {}
    observed = snapshot(
        now=NOW,
        operator_settings={"cluster": operator_settings(status=status)} if served else None,
        placement_answers={answer.identity: answer} if answer is not None else {},
    )
    result = RevisionResult((), len(found), good[-1] if good else None, history=found)
    chosen = PlacementSettings(**{"mode": "Gate", **settings})
    return check_placements(observed, edited, chosen, specs, lambda: result)


def reason(made: RevisionCheck) -> str:
    assert made.condition is not None
    assert made.condition.type == names.PLACEMENT_CHECK_PROGRESSING
    waits = made.condition.reason in ("Simulating", "Held")
    assert made.condition.status == ("True" if waits else "False")
    return made.condition.reason


def passes(made: RevisionCheck) -> bool:
    """Whether the edit is rolled out; otherwise it is exactly the revision in use."""
    assert made.content is not None
    assert made.passes == (made.content.hash == EDITED.hash)
    assert made.passes or made.content.hash == RUNNING.hash
    return made.passes


@pytest.mark.parametrize(
    ("record", "mode", "approved", "decision", "rolled_out"),
    [
        (None, "Gate", False, "Simulating", False),
        (None, "Warn", False, "Simulating", False),
        (None, "Gate", True, "Approved", True),
        (("Simulating", "Simulating"), "Gate", False, "Simulating", False),
        (("Simulating", "Simulating"), "Warn", False, "Simulating", False),
        (("Simulating", "Simulating"), "Gate", True, "Approved", True),
        (("Simulating", "NothingWorse"), "Gate", False, "NothingWorse", True),
        (("Simulating", "NothingWorse"), "Warn", False, "NothingWorse", True),
        (("Held", "Worse"), "Gate", False, "Held", False),
        (("Held", "Worse"), "Gate", True, "Approved", True),
        (("Held", "Worse"), "Warn", False, "Worse", True),
        (("Held", "Failed"), "Gate", False, "Held", False),
        (("Held", "Failed"), "Gate", True, "Approved", True),
        (("Held", "Failed"), "Warn", False, "Failed", True),
        (("Held", "Simulating"), "Gate", False, "Held", False),
        (("Passed", "Worse"), "Gate", False, "Held", False),
        (("Held", "NotKnown"), "Gate", False, "Held", False),
        (("Held", "NotKnown"), "Gate", True, "Approved", True),
        (("Held", "NotKnown"), "Warn", False, "NotKnown", True),
    ],
)
def test_result_mode_and_approval_decide(
    record: tuple[str, str] | None, mode: str, approved: bool, decision: str, rolled_out: bool
) -> None:
    known = recorded(*record, LOST) if record else None
    chosen = hash_of(EDITED) if approved else ""
    made = check(record=known, mode=mode, approved=chosen)
    assert (reason(made), passes(made)) == (decision, rolled_out)
    assert (made.question is not None) == (
        known is not None and known["result"] == "Simulating" and not approved
    )


def test_off_decides_nothing_and_reads_no_revision() -> None:
    made = check(mode="Off", history=())
    assert (made.content, made.record, made.condition) == (EDITED, {}, None)


@pytest.mark.parametrize(
    ("history", "decision"),
    [
        ((), "NoRunningRevision"),
        ([(EDITED, "installed"), (RUNNING, "installed")], "RanBefore"),
        ([(RUNNING, "installed"), (EDITED, "failed")], "RanBefore"),
        ([(RUNNING, "installed"), (EDITED, "refused")], "RanBefore"),
        ([(RUNNING, "installed"), (EDITED, "")], "Unchanged"),
        ([(RUNNING, "installed"), (EDITED, "withdrawn")], "Simulating"),
        ([(EDITED, "failed"), (RUNNING, "installed")], "Simulating"),
        ([(EDITED, "superseded"), (RUNNING, "installed")], "Simulating"),
    ],
    ids=str,
)
def test_revisions_that_exist_decide_whether_an_edit_is_checked(
    history: Any, decision: str
) -> None:
    made = check(history=revisions(*history))
    assert (reason(made), passes(made)) == (decision, decision != "Simulating")


def test_another_version_does_not_wait_for_what_it_changes_itself() -> None:
    newer = content("HighNodeUtilization", image=NEWER)
    same_settings = replace(newer, inputs=RUNNING.inputs)
    assert reason(check(same_settings)) == "VersionChange"
    assert check(same_settings).content == same_settings
    made = check(newer)
    assert made.content is not None
    assert (reason(made), made.content.hash) == ("Simulating", content(image=NEWER).hash)


def test_while_a_finding_blocks_the_configuration_the_record_stays() -> None:
    record = recorded("Held", "Worse", LOST)
    made = check(None, record)
    assert (reason(made), made.content, made.record) == ("ConfigurationBlocked", None, record)


def test_a_simulation_is_requested_once_it_is_on_record() -> None:
    first = check()
    assert (first.question, first.record["started"]) == (None, rfc3339(NOW))
    second = check(record=first.record, seconds=60)
    assert second.question is not None
    identity = CheckIdentity(hash_of(EDITED), hash_of(RUNNING), rfc3339(NOW))
    assert second.question.identity == identity
    assert (second.question.image, second.question.seconds) == (IMAGE, 60)
    assert second.question.command == ("kube-scheduler",)
    assert second.question.before == rules_of(RUNNING, AgentSpecs())
    assert second.question.after == rules_of(EDITED, AgentSpecs())


def test_an_answer_counts_for_its_own_simulation_only() -> None:
    record = recorded("Simulating", "Simulating")
    own = CheckIdentity(record["configuration"], record["running"], record["started"])
    for other in (replace(own, started="earlier"), replace(own, running="0" * 64)):
        made = check(record=record, answer=PlacementAnswer(other, True, LOST))
        assert reason(made) == "Simulating"
    made = check(record=record, answer=PlacementAnswer(own, True, LOST))
    assert (reason(made), made.record["result"], made.record["effect"]) == ("Held", "Worse", LOST)


def test_a_simulation_that_is_overdue_has_failed() -> None:
    late = recorded("Simulating", "Simulating", ago=60 + GRACE_SECONDS + 1)
    made = check(record=late, seconds=60)
    assert (reason(made), made.record["result"]) == ("Held", "Failed")
    in_time = recorded("Simulating", "Simulating", ago=60 + GRACE_SECONDS - 1)
    assert reason(check(record=in_time, seconds=60)) == "Simulating"


def test_another_revision_in_use_is_compared_again_while_the_edit_stays_held() -> None:
    record = {**recorded("Held", "Worse", LOST), "running": "0" * 64}
    made = check(record=record)
    assert (reason(made), made.record["result"], made.events) == ("Held", "Simulating", ())
    assert made.record["running"] == hash_of(RUNNING)


def held(*, ago: float, number: int = 0, answered: bool = True) -> dict[str, Any]:
    """The record of a held edit that was last simulated that many seconds ago."""
    first = recorded("Held", "Worse", LOST, ago=ago if not number else 86400.0)
    first["situation"] = "5" * 64
    started = rfc3339(NOW - timedelta(seconds=ago))
    repetition = {"number": number, "started": started, "answered": answered}
    return first | ({"repetition": repetition} if number else {})


def repetition_of(made: RevisionCheck) -> dict[str, Any]:
    return dict(made.record.get("repetition") or {})


@pytest.mark.parametrize(
    ("number", "seconds", "wait"),
    [
        (0, 60, REPEAT_SECONDS),
        (1, 60, 2 * REPEAT_SECONDS),
        (2, 60, 4 * REPEAT_SECONDS),
        (3, 60, REPEAT_LIMIT),
        (10**9, 60, REPEAT_LIMIT),
        (0, 400, 800.0),
        (10, 1800, 3600.0),
    ],
)
def test_a_held_edit_is_simulated_again_after_growing_waits(
    number: int, seconds: int, wait: float
) -> None:
    early = check(record=held(ago=wait - 1, number=number), seconds=seconds)
    assert (early.question, early.requeue_after) == (None, 1.0)
    assert repetition_of(early).get("number", 0) == number
    due = check(record=held(ago=wait, number=number), seconds=seconds)
    repetition = {"number": number + 1, "started": rfc3339(NOW), "answered": False}
    assert (due.question, repetition_of(due)) == (None, repetition)
    asked = check(record=due.record, seconds=seconds)
    assert asked.question is not None
    identity = CheckIdentity(hash_of(EDITED), hash_of(RUNNING), rfc3339(NOW))
    assert (asked.question.identity, asked.question.situation) == (identity, "5" * 64)
    assert asked.requeue_after == seconds + GRACE_SECONDS
    for made in (early, due, asked):
        assert (reason(made), passes(made), made.events) == ("Held", False, ())
        assert made.condition is not None
        assert LOST in made.condition.message, "the last result counts until there is another one"


def repeated(**answer: Any) -> RevisionCheck:
    """A held edit whose repetition has this answer."""
    record = held(ago=5.0, number=1, answered=False)
    identity = CheckIdentity(
        record["configuration"], record["running"], record["repetition"]["started"]
    )
    return check(record=record, answer=PlacementAnswer(identity, **answer))


def test_a_held_edit_that_costs_no_pod_its_place_any_more_is_rolled_out() -> None:
    made = repeated(effect="each of 40 pods can be placed as today", situation="6" * 64)
    assert (reason(made), passes(made)) == ("NothingWorse", True)
    assert [event.reason for event in made.events] == ["PlacementCheckPassed"]


def test_a_repetition_with_another_effect_is_reported() -> None:
    made = repeated(worse=True, effect="one running pod", situation="6" * 64)
    assert (reason(made), passes(made)) == ("Held", False)
    assert (made.record["effect"], made.record["situation"]) == ("one running pod", "6" * 64)
    assert [event.reason for event in made.events] == ["PlacementCheckHeld"]
    assert repetition_of(made)["answered"] is True


@pytest.mark.parametrize(
    "answer",
    [
        {"unchanged": True, "situation": "5" * 64},
        {"error": "no node has room"},
        {"worse": True, "effect": LOST, "situation": "6" * 64},
    ],
    ids=["unchanged", "failed", "same effect"],
)
def test_a_repetition_without_news_changes_nothing_but_the_wait(answer: dict[str, Any]) -> None:
    made = repeated(**answer)
    assert (reason(made), passes(made), made.events) == ("Held", False, ())
    assert (made.record["result"], made.record["effect"]) == ("Worse", LOST)
    assert repetition_of(made)["answered"] is True
    assert made.requeue_after == 2 * REPEAT_SECONDS - 5.0


def test_a_repetition_that_is_overdue_is_over() -> None:
    late = held(ago=60 + GRACE_SECONDS, number=1, answered=False)
    made = check(record=late, seconds=60)
    assert (reason(made), made.record["result"]) == ("Held", "Worse")
    assert repetition_of(made)["answered"] is True


@pytest.mark.parametrize(
    ("settings", "decision"),
    [({"approved": hash_of(EDITED)}, "Approved"), ({"mode": "Warn"}, "Worse")],
    ids=["approved", "Warn"],
)
def test_an_edit_that_may_be_rolled_out_waits_for_no_repetition(
    settings: dict[str, Any], decision: str
) -> None:
    made = check(record=held(ago=5.0, number=1, answered=False), **settings)
    assert (reason(made), passes(made), made.question) == (decision, True, None)


def test_another_revision_in_use_begins_with_the_shortest_wait() -> None:
    made = check(record={**held(ago=5.0, number=9), "running": "0" * 64})
    assert (reason(made), made.record["result"]) == ("Held", "Simulating")
    assert (repetition_of(made), made.record.get("situation")) == ({}, None)


def test_without_a_served_kind_only_gate_holds() -> None:
    assert reason(check(served=False)) == "Held"
    assert reason(check(served=False, mode="Warn")) == "Failed"


def test_events_are_sent_when_the_decision_changes() -> None:
    record = recorded("Simulating", "Worse", LOST)
    held = check(record=record)
    assert [event.reason for event in held.events] == ["PlacementCheckHeld"]
    assert check(record=held.record).events == ()
    passed = check(record=record, mode="Warn")
    assert [(event.reason, event.type) for event in passed.events] == [
        ("PlacementCheckPassed", "Warning")
    ]
    assert check(record=passed.record, mode="Warn").events == ()


def test_the_effect_is_recorded_with_the_revision() -> None:
    record = recorded("Held", "Worse", LOST)
    made = check(record=record, approved=hash_of(EDITED))
    assert made.content is not None
    assert made.content.placements == f"approved: {LOST}"
    assert made.content.hash == EDITED.hash


def test_what_a_simulation_did_not_try_is_not_known() -> None:
    known = recorded("Simulating", "Simulating")
    own = CheckIdentity(known["configuration"], known["running"], known["started"])
    answer = PlacementAnswer(own, effect="3 pods were not tried", unknown=True)
    made = check(record=known, answer=answer)
    assert (reason(made), passes(made), made.record["result"]) == ("Held", False, "NotKnown")
    assert made.condition is not None
    assert "what it changes is not known: 3 pods were not tried" in made.condition.message
    warned = check(record=known, answer=answer, mode="Warn")
    assert (reason(warned), passes(warned)) == ("NotKnown", True)


# --- agents and LoadPolicies ---------------------------------------------------------------------

ENTRY = {
    "urlPrefix": "http://127.0.0.1:5401/safe",
    "filterVerb": "filter",
    "nodeCacheCapable": True,
}
CALLING = content(unsupportedConfigOverrides={"extenders": [ENTRY]})
WITHOUT_LEVEL = {"policies": [{"name": "safe-overload"}]}
AGENT = {**WITHOUT_LEVEL, "logLevel": "INFO"}


def with_specs(
    agent: Any = None, load: Any = None, *, before: Any = AGENT, load_before: Any = None
) -> CheckedSpecs:
    """An edit of the agent of SchedulerExtender safe, or of LoadPolicy default."""

    def specs(own: Any, policy: Any) -> AgentSpecs:
        extenders = {"safe": {"agent": own}} if own is not None else {}
        return AgentSpecs(extenders, {"default": policy} if policy is not None else {})

    return CheckedSpecs(specs(before, load_before), specs(agent or AGENT, load))


def check_calling(
    specs: CheckedSpecs, record: Mapping[str, Any] | None = None, **settings: Any
) -> RevisionCheck:
    """Check an edit of specs alone, while the configuration in use calls the agent."""
    history = revisions((CALLING, names.OUTCOME_INSTALLED))
    return check(CALLING, record, history=history, specs=specs, **settings)


@pytest.mark.parametrize(
    "specs",
    [
        with_specs({"policies": [{"name": "safe-balance"}]}),
        with_specs({**AGENT, "env": {"TZ": "UTC"}}),
        with_specs({**AGENT, "resources": {"limits": {"memory": "1Mi"}}}),
        with_specs(before=None),  # deleted and created again
        with_specs(load={"rules": 2}, load_before={"rules": 1}),
        with_specs(load={"rules": 2}),
    ],
    ids=["policies", "variable", "resources", "recreated", "load policy", "new load policy"],
)
def test_edits_of_agents_and_of_the_load_policy_are_simulated(specs: CheckedSpecs) -> None:
    first = check_calling(specs)
    assert (reason(first), first.passes) == ("Simulating", False)
    asked = check_calling(specs, first.record).question
    assert asked is not None
    assert asked.before.agents == ({} if not specs.in_use.extenders else {"safe": WITHOUT_LEVEL})
    assert asked.after.load_policies == specs.desired.load_policies
    for answer, decision in (
        (PlacementAnswer(asked.identity), "NothingWorse"),
        (PlacementAnswer(asked.identity, worse=True, effect=LOST), "Held"),
        (PlacementAnswer(asked.identity, effect="at another load", unknown=True), "Held"),
    ):
        made = check_calling(specs, first.record, answer=answer)
        assert (reason(made), made.passes) == (decision, decision != "Held")
        assert answer.effect in made.record["message"]
        approved = check_calling(specs, made.record, approved=made.record["configuration"])
        assert approved.passes
        assert made.record["configuration"] == hash_of(CALLING, specs.desired)


def test_a_load_policy_that_only_other_schedulers_read_is_not_known() -> None:
    def specs(rules: int) -> AgentSpecs:
        return AgentSpecs({}, {"default": {"rules": rules}}, readers=("batch", "web"))

    held = check(RUNNING, specs=CheckedSpecs(specs(1), specs(2)))
    assert (reason(held), held.passes, held.question) == ("Held", False, None)
    assert held.record["result"] == "NotKnown"
    assert "SecondarySchedulers that read it: batch, web" in held.record["effect"]
    assert held.record["configuration"] == hash_of(RUNNING, specs(2))
    known = check(RUNNING, specs=CheckedSpecs(specs(1), specs(2)), mode="Warn")
    assert (reason(known), known.passes) == ("NotKnown", True)


def test_what_agents_do_not_decide_by_does_not_wait() -> None:
    for specs in (with_specs({**AGENT, "logLevel": "DEBUG"}), with_specs()):
        assert reason(check_calling(specs)) == "Unchanged"
    uncalled = with_specs({"policies": []}, {"rules": 2})
    assert reason(check(RUNNING, specs=uncalled)) == "Unchanged"


def test_another_port_of_an_agent_does_not_wait() -> None:
    moved = {**ENTRY, "urlPrefix": "http://127.0.0.1:5407/safe"}
    edited = content(unsupportedConfigOverrides={"extenders": [moved]})
    history = revisions((CALLING, names.OUTCOME_INSTALLED))
    made = check(edited, history=history, specs=with_specs())
    assert (reason(made), made.content) == ("Unchanged", edited)


def test_an_edit_that_was_reported_is_not_checked_again_when_its_agents_are_in_use() -> None:
    specs = with_specs({"policies": [{"name": "safe-balance"}]})
    edited = content("HighNodeUtilization", unsupportedConfigOverrides={"extenders": [ENTRY]})
    history = revisions((CALLING, names.OUTCOME_INSTALLED))
    record_ = {
        **recorded("Passed", "NotKnown", "x"),
        "configuration": hash_of(edited, specs.desired),
    }
    now = CheckedSpecs(specs.desired, specs.desired)
    made = check(edited, record_, history=history, specs=now, mode="Warn")
    assert (reason(made), made.passes) == ("NotKnown", True)


# --- what ran, and what comes back ---------------------------------------------------------------


def with_gate(made: RevisionContent) -> RevisionContent:
    """The content as it was cut while there was a Gate."""
    gate = {"placementCheck": {"mode": "Gate"}}
    return replace(made, inputs=record({}, {}, operator_settings=gate))


def test_what_was_rolled_out_under_a_gate_is_a_way_back_only_if_it_ran() -> None:
    history = revisions((with_gate(EDITED), "installed"), (RUNNING, "installed"))
    assert reason(check(history=history)) == "Simulating"
    made = check(record={"ran": [hash_of(EDITED)]}, history=history)
    assert (reason(made), passes(made)) == ("RanBefore", True)
    assert made.record == {"ran": [hash_of(EDITED), hash_of(RUNNING)]}


def test_the_configurations_that_ran_are_remembered() -> None:
    other = ["0" * 64]
    assert check(RUNNING, {"ran": other}).record == {"ran": [*other, hash_of(RUNNING)]}
    again = check(RUNNING, {"ran": [hash_of(RUNNING), *other]})
    assert again.record == {"ran": [*other, hash_of(RUNNING)]}
    assert check(RUNNING, again.record).record == again.record
    many = [f"{number:064d}" for number in range(MOST_REMEMBERED)]
    assert check(RUNNING, {"ran": many}).record["ran"] == [*many[1:], hash_of(RUNNING)]
    assert check(record={"ran": other}).record["ran"] == [*other, hash_of(RUNNING)]


def test_what_is_not_installed_yet_has_not_run() -> None:
    history = revisions((EDITED, "installed"), (RUNNING, ""))
    assert check(RUNNING, history=history).record == {}


@pytest.mark.parametrize(
    ("ran", "settings", "decision", "rolled_out"),
    [
        ([], {}, "NoRunningRevision", True),
        ([hash_of(RUNNING)], {}, "Held", False),
        ([hash_of(RUNNING)], {"mode": "Warn"}, "NotKnown", True),
        ([hash_of(RUNNING)], {"approved": hash_of(EDITED)}, "Approved", True),
        ([hash_of(EDITED), hash_of(RUNNING)], {}, "RanBefore", True),
    ],
    ids=["first", "edited", "warned", "approved", "as before"],
)
def test_coming_back_after_a_removal_is_an_edit(
    ran: list[str], settings: dict[str, Any], decision: str, rolled_out: bool
) -> None:
    made = check(record={"ran": ran}, history=(), **settings)
    assert (reason(made), made.passes) == (decision, rolled_out)
    assert made.content == (EDITED if rolled_out else None)
    assert made.question is None
    assert made.record.get("ran", []) == ran


def test_of_the_record_only_what_ran_outlives_a_removal() -> None:
    status = {"placementCheck": {**recorded("Held", "Worse", LOST), "ran": ["0" * 64]}}
    observed = snapshot(operator_settings={"cluster": operator_settings(status=status)})
    assert remembered_check(observed) == {"placementCheck": {"ran": ["0" * 64]}}
    assert remembered_check(snapshot()) == {}


def test_feature_gates_that_are_edited_with_another_image_are_checked() -> None:
    chosen = {"arguments": {"feature-gates": ["SchedulerAsyncPreemption=false"]}}
    edited = content(image=NEWER, unsupportedConfigOverrides=chosen)
    assert reason(check(edited)) == "Simulating"
    assert reason(check(content(image=NEWER))) == "Unchanged"


# --- the settings --------------------------------------------------------------------------------


def test_an_error_in_another_setting_ends_no_gate() -> None:
    broken = operator_settings(env=[{"name": "TOKEN", "value": "secret"}])
    broken["spec"]["placementCheck"] = {"mode": "Gate", "approved": "0" * 64}
    observed = snapshot(operator_settings={"cluster": broken})
    assert settings_in_effect(observed, None) == PlacementSettings("Gate", 300, "0" * 64)


def test_an_error_in_the_check_keeps_the_accepted_one() -> None:
    accepted = {"placementCheck": {"mode": "Gate", "timeoutSeconds": 60}}
    broken = operator_settings(accepted=accepted)
    broken["spec"]["placementCheck"] = {"mode": False}
    observed = snapshot(operator_settings={"cluster": broken})
    assert settings_in_effect(observed, None) == PlacementSettings("Gate", 60)


@pytest.mark.parametrize("recorded", ["Off", "Warn", "Gate"])
@pytest.mark.parametrize(("last", "is_gate"), [("Held", True), ("Passed", True), ("", False)])
def test_a_gate_does_not_end_while_the_settings_cannot_be_read(
    last: str, recorded: str, *, is_gate: bool
) -> None:
    conditions = [{"type": names.PLACEMENT_CHECK_PROGRESSING, "status": "False", "reason": last}]
    status = {"conditions": conditions if last else []}
    observed = snapshot(operator_settings=None, kubescheduler={"status": status})
    spec = {"placementCheck": {"mode": recorded}}
    result = SettingsResult("cluster", accepted=True, spec=spec)
    assert settings_in_effect(observed, result).mode == ("Gate" if is_gate else recorded)


@pytest.mark.parametrize(("last", "mode"), [("Held", "Gate"), ("Off", "Off"), ("", "Off")])
def test_a_gate_does_not_end_while_the_kind_is_not_served(last: str, mode: str) -> None:
    conditions = [{"type": names.PLACEMENT_CHECK_PROGRESSING, "status": "False", "reason": last}]
    status = {"conditions": conditions if last else []}
    observed = snapshot(operator_settings=None, kubescheduler={"status": status})
    assert settings_in_effect(observed, None).mode == mode

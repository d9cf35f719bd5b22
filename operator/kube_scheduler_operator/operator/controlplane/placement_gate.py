"""The check of placements for the control plane's scheduler in static Pods.

The rules of `placement_rules.py` wait before a revision is made of them; other changes go into a
revision with the rules in use. So no revision exists that must not be installed, and nothing has to
be undone. Agents and LoadPolicies, which need no revision, keep the version that was accepted last
(engine/held_edits.py). The memory is `status.placementCheck` of OperatorSettings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...base import names
from ...base.objects import entries, mapping
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
from ..model.plan import PlacementRules
from ..model.snapshot import Snapshot
from ..status.conditions import condition_in
from ..status.placement_check import (
    NOTHING_TO_COMPARE,
    CheckedEdit,
    PlacementCheck,
    blocked,
    decide,
    off,
)
from .placement_rules import (
    AgentSpecs,
    agent_edits,
    changes_others_only,
    rules_hash,
    rules_of,
    with_rules_of,
)
from .revision.content import RevisionContent
from .revision.history import Revision
from .revision.revise import RevisionResult

RevisionCheck = PlacementCheck[RevisionContent]


@dataclass(frozen=True, slots=True)
class CheckedSpecs:
    """What agents decide by."""

    # the versions that were accepted last
    in_use: AgentSpecs = field(default_factory=AgentSpecs)
    # the versions that would be in use after the edit
    desired: AgentSpecs = field(default_factory=AgentSpecs)


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
) -> RevisionCheck:
    """Decide about the composed content.

    `existing` returns the revisions without this edit; their `desired` one is in use.
    """
    recorded = recorded_check(snapshot)
    if settings.mode == OFF:
        return off(content, condition_in(snapshot.status, names.PLACEMENT_CHECK_PROGRESSING))
    after = rules_of(content, specs.desired) if content is not None else None
    if content is None or after is None:
        return blocked(recorded)
    revisions = existing()
    running, before = revisions.desired, None
    if running is not None and running.intact:
        before = rules_of(running.content, specs.in_use)
    in_use = running if before is not None else None
    configuration = rules_hash(after)
    check = decide(
        CheckedEdit(
            snapshot,
            settings,
            recorded,
            content,
            lambda: with_rules_of(content, in_use.content) if in_use is not None else None,
            before,
            after,
            configuration=configuration,
            in_use=rules_hash(before) if before is not None else "",
            has_run=in_use is not None and in_use.outcome == names.OUTCOME_INSTALLED,
            image=content.image,
            command=tuple(content.operand.get("command") or snapshot.platform.operand_command),
            has_other_image=in_use is not None and content.image != in_use.content.image,
            has_same_settings=_has_same_settings(content, in_use),
            ran_without_gate=lambda: _ran_without_gate(configuration, revisions.history),
            edits_agents=before is not None and any(agent_edits(before, after)),
            not_tried=_not_tried(before, after),
            is_simulated=before is None or not changes_others_only(before, after),
            is_remembered=snapshot.operator_settings is not None,
        )
    )
    if not check.placements or check.content is None:
        return check
    return replace(check, content=replace(check.content, placements=check.placements))


def _not_tried(before: PlacementRules | None, after: PlacementRules) -> str:
    """What no simulation tries of an edit; empty if all is tried."""
    return readers_not_tried(before, after) if before is not None else NOTHING_TO_COMPARE


def readers_not_tried(before: PlacementRules, after: PlacementRules) -> str:
    """The other schedulers for which no simulation tries an edit of the LoadPolicy, in words."""
    if before.load_policies == after.load_policies or not after.readers:
        return ""
    whose = ", ".join(after.readers)
    return f"no simulation tries the LoadPolicy for SecondarySchedulers that read it: {whose}"


def recorded_check(snapshot: Snapshot) -> Mapping[str, Any]:
    obj = (snapshot.operator_settings or {}).get(names.CLUSTER)
    return mapping(mapping(mapping(obj).get("status")).get("placementCheck"))


def remembered_check(snapshot: Snapshot) -> Mapping[str, Any]:
    """What of the status of OperatorSettings outlives the removal of all schedulers."""
    ran = entries(recorded_check(snapshot).get("ran"))
    return {"placementCheck": {"ran": list(ran)}} if ran else {}


def _ran_without_gate(configuration: str, history: tuple[Revision, ...]) -> str:
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
        if rules is not None and rules_hash(rules) == configuration:
            return f"revision {revision.number}"
    return ""


def _has_same_settings(content: RevisionContent, running: Revision | None) -> bool:
    """Whether users have set what they had set for the revision in use."""
    then = read_inputs(running.inputs) if running is not None else None
    now = read_inputs(content.inputs)
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

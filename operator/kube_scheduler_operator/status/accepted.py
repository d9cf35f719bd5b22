"""Whether what somebody wrote is what a scheduler is given: the condition Accepted and its events.

SchedulerProfiles and SchedulerExtenders have it alike, LoadPolicies in part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..base import names
from ..model.plan import Action, Event, Replace
from .conditions import Condition, condition_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..base.objects import Object
    from ..kube.resource import Resource
    from ..model.attachment import Judged

ACCEPTED: Final = "Accepted"
HELD: Final = "Held"
LEFT_OUT: Final = "LeftOut"
REFUSED: Final = "Refused"


def state_of(verdict: Judged) -> str:
    """One word for what became of an object: Accepted, Refused, Held or LeftOut."""
    if verdict.accepted:
        return REFUSED if verdict.findings else ACCEPTED
    return HELD if verdict.held else LEFT_OUT


def remembered(
    before: Mapping[str, Any], generation: int, accepted: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The fields of a status that say what was judged, and which version was accepted last.

    Args:
        before: the status as it is.
        generation: of the object.
        accepted: the spec of the object; None: it is not accepted as it is now.
    """
    status: dict[str, Any] = {"observedGeneration": generation}
    if accepted is not None:
        status["acceptedGeneration"] = generation
        status["accepted"] = accepted
    else:
        # Also one that cannot run any more: another version of kube-scheduler may know better.
        kept = ("acceptedGeneration", "accepted")
        status |= {key: before[key] for key in kept if key in before}
    return status


def accepted_condition(verdict: Judged, before: Mapping[str, Any], owner: str) -> Condition:
    """The condition.

    Args:
        verdict: what became of the object.
        before: its status as it is.
        owner: with what the path of every finding begins.
    """
    state = state_of(verdict)
    if state == ACCEPTED:
        return Condition(names.ACCEPTED, "True", ACCEPTED)
    wrong = "\n".join(finding.text.removeprefix(owner) for finding in verdict.findings)
    if state == REFUSED:
        return Condition(names.ACCEPTED, "False", REFUSED, wrong)
    if verdict.held:
        message = f"{accepted_version(before)} runs on\n{wrong}"
        return Condition(names.ACCEPTED, "False", HELD, message)
    return Condition(names.ACCEPTED, "False", LEFT_OUT, f"no version of it can run\n{wrong}")


def accepted_version(before: Mapping[str, Any]) -> str:
    """Which version was accepted last, for messages, by the status as it is."""
    generation = before.get("acceptedGeneration")
    return f"generation {generation}" if generation else "the last accepted version"


def accepted_events(kind: str, obj: Object, status: Mapping[str, Any]) -> tuple[Event, ...]:
    """One line when an object is no longer accepted, why if that changes, and when it is again."""
    before = condition_in(obj.get("status") or {}, names.ACCEPTED)
    now = condition_in(status, names.ACCEPTED)
    seen = ("status", "reason", "message")
    name = f"{kind} {obj['metadata']['name']}"
    if now.get("status") == "True":
        if before.get("status") != "False":
            return ()
        return (Event(f"{kind}Accepted", f"{name} is accepted"),)
    if [before.get(key) for key in seen] == [now.get(key) for key in seen]:
        return ()
    return (Event(f"{kind}NotAccepted", f"{name}: {now.get('message', '')}", "Warning"),)


def forget(resource: Resource, objects: Mapping[str, Object]) -> tuple[Action, ...]:
    """The writes that leave nothing of the operator in the objects."""
    return tuple(
        Replace(resource, {**obj, "status": {}}, "status")
        for _, obj in sorted(objects.items())
        if obj.get("status")
    )

"""The status of SchedulerProfiles: what became of each, and the version that was accepted last.

The latter is the operator's only memory of it. A status is written when it would change, so that
hundreds of profiles that nobody edits cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .. import names
from ..config.kept import by_identity
from ..kube.resource import SCHEDULER_PROFILES
from ..plan import Action, Event, Replace
from .conditions import Condition, merge_conditions
from .warnings import warnings_condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from ..config.effective import Entry
    from ..config.scheduler_profiles import Verdict
    from ..snapshot import Object

ACCEPTED: Final = "Accepted"
HELD: Final = "Held"
LEFT_OUT: Final = "LeftOut"
REFUSED: Final = "Refused"

_WEIGHTED: Final = ("score", "placementScore")


def report_profiles(
    objects: Mapping[str, Object], verdicts: Iterable[Verdict], now: datetime
) -> tuple[Action, ...]:
    """The writes that make the objects say what became of them; none where they say it already."""
    writes = []
    for verdict in verdicts:
        obj = objects[verdict.name]
        status = profile_status(obj, verdict, now)
        if status != (obj.get("status") or {}):
            events = _events(obj, status)
            writes.append(Replace(SCHEDULER_PROFILES, {**obj, "status": status}, "status", events))
    return tuple(writes)


def forget_profiles(objects: Mapping[str, Object]) -> tuple[Action, ...]:
    """The writes that leave nothing of the operator in the objects."""
    return tuple(
        Replace(SCHEDULER_PROFILES, {**obj, "status": {}}, "status")
        for _, obj in sorted(objects.items())
        if obj.get("status")
    )


def profile_status(obj: Object, verdict: Verdict, now: datetime) -> dict[str, Any]:
    """The status that an object should have."""
    before: Mapping[str, Any] = obj.get("status") or {}
    generation = int(obj["metadata"].get("generation") or 0)
    status: dict[str, Any] = {"observedGeneration": generation}
    if verdict.accepted:
        status["acceptedGeneration"] = generation
        status["accepted"] = verdict.spec
    else:
        # Also one that cannot run any more: another version of kube-scheduler may know better.
        kept = ("acceptedGeneration", "accepted")
        status |= {key: before[key] for key in kept if key in before}
    if verdict.spec is not None:
        name = verdict.spec.get("schedulerName") or obj["metadata"]["name"]
        status["schedulerName"] = name
    if table := plugin_table(verdict):
        status["plugins"] = table
    warnings = warnings_condition(names.WARNINGS, verdict.warnings, _owner(verdict))
    found = [_condition(verdict, before), warnings]
    status["conditions"] = merge_conditions(before.get("conditions") or (), found, now)
    return status


def state_of(verdict: Verdict) -> str:
    """One word for what became of an object: Accepted, Refused, Held or LeftOut."""
    if verdict.accepted:
        return REFUSED if verdict.findings else ACCEPTED
    return HELD if verdict.held else LEFT_OUT


def plugin_table(verdict: Verdict) -> dict[str, str]:
    """The plugins that run, one line per extension point, with weights where they count."""
    return dict(_table(verdict.points))


@by_identity(512)
def _table(points: Mapping[str, tuple[Entry, ...]]) -> dict[str, str]:
    return {point: _line(point, entries) for point, entries in sorted(points.items())}


def _owner(verdict: Verdict) -> str:
    """With what the path of every finding begins."""
    return f"SchedulerProfile/{verdict.name} "


def _condition(verdict: Verdict, before: Mapping[str, Any]) -> Condition:
    state = state_of(verdict)
    if state == ACCEPTED:
        return Condition(names.ACCEPTED, "True", ACCEPTED)
    owner = _owner(verdict)
    wrong = "\n".join(finding.text.removeprefix(owner) for finding in verdict.findings)
    if state == REFUSED:
        return Condition(names.ACCEPTED, "False", REFUSED, wrong)
    if verdict.held:
        generation = before.get("acceptedGeneration")
        version = f"generation {generation}" if generation else "the last accepted version"
        return Condition(names.ACCEPTED, "False", HELD, f"{version} runs on\n{wrong}")
    return Condition(names.ACCEPTED, "False", LEFT_OUT, f"no version of it can run\n{wrong}")


def _line(point: str, entries: Iterable[Entry]) -> str:
    weighted = point in _WEIGHTED
    return " ".join(f"{e.name}={e.weight or 1}" if weighted else e.name for e in entries)


def _events(obj: Object, status: Mapping[str, Any]) -> tuple[Event, ...]:
    """One line when a profile is no longer accepted, why if that changes, and when it is again."""
    before, now = _accepted(obj.get("status") or {}), _accepted(status)
    seen = ("status", "reason", "message")
    if now.get("status") == "True":
        if before.get("status") != "False":
            return ()
        message = f"SchedulerProfile {obj['metadata']['name']} is accepted"
        return (Event("SchedulerProfileAccepted", message),)
    if [before.get(key) for key in seen] == [now.get(key) for key in seen]:
        return ()
    message = f"SchedulerProfile {obj['metadata']['name']}: {now.get('message', '')}"
    return (Event("SchedulerProfileNotAccepted", message, "Warning"),)


def _accepted(status: Mapping[str, Any]) -> Mapping[str, Any]:
    conditions = status.get("conditions") or ()
    return next((c for c in conditions if c["type"] == names.ACCEPTED), {})

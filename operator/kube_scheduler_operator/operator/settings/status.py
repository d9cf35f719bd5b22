from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...base import names
from ...base.objects import Object
from ...config.effective.settings.validate import SettingsResult
from ...kube.resource import OPERATOR_SETTINGS
from ..model.plan import Action, Event, Replace
from ..status.accepted import accepted_condition, accepted_events, remembered
from ..status.conditions import merge_conditions
from ..status.warnings import warnings_condition


def report_settings(
    objects: Mapping[str, Object] | None,
    result: SettingsResult | None,
    now: datetime,
    check: Mapping[str, Any] | None = None,
    check_events: tuple[Event, ...] = (),
) -> tuple[Action, ...]:
    """Write the status of OperatorSettings "cluster" unless it is up to date.

    `check` is the last check of placements; None keeps the recorded one. `check_events` are sent
    when it is written.
    """
    obj = (objects or {}).get(names.CLUSTER)
    if obj is None or result is None:
        return ()
    before: Mapping[str, Any] = obj.get("status") or {}
    generation = int(obj["metadata"].get("generation") or 0)
    status = remembered(before, generation, result.spec if result.accepted else None)
    owner = f"{OPERATOR_SETTINGS.kind}/{result.name} "
    conditions = [
        accepted_condition(result, before, owner),
        warnings_condition(names.WARNINGS, result.warnings, owner),
    ]
    recorded = before.get("placementCheck") if check is None else check
    if recorded:
        status["placementCheck"] = dict(recorded)
    status["conditions"] = merge_conditions(before.get("conditions") or (), conditions, now)
    if status == before:
        return ()
    events = (*accepted_events(OPERATOR_SETTINGS.kind, obj, status), *check_events)
    return (Replace(OPERATOR_SETTINGS, {**obj, "status": status}, "status", events),)

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...base import names
from ...base.objects import Object, mapping
from ...config.effective.settings.upgrade_check import FIELD
from ...config.effective.settings.validate import SettingsResult
from ...kube.resource import OPERATOR_SETTINGS
from ..model.plan import Action, Event
from ..status.accepted import accepted_status, accepted_write
from ..status.in_use import InUse


def report_settings(
    objects: Mapping[str, Object] | None,
    result: SettingsResult | None,
    in_use: InUse | None,
    now: datetime,
    check: Mapping[str, Any] | None = None,
    check_events: tuple[Event, ...] = (),
    upgrade: Mapping[str, Any] | None = None,
) -> tuple[Action, ...]:
    """Write the status of OperatorSettings "cluster" unless it is up to date.

    `in_use` has what the control plane's scheduler, or that in its place, runs; None: not known.
    `check` is the last check of placements, and `upgrade` that of a newer version; None keeps the
    recorded one. `check_events` are sent when they are written.
    """
    obj = (objects or {}).get(names.CLUSTER)
    if obj is None or result is None:
        return ()
    scheduler = in_use.settings() if in_use is not None else None
    status = accepted_status(OPERATOR_SETTINGS, obj, result, now, scheduler)
    before = mapping(obj.get("status"))
    for field, made in (("placementCheck", check), (FIELD, upgrade)):
        recorded = before.get(field) if made is None else made
        if recorded:
            status[field] = dict(recorded)
    return accepted_write(OPERATOR_SETTINGS, obj, status, *check_events)

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...base import names
from ...base.objects import Object, mapping
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
) -> tuple[Action, ...]:
    """Write the status of OperatorSettings "cluster" unless it is up to date.

    `in_use` has what the control plane's scheduler, or that in its place, runs; None: not known.
    `check` is the last check of placements; None keeps the recorded one. `check_events` are sent
    when it is written.
    """
    obj = (objects or {}).get(names.CLUSTER)
    if obj is None or result is None:
        return ()
    scheduler = in_use.settings() if in_use is not None else None
    status = accepted_status(OPERATOR_SETTINGS, obj, result, now, scheduler)
    recorded = mapping(obj.get("status")).get("placementCheck") if check is None else check
    if recorded:
        status["placementCheck"] = dict(recorded)
    return accepted_write(OPERATOR_SETTINGS, obj, status, *check_events)

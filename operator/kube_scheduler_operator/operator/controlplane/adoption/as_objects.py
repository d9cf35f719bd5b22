"""The adopted profiles and extenders as objects, which then have the same effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ....base.objects import mapping
from ....config.language.schema import DEFAULT_SCHEDULER
from ....config.migrate.changes import Change, ConversionLog
from ....config.migrate.scheduler_objects import control_plane_objects

_OBJECTS: Final = ("profiles", "extenders")


@dataclass(frozen=True, slots=True)
class AdoptedObjects:
    objects: tuple[dict[str, Any], ...]  # for `kubectl apply`
    changes: tuple[Change, ...]  # what differs from the adopted configuration
    remaining: tuple[str, ...]  # adopted fields that no object has; they stay in effect as they are


def adopted_objects(adopted: Mapping[str, Any], effective: Mapping[str, Any]) -> AdoptedObjects:
    """The objects for an adopted configuration.

    `effective` is the configuration that the adopted fields result in, with spec.profile of the
    Scheduler.
    """
    profiles = adopted.get("profiles")
    listed = [mapping(profile) for profile in profiles] if isinstance(profiles, list) else []
    served = {str(profile.get("schedulerName") or DEFAULT_SCHEDULER) for profile in listed}
    config: dict[str, Any] = {
        "profiles": [
            profile
            for profile in effective.get("profiles") or ()
            if str(profile.get("schedulerName") or DEFAULT_SCHEDULER) in served
        ],
        "extenders": adopted.get("extenders") or [],
    }
    log = ConversionLog()
    objects = control_plane_objects(config, set(), log)
    named = {
        str(profile.get("schedulerName") or DEFAULT_SCHEDULER) for profile in config["profiles"]
    }
    if served and DEFAULT_SCHEDULER not in named:
        why = (
            f"beside SchedulerProfiles, the control plane's scheduler always serves it; if another "
            f"scheduler serves {DEFAULT_SCHEDULER}, keep the profiles adopted instead"
        )
        log.differs(("profiles",), f"profile {DEFAULT_SCHEDULER} added", why)
    if not served:  # control_plane_objects has a profile for a file without any
        objects = [profile for profile in objects if profile["kind"] != "SchedulerProfile"]
    remaining = tuple(sorted(key for key in adopted if key not in _OBJECTS))
    return AdoptedObjects(tuple(objects), log.changes(), remaining)

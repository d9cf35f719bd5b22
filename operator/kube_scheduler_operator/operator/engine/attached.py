"""The statuses of objects whose scheduler is not managed, and of those of other schedulers."""

from __future__ import annotations

from collections.abc import Mapping

from ...base import names
from ...base.objects import Object, mapping
from ...config.effective.attachment import CONTROL_PLANE, scheduler_of
from ...kube.resource import OPERATOR_SETTINGS, SCHEDULER_EXTENDERS, SCHEDULER_PROFILES
from ..controlplane.placement_gate import remembered_check
from ..extenders.status import report_extenders
from ..model.plan import Action
from ..model.snapshot import Snapshot
from ..profiles.status import report_profiles
from ..secondary.reconcile import SecondarySchedulers
from ..status.accepted import forget, unobserved


def attached_to_secondaries(
    snapshot: Snapshot, secondary: SecondarySchedulers
) -> tuple[Action, ...]:
    """Write the statuses of the objects of SecondarySchedulers, which are always managed."""
    profiles, extenders = snapshot.scheduler_profiles or {}, snapshot.scheduler_extenders or {}
    return (
        *report_profiles(
            profiles,
            (r for r in secondary.results if is_attached(profiles[r.name])),
            secondary.in_use,
            snapshot.now,
        ),
        *report_extenders(
            extenders,
            (r for r in secondary.extenders if is_attached(extenders[r.name])),
            secondary.agents,
            secondary.in_use,
            snapshot.now,
        ),
    )


def unobserved_objects(snapshot: Snapshot) -> tuple[Action, ...]:
    """Report the objects of the control plane's scheduler as not observed."""
    now, management = snapshot.now, snapshot.management
    profiles, extenders = _own(snapshot.scheduler_profiles), _own(snapshot.scheduler_extenders)
    settings, agents = snapshot.operator_settings or {}, (names.AVAILABLE, names.DEGRADED)
    return (
        *unobserved(SCHEDULER_PROFILES, profiles.values(), management, now),
        *unobserved(SCHEDULER_EXTENDERS, extenders.values(), management, now, agents),
        *unobserved(OPERATOR_SETTINGS, settings.values(), management, now),
    )


def forget_accepted(snapshot: Snapshot) -> tuple[Action, ...]:
    """Forget the last accepted versions of its objects, after the removal of the scheduler.

    Which configurations ran is kept: coming back is an edit, too.
    """
    now, management = snapshot.now, snapshot.management
    profiles, extenders = _own(snapshot.scheduler_profiles), _own(snapshot.scheduler_extenders)
    settings, kept = snapshot.operator_settings or {}, remembered_check(snapshot)
    return (
        *forget(SCHEDULER_PROFILES, profiles, management, now),
        *forget(SCHEDULER_EXTENDERS, extenders, management, now),
        *forget(OPERATOR_SETTINGS, settings, management, now, kept),
    )


def is_attached(obj: Object) -> bool:
    """Whether a SchedulerProfile or SchedulerExtender names a scheduler of its own."""
    return scheduler_of(mapping(obj.get("spec"))) != CONTROL_PLANE


def _own(objects: Mapping[str, Object] | None) -> dict[str, Object]:
    """Those of the control plane's scheduler, by name."""
    return {name: obj for name, obj in sorted((objects or {}).items()) if not is_attached(obj)}

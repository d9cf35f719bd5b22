"""What objects lead to, for every scheduler: the one way in which all callers compose.

Scheduler, KubeScheduler and what is attached to them → the control plane's scheduler → where the
provider runs that, a SecondaryScheduler in its place → all SecondarySchedulers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...base.objects import mapping
from ..language.schema import DEFAULT_SCHEDULER
from ..language.warnings.configuration import scheduler_names
from .attachment import is_ours
from .control_plane.scheduler import Accepted, EffectiveControlPlane, effective_control_plane
from .facts import Facts
from .managed import managed_spec, moved_objects
from .objects import Objects
from .secondary.scheduler import EffectiveSecondaries, effective_secondaries


@dataclass(frozen=True, slots=True)
class Effective:
    """What every scheduler would run."""

    # on managed platforms: the settings of the managed SecondaryScheduler
    control_plane: EffectiveControlPlane
    secondaries: EffectiveSecondaries


def effective(objects: Objects, facts: Facts, accepted: Accepted | None = None) -> Effective:
    """Compose the objects; never raise, whatever users wrote.

    `accepted` are the settings that were accepted last, in the place of those with an error.
    """
    if facts.platform.owns_static_pods:
        control_plane = effective_control_plane(objects, facts, accepted)
        served = served_by(control_plane)
        return Effective(control_plane, effective_secondaries(objects, facts, served))
    control_plane = effective_managed(objects, facts, accepted)
    objects = moved_objects(with_managed(objects, facts, control_plane), facts.managed_scheduler)
    return Effective(control_plane, effective_secondaries(objects, facts, (DEFAULT_SCHEDULER,)))


def effective_managed(
    objects: Objects, facts: Facts, accepted: Accepted | None = None
) -> EffectiveControlPlane:
    """Compose Scheduler and KubeScheduler, without the objects attached to them."""
    return effective_control_plane(replace(objects, profiles=(), extenders=()), facts, accepted)


def served_by(control_plane: EffectiveControlPlane) -> tuple[str, ...]:
    composition = control_plane.composition
    if composition.config is None or composition.blocking:
        return (DEFAULT_SCHEDULER,)
    return tuple(dict.fromkeys((DEFAULT_SCHEDULER, *scheduler_names(composition.config))))


def with_managed(objects: Objects, facts: Facts, control_plane: EffectiveControlPlane) -> Objects:
    """Add the SecondaryScheduler that has these settings, unless one of them has an error."""
    name = facts.managed_scheduler
    others = tuple(obj for obj in objects.secondaries if obj["metadata"]["name"] != name)
    existing = next((obj for obj in objects.secondaries if obj["metadata"]["name"] == name), None)
    if control_plane.composition.blocking or (existing is not None and not is_ours(existing)):
        return objects
    spec = managed_spec(control_plane, facts, mapping(mapping(existing).get("spec")))
    managed: Mapping[str, Any] = {"metadata": {"name": name}, **(existing or {}), "spec": spec}
    return replace(objects, secondaries=(*others, managed))

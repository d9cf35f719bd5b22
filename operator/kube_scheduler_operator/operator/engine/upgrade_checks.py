"""The step of a reconcile that checks a newer version of Kubernetes, on request."""

from __future__ import annotations

from functools import partial

from ...config.effective.control_plane.scheduler import EffectiveControlPlane
from ...config.effective.managed import moved_objects
from ...config.effective.pipeline import served_by
from ...config.effective.upgrades import ControlPlaneUpgrade, Upgrade, secondary_upgrades
from ...config.language.schema import DEFAULT_SCHEDULER
from ..controlplane.desired import facts_of, objects_of
from ..controlplane.operand_image import operand_image
from ..controlplane.upgrade_check import UpgradeCheck, UpgradeSubject, check_upgrade
from ..model.snapshot import Snapshot
from .stages import PreparedRevision, Requested


def check_static_pods(snapshot: Snapshot, image: str, prepared: PreparedRevision) -> UpgradeCheck:
    """Check the version that OperatorSettings name, for schedulers in static Pods."""
    if prepared.decided is None:
        return UpgradeCheck()
    control_plane = prepared.decided.control_plane
    upgrades = partial(_static_pods, control_plane)
    return check_upgrade(snapshot, UpgradeSubject(control_plane.composition, image, upgrades))


def check_managed(snapshot: Snapshot, image: str, requested: Requested) -> UpgradeCheck:
    """Do the same where the provider runs the control plane's scheduler."""
    if requested.control_plane is None:
        return UpgradeCheck()
    composition = requested.control_plane.composition
    upgrades = partial(_managed, snapshot, foreign=requested.managed.foreign)
    return check_upgrade(snapshot, UpgradeSubject(composition, image, upgrades))


def _static_pods(control_plane: EffectiveControlPlane) -> list[Upgrade]:
    composition = control_plane.composition
    inputs, served = composition.inputs, served_by(control_plane)
    secondary = secondary_upgrades(inputs.objects, inputs.facts, served)
    return [ControlPlaneUpgrade(composition), *secondary]


def _managed(snapshot: Snapshot, *, foreign: bool) -> list[Upgrade]:
    objects, facts = objects_of(snapshot), facts_of(snapshot, operand_image(snapshot))
    if not foreign:
        objects = moved_objects(objects, snapshot.settings.managed_scheduler)
    return [*secondary_upgrades(objects, facts, (DEFAULT_SCHEDULER,))]

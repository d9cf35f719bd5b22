"""The settings of the last accepted revision: what the operator remembers of the configuration."""

from __future__ import annotations

from ...base import names
from ...base.revision_number import revision_number
from ...config.effective.control_plane.accepted_settings import AcceptedSettings
from ...config.effective.control_plane.recorded_inputs import read_inputs
from ..model import operand_pods
from ..model.node_disks import Disks
from ..model.snapshot import Snapshot
from .operand_image import image_in
from .revision.proof import known_numbers


def accepted_settings(snapshot: Snapshot, disks: Disks) -> AcceptedSettings | None:
    """The settings of the newest revision that is installed or being rolled out; None if unknown.

    It need not be complete: it was validated before it was begun, and these settings complete it.
    Without one, those of the newest revision that another edit replaced before it was installed.

    They are unknown if that revision has no record, or if nodes run revisions that the API has
    lost.
    """
    history = known_numbers(snapshot, disks).history
    for outcomes in (("", names.OUTCOME_INSTALLED), (names.OUTCOME_SUPERSEDED,)):
        for newest in reversed(history):
            if newest.outcome not in outcomes:
                continue
            inputs = read_inputs(newest.inputs)
            if inputs is None:
                return None
            # A revision that has just begun has no Pod yet, and the image of the one before.
            older = (revision for revision in history[::-1] if revision.number <= newest.number)
            image = next(filter(None, map(image_in, older)), "")
            return AcceptedSettings(newest.number, inputs, image)
    return None if _runs_revisions(snapshot, disks) else AcceptedSettings()


def _runs_revisions(snapshot: Snapshot, disks: Disks) -> bool:
    entries = snapshot.status.get("nodeStatuses") or ()
    return (
        any(revision_number(entry.get("currentRevision")) for entry in entries)
        or any(operand_pods.read(pod).ours for pod in snapshot.operand_pods.values())
        or any(disk.revision for disk in disks.values())
    )

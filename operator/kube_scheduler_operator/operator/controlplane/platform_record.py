"""The record of the platform: decided once, so that it never changes by itself."""

from __future__ import annotations

from dataclasses import replace

from ...base import names
from ...base.recognition import Remembered
from ...kube.resource import CONFIG_MAPS
from ..model.apply import apply
from ..model.plan import Action
from ..model.snapshot import Snapshot
from .target_config_maps import config_map


def keep_record(snapshot: Snapshot) -> tuple[Action, ...]:
    """The write of the ConfigMap; none if it is up to date, or nothing is to be recorded."""
    decided = snapshot.decision
    if decided is None or not decided.remember:
        return ()
    used = decided.used
    record = Remembered(used.platform.name, used.provider, used.reason)
    if not used.platform.owns_static_pods:
        record = replace(record, version=snapshot.server_version)
    desired = config_map(snapshot.platform, names.PLATFORM_RECORD, record.data())
    return apply(CONFIG_MAPS, snapshot.config_maps, desired, ("data",))

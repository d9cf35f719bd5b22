"""The filters of the control plane's scheduler, with which secondary schedulers are compared.

All schedulers place pods on the same nodes, without knowing each other's latest decisions. With the
same filters, a node that is full for one is full for the other a moment later. With different
filters, one fills nodes by rules that the other does not apply. If two secondary schedulers differ
from each other, at least one differs from the control plane's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..base import names
from ..base.json_text import parse_json
from ..model import operand_pods
from ..model.snapshot import Snapshot
from ..schedulerconfig.command_line import parse
from ..schedulerconfig.feature_gates import FLAG as FEATURE_GATES
from ..schedulerconfig.feature_gates import Gates, parse_gates
from ..schedulerconfig.schema import DEFAULT_SCHEDULER
from ..schedulerconfig.validation import Target
from ..schedulerconfig.versions import Version
from ..schedulerconfig.warnings import filters_of_all_profiles


def main_filters(snapshot: Snapshot, version: Version) -> frozenset[str] | None:
    """Return the filter plugins of default-scheduler; None if its configuration is unknown."""
    texts = [
        ((snapshot.config_maps.get(part) or {}).get("data") or {}).get(key, "")
        for part, key in ((names.CONFIG, names.CONFIG_KEY), (names.POD, names.POD_KEY))
    ]
    return _main_filters(*texts, version) if all(texts) else None


@lru_cache(maxsize=4)
def _main_filters(config: str, pod: str, version: Version) -> frozenset[str] | None:
    try:
        flags = parse(operand_pods.read(parse_json(pod)).arguments)
        target = Target(Gates(version, parse_gates(flags.get(FEATURE_GATES, ()))))
        return filters_of_all_profiles({"profiles": [_main_profile(parse_json(config))]}, target)
    except (KeyError, TypeError, AttributeError, ValueError):
        return None  # another writer has changed the ConfigMap


def _main_profile(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Choose the profile default-scheduler, which serves most pods, else the first profile."""
    profiles: list[Mapping[str, Any]] = config.get("profiles") or [{}]
    names_ = [profile.get("schedulerName") or DEFAULT_SCHEDULER for profile in profiles]
    index = names_.index(DEFAULT_SCHEDULER) if DEFAULT_SCHEDULER in names_ else 0
    return profiles[index]

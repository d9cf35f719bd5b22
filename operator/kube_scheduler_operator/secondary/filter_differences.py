"""A further scheduler beside the control plane's: both place pods on the same nodes.

Neither knows what the other one has just decided. As long as both look at the same things, a node
that is full for one is so for the other a moment later; where their filters differ, one fills nodes
by rules that the other one does not have. Two that differ cannot both be like the control plane's,
so to compare each with that one finds at least one of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ..base import names
from ..base.findings import Finding
from ..model import operand_pods
from ..model.snapshot import Snapshot
from ..schedulerconfig.check import Target
from ..schedulerconfig.command_line import parse
from ..schedulerconfig.feature_gates import FLAG as FEATURE_GATES
from ..schedulerconfig.feature_gates import Gates, parse_gates
from ..schedulerconfig.versions import Version
from ..schedulerconfig.warnings import (
    DEFAULT_SCHEDULER,
    common_filters,
    filter_difference,
    same_nodes,
)
from .compose import Composition

CONTROL_PLANE: Final = "the control plane's scheduler"


def main_filters(snapshot: Snapshot, version: Version) -> frozenset[str] | None:
    """The filters of default-scheduler; None: its configuration is not known yet.

    Args:
        snapshot: what was seen.
        version: of that scheduler.
    """
    texts = [
        ((snapshot.config_maps.get(part) or {}).get("data") or {}).get(key, "")
        for part, key in ((names.CONFIG, names.CONFIG_KEY), (names.POD, names.POD_KEY))
    ]
    return _main_filters(*texts, version) if all(texts) else None


@lru_cache(maxsize=4)
def _main_filters(config: str, pod: str, version: Version) -> frozenset[str] | None:
    try:
        flags = parse(operand_pods.read(json.loads(pod)).arguments)
        target = Target(Gates(version, parse_gates(flags.get(FEATURE_GATES, ()))))
        return common_filters({"profiles": [_main_profile(json.loads(config))]}, target)
    except (KeyError, TypeError, AttributeError, ValueError):
        return None  # somebody put something else there


def _main_profile(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The profile of nearly all pods; others of that process are SchedulerProfiles for a few."""
    profiles: list[Mapping[str, Any]] = config.get("profiles") or [{}]
    names_ = [profile.get("schedulerName") or DEFAULT_SCHEDULER for profile in profiles]
    index = names_.index(DEFAULT_SCHEDULER) if DEFAULT_SCHEDULER in names_ else 0
    return profiles[index]


def different_filters(
    name: str, composition: Composition, main: frozenset[str] | None
) -> list[Finding]:
    """The warning that a further scheduler has other filters than the control plane's.

    Args:
        name: of the SecondaryScheduler.
        composition: of it.
        main: the filters of the control plane's scheduler; None: they are not known.
    """
    if main is None or composition.filters is None:
        return []
    difference = filter_difference(CONTROL_PLANE, main, name, composition.filters)
    if not difference:
        return []
    problem = same_nodes(CONTROL_PLANE, difference)
    return [
        Finding(names.WARNINGS, problem.reason, "spec.profiles", problem.sentence, blocking=False)
    ]

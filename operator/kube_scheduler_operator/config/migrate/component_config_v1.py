"""KubeSchedulerConfiguration v1: removal of plugins that the target version does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.decoding import UNKNOWN_FIELD
from ...base.findings import Path
from ...base.go_values import without_nulls
from ..language.decode import decode_problems, decoded
from ..language.feature_gates import Gates
from ..language.plugins.effective_plugins import effective_plugins
from ..language.plugins.in_tree_plugins import listable_plugins
from ..language.schema import CONFIGURATION
from .changes import ConversionLog, refuse
from .old_defaults import CLOUD_LIMITS
from .old_profile import MULTI
from .replacements import LIMITS


def convert_v1(document: Mapping[str, Any], gates: Gates, report: ConversionLog) -> dict[str, Any]:
    """Copy a configuration without removed plugins.

    With unknown fields, which validation reports, the copy is unchanged.

    Raises:
        ConversionError: a value has the wrong type.
    """
    minor = gates.version.minor
    config: dict[str, Any] = without_nulls(document)
    problems = list(decode_problems(config, CONFIGURATION, (), minor))
    refuse(problem for problem in problems if problem.reason != UNKNOWN_FIELD)
    if problems:
        return config
    config = decoded(config, CONFIGURATION, minor)
    obsolete = set(CLOUD_LIMITS) - listable_plugins(gates.version).keys()
    for index, profile in enumerate(config.get("profiles", ())):
        path: Path = ("profiles", index)
        removed = _without_limits(profile, obsolete, (*path, "plugins"), gates, report)
        _enable_volume_limits(profile, removed, (*path, "plugins"), gates, report)
        arguments = profile.get("pluginConfig", ())
        for position, entry in enumerate(arguments):
            if entry.get("name") in obsolete:
                where = (*path, "pluginConfig", position)
                why = f"kube-scheduler {gates.version.short} has no such plugin"
                report.same(where, f"arguments of {entry['name']} removed", why)
        if any(entry.get("name") in obsolete for entry in arguments):
            profile["pluginConfig"] = [
                argument for argument in arguments if argument.get("name") not in obsolete
            ]
    return config


def _without_limits(
    profile: dict[str, Any], obsolete: set[str], path: Path, gates: Gates, report: ConversionLog
) -> list[str]:
    """Remove former plugins for cloud volumes; return the points that enabled them."""
    points = []
    why = f"kube-scheduler {gates.version.short} has no such plugin; {LIMITS} counts volumes"
    for point, sets in profile.get("plugins", {}).items():
        for key in ("enabled", "disabled"):
            entries = sets.get(key, [])
            left = [entry for entry in entries if entry.get("name") not in obsolete]
            if len(left) == len(entries):
                continue
            for index, entry in enumerate(entries):
                if entry.get("name") in obsolete:
                    where = (*path, point, key, index)
                    report.same(where, f"{entry['name']} removed", why)
            sets[key] = left
            if not left:
                del sets[key]
            if key == "enabled":
                points.append(point)
    return points


def _enable_volume_limits(
    profile: dict[str, Any], points: list[str], path: Path, gates: Gates, report: ConversionLog
) -> None:
    """Enable NodeVolumeLimits at points of removed plugins, unless it runs there already."""
    runs = effective_plugins(profile, gates).points
    for point in points:
        at = "filter" if point == MULTI else point
        if any(entry.name == LIMITS for entry in runs[at]):
            continue
        profile["plugins"][point].setdefault("enabled", []).append({"name": LIMITS})
        why = "it counts volumes of CSI drivers, which attach these volumes today"
        report.same((*path, point), f"{LIMITS} enabled", why)

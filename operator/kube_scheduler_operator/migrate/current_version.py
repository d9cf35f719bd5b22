"""A KubeSchedulerConfiguration of v1: as it is, without plugins that its scheduler has not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.findings import Path
from ..schedulerconfig.catalogue import listable
from ..schedulerconfig.decode import decode, decoded
from ..schedulerconfig.effective_plugins import effective_plugins
from ..schedulerconfig.feature_gates import Gates
from ..schedulerconfig.go_values import without_nulls
from ..schedulerconfig.schema import CONFIGURATION
from .changes import Report
from .expansion import MULTI
from .old_defaults import CLOUD_LIMITS
from .successors import LIMITS


def convert_current(document: Mapping[str, Any], gates: Gates, report: Report) -> dict[str, Any]:
    """A copy without what is gone; as it is if a field is wrong, which the check tells."""
    minor = gates.version.minor
    config: dict[str, Any] = without_nulls(document)
    if any(decode(config, CONFIGURATION, (), minor)):
        return config
    config = decoded(config, CONFIGURATION, minor)
    gone = set(CLOUD_LIMITS) - listable(gates.version).keys()
    for index, profile in enumerate(config.get("profiles", ())):
        path: Path = ("profiles", index)
        removed = _without_limits(profile, gone, (*path, "plugins"), gates, report)
        _count_otherwise(profile, removed, (*path, "plugins"), gates, report)
        arguments = profile.get("pluginConfig", ())
        for position, entry in enumerate(arguments):
            if entry.get("name") in gone:
                where = (*path, "pluginConfig", position)
                why = f"kube-scheduler {gates.version.short} has no such plugin"
                report.same(where, f"arguments of {entry['name']} left out", why)
        if any(entry.get("name") in gone for entry in arguments):
            profile["pluginConfig"] = [each for each in arguments if each.get("name") not in gone]
    return config


def _without_limits(
    profile: dict[str, Any], gone: set[str], path: Path, gates: Gates, report: Report
) -> list[str]:
    """Take out the plugins of cloud volumes that are gone; returns where they were enabled."""
    points = []
    why = f"kube-scheduler {gates.version.short} has no such plugin; {LIMITS} counts volumes"
    for point, sets in profile.get("plugins", {}).items():
        for key in ("enabled", "disabled"):
            entries = sets.get(key, [])
            left = [entry for entry in entries if entry.get("name") not in gone]
            if len(left) == len(entries):
                continue
            for index, entry in enumerate(entries):
                if entry.get("name") in gone:
                    where = (*path, point, key, index)
                    report.same(where, f"{entry['name']} left out", why)
            sets[key] = left
            if not left:
                del sets[key]
            if key == "enabled":
                points.append(point)
    return points


def _count_otherwise(
    profile: dict[str, Any], points: list[str], path: Path, gates: Gates, report: Report
) -> None:
    """Enable NodeVolumeLimits where a plugin was that it stands for, if it does not run there."""
    runs = effective_plugins(profile, gates).points
    for point in points:
        at = "filter" if point == MULTI else point
        if any(entry.name == LIMITS for entry in runs[at]):
            continue
        profile["plugins"][point].setdefault("enabled", []).append({"name": LIMITS})
        why = "it counts what CSI drivers attach, which these volumes are today"
        report.same((*path, point), f"{LIMITS} enabled", why)

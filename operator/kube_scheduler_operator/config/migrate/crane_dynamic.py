"""crane's plugins in a scheduler configuration: their use, and the configuration without them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...base.findings import Path
from ..language.schema import DEFAULT_SCHEDULER
from .changes import Change, ConversionError, ConversionLog
from .convert import check_types

DYNAMIC: Final = "Dynamic"
TOPOLOGY: Final = "NodeResourceTopologyMatch"
DEFAULT_PATH: Final = "/etc/kubernetes/dynamic-scheduler-policy.yaml"
"""Default of the plugin's argument policyConfigPath."""


@dataclass(frozen=True, slots=True)
class DynamicUse:
    path: Path  # of the profile
    name: str  # its schedulerName
    filters: bool
    scores: bool
    weight: int  # of its scores
    policy_path: str  # of its policy on the node


@dataclass(frozen=True, slots=True)
class DynamicConfig:
    """A configuration without crane's plugins, and how it used them."""

    rest: Mapping[str, Any]  # the configuration without them, in its old version
    uses: tuple[DynamicUse, ...]  # in the order of the profiles
    names: tuple[str, ...]  # the schedulerNames of all profiles
    changes: tuple[Change, ...] = ()  # except the replacement of Dynamic

    @property
    def policy_path(self) -> str:
        """The path of the first policy on the node."""
        return self.uses[0].policy_path


@dataclass(slots=True)
class _Usage:
    points: dict[str, int] = field(default_factory=dict)
    policy_path: str = DEFAULT_PATH


def read_dynamic(document: Any) -> DynamicConfig | None:
    """Read a configuration; return None if it does not enable Dynamic."""
    profiles = document.get("profiles") if isinstance(document, Mapping) else None
    if not isinstance(profiles, list):
        return None
    try:
        check_types(document)
    except ConversionError:
        return None  # the conversion reports it
    rest = copy.deepcopy(dict(document))
    report = ConversionLog()
    uses = []
    names = []
    rest["profiles"] = [profile or {} for profile in rest["profiles"]]
    for index, profile in enumerate(rest["profiles"]):
        path: Path = ("profiles", index)
        name = str(profile.get("schedulerName") or DEFAULT_SCHEDULER)
        names.append(name)
        usage = _take(profile, path, report)
        if usage.points:
            points = usage.points
            both = "multiPoint" in points
            uses.append(
                DynamicUse(
                    path,
                    name,
                    filters=both or "filter" in points,
                    scores=both or "score" in points,
                    weight=points.get("score") or points.get("multiPoint") or 1,
                    policy_path=usage.policy_path,
                )
            )
    if not uses:
        return None
    return DynamicConfig(rest, tuple(uses), tuple(names), report.changes())


def _take(profile: dict[str, Any], path: Path, report: ConversionLog) -> _Usage:
    usage = _Usage()
    plugins = profile.get("plugins")
    if isinstance(plugins, dict):
        for point, sets in list(plugins.items()):
            if isinstance(sets, dict):
                _take_point(point, sets, (*path, "plugins", point), usage, report)
                if not any(sets.values()):
                    del plugins[point]
        if not plugins:
            del profile["plugins"]
    configs = profile.get("pluginConfig")
    if isinstance(configs, list):
        _take_arguments(configs, (*path, "pluginConfig"), usage, report)
        if not configs:
            del profile["pluginConfig"]
    return usage


def _take_point(
    point: str, sets: dict[str, Any], path: Path, usage: _Usage, report: ConversionLog
) -> None:
    for key in ("enabled", "disabled"):
        entries = sets.get(key)
        if not isinstance(entries, list):
            continue
        for index, name, entry in _named(entries):
            if name == DYNAMIC and key == "enabled":
                usage.points[point] = int(entry.get("weight") or 0)
            elif name == TOPOLOGY and key == "enabled":
                why = (
                    "no policy of the operator uses the NUMA topology of crane's agent "
                    "(NodeResourceTopology of topology.crane.io): pods are placed without it, and "
                    "the kubelet's topology manager still aligns or rejects them"
                )
                report.lost((*path, key, index), f"{name} removed", why)
        sets[key] = [entry for entry in entries if not _is_crane_plugin(entry)]
        if not sets[key]:
            del sets[key]


def _take_arguments(configs: list[Any], path: Path, usage: _Usage, report: ConversionLog) -> None:
    for index, name, entry in _named(configs):
        arguments = entry.get("args")
        if name == DYNAMIC and isinstance(arguments, Mapping):
            usage.policy_path = str(arguments.get("policyConfigPath") or DEFAULT_PATH)
        if name in (DYNAMIC, TOPOLOGY):
            why = "the plugin is removed as well"
            if name == DYNAMIC:
                why = f"the LoadPolicy replaces {usage.policy_path} on the nodes"
            report.same((*path, index), f"arguments of {name} removed", why)
    configs[:] = [entry for entry in configs if not _is_crane_plugin(entry)]


def _named(entries: Sequence[Any]) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    for index, entry in enumerate(entries):
        if isinstance(entry, Mapping):
            yield index, str(entry.get("name") or ""), entry


def _is_crane_plugin(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("name") in (DYNAMIC, TOPOLOGY)

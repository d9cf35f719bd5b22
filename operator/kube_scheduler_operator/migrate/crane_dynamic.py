"""crane's plugins in a scheduler configuration: what uses them, and what is left without them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.findings import Path
from ..schedulerconfig.warnings import DEFAULT_SCHEDULER
from .changes import Change, Report

DYNAMIC: Final = "Dynamic"
TOPOLOGY: Final = "NodeResourceTopologyMatch"
DEFAULT_PATH: Final = "/etc/kubernetes/dynamic-scheduler-policy.yaml"
"""Where the plugin looks if its arguments do not say where."""


@dataclass(frozen=True, slots=True)
class Use:
    """How a profile uses Dynamic.

    Attributes:
        path: of the profile.
        name: its schedulerName.
        filters: it filters.
        scores: it scores.
        weight: of its scores.
        policy_path: the file that has its policy, on the node.
    """

    path: Path
    name: str
    filters: bool
    scores: bool
    weight: int
    policy_path: str


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A configuration without crane's plugins, and how it used them.

    Attributes:
        rest: the configuration, as old as it was.
        uses: profiles that use Dynamic.
        names: the schedulerNames of all profiles.
        changes: what was taken out beside Dynamic.
    """

    rest: Mapping[str, Any]
    uses: tuple[Use, ...]
    names: tuple[str, ...]
    changes: tuple[Change, ...] = ()

    @property
    def policy_path(self) -> str:
        """Where the policy is on the node; of several, the first."""
        return self.uses[0].policy_path


@dataclass(slots=True)
class _Taken:
    """What was found of Dynamic in one profile."""

    points: dict[str, int] = field(default_factory=dict)
    policy_path: str = DEFAULT_PATH


def read_dynamic(document: Any) -> Dynamic | None:
    """The configuration without crane's plugins; None if it does not enable Dynamic."""
    profiles = document.get("profiles") if isinstance(document, Mapping) else None
    if not isinstance(profiles, list):
        return None
    rest = copy.deepcopy(dict(document))
    report = Report()
    uses = []
    found = []
    for index, profile in enumerate(rest["profiles"]):
        if not isinstance(profile, dict):
            return None  # which the conversion tells
        path: Path = ("profiles", index)
        name = str(profile.get("schedulerName") or DEFAULT_SCHEDULER)
        found.append(name)
        taken = _take(profile, path, report)
        if taken.points:
            points = taken.points
            both = "multiPoint" in points
            uses.append(
                Use(
                    path,
                    name,
                    filters=both or "filter" in points,
                    scores=both or "score" in points,
                    weight=points.get("score") or points.get("multiPoint") or 1,
                    policy_path=taken.policy_path,
                )
            )
    if not uses:
        return None
    return Dynamic(rest, tuple(uses), tuple(found), report.changes())


def _take(profile: dict[str, Any], path: Path, report: Report) -> _Taken:
    taken = _Taken()
    plugins = profile.get("plugins")
    if isinstance(plugins, dict):
        for point, sets in list(plugins.items()):
            if isinstance(sets, dict):
                _take_point(point, sets, (*path, "plugins", point), taken, report)
                if not any(sets.values()):
                    del plugins[point]
        if not plugins:
            del profile["plugins"]
    configs = profile.get("pluginConfig")
    if isinstance(configs, list):
        _take_arguments(configs, (*path, "pluginConfig"), taken, report)
        if not configs:
            del profile["pluginConfig"]
    return taken


def _take_point(
    point: str, sets: dict[str, Any], path: Path, taken: _Taken, report: Report
) -> None:
    for key in ("enabled", "disabled"):
        entries = sets.get(key)
        if not isinstance(entries, list):
            continue
        for index, name, entry in _named(entries):
            if name == DYNAMIC and key == "enabled":
                taken.points[point] = int(entry.get("weight") or 0)
            elif name == TOPOLOGY and key == "enabled":
                why = (
                    "no policy here knows the NUMA topology that crane's agent publishes "
                    "(NodeResourceTopology of topology.crane.io); pods are placed without it, and "
                    "the kubelet's own topology manager still aligns or refuses them"
                )
                report.lost((*path, key, index), f"{name} left out", why)
        sets[key] = [entry for entry in entries if not _is_cranes(entry)]
        if not sets[key]:
            del sets[key]


def _take_arguments(configs: list[Any], path: Path, taken: _Taken, report: Report) -> None:
    for index, name, entry in _named(configs):
        arguments = entry.get("args")
        if name == DYNAMIC and isinstance(arguments, Mapping):
            taken.policy_path = str(arguments.get("policyConfigPath") or DEFAULT_PATH)
        if name in (DYNAMIC, TOPOLOGY):
            why = "the plugin is not there any more"
            if name == DYNAMIC:
                why = f"the policy is in the LoadPolicy, and not in {taken.policy_path} on nodes"
            report.same((*path, index), f"arguments of {name} left out", why)
    configs[:] = [entry for entry in configs if not _is_cranes(entry)]


def _named(entries: Sequence[Any]) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    for index, entry in enumerate(entries):
        if isinstance(entry, Mapping):
            yield index, str(entry.get("name") or ""), entry


def _is_cranes(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("name") in (DYNAMIC, TOPOLOGY)

"""Which SchedulerProfile is to be mended when a composed configuration has a mistake in a profile.

kube-scheduler names profiles by their index in the file where it reads and validates them, and by
schedulerName where it builds their plugins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ..base.findings import Finding, Path, format_path
from ..base.objects import mapping
from ..model.attachment import PROFILE, REFUSED
from ..schedulerconfig.locate import locate
from ..schedulerconfig.merge import DEFAULT_SCHEDULER
from .check import written_profile
from .validate import Verdict

# `profiles[1].pluginConfig[0].args.x: Invalid value: …`, `decoding .profiles[1].pluginConfig[0]: …`
_READING: Final = re.compile(r"\bprofiles\[(\d+)\]((?:\.\w+|\[\d+\])*)")
# `creating profile for scheduler name team-a: initializing plugin "X": args.field: …`
_BUILDING: Final = re.compile(r"\bcreating profile for scheduler name ([\w.-]+): (.*)")
_QUOTED: Final = re.compile(r'"([\w./-]+)"')
_FIELD: Final = re.compile(r": (\w+(?:\.\w+|\[\d+\])*): ")
_PART: Final = re.compile(r"\.(\w+)|\[(\d+)\]")


def attribute(
    verdicts: Iterable[Verdict],
    words: str,
    refused: Any,
    wanted: Any,
    state: str,
) -> tuple[Verdict, ...]:
    """The verdicts, with a finding in each whose profile kube-scheduler blames.

    Args:
        verdicts: of the SchedulerProfiles of one scheduler.
        words: what kube-scheduler said.
        refused: the profiles of the file that it said it of; nobody promises that they are some.
        wanted: those that the scheduler is to have now; one that has changed is not blamed.
        state: what was refused and what runs instead, for the message.
    """
    blamed = dict(_blamed(words, _profiles(refused))) if words else {}
    if not blamed:
        return tuple(verdicts)
    known = {_name(one): one for one in _profiles(wanted)}
    found = []
    for verdict in verdicts:
        name = verdict.scheduler_name
        profile, path = blamed.get(name, ({}, ()))
        if name in blamed and verdict.spec is not None and known.get(name) == profile:
            where = _where(verdict, verdict.spec, profile, path)
            finding = PROFILE.finding(verdict.name, REFUSED, where, f"{state}: {words}")
            verdict = replace(verdict, findings=(*verdict.findings, finding))
        found.append(verdict)
    return tuple(found)


def relocated(
    findings: Iterable[Finding], profiles: Any, verdicts: Iterable[Verdict]
) -> tuple[Finding, ...]:
    """The findings, those about a profile of a SchedulerProfile with their place in that.

    Args:
        findings: about a composed configuration; the paths of some have `profiles[N]` in them.
        profiles: of the configuration; nobody promises that they are some.
        verdicts: of the SchedulerProfiles that are in it.
    """
    profiles = _profiles(profiles)
    owners = {verdict.scheduler_name: verdict for verdict in verdicts if verdict.spec is not None}
    found = []
    for finding in findings:
        match = _READING.search(finding.path)
        index = int(match[1]) if match else len(profiles)
        owner = owners.get(_name(profiles[index])) if index < len(profiles) else None
        if match and owner is not None and owner.spec is not None:
            where = _where(owner, owner.spec, profiles[index], _parsed(match[2]))
            finding = replace(finding, path=f"SchedulerProfile/{owner.name} {where}")
        found.append(finding)
    return tuple(found)


def _where(
    verdict: Verdict, spec: Mapping[str, Any], profile: Mapping[str, Any], path: Path
) -> str:
    """Where in the object a place in its profile comes from."""
    written = {"profiles": [written_profile(verdict.scheduler_name, spec)]}
    at = locate(("profiles", 0, *path), {"profiles": [profile]}, written)
    return format_path((*verdict.root.split("."), *(at or ("profiles", 0, *path))[2:]))


def _profiles(value: Any) -> list[Mapping[str, Any]]:
    return [mapping(one) for one in value] if isinstance(value, list) else []


def _name(profile: Mapping[str, Any]) -> str:
    return str(profile.get("schedulerName") or DEFAULT_SCHEDULER)


def _blamed(
    words: str, profiles: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[Mapping[str, Any], Path]]]:
    """SchedulerName -> (profile, where in it), for each profile that is named."""
    by_name = {_name(one): one for one in profiles}
    for match in reversed([*_READING.finditer(words)]):  # of several, the first one counts
        index = int(match[1])
        if index < len(profiles):
            yield _name(profiles[index]), (profiles[index], _parsed(match[2]))
    for match in _BUILDING.finditer(words):
        if match[1] in by_name:
            profile = by_name[match[1]]
            yield match[1], (profile, _plugin(profile, match[2]))


def _plugin(profile: Mapping[str, Any], words: str) -> Path:
    """Where a profile has the plugin that `words` name, with the field of its arguments if any."""
    for match in _QUOTED.finditer(words):
        configured = _index_of(match[1], profile.get("pluginConfig"))
        field = _FIELD.match(words[match.end() :])
        if field and configured is not None:
            return ("pluginConfig", configured, "args", *_parsed(f".{field[1]}"))
        for point, lists in mapping(profile.get("plugins")).items():
            enabled = _index_of(match[1], mapping(lists).get("enabled"))
            if enabled is not None:
                return ("plugins", point, "enabled", enabled, "name")
        if configured is not None:
            return ("pluginConfig", configured)
    return ()


def _index_of(name: str, items: Any) -> int | None:
    """Where a list has the entry of that name."""
    found = (index for index, one in enumerate(items or ()) if mapping(one).get("name") == name)
    return next(found, None)


def _parsed(text: str) -> Path:
    return tuple(int(index) if index else key for key, index in _PART.findall(text))

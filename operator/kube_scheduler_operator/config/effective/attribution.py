"""Attributes a refusal by kube-scheduler to the SchedulerProfile or SchedulerExtender behind it.

kube-scheduler names a profile by its index in decoding and validation errors, and by schedulerName
in errors of building its plugins. It names an extender by its index in validation errors; in errors
about files of its TLS configuration, it names only the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ...base.findings import Finding, Path, format_path
from ...base.objects import mapping
from ..language.merging.merge import override_path
from ..language.schema import DEFAULT_SCHEDULER
from .attachment import EXTENDER, PROFILE, REFUSED, Refusal
from .extenders.entry import field_of
from .extenders.validate import ExtenderResult
from .profiles.check import written_profile
from .profiles.validate import ProfileResult

# `profiles[1].pluginConfig[0].args.x: Invalid value: …`, `decoding .profiles[1].pluginConfig[0]: …`
_READING: Final = re.compile(r"\bprofiles\[(\d+)\]((?:\.\w+|\[\d+\])*)")
# `extenders[1].weight: Invalid value: …`
_READING_EXTENDER: Final = re.compile(r"\bextenders\[(\d+)\]((?:\.\w+|\[\d+\])*)")
# `creating profile for scheduler name team-a: initializing plugin "X": args.field: …`
_BUILDING: Final = re.compile(r"\bcreating profile for scheduler name ([\w.-]+): (.*)")
_QUOTED: Final = re.compile(r'"([\w./-]+)"')
_FIELD: Final = re.compile(r": (\w+(?:\.\w+|\[\d+\])*): ")
_PART: Final = re.compile(r"\.(\w+)|\[(\d+)\]")
_FILES: Final = ("caFile", "certFile", "keyFile")


def attribute_profiles(
    results: Iterable[ProfileResult],
    refusal: Refusal | None,
    desired: Mapping[str, Any],
) -> tuple[ProfileResult, ...]:
    """Add a finding to each result whose profile kube-scheduler's error names.

    The error does not apply to a profile that differs in the desired configuration.
    """
    if refusal is None:
        return tuple(results)
    named = dict(_named_profiles(refusal.words, _mappings(refusal.config.get("profiles"))))
    known = {_name(profile): profile for profile in _mappings(desired.get("profiles"))}
    attributed = []
    for result in results:
        name = result.scheduler_name
        profile, path = named.get(name, ({}, ()))
        if name in named and result.spec is not None and known.get(name) == profile:
            where = _where(result, result.spec, profile, path)
            finding = PROFILE.finding(result.name, REFUSED, where, refusal.message)
            result = replace(result, findings=(*result.findings, finding))
        attributed.append(result)
    return tuple(attributed)


def relocated(
    findings: Iterable[Finding], profiles: Any, results: Iterable[ProfileResult]
) -> tuple[Finding, ...]:
    """Map findings in the profile of a SchedulerProfile to paths in that object.

    The findings have paths such as `profiles[N]` in the configuration with these profiles.
    """
    profiles = _mappings(profiles)
    owners = {result.scheduler_name: result for result in results if result.spec is not None}
    moved = []
    for finding in findings:
        match = _READING.search(finding.path)
        index = int(match[1]) if match else len(profiles)
        owner = owners.get(_name(profiles[index])) if index < len(profiles) else None
        if match and owner is not None and owner.spec is not None:
            where = _where(owner, owner.spec, profiles[index], _parsed(match[2]))
            finding = replace(finding, path=f"SchedulerProfile/{owner.name} {where}")
        moved.append(finding)
    return tuple(moved)


def _where(
    result: ProfileResult, spec: Mapping[str, Any], profile: Mapping[str, Any], path: Path
) -> str:
    """Map a path in the composed profile to a path in the object."""
    written = {"profiles": [written_profile(result.scheduler_name, spec)]}
    at = override_path(("profiles", 0, *path), {"profiles": [profile]}, written)
    return format_path((*result.root.split("."), *(at or ("profiles", 0, *path))[2:]))


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [mapping(item) for item in value] if isinstance(value, list) else []


def _name(profile: Mapping[str, Any]) -> str:
    return str(profile.get("schedulerName") or DEFAULT_SCHEDULER)


def _named_profiles(
    words: str, profiles: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[Mapping[str, Any], Path]]]:
    """Yield (schedulerName, (profile, path in it)) of the profiles that the error names."""
    by_name = {_name(profile): profile for profile in profiles}
    for match in reversed([*_READING.finditer(words)]):  # the first one wins
        index = int(match[1])
        if index < len(profiles):
            yield _name(profiles[index]), (profiles[index], _parsed(match[2]))
    for match in _BUILDING.finditer(words):
        if match[1] in by_name:
            profile = by_name[match[1]]
            yield match[1], (profile, _plugin(profile, match[2]))


def _plugin(profile: Mapping[str, Any], words: str) -> Path:
    """Find the path of the plugin that `words` name, with the field of its arguments if named."""
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
    names = [mapping(item).get("name") for item in items or ()]
    return names.index(name) if name in names else None


def _parsed(text: str) -> Path:
    return tuple(int(index) if index else key for key, index in _PART.findall(text))


# --- extenders --------------------------------------------------------------------------------


def attribute_extenders(
    results: Iterable[ExtenderResult], refusal: Refusal | None
) -> tuple[ExtenderResult, ...]:
    """Add a finding to each result whose entry kube-scheduler's error names."""
    if refusal is None:
        return tuple(results)
    refused = _mappings(refusal.config.get("extenders"))
    named = list(_named_entries(refusal.words, refused))
    attributed = []
    for result in results:
        # The error does not apply to an entry that has changed since.
        path = next((path for entry, path in named if entry == result.entry), None)
        if path is not None and result.spec is not None:
            where = format_path((*result.root.split("."), *field_of(path, result.spec)))
            finding = EXTENDER.finding(result.name, REFUSED, where, refusal.message)
            result = replace(result, findings=(*result.findings, finding))
        attributed.append(result)
    return tuple(attributed)


def _named_entries(
    words: str, refused: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Yield (entry, path in it) of each entry that the error names; the first path counts."""
    for match in _READING_EXTENDER.finditer(words):
        index = int(match[1])
        if index < len(refused):
            yield refused[index], _parsed(match[2])
    for entry in refused:
        tls = mapping(entry.get("tlsConfig"))
        for key in _FILES:
            if tls.get(key) and str(tls[key]) in words:
                yield entry, ("tlsConfig", key)

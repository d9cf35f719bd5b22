"""The entries of the plugin lists of a profile, which may have any types, with their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....base.findings import Path
from ....base.objects import entries, mapping


def listed_plugins(
    profile: Mapping[str, Any], *keys: str
) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """Yield (extension point, path, entry) of the lists with these keys: enabled, disabled."""
    for point, lists in mapping(profile.get("plugins")).items():
        for key in keys:
            for index, entry in enumerate(entries(mapping(lists).get(key))):
                yield point, ("plugins", point, key, index), mapping(entry)


def configured_plugins(profile: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield (path, entry) of pluginConfig."""
    for index, entry in enumerate(entries(profile.get("pluginConfig"))):
        yield ("pluginConfig", index), mapping(entry)


def named_plugins(profile: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield (path of its name, name) of every plugin in the lists and in pluginConfig."""
    for _, path, entry in listed_plugins(profile, "enabled", "disabled"):
        yield (*path, "name"), str(entry.get("name"))
    for path, entry in configured_plugins(profile):
        yield (*path, "name"), str(entry.get("name"))

"""Paths of the effective configuration to paths of the overrides that set them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ....base.findings import Path
from ..schema import DEFAULT_SCHEDULER


def override_path(path: Path, config: Any, overrides: Any) -> Path | None:
    """Find the path in the overrides that set a path of the effective configuration, if any.

    Entries that merge by name are found by name; appended entries count from the end.
    """
    parts: list[str | int] = []
    lists: dict[str, str] = {"profiles": "schedulerName", "pluginConfig": "name"}
    parent = ""
    for depth, part in enumerate(path):
        translated = part
        if isinstance(part, int) and isinstance(config, list) and isinstance(overrides, list):
            if parent in lists:
                translated = _index_of(_name(config, part, lists[parent]), overrides, lists[parent])
            elif parent == "extenders":
                translated = part - (len(config) - len(overrides))
        if not _has(overrides, translated):
            return (*parts, *path[depth:]) if parts else None
        parts.append(translated)
        overrides = overrides[translated]
        config = config[part] if _has(config, part) else None
        parent = part if isinstance(part, str) else parent
    return tuple(parts)


def _name(items: list[Any], index: int, key: str) -> Any:
    item = items[index] if _has(items, index) else None
    return item.get(key) if isinstance(item, Mapping) else None


def _index_of(name: Any, items: Iterable[Any], key: str) -> int:
    default = DEFAULT_SCHEDULER if key == "schedulerName" else None
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and item.get(key, default) == name:
            return index
    return -1


def _has(value: Any, part: str | int) -> bool:
    if isinstance(part, int):
        return isinstance(value, list) and 0 <= part < len(value)
    return isinstance(value, Mapping) and part in value

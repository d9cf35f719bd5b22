"""Shared by both merges of configurations: their type, and the names by which entries merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Merge = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
"""Merges two documents, the later one over the earlier one."""


def unique_names(items: Any, key: str) -> list[str] | None:
    """Return the names of a list's entries; None if a name is missing or a duplicate."""
    if not isinstance(items, list):
        return None
    names = [item.get(key) if isinstance(item, Mapping) else None for item in items]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return [str(name) for name in names]

"""The merges of `merge_with_jsonmerge`, for installations without jsonmerge.

An installation that only checks files has only PyYAML: jsonmerge requires jsonschema and five more
packages. Tests compare both implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

Merge = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
"""Merges two documents, the later one over the earlier one."""
_Strategy = Callable[[Any, Any], Any]
"""Merges the values of a field: the earlier one (None if unset) and the later one."""


def unique_names(items: Any, key: str) -> list[str] | None:
    """Return the names of a list's entries; None if a name is missing or a duplicate."""
    if not isinstance(items, list):
        return None
    names = [item.get(key) if isinstance(item, Mapping) else None for item in items]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return [str(name) for name in names]


def engine(*, semantic: bool) -> Merge:
    return partial(_merge_maps, strategies=_SEMANTIC if semantic else {})


def _merge_values(base: Any, overlay: Any) -> Any:
    """Merge maps recursively; any other value replaces the earlier one."""
    return _merge_maps(base, overlay, {}) if isinstance(overlay, Mapping) else overlay


def _merge_maps(
    base: Any, overlay: Mapping[str, Any], strategies: Mapping[str, _Strategy]
) -> dict[str, Any]:
    """Merge the fields of two maps, each by its strategy; a map replaces a base of another type."""
    merged = dict(base) if isinstance(base, Mapping) else {}
    for key, value in overlay.items():
        merged[key] = strategies.get(key, _merge_values)(merged.get(key), value)
    return merged


@dataclass(frozen=True, slots=True)
class _ByName:
    """Merges entries by name if all names are unique; otherwise replaces the list."""

    key: str  # the field with the name of an entry
    strategies: Mapping[str, _Strategy] = field(default_factory=dict)  # of an entry's fields

    def __call__(self, base: Any, overlay: Any) -> Any:
        if isinstance(overlay, Mapping):  # the validation reports a map in place of a list
            return _merge_values(base, overlay)
        known = [] if base is None else base
        names, others = unique_names(known, self.key), unique_names(overlay, self.key)
        if names is None or others is None:
            return overlay
        merged = dict(zip(names, known, strict=True))
        for name, entry in zip(others, overlay, strict=True):
            merged[name] = _merge_maps(merged.get(name), entry, self.strategies)
        return list(merged.values())


def _append(base: Any, overlay: Any) -> Any:
    """Append a list to a list; other values merge like any field."""
    if isinstance(base, list) and isinstance(overlay, list):
        return [*base, *overlay]
    return _merge_values(base, overlay)


_SEMANTIC: Final[Mapping[str, _Strategy]] = {
    "profiles": _ByName("schedulerName", {"pluginConfig": _ByName("name")}),
    "extenders": _append,
}
"""The fields of a KubeSchedulerConfiguration that merge by meaning."""

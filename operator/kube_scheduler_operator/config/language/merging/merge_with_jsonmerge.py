"""Merges configurations with jsonmerge, whose schema assigns a strategy to each field."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from jsonmerge import Merger, Walk, WalkInstance
from jsonmerge.jsonvalue import JSONValue
from jsonmerge.strategies import Append, ArrayMergeById, ObjectMerge

from .merge_plain import Merge, unique_names

_BY_PLUGIN_NAME: Final = {
    "mergeStrategy": "byName",
    "mergeOptions": {"idRef": "name"},
}
_SEMANTIC: Final = {
    "properties": {
        "profiles": {
            "mergeStrategy": "byName",
            "mergeOptions": {"idRef": "schedulerName"},
            "items": {"properties": {"pluginConfig": _BY_PLUGIN_NAME}},
        },
        "extenders": {"mergeStrategy": "appendOrReplace"},
    }
}


class _Lenient(ObjectMerge):  # type: ignore[misc]  # jsonmerge ships no types
    """A map over another type replaces it; jsonmerge raises an error."""

    def merge(self, walk: Any, base: Any, head: Any, schema: Any, **options: Any) -> Any:
        if not base.is_undef() and not isinstance(base.val, Mapping):
            base = JSONValue(undef=True, ref=base.ref)
        return super().merge(walk, base, head, schema, **options)


def _map_over_list(walk: Any, base: Any, head: Any) -> Any:
    """Merge a map in place of a list like any other map; the validation reports it."""
    return walk.descend(JSONValue(undef=True), base, head)


class _ByName(ArrayMergeById):  # type: ignore[misc]  # jsonmerge ships no types
    """Merge entries by name if all names are unique; otherwise replace the list."""

    def merge(self, walk: Any, base: Any, head: Any, schema: Any, **options: Any) -> Any:
        if isinstance(head.val, Mapping):
            return _map_over_list(walk, base, head)
        known = [] if base.is_undef() else base.val
        key = options["idRef"]
        if unique_names(known, key) is None or unique_names(head.val, key) is None:
            return head
        # ArrayMergeById interprets names as JSON pointers and compares all pairs.
        positions = {item[key]: position for position, item in enumerate(known)}
        merged = list(known)
        for item in head.val:
            position = positions.get(item[key])
            if position is None:
                merged.append(item)
            else:
                pair = JSONValue(known[position]), JSONValue(item)
                merged[position] = walk.descend(schema.get("items"), *pair).val
        return JSONValue(merged)


class _AppendOrReplace(Append):  # type: ignore[misc]  # jsonmerge ships no types
    """Append a list to a list; anything else replaces."""

    def merge(self, walk: Any, base: Any, head: Any, schema: Any, **options: Any) -> Any:
        if isinstance(head.val, Mapping):
            return _map_over_list(walk, base, head)
        if not isinstance(head.val, list):
            return head
        if not base.is_undef() and not isinstance(base.val, list):
            return head
        return super().merge(walk, base, head, schema, **options)


class _Walk(WalkInstance):  # type: ignore[misc]  # jsonmerge ships no types
    """A walk without jsonmerge's lookup of every value by its JSON pointer.

    That lookup takes most of a merge's time and fails for keys that its URL decoding changes (`""`,
    `a%41`).
    """

    def __init__(self, merger: Merger) -> None:
        Walk.__init__(self, merger, {})

    def work(self, strategy: Any, schema: Any, *values: Any, **options: Any) -> Any:
        base, head = values
        menu = self.merger.objclass_menu
        return strategy.merge(self, base, head, schema, objclass_menu=menu, **options)


class _Merger(Merger):  # type: ignore[misc]  # jsonmerge ships no types
    def __init__(self, schema: Mapping[str, Any], strategies: Mapping[str, Any]) -> None:
        with warnings.catch_warnings():
            # jsonmerge 1.9 uses jsonschema's deprecated resolver, which the pinned version has.
            warnings.simplefilter("ignore", DeprecationWarning)
            super().__init__(schema, strategies=strategies)
            self._walk = _Walk(self)

    def merge(self, base: dict[str, Any], head: dict[str, Any]) -> dict[str, Any]:
        merged: dict[str, Any] = self._walk.descend(
            JSONValue(self.schema), JSONValue(base), JSONValue(head)
        ).val
        return merged


@cache
def engine(*, semantic: bool) -> Merge:
    strategies = {
        "objectMerge": _Lenient(),
        "byName": _ByName(),
        "appendOrReplace": _AppendOrReplace(),
    }
    return _Merger(_SEMANTIC if semantic else {}, strategies).merge

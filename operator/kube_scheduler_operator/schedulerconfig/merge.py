"""Merging configurations: the plain process merge of OpenShift's operators, and one by meaning.

The plain merge knows maps only, so that naming one plugin's arguments would replace all
profiles. `merge_by_meaning` says with a jsonmerge schema what belongs together: profiles with the
same schedulerName, arguments of the same plugin; extenders are added to those already there.
Neither changes its arguments nor shares a list or a map with them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, Final

from jsonmerge import Merger, Walk, WalkInstance
from jsonmerge.jsonvalue import JSONValue
from jsonmerge.strategies import Append, ArrayMergeById, ObjectMerge

from .go_values import without_nulls

DEFAULT_SCHEDULER: Final = "default-scheduler"

_BY_NAME_OF_PLUGIN: Final = {
    "mergeStrategy": "byName",
    "mergeOptions": {"idRef": "name"},
}
_MEANING: Final = {
    "properties": {
        "profiles": {
            "mergeStrategy": "byName",
            "mergeOptions": {"idRef": "schedulerName"},
            "items": {"properties": {"pluginConfig": _BY_NAME_OF_PLUGIN}},
        },
        "extenders": {"mergeStrategy": "appendOrReplace"},
    }
}


class TypeMetaError(ValueError):
    """Two documents that are to be merged are of different kinds."""


def merge_process(documents: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Merge configurations of one kind, the later one over the earlier one.

    Maps merge deep; anything else replaces what was there, `null` and `""` included; empty
    documents are skipped.

    Raises:
        TypeMetaError: a later document says another apiVersion or kind than the first.
    """
    merger = _merger(by_meaning=False)
    result: dict[str, Any] = {}
    for document in documents:
        if not document:
            continue
        check_type_meta(result, document)
        result = merger.merge(result, plain(document))
    return result


def merge_by_meaning(documents: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Merge KubeSchedulerConfigurations, the later one over the earlier one.

    Like `merge_process`, but profiles merge by schedulerName (a single profile without a name is
    the default scheduler's), a profile's pluginConfig by name, and extenders are appended. A list
    whose entries have no such names, or the same one twice, replaces what was there.

    Raises:
        TypeMetaError: a later document says another apiVersion or kind than the first.
    """
    merger = _merger(by_meaning=True)
    result: dict[str, Any] = {}
    for document in documents:
        if not document:
            continue
        check_type_meta(result, document)
        result = merger.merge(result, _with_scheduler_name(plain(document)))
    return result


@dataclass(frozen=True, slots=True)
class Layers:
    """Configurations, each to be laid over the one before: what a merge can be remembered by.

    Attributes:
        content: two with the same content are equal.
        documents: the configurations; their keys are in the order in which the merge has them.
    """

    content: str
    documents: tuple[Mapping[str, Any], ...] = field(compare=False)

    @classmethod
    def of(cls, *documents: Mapping[str, Any]) -> Layers:
        """Of these documents, the later ones over the earlier ones."""
        return cls(json.dumps(documents, default=str), documents)

    def merged(self) -> dict[str, Any]:
        """What they come to, by meaning and without what is null; it shares data with them.

        Profiles that only the first document has are as they were, so they take no part in the
        merge: there may be hundreds of them.
        """
        first, *others = self.documents
        apart = _profiles_apart(first, others)
        if apart:
            stubs = [
                {"schedulerName": each["schedulerName"]} if each["schedulerName"] in apart else each
                for each in first["profiles"]
            ]
            first = {**first, "profiles": stubs}
        found: dict[str, Any] = without_nulls(merge_by_meaning((first, *others)))
        profiles = found.get("profiles")
        if apart and isinstance(profiles, list):
            found["profiles"] = [apart.get(_name_of(each), each) for each in profiles]
        return found


def _profiles_apart(
    first: Mapping[str, Any], others: Iterable[Mapping[str, Any]]
) -> dict[str | None, Any]:
    """Those of the first document's profiles that the others do not name, by name."""
    profiles = first.get("profiles") or []
    known = names_of(profiles, "schedulerName")
    if known is None:
        return {}
    lists = (document.get("profiles") for document in others)
    named = {_name_of(each) for each in chain(*(one for one in lists if isinstance(one, list)))}
    return {
        name: profile if _is_clean(profile) else without_nulls(plain(profile))
        for name, profile in zip(known, profiles, strict=True)
        if name not in named
    }


def _name_of(profile: Any) -> str | None:
    """A profile's schedulerName, and that of one without; None if it has none that can be one."""
    if not isinstance(profile, Mapping):
        return None
    name = profile.get("schedulerName")
    name = DEFAULT_SCHEDULER if name is None else name
    return name if isinstance(name, str) else None


def _is_clean(value: Any) -> bool:
    """Whether neither `plain` nor `without_nulls` would change anything about it."""
    if isinstance(value, dict):
        return all(
            item is not None and isinstance(key, str) and _is_clean(item)
            for key, item in value.items()
        )
    if isinstance(value, list):
        return all(item is not None and _is_clean(item) for item in value)
    return isinstance(value, str | int | None) or (
        isinstance(value, float) and not value.is_integer()
    )


def check_type_meta(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> None:
    """Refuse to lay a document over one of another kind; one that does not say is welcome.

    Raises:
        TypeMetaError: `<apiVersion>/<kind> does not equal <apiVersion>/<kind>`.
    """
    theirs = (overlay.get("apiVersion") or "", overlay.get("kind") or "")
    ours = (base.get("apiVersion") or "", base.get("kind") or "")
    if any(ours) and any(theirs) and ours != theirs:
        raise TypeMetaError(f"{theirs[0]}/{theirs[1]} does not equal {ours[0]}/{ours[1]}")


def plain(value: Any) -> Any:
    """A copy of JSON data in dicts and lists of its own; integral floats become integers.

    The API server stores `5.0` as `5`, and kube-scheduler refuses `5.0` where it wants an integer.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def names_of(items: Any, key: str) -> list[str] | None:
    """The names by which a list's entries can be told apart, None if they cannot be."""
    if not isinstance(items, list):
        return None
    names = [item.get(key) if isinstance(item, Mapping) else None for item in items]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return [str(name) for name in names]


def _with_scheduler_name(document: dict[str, Any]) -> dict[str, Any]:
    profiles = document.get("profiles")
    if isinstance(profiles, list) and len(profiles) == 1 and isinstance(profiles[0], dict):
        # kube-scheduler itself names a single nameless profile like this.
        profiles[0]["schedulerName"] = profiles[0].get("schedulerName", DEFAULT_SCHEDULER)
    return document


class _Lenient(ObjectMerge):  # type: ignore[misc]  # jsonmerge ships no types
    """A map over something else replaces it; jsonmerge itself would refuse."""

    def merge(self, walk: Any, base: Any, head: Any, schema: Any, **options: Any) -> Any:
        if not base.is_undef() and not isinstance(base.val, Mapping):
            base = JSONValue(undef=True, ref=base.ref)
        return super().merge(walk, base, head, schema, **options)


def _map_over_list(walk: Any, base: Any, head: Any) -> Any:
    """A map where a list belongs merges like any other; the check will say that it is wrong."""
    return walk.descend(JSONValue(undef=True), base, head)


class _ByName(ArrayMergeById):  # type: ignore[misc]  # jsonmerge ships no types
    """Entries with the same name merge, where names tell entries apart; otherwise replace."""

    def merge(self, walk: Any, base: Any, head: Any, schema: Any, **options: Any) -> Any:
        if isinstance(head.val, Mapping):
            return _map_over_list(walk, base, head)
        known = [] if base.is_undef() else base.val
        key = options["idRef"]
        if names_of(known, key) is None or names_of(head.val, key) is None:
            return head
        # The stock merge takes the names for JSON pointers and compares each with each.
        places = {item[key]: place for place, item in enumerate(known)}
        merged = list(known)
        for item in head.val:
            place = places.get(item[key])
            if place is None:
                merged.append(item)
            else:
                pair = JSONValue(known[place]), JSONValue(item)
                merged[place] = walk.descend(schema.get("items"), *pair).val
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
    """A walk that does not look every value up again by its JSON pointer.

    The stock walk asserts at each step that the pointer leads to the value at hand. That is most of
    a merge's time, and it fails for keys that its URL decoding changes (`""`, `a%41`).
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
            # jsonmerge 1.9 needs jsonschema's deprecated resolver; our pin of jsonschema keeps it.
            warnings.simplefilter("ignore", DeprecationWarning)
            super().__init__(schema, strategies=strategies)
            self._walk = _Walk(self)

    def merge(self, base: dict[str, Any], head: dict[str, Any]) -> dict[str, Any]:
        merged: dict[str, Any] = self._walk.descend(
            JSONValue(self.schema), JSONValue(base), JSONValue(head)
        ).val
        return merged


@cache
def _merger(*, by_meaning: bool) -> _Merger:
    strategies = {
        "objectMerge": _Lenient(),
        "byName": _ByName(),
        "appendOrReplace": _AppendOrReplace(),
    }
    return _Merger(_MEANING if by_meaning else {}, strategies)

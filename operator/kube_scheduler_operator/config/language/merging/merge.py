"""Merging of configurations: the process merge of OpenShift's operators, and a semantic merge.

The process merge replaces lists: setting one plugin's arguments replaces all profiles. The semantic
merge combines profiles by schedulerName and arguments by plugin, and appends extenders. Neither
modifies its inputs or shares lists or maps with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ....base.findings import Path
from ....base.go_values import without_nulls
from ....base.installation import InstallationError
from ..schema import DEFAULT_SCHEDULER
from . import merge_plain
from .merge_plain import Merge, unique_names

_JSONMERGE: Final = "jsonmerge"


class TypeMetaError(ValueError):
    """Documents have different kinds and cannot be merged."""


def merge_process(documents: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Merge configurations of one kind, the later one over the earlier one.

    Maps merge recursively; any other value replaces the earlier one, including `null` and `""`.
    Empty documents are skipped.

    Raises:
        TypeMetaError: a document has another apiVersion or kind than an earlier one.
    """
    return _merge(engine(semantic=False), documents, normalized_json)


def merge_semantically(documents: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Merge KubeSchedulerConfigurations, the later one over the earlier one.

    Like `merge_process`, but profiles merge by schedulerName (a single profile without a name is
    the default scheduler's), a profile's pluginConfig by name, and extenders are appended. A list
    with missing or duplicate names replaces the earlier one.

    Raises:
        TypeMetaError: a document has another apiVersion or kind than an earlier one.
    """
    return _merge(engine(semantic=True), documents, _with_scheduler_name)


def engine(*, semantic: bool) -> Merge:
    """Choose the merge of two documents: jsonmerge, unless it is not installed to check files.

    Raises:
        InstallationError: jsonmerge is installed and cannot be imported.
    """
    try:
        require_jsonmerge()
    except ModuleNotFoundError:
        return merge_plain.engine(semantic=semantic)
    from . import merge_with_jsonmerge

    return merge_with_jsonmerge.engine(semantic=semantic)


def require_jsonmerge() -> None:
    """Import jsonmerge, which all later merges of this process use.

    Raises:
        ModuleNotFoundError: jsonmerge is not installed.
        InstallationError: jsonmerge is installed and cannot be imported.
    """
    try:
        from . import merge_with_jsonmerge  # noqa: F401
    except ImportError as error:
        # The package may be absent by choice; a part or a dependency that is missing is an error.
        if isinstance(error, ModuleNotFoundError) and error.name == _JSONMERGE:
            raise
        raise InstallationError(
            f"the Python package {_JSONMERGE} is installed and cannot be imported: {error}; run: "
            f"pip install --force-reinstall {_JSONMERGE}"
        ) from error


def _merge(
    merge: Merge,
    documents: Iterable[Mapping[str, Any] | None],
    prepare: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """Merge the prepared documents, in order; empty ones are skipped."""
    merged: dict[str, Any] = {}
    for document in documents:
        if not document:
            continue
        validate_type_meta(merged, document)
        merged = merge(merged, prepare(document))
    return merged


@dataclass(frozen=True, slots=True)
class Layers:
    """Configurations to merge in order; a cache key of their merge."""

    content: str  # the configurations as JSON, which determines equality
    documents: tuple[Mapping[str, Any], ...] = field(compare=False)  # the configurations

    @classmethod
    def of(cls, *documents: Mapping[str, Any]) -> Layers:
        return cls(json.dumps(documents, default=str), documents)

    def merged(self) -> dict[str, Any]:
        """Merge semantically and without nulls; the result shares data with the documents.

        Profiles that only the first document has skip the merge: there may be hundreds of them.
        """
        first, *others = self.documents
        unmerged = _unmerged_profiles(first, others)
        if unmerged:
            stubs = [
                {"schedulerName": profile["schedulerName"]}
                if profile["schedulerName"] in unmerged
                else profile
                for profile in first["profiles"]
            ]
            first = {**first, "profiles": stubs}
        merged: dict[str, Any] = without_nulls(merge_semantically((first, *others)))
        profiles = merged.get("profiles")
        if unmerged and isinstance(profiles, list):
            merged["profiles"] = [unmerged.get(_name_of(profile), profile) for profile in profiles]
        return merged


def _unmerged_profiles(
    first: Mapping[str, Any], others: Iterable[Mapping[str, Any]]
) -> dict[str | None, Any]:
    """Return the first document's profiles that no other document names, by name."""
    profiles = first.get("profiles") or []
    known = unique_names(profiles, "schedulerName")
    if known is None:
        return {}
    lists = (document.get("profiles") for document in others)
    named = {
        _name_of(profile)
        for other_profiles in lists
        if isinstance(other_profiles, list)
        for profile in other_profiles
    }
    return {
        name: profile if _is_normalized(profile) else without_nulls(normalized_json(profile))
        for name, profile in zip(known, profiles, strict=True)
        if name not in named
    }


def _name_of(profile: Any) -> str | None:
    """Return a profile's schedulerName, or the default one; None if it is invalid."""
    if not isinstance(profile, Mapping):
        return None
    name = profile.get("schedulerName")
    name = DEFAULT_SCHEDULER if name is None else name
    return name if isinstance(name, str) else None


def _is_normalized(value: Any) -> bool:
    """Return whether `normalized_json` and `without_nulls` leave the value unchanged."""
    if isinstance(value, dict):
        return all(
            item is not None and isinstance(key, str) and _is_normalized(item)
            for key, item in value.items()
        )
    if isinstance(value, list):
        return all(item is not None and _is_normalized(item) for item in value)
    return isinstance(value, str | int | None) or (
        isinstance(value, float) and not value.is_integer()
    )


def validate_type_meta(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> None:
    """Reject an overlay of another kind than its base; one without a kind is accepted.

    Raises:
        TypeMetaError: `<apiVersion>/<kind> does not equal <apiVersion>/<kind>`.
    """
    theirs = (overlay.get("apiVersion") or "", overlay.get("kind") or "")
    ours = (base.get("apiVersion") or "", base.get("kind") or "")
    if any(ours) and any(theirs) and ours != theirs:
        raise TypeMetaError(f"{theirs[0]}/{theirs[1]} does not equal {ours[0]}/{ours[1]}")


def normalized_json(value: Any) -> Any:
    """Copy JSON data deeply, with integral floats as integers.

    The API server stores `5.0` as `5`, and kube-scheduler rejects `5.0` for an integer field.
    """
    if isinstance(value, Mapping):
        return {str(key): normalized_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [normalized_json(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _with_scheduler_name(document: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a document, with kube-scheduler's default for a single profile without a name."""
    copy: dict[str, Any] = normalized_json(document)
    profiles = copy.get("profiles")
    if isinstance(profiles, list) and len(profiles) == 1 and isinstance(profiles[0], dict):
        profiles[0].setdefault("schedulerName", DEFAULT_SCHEDULER)
    return copy


def without_empty_values(config: dict[str, Any]) -> dict[str, Any]:
    """Copy a configuration without empty lists and maps, which are equivalent to absent fields."""
    copy = {key: value for key, value in config.items() if value not in ({}, [])}
    if isinstance(copy.get("profiles"), list):
        copy["profiles"] = [_tidy_profile(profile) for profile in copy["profiles"]]
    return copy


def _tidy_profile(profile: Any) -> Any:
    if not isinstance(profile, dict):
        return profile
    points = profile.get("plugins")
    if isinstance(points, dict):
        sets = {
            point: {key: item for key, item in lists.items() if item != []}
            if isinstance(lists, dict)
            else lists
            for point, lists in points.items()
        }
        profile = {**profile, "plugins": {key: item for key, item in sets.items() if item != {}}}
    return {key: value for key, value in profile.items() if value not in ({}, [])}


# --- paths of overrides --------------------------------------------------------------------------


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


def sets_path(path: Path, config: Any, layer: Any) -> bool:
    """Report whether a layer has a value at a path of the effective configuration."""
    own = override_path(path, config, layer)
    value = layer
    for part in own or ():
        if not _has(value, part):
            return False
        value = value[part]
    return own is not None


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

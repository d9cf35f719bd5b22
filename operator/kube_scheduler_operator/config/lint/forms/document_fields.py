"""Access to documents of any types: what is missing or of another type is empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....base.objects import entries, mapping
from ....base.source.reader import Document
from ...language.versions import Version


def value_of(document: Document) -> Mapping[str, Any]:
    return mapping(document.root.data)


def at(value: Any, *keys: str | int) -> Any:
    """Return the value below some keys of maps; None if one is missing."""
    for key in keys:
        value = mapping(value).get(str(key))
    return value


def group_kind(value: Mapping[str, Any]) -> tuple[str, str]:
    return str(value.get("apiVersion") or "").rpartition("/")[0], str(value.get("kind") or "")


def objects(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the maps in a list, with their indices."""
    for index, item in enumerate(entries(value)):
        if isinstance(item, Mapping):
            yield index, item


def text(value: Any) -> str:
    """Return a string; empty for any other type."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    """Return a number of replicas; 1 for any other type."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 1


def name_of(value: Mapping[str, Any]) -> str:
    return text(at(value, "metadata", "name"))


def namespace_of(value: Mapping[str, Any]) -> str:
    return text(at(value, "metadata", "namespace"))


def label_of(value: Mapping[str, Any]) -> str:
    return f"{text(value.get('kind'))} {name_of(value)}".strip()


def version_of(value: Any) -> Version | None:
    """Parse a version as products write it, such as `v1.31.5+k3s1`; None if it is none."""
    try:
        return Version.parse(str(value).partition("+")[0].removesuffix("-0"))
    except ValueError:
        return None


def version_of_image(image: str) -> Version | None:
    """Return the version in an image's tag; None without one."""
    try:
        return Version.of_image(image)
    except ValueError:
        return None

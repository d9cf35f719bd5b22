"""Helpers for reading documents of any types: what is missing or of another type is empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...base.objects import mapping
from ...schedulerconfig.source import Document
from ...schedulerconfig.versions import Version


def value_of(document: Document) -> Mapping[str, Any]:
    """The document as a map."""
    return mapping(document.root.data)


def at(value: Any, *keys: str) -> Any:
    """The value below some keys; None if one is missing."""
    for key in keys:
        value = mapping(value).get(key)
    return value


def group_kind(value: Mapping[str, Any]) -> tuple[str, str]:
    """(API group, kind)."""
    return str(value.get("apiVersion") or "").rpartition("/")[0], str(value.get("kind") or "")


def objects(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The maps in a list, with their indices."""
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield index, item


def text(value: Any) -> str:
    """A text; empty for any other type."""
    return value if isinstance(value, str) else ""


def name_of(value: Mapping[str, Any]) -> str:
    """metadata.name."""
    return text(at(value, "metadata", "name"))


def namespace_of(value: Mapping[str, Any]) -> str:
    """metadata.namespace; empty if it is not set."""
    return text(at(value, "metadata", "namespace"))


def label_of(value: Mapping[str, Any]) -> str:
    """`Kind name` in messages."""
    return f"{text(value.get('kind'))} {name_of(value)}".strip()


def version_of(value: Any) -> Version | None:
    """A Kubernetes version as products write it, `v1.31.5+k3s1` too; None if it is not one."""
    try:
        return Version.parse(str(value).partition("+")[0].removesuffix("-0"))
    except ValueError:
        return None


def version_of_image(image: str) -> Version | None:
    """The version in an image's tag; None if it has none."""
    try:
        return Version.of_image(image)
    except ValueError:
        return None

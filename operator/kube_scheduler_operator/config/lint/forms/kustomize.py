"""Kustomize: what a Kustomization generates from files and literals, and the images it changes.

Source: kubernetes-sigs/kustomize v5, api/types/kustomization.go, api/types/kvpairsources.go, and
`parseFileSource` and `parseLiteralSource` of api/kv/kv.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import Path
from ....base.objects import entries
from ....base.source.reader import Document
from .config_map import CONFIG_MAP, SECRET
from .document_fields import group_kind, objects, text, value_of
from .form import Contents, GeneratedKey, Text
from .image_changes import ImageChange, Kustomization

_GENERATORS: Final = {"configMapGenerator": CONFIG_MAP, "secretGenerator": SECRET}
_KINDS: Final = ("Kustomization", "Component")
_RESOURCES: Final = ("resources", "bases", "components")


def read(document: Document) -> Contents | None:
    """Read the files and literals of the generators, the resources, and the changes of images."""
    value = value_of(document)
    group, kind = group_kind(value)
    typed = group == "kustomize.config.k8s.io" and kind in _KINDS
    untyped = not (kind or value.get("apiVersion")) and _has_its_fields(value)
    if not (typed or untyped):
        return None
    return Contents(
        texts=tuple(_literals(value)),
        generated=tuple(_files(value)),
        kustomization=Kustomization(tuple(_resources(value)), tuple(_images(value))),
    )


def _has_its_fields(value: Mapping[str, Any]) -> bool:
    """Report whether a document without kind is a Kustomization, which may leave it out."""
    if _GENERATORS.keys() & value.keys():
        return True
    return any(True for _ in _resources(value)) or any(
        "newTag" in image or "newName" in image for _, image in objects(value.get("images"))
    )


def _resources(value: Mapping[str, Any]) -> Iterator[str]:
    for field in _RESOURCES:
        yield from filter(None, map(text, entries(value.get(field))))


def _images(value: Mapping[str, Any]) -> Iterator[ImageChange]:
    for _, image in objects(value.get("images")):
        fields = ("name", "newName", "newTag", "digest", "tagSuffix")
        yield ImageChange(*(text(image.get(field)) for field in fields))


def _generators(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Path]]:
    """Yield (kind of the object, its generator, path)."""
    for field, kind in _GENERATORS.items():
        for index, entry in objects(value.get(field)):
            yield kind, entry, (field, index)


def _files(value: Mapping[str, Any]) -> Iterator[GeneratedKey]:
    """Read entries `[KEY=]FILE`; the default key is the name of the file."""
    for kind, generator, path in _generators(value):
        name = text(generator.get("name"))
        for index, entry in enumerate(entries(generator.get("files"))):
            key, equals, file = text(entry).partition("=")
            if not equals:
                key, file = key.rpartition("/")[2], key
            yield GeneratedKey(kind, name, key, file, (*path, "files", index))


def _literals(value: Mapping[str, Any]) -> Iterator[Text]:
    """Read entries `KEY=TEXT`."""
    for kind, generator, path in _generators(value):
        name = text(generator.get("name"))
        for index, entry in enumerate(entries(generator.get("literals"))):
            key, equals, content = text(entry).partition("=")
            if equals:
                where = (*path, "literals", index)
                yield Text(where, content, f"{kind} {name}", kind, "", name, key)

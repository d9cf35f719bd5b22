"""Kustomize: what a Kustomization generates from files and literals, and the images it changes.

Source: kubernetes-sigs/kustomize v5, api/types/kustomization.go, api/types/kvpairsources.go, and
`parseFileSource` and `parseLiteralSource` of api/kv/kv.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...base.findings import Path
from ...schedulerconfig.source import Document
from .config_map import CONFIG_MAP, SECRET
from .form import Contents, Form, GeneratedKey, Text
from .image_changes import ImageChange, Kustomization
from .objects import group_kind, objects, text, value_of

_GENERATORS: Final = {"configMapGenerator": CONFIG_MAP, "secretGenerator": SECRET}
_KINDS: Final = ("Kustomization", "Component")
_RESOURCES: Final = ("resources", "bases", "components")


def read(document: Document) -> Contents | None:
    """The files and literals of the generators, the resources, and the changes of images."""
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
    """Whether a document without kind is a Kustomization, which may leave it out."""
    if _GENERATORS.keys() & value.keys():
        return True
    return any(True for _ in _resources(value)) or any(
        "newTag" in image or "newName" in image for _, image in objects(value.get("images"))
    )


def _resources(value: Mapping[str, Any]) -> Iterator[str]:
    for field in _RESOURCES:
        entries = value.get(field)
        yield from filter(None, map(text, entries if isinstance(entries, list) else ()))


def _images(value: Mapping[str, Any]) -> Iterator[ImageChange]:
    for _, image in objects(value.get("images")):
        fields = ("name", "newName", "newTag", "digest", "tagSuffix")
        yield ImageChange(*(text(image.get(field)) for field in fields))


def _generators(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Path]]:
    """(kind of the object, its generator, path)."""
    for field, kind in _GENERATORS.items():
        for index, entry in objects(value.get(field)):
            yield kind, entry, (field, index)


def _files(value: Mapping[str, Any]) -> Iterator[GeneratedKey]:
    """Entries `[KEY=]FILE`; without a key it is the name of the file."""
    for kind, generator, path in _generators(value):
        files = generator.get("files")
        for index, entry in enumerate(files if isinstance(files, list) else ()):
            key, equals, file = text(entry).partition("=")
            if not equals:
                key, file = key.rpartition("/")[2], key
            yield GeneratedKey(
                kind, text(generator.get("name")), key, file, (*path, "files", index)
            )


def _literals(value: Mapping[str, Any]) -> Iterator[Text]:
    """Entries `KEY=TEXT`."""
    for kind, generator, path in _generators(value):
        name, literals = text(generator.get("name")), generator.get("literals")
        for index, entry in enumerate(literals if isinstance(literals, list) else ()):
            key, equals, content = text(entry).partition("=")
            if equals:
                yield Text(
                    (*path, "literals", index), content, f"{kind} {name}", kind, "", name, key
                )


KUSTOMIZATIONS: Final = Form(
    "Kustomization (`configMapGenerator`, `secretGenerator`, `images`), with the files that it "
    "names",
    "kubernetes-sigs/kustomize v5, api/types/kustomization.go",
    read,
)

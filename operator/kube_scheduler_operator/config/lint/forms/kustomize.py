"""Kustomize: what a Kustomization generates from files and literals, and the images it changes.

Source: kubernetes-sigs/kustomize v5, api/types/kustomization.go, api/types/kvpairsources.go, and
`parseFileSource` and `parseLiteralSource` of api/kv/kv.go. Images: api/types/image.go,
`SetImageValue` of api/filters/imagetag/updater.go, and api/internal/image/image.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from typing import Any, Final

from ....base.findings import Path
from ....base.objects import entries
from ....base.source.reader import Document
from .document_fields import group_kind, objects, text, value_of
from .embedded import CONFIG_MAP, SECRET
from .form import Contents, ImageChange, Kustomization, Text

_GENERATORS: Final = {"configMapGenerator": CONFIG_MAP, "secretGenerator": SECRET}
_KINDS: Final = ("Kustomization", "Component")
_RESOURCES: Final = ("resources", "bases", "components")


@dataclass(frozen=True, slots=True)
class ChangedImages:
    """The changes that the Kustomizations of a run make, in the order of `kustomize build`."""

    by_file: Mapping[str, frozenset[tuple[ImageChange, ...]]]

    @classmethod
    def of(cls, kustomizations: Sequence[tuple[str, Kustomization]]) -> ChangedImages:
        """Follow (file, its Kustomization) from those that no other one has as a resource."""
        known = {normpath(dirname(file)): kustomization for file, kustomization in kustomizations}
        named = {
            _target(where, resource)
            for where, kustomization in known.items()
            for resource in kustomization.resources
        }
        changes_of: dict[str, set[tuple[ImageChange, ...]]] = {}
        for where in known.keys() - named:
            for file, changes in _followed(known, where, frozenset()):
                changes_of.setdefault(file, set()).add(changes)
        return cls({file: frozenset(changes) for file, changes in changes_of.items()})

    def applied(self, file: str, image: str) -> str:
        """Apply all changes to an image of a file.

        Keep the image if several Kustomizations change it to different ones.
        """
        changed = set()
        for changes in self.by_file.get(normpath(file), ()):
            name = image
            for change in changes:
                name = change.applied(name)
            changed.add(name)
        return changed.pop() if len(changed) == 1 else image


def _followed(
    known: Mapping[str, Kustomization], where: str, above: frozenset[str]
) -> Iterator[tuple[str, tuple[ImageChange, ...]]]:
    """Yield (file, changes) below a directory; a base makes its changes first."""
    own = known[where]
    for target in (_target(where, entry) for entry in own.resources):
        if target not in known:
            yield target, own.images
        elif target not in above:
            for file, changes in _followed(known, target, above | {where}):
                yield file, (*changes, *own.images)


def _target(where: str, entry: str) -> str:
    return normpath(join(where, entry))


# --- the form ------------------------------------------------------------------------------------


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


def _files(value: Mapping[str, Any]) -> Iterator[Text]:
    """Read entries `[KEY=]FILE`; the default key is the name of the file."""
    for kind, generator, path in _generators(value):
        name = text(generator.get("name"))
        for index, entry in enumerate(entries(generator.get("files"))):
            key, equals, file = text(entry).partition("=")
            if not equals:
                key, file = key.rpartition("/")[2], key
            where, owner = (*path, "files", index), f"{kind} {name}"
            yield Text(where, "", owner, kind, "", name, key, made_of=file)


def _literals(value: Mapping[str, Any]) -> Iterator[Text]:
    """Read entries `KEY=TEXT`."""
    for kind, generator, path in _generators(value):
        name = text(generator.get("name"))
        for index, entry in enumerate(entries(generator.get("literals"))):
            key, equals, content = text(entry).partition("=")
            if equals:
                where = (*path, "literals", index)
                yield Text(where, content, f"{kind} {name}", kind, "", name, key)

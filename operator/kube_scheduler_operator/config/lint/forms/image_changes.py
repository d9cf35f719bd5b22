"""Kustomize: images of containers that Kustomizations change.

Source: kubernetes-sigs/kustomize v5, api/types/image.go, `SetImageValue` of
api/filters/imagetag/updater.go, and api/internal/image/image.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from typing import Final

_TAG_AND_DIGEST: Final = r"(?::([a-zA-Z0-9_.{}-]*))?(?:@([a-zA-Z][a-zA-Z0-9]*:[a-zA-Z0-9_.{}-]*))?"


@dataclass(frozen=True, slots=True)
class ImageChange:
    """An entry of `images`."""

    name: str  # of the images that it changes, without tag and digest
    new_name: str = ""  # empty: the name stays
    new_tag: str = ""  # what replaces both the tag and the digest; both empty: they stay
    digest: str = ""
    tag_suffix: str = ""  # what is appended to the tag, unless one of those is set

    def applied(self, image: str) -> str:
        match = re.fullmatch(re.escape(self.name) + _TAG_AND_DIGEST, image)
        if match is None:
            return image
        tag, digest = match[1] or "", match[2] or ""
        if self.new_tag or self.digest:
            tag, digest = self.new_tag, self.digest
        elif self.tag_suffix:
            tag, digest = tag + self.tag_suffix, ""
        name = self.new_name or self.name
        return name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


@dataclass(frozen=True, slots=True)
class Kustomization:
    """What a Kustomization changes."""

    # its files, and the directories of other Kustomizations, relative to its own
    resources: tuple[str, ...] = ()
    images: tuple[ImageChange, ...] = ()  # its changes, in order


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

"""The images that objects of the API may name.

The author of such an object chooses what runs under accounts of the operator, so only the
operator's own settings extend the list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from .findings import NOT_ALLOWED, WARNING, Path, Problem
from .names import PROGRAM

SETTING: Final = "ALLOWED_IMAGES of the operator's Deployment (Helm: allowedImages)"
_BELOW: Final = "/*"
_EVERY: Final = "*"


@dataclass(frozen=True, slots=True)
class AllowedImages:
    # repositories (with all tags and digests), images with a tag or digest, prefixes that end with
    # `/*`, or `*` for every image
    entries: tuple[str, ...] = ()
    is_complete: bool = True  # False for files: the operator may allow further images

    def extended_by(self, text: str) -> AllowedImages:
        """Add the comma-separated entries of a flag or an environment variable."""
        entries = filter(None, map(str.strip, text.split(",")))
        return replace(self, entries=tuple(dict.fromkeys((*self.entries, *entries))))

    def allows(self, image: str) -> bool:
        return any(_matches(entry, image) for entry in self.entries)

    def with_repositories_of(self, *images: str) -> AllowedImages:
        """Add all tags and digests of these images' repositories."""
        return replace(self, entries=(*map(repository, filter(None, images)), *self.entries))

    def problems(self, path: Path, image: str) -> Iterator[Problem]:
        """Yield an error if the list lacks the image; a warning if the list is incomplete."""
        if self.allows(image):
            return
        add = f'add "{repository(image)}" to {SETTING}'
        if self.is_complete:
            message = (
                f'image "{image}" is not allowed, because it would run under an account of the '
                f"operator; {add}"
            )
            yield Problem(NOT_ALLOWED, path, message)
        else:
            message = f'the operator runs image "{image}" only if its settings allow it; {add}'
            yield Problem(NOT_ALLOWED, path, message, severity=WARNING)


def is_own_image(image: str, own: str) -> bool:
    """Whether an image is this operator's, as far as its name shows; `own` is empty if unknown."""
    name = repository(image)
    return name.rpartition("/")[2] == PROGRAM or (bool(own) and name == repository(own))


EVERY_IMAGE: Final = AllowedImages((_EVERY,))
ALLOWED_BY_DEFAULT: Final = AllowedImages(("registry.k8s.io/kube-scheduler",), is_complete=False)
"""For files, where the operator's settings and the images of its release are unknown."""


def repository(image: str) -> str:
    """Return an image's name without its tag and digest."""
    name = image.partition("@")[0]
    path, slash, last = name.rpartition("/")
    return f"{path}{slash}{last.partition(':')[0]}"


def _matches(entry: str, image: str) -> bool:
    if entry.endswith(_BELOW):
        return image.startswith(entry.removesuffix("*"))
    return entry in (_EVERY, image, repository(image), image.partition("@")[0])

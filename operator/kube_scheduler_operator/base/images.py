"""Which images objects of the API may name.

A user who may write such an object chooses what runs under accounts of the operator, so only the
operator's own settings extend the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SETTING: Final = "ALLOWED_IMAGES of the operator's Deployment (Helm: allowedImages)"
_BELOW: Final = "/*"
_EVERY: Final = "*"


@dataclass(frozen=True, slots=True)
class AllowedImages:
    """An allow-list.

    Attributes:
        entries: repositories (all tags and digests of it), images with a tag or digest, prefixes
            that end with `/*`, or `*` for every image.
    """

    entries: tuple[str, ...] = ()

    def allows(self, image: str) -> bool:
        """Whether the list has an image."""
        return any(_matches(entry, image) for entry in self.entries)

    def with_repositories_of(self, *images: str) -> AllowedImages:
        """The list, and all tags and digests of these images' repositories."""
        return AllowedImages((*map(repository, filter(None, images)), *self.entries))

    def refusal(self, image: str) -> str:
        """What is wrong with an image that the list does not have, and the fix."""
        return (
            f'image "{image}" is not allowed, because it would run under an account of the '
            f'operator; add "{repository(image)}" to {SETTING}'
        )


EVERY_IMAGE: Final = AllowedImages((_EVERY,))
"""For files, where the operator's settings are unknown."""


def repository(image: str) -> str:
    """An image's name without its tag and digest."""
    name = image.partition("@")[0]
    path, slash, last = name.rpartition("/")
    return f"{path}{slash}{last.partition(':')[0]}"


def _matches(entry: str, image: str) -> bool:
    if entry.endswith(_BELOW):
        return image.startswith(entry.removesuffix("*"))
    return entry in (_EVERY, image, repository(image), image.partition("@")[0])

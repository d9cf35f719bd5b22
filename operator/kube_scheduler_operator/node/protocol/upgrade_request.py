"""Decides whether an image in kubeadm's manifest requests an upgrade; pure."""

from __future__ import annotations

import re
from typing import Final

from ...base.images import repository

_VERSION: Final = re.compile(r"v?([1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:[-_][0-9A-Za-z._-]+)?")


def version_of(image: str) -> tuple[int, int, int] | None:
    """Return the version in the tag of an image; None if the tag is not a version."""
    match = _VERSION.fullmatch(tag_of(image))
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def why_not_followed(image: str, own: str, api_server: str) -> str:
    """Return why an image in kubeadm's manifest does not request an upgrade; empty if it does.

    Args:
        image: what kubeadm wrote.
        own: the image of the operator's revision.
        api_server: the image of the node's API server; empty if it is unknown. The scheduler may
            have its minor version or the one before it, as the version skew policy requires.
    """
    if repository(image) != repository(own):
        return f"its repository is not {repository(own)}"
    version, server_version = version_of(image), version_of(api_server)
    if version is None:
        return "its tag is not a version"
    if server_version is None:
        return ""
    if version[:2] > server_version[:2]:
        return f"it is newer than the API server of the node ({tag_of(api_server)})"
    if version[0] != server_version[0] or server_version[1] - version[1] > 1:
        return f"it is too old for the API server of the node ({tag_of(api_server)})"
    return ""


def is_upgrade(image: str, own: str, api_server: str) -> bool:
    """Return whether kubeadm's manifest requests a version other than the revision's."""
    if not image or not own or image == own:
        return False
    return not why_not_followed(image, own, api_server)


def tag_of(image: str) -> str:
    """Return the tag of an image; empty without one."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]

"""Kubernetes versions, which determine what kube-scheduler accepts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

MINORS_BEHIND: Final = 1
"""How much older than the API server kube-scheduler may be; it must not be newer.

https://kubernetes.io/releases/version-skew-policy/
"""

DEFAULT_VERSION: Final = "1.35"
"""The minor version that decides about files where neither a flag nor the files show one."""

_VERSION: Final = re.compile(
    r"v?(?P<major>0|[1-9]\d*)\.(?P<minor>0|[1-9]\d*)(?:\.(?P<patch>0|[1-9]\d*))?"
    r"(?:-(?P<pre>(?:alpha|beta|rc)\.\d+)(?![0-9A-Za-z.]))?(?:[-+][0-9A-Za-z.+_-]+)?"
)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A Kubernetes release, ordered: `Version(1, 34) <= version`."""

    major: int
    minor: int
    patch: int = 0
    # of a pre-release, such as "beta.0"; in comparisons it is like its release
    pre: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read `v1.35.4`, `1.35`, or a tag with a suffix (`v1.35.4-rc.1`, `1.35.4_vendor.2`).

        Raises:
            ValueError: not a version.
        """
        # Image tags cannot contain "+", so "_" separates build metadata there.
        match = _VERSION.fullmatch(text.strip().replace("_", "+"))
        if match is None:
            raise ValueError(f"{text!r} is not a Kubernetes version such as v1.35.4")
        numbers = (int(match["major"]), int(match["minor"]), int(match["patch"] or 0))
        return cls(*numbers, match["pre"] or "")

    @classmethod
    def of_image(cls, image: str) -> Version:
        """Read the tag of an image, with or without a digest.

        Raises:
            ValueError: the image has no tag, or it is not a version.
        """
        return cls.parse(image.partition("@")[0].rpartition("/")[2].partition(":")[2])

    @property
    def short(self) -> str:
        """Major and minor: `1.35`."""
        return f"{self.major}.{self.minor}"

    def __str__(self) -> str:
        pre = f"-{self.pre}" if self.pre else ""
        return f"v{self.major}.{self.minor}.{self.patch}{pre}"


_RELEASE: Final = re.compile(r"v\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+(?![0-9A-Za-z.]))?")


def upstream_tag(git_version: str) -> str:
    """Return the tag of Kubernetes' own images for a vendor's version; empty if it has none.

    `v1.35.4-eks-113cf36`, `v1.35.4-gke.1080000` and `v1.35.4+k3s1` are all `v1.35.4`.
    """
    match = _RELEASE.match(git_version.strip())
    return match[0] if match else ""


def version_skew(scheduler: Version, api_server: Version) -> str:
    """Explain why Kubernetes does not support the pair; empty if it does."""
    if (scheduler.major, scheduler.minor) > (api_server.major, api_server.minor):
        return (
            f"kube-scheduler {scheduler} is newer than the API server ({api_server}), which "
            f"Kubernetes does not support; use {api_server.short}"
        )
    if api_server.minor - scheduler.minor > MINORS_BEHIND:
        return (
            f"kube-scheduler {scheduler} is more than one minor version older than the API server "
            f"({api_server}), which Kubernetes does not support; use {api_server.short}"
        )
    return ""

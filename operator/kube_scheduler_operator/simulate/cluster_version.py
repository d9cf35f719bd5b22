"""The version of a cluster's kube-scheduler, from what shows it best.

In this order: the scheduler's image, the version of the API server, the kubelets of the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..base.foreign_text import foreign
from ..base.images import repository
from ..base.limits import FOREIGN_NAME
from ..config.language.plugins.known_schedulers import scheduler_of_image
from ..config.language.versions import Version
from .kinds import PODS
from .process import PROGRAM
from .world import World

_CONTROL_PLANE: Final = "kube-system"
"""Where the Pods of a control plane are; tenants cannot create Pods there."""
_API_SERVER: Final = "kube-apiserver"


@dataclass(frozen=True, slots=True)
class ClusterVersion:
    """The version that decides in the cluster itself."""

    version: Version | None = None  # None: nothing shows it
    origin: str = ""  # what shows it


def cluster_version(world: World, image: str = "") -> ClusterVersion:
    """Return the version of the kube-scheduler of a world.

    `image` is that of the scheduler that the question is about; empty: not known.
    """
    shown = {version_of_scheduler(image): image}
    shown = shown if None not in shown else _images(world, PROGRAM)
    if newest := _newest(shown):
        return _from(newest, f"the scheduler's image {shown[newest]}")
    if (version := _parsed(world.version)) is not None:
        return _from(version, "the API server")
    shown = _images(world, _API_SERVER)
    if newest := _newest(shown):
        return _from(newest, f"the API server's image {shown[newest]}")
    # A kubelet is never newer than its API server.
    if newest := _newest(map(_parsed, world.kubelets)):
        return _from(newest, "kubeletVersion of the nodes")
    return ClusterVersion()


def _from(version: Version, origin: str) -> ClusterVersion:
    return ClusterVersion(version, foreign(origin, FOREIGN_NAME))


def _newest(versions: Iterable[Version | None]) -> Version | None:
    return max((version for version in versions if version is not None), default=None)


def _images(world: World, program: str) -> dict[Version | None, str]:
    """Return the images, by version, that run a program of the control plane."""
    images = {}
    for (namespace, _), entry in world.objects[PODS].items():
        if namespace != _CONTROL_PLANE or program.encode() not in entry.content:
            continue
        for container in entry.object()["spec"].get("containers") or ():
            image = str(container.get("image") or "")
            name = _basename(image)
            # Distributions have all programs in one image, such as rancher/hardened-kubernetes.
            if name == program or (container.get("name") == program and "kube" in name):
                images[_of_tag(image)] = image
    return images


def _basename(image: str) -> str:
    return repository(image).rpartition("/")[2]


def version_of_scheduler(image: str) -> Version | None:
    """Return the version of Kubernetes of a scheduler's image; None if its name shows none."""
    known = scheduler_of_image(image) if image else None
    if known is not None:
        return known.kubernetes
    return _of_tag(image) if _basename(image) == PROGRAM else None


def _of_tag(image: str) -> Version | None:
    return _parsed(image.partition("@")[0].rpartition("/")[2].partition(":")[2])


def _parsed(text: str) -> Version | None:
    try:
        return Version.parse(text)
    except ValueError:
        return None

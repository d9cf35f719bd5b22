"""Images that ImageLocality does not recognize on nodes, because a Pod names them otherwise.

It compares the names of a Pod and of the nodes' status as text, and adds only a missing tag
(kubernetes/kubernetes#112699). containerd and CRI-O report names with their registry:
docker.io/library/nginx:1.10, where a Pod may have nginx:1.10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .constraint import containers

IMAGE_LOCALITY: Final = "ImageLocality"
_LEAST: Final = 23 * 2**20
"""ImageLocality's minThreshold, in bytes: an image that counts less has no effect."""


def unrecognized_images(
    spec: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a sentence about each image of a Pod's spec that would count under its whole name."""
    bytes_by_name: dict[str, list[int]] = defaultdict(list)
    count = 0
    for node in nodes:
        count += 1
        for image in node["status"].get("images") or ():
            for name in image.get("names") or ():
                bytes_by_name[name].append(int(image.get("sizeBytes") or 0))
    names = dict.fromkeys(str(container.get("image") or "") for container in containers(spec))
    for name in names:
        whole = whole_name(name)
        if not name or "@" in name or {name, f"{name}:latest"} & bytes_by_name.keys():
            continue
        # The largest size, weighted by the share of nodes that have the image.
        sizes = bytes_by_name.get(whole, [0])
        if max(sizes) * len(sizes) / count >= _LEAST:
            yield (
                f'{IMAGE_LOCALITY} does not recognize image "{name}" on any node: nodes report it '
                f'as "{whole}", and names are compared as text; write the whole name in the Pod'
            )


def whole_name(image: str) -> str:
    """Return an image's name with registry and tag, as container runtimes complete it."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif first != "localhost" and not {".", ":"} & set(first):
        image = f"docker.io/{image}"
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"

"""Why ImageLocality has no effect on a Pod: names that differ, and images that are too small.

ImageLocality compares names of a Pod and of nodes' status as text, and adds only a missing tag
(kubernetes/kubernetes#112699). containerd and CRI-O report names with their registry:
docker.io/library/nginx:1.10, where a Pod may have nginx:1.10. They also report the size of the
compressed layers, where Docker reports that of the files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import mapping
from .constraint import containers
from .kinds import NODES
from .world import Entry, World

IMAGE_LOCALITY: Final = "ImageLocality"
_MEBIBYTE: Final = 2**20
_LEAST: Final = 23
"""ImageLocality's minThreshold, in MiB: images that count less have no effect."""
_MOST: Final = 1000
"""Its maxContainerThreshold, in MiB: images that count this for each container have 100 points."""
_REPORTED: Final = 50
"""The kubelet's default of nodeStatusMaxImages."""
_SHOWN: Final = 3
"""Nodes that a sentence names."""
_IMAGES: Final = b'"images":'


def images_without_effect(
    spec: Mapping[str, Any],
    nodes: Iterable[Mapping[str, Any]],
    *,
    alone: bool,
    foremost: bool = False,
) -> Iterator[str]:
    """Yield a sentence about each image of a Pod's spec that would count under its whole name.

    Or, if no other plugin scores or each has a smaller weight (`foremost`), about all images if
    they are too small under any name.
    """
    bytes_by_name: dict[str, list[int]] = defaultdict(list)
    count = 0
    for node in nodes:
        count += 1
        for image in node["status"].get("images") or ():
            for name in image.get("names") or ():
                bytes_by_name[name].append(int(image.get("sizeBytes") or 0))
    images = [str(container.get("image") or "") for container in containers(spec)]
    one_point = _LEAST + (_MOST * len(images) - _LEAST) / 100
    weights, places = [], []
    for name in dict.fromkeys(images):
        known = next((key for key in (name, f"{name}:latest") if key in bytes_by_name), "")
        whole = known or whole_name(name)
        sizes = bytes_by_name.get(whole)
        if not name or "@" in name or not sizes:
            continue
        # The largest size, weighted by the share of nodes that have the image.
        size = max(sizes) / _MEBIBYTE
        weight = size * len(sizes) / count
        weights.append(weight)
        places.append(f'"{whole}" has {size:.0f} MiB and is on {len(sizes)} of {count} nodes')
        if not known and weight >= one_point:
            yield (
                f'{IMAGE_LOCALITY} does not recognize image "{name}" on any node: nodes report it '
                f'as "{whole}", and names are compared as text; write the whole name in the Pod'
            )
    if (alone or foremost) and weights and sum(weights) < one_point:
        rest = "enable a second plugin at score" if alone else "the other plugins decide"
        yield (
            f"{IMAGE_LOCALITY} distinguishes no nodes for this Pod: {', '.join(places)}, so its "
            f"images count as {sum(weights):.1f} MiB at most, and the first point needs "
            f"{one_point:.1f} MiB; {rest}"
        )


def unreported_images(spec: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence about each image of a Pod's spec that nodes may have and not report.

    A kubelet reports its largest images, by default 50 of them (nodeStatusMaxImages).
    """
    known: set[str] = set()
    full: dict[str, set[str]] = {}  # of nodes that may have more images
    for node in nodes:
        images = node["status"].get("images") or ()
        names = {name for image in images for name in image.get("names") or ()}
        known |= names
        if len(images) == _REPORTED:
            full[node["metadata"]["name"]] = names
    for name in dict.fromkeys(str(container.get("image") or "") for container in containers(spec)):
        whole, image = whole_name(name), foreign(name, FOREIGN_NAME)
        names = {name, f"{name}:latest", whole}
        others = [node for node, reported in full.items() if not names & reported]
        if name and not others and known and not names & known:
            also = f' or as "{foreign(whole, FOREIGN_NAME)}"' if whole != name else ""
            yield (
                f'no node reports image "{image}" under this name{also}, so {IMAGE_LOCALITY} '
                "gives it 0 points on every node"
            )
        if name and others:
            more = ", …" if len(others) > _SHOWN else ""
            yield (
                f"of {'1 node' if len(others) == 1 else f'{len(others)} nodes'} "
                f"({', '.join(others[:_SHOWN])}{more}) {IMAGE_LOCALITY} knows only the {_REPORTED} "
                f'largest images, which is the default of nodeStatusMaxImages: "{image}" may be a '
                "smaller one there"
            )


def with_images_of(world: World, pods: Iterable[Mapping[str, Any]]) -> World:
    """Return the world whose nodes report only the images that pods name.

    ImageLocality looks up the names of a Pod in those of a node's status, and no other plugin of
    kube-scheduler reads images: in 1.34 to 1.37 they enter NodeInfo.ImageStates alone.
    """
    names = {str(name) for pod in pods for name in _named_by(pod["spec"])}
    names |= {f"{name}:latest" for name in names}
    written = [orjson.dumps(name) for name in names]
    smaller = world.copy()
    for key, entry in world.objects[NODES].items():
        node = world.node(key[1])
        if node is None or _IMAGES not in entry.content:
            continue
        if any(name in entry.content for name in written):
            images = entry.object()["status"]["images"]
            named = [image for image in images if not names.isdisjoint(image.get("names") or ())]
            node = {**node, "status": {**node["status"], "images": named}}
        smaller.objects[NODES][key] = Entry(orjson.dumps(node))
    return smaller


def _named_by(spec: Mapping[str, Any]) -> Iterator[Any]:
    yield from (container.get("image") for container in containers(spec))
    for volume in spec.get("volumes") or ():
        yield mapping(volume.get("image")).get("reference")


def whole_name(image: str) -> str:
    """Return an image's name with registry and tag, as container runtimes complete it."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif first != "localhost" and not {".", ":"} & set(first):
        image = f"docker.io/{image}"
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"

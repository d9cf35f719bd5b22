"""The operator's image as an OCI image layout, of locked packages, without a container engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cluster import archive, operator_image, paths
from cluster.archive import Image
from releasing import debian
from releasing.source import Source


def build(source: Source, lock: debian.Lock) -> Image:
    """The image of the release for the lock's architecture.

    Raises:
        SandboxError: a package cannot be downloaded, or a tool fails.
    """
    built = operator_image.build(debian.base(lock), lock.architecture)
    cache = paths.cache_dir() / "release" / "layers"
    labels = {
        "org.opencontainers.image.title": "kube-scheduler-operator",
        "org.opencontainers.image.version": source.version,
        "org.opencontainers.image.revision": source.commit,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    return replace(
        built,
        reference=f"{source.repository}:{source.tag}",
        layers=tuple(archive.compressed(layer, cache) for layer in built.layers),
        labels=labels,
        created=datetime.fromtimestamp(source.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def write(image: Image, source: Source, folder: Path) -> Path:
    """Write the layout as a tar, which `skopeo`, `docker load` and `ctr images import` read."""
    name = f"kube-scheduler-operator-{source.tag}-linux-{image.architecture}.oci.tar"
    target = folder / name
    with target.open("wb") as file:
        image.write(file)
    return target

"""The image with which end-to-end tests of Kubernetes and OpenShift try connections.

Its program is built from the Go module of Kubernetes (see ../agnhost): a minute on two cores, less
where Kubernetes has been built; kept in the cache. Instead of Alpine with more tools, it lies on
the lowest layer of the operator's image, which every node has, so tests have a shell there.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from cluster import archive, go_programs, images, nodes, operator_image, paths
from cluster.archive import Image, Layer
from cluster.console import SandboxError, say, step

if TYPE_CHECKING:
    from cluster.model import Sandbox

NAME = "registry.k8s.io/e2e-test-images/agnhost:2.45"
"""As the end-to-end suite of OpenShift's operator requires it; the program is newer (2.59)."""

_PACKAGE = "k8s.io/kubernetes/test/images/agnhost"


def build() -> Image:
    """Build what is missing of the image.

    Raises:
        SandboxError: It cannot be built on this machine.
    """
    without = "do without agnhost"
    program = go_programs.provide("agnhost", without, _PACKAGE)
    target = images.folder() / f"{program.parent.name}.layer"
    with paths.locked(images.folder() / ".agnhost.lock"):
        if not target.exists():
            archive.pack_layer(target, {"agnhost": program})
    layers = (operator_image.base(), Layer.of(target))
    return Image(NAME, layers, ("/agnhost",), environment=images.PATH, arguments=("pause",))


def build_with_go() -> Image | None:
    """The image, or None on a machine that has neither the program nor Go.

    Raises:
        SandboxError: It cannot be built although there is Go.
    """
    try:
        return build()
    except SandboxError as error:
        if shutil.which("go") is not None:
            raise
        say(f"  no agnhost: {error}")
        return None


def load(sandbox: Sandbox) -> None:
    """Give the image to all nodes that run."""
    image = build()
    with step("agnhost on all nodes"), ThreadPoolExecutor() as pool:
        running = [node for node in sandbox.nodes if nodes.runs(sandbox, node)]
        list(pool.map(lambda node: nodes.load_images(sandbox, node, [image]), running))

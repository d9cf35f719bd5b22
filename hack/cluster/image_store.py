"""Getting images into the containerd of a node, as cheaply as can be.

Importing is slow: every layer goes through a socket, is hashed, stored and unpacked, on every node.
So the store of the first node that has imported a set of images is kept in the cache, and a new
node starts with a copy of it, made of hard links: containerd never changes a file of its content
store or of an unpacked layer, only its two databases, which are really copied. What a copy lacks,
usually the operator's topmost layer, is imported.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from cluster import images, paths
from cluster.console import SandboxError, run, succeeds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from cluster.archive import Image

    Inside = Callable[[Sequence[str]], list[str]]
    """Wraps a command so that it runs on a node."""

_CTR = ("ctr", "--namespace=k8s.io")
_KEPT = 4  # kubeadm and OpenShift, and two more versions of Kubernetes


def load(inside: Inside, wanted: Sequence[Image]) -> None:
    """Import images into a running containerd, of each only the layers that it does not have.

    Raises:
        SandboxError: It does not take one.
    """
    listed = run(*inside([*_CTR, "image", "ls"])).splitlines()[1:]
    known = {line.split()[0]: line.split()[2] for line in listed}
    missing = [image for image in wanted if known.get(image.reference) != image.digest]
    if not missing:
        return
    stored = run(*inside([*_CTR, "content", "ls", "--quiet"])).split()
    present = {digest.removeprefix("sha256:") for digest in stored}
    for image in missing:
        command = inside([*_CTR, "image", "import", "--digests=false", "-"])
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as importing:  # fmt: skip
            assert importing.stdin is not None
            assert importing.stderr is not None
            with suppress(BrokenPipeError):  # its output is read below
                image.write(importing.stdin, present)
                importing.stdin.close()
            complaint = importing.stderr.read().decode(errors="replace")
        if importing.returncode != 0:
            raise SandboxError(f"containerd did not take {image.reference}: {complaint}")


def locked(wanted: Sequence[Image]) -> AbstractContextManager[None]:
    """Hold while a store is made, so that of several new nodes one makes it and the others wait."""
    kept = _kept(wanted)
    return paths.locked(kept.with_name(f".{kept.name}.lock"))


def restore(store: Path, wanted: Sequence[Image]) -> bool:
    """Fill a node's empty store from the kept one; False if there is no store with these images."""
    kept = _kept(wanted)
    if not kept.exists():
        return False
    _copy(kept, store)
    return True


def save(store: Path, wanted: Sequence[Image]) -> None:
    """Keep a copy of the store of a node whose containerd is not running."""
    kept = _kept(wanted)
    temporary = kept.with_name(f".{kept.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    _copy(store, temporary)
    temporary.rename(kept)
    stores = sorted(kept.parent.glob("store-*"), key=lambda path: path.stat().st_mtime)
    for old in stores[:-_KEPT]:
        shutil.rmtree(old)


def _kept(wanted: Sequence[Image]) -> Path:
    """The kept store for some images, whatever the last of several layers of each is.

    That is the layer which changes from build to build, and it is small.
    """
    layers = (layer for image in wanted for layer in image.layers[: max(1, len(image.layers) - 1)])
    key = hashlib.sha256(" ".join(layer.digest for layer in layers).encode()).hexdigest()[:12]
    return images.folder() / f"store-{key}"


def _copy(source: Path, target: Path) -> None:
    """Copy a store by links where both are on one file system, else really."""
    if not succeeds("cp", "--archive", "--link", f"{source}/.", target):
        run("cp", "--archive", "--reflink=auto", f"{source}/.", target, timeout=600)
    for database in source.rglob("*.db"):
        copied = target / database.relative_to(source)
        copied.unlink()
        shutil.copy2(database, copied)

"""The images that every node has: the pods' sandbox and the scheduler, made from local files."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from cluster import archive, paths
from cluster.archive import Image, Layer
from cluster.console import SandboxError, run
from cluster.model import KUBERNETES_VERSION

if TYPE_CHECKING:
    from pathlib import Path

PAUSE = "registry.k8s.io/pause:3.10"
SCHEDULER = f"registry.k8s.io/kube-scheduler:{KUBERNETES_VERSION}"
HYPERKUBE = f"localhost/hyperkube:{KUBERNETES_VERSION}"
OPERATOR = "localhost/kube-scheduler-operator:dev"

PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_SOURCES = paths.REPOSITORY / "hack" / "controlplane"


def folder() -> Path:
    """Where layers are kept."""
    return paths.cache_dir() / "images"


def pause() -> Image:
    """The image of a container that does nothing until it is told to stop."""
    layer = _compiled("pause", "pause")
    return Image(PAUSE, (layer,), ("/pause",), user="65535:65535")


def hyperkube(binary: Path) -> Image:
    """The kube-scheduler as OpenShift packages it: started as `hyperkube kube-scheduler`."""
    layers = (*scheduler(binary).layers, _compiled("hyperkube", "usr/local/bin/hyperkube"))
    return Image(HYPERKUBE, layers, ("/usr/local/bin/hyperkube",), environment=PATH)


def _compiled(name: str, path: str) -> Layer:
    """A layer with one small program of ours."""
    source = _SOURCES / f"{name}.c"
    key = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    target = folder() / f"{name}-{key}.layer"
    with paths.locked(folder() / f".{name}.lock"):
        if not target.exists():
            binary = folder() / name
            run("cc", "-Os", "-static", "-o", binary, source)
            archive.pack_layer(target, {path: binary})
    return Layer.of(target)


def scheduler(binary: Path) -> Image:
    """The image of the kube-scheduler: the static binary alone, like the official one."""
    status = binary.stat()
    identity = f"{binary.resolve()} {status.st_size} {status.st_mtime_ns}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:12]
    name = "usr/local/bin/kube-scheduler"
    target = folder() / f"kube-scheduler-{KUBERNETES_VERSION}-{key}.layer"
    with paths.locked(folder() / ".kube-scheduler.lock"):
        if not target.exists():
            if not is_static(binary):
                raise SandboxError(
                    f"{binary} is dynamically linked, so it cannot be made into an image; "
                    "take it off PATH and the sandbox gets its own"
                )
            archive.pack_layer(target, {name: binary.resolve()})
    return Image(SCHEDULER, (Layer.of(target),), (f"/{name}",), environment=PATH)


def is_static(binary: Path) -> bool:
    """Whether an ELF binary needs no interpreter (program header PT_INTERP, elf(5))."""
    with binary.open("rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":
            return False
        offset = int.from_bytes(head[32:40], "little")
        size = int.from_bytes(head[54:56], "little")
        count = int.from_bytes(head[56:58], "little")
        file.seek(offset)
        headers = file.read(size * count)
    interpreter = 3
    kinds = (int.from_bytes(headers[n * size : n * size + 4], "little") for n in range(count))
    return interpreter not in kinds

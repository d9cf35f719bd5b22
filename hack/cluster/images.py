"""The images that every node has: the pods' sandbox and the scheduler, made from local files."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

from cluster import archive, paths
from cluster.archive import Image, Layer
from cluster.console import SandboxError, run

if TYPE_CHECKING:
    from pathlib import Path

PAUSE = "registry.k8s.io/pause:3.10"
OPERATOR = "localhost/kube-scheduler-operator:dev"

PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_SOURCES = paths.REPOSITORY / "hack" / "controlplane"


def folder() -> Path:
    """Where layers are kept."""
    return paths.cache_dir() / "images"


def scheduler_name(version: str) -> str:
    """The kube-scheduler of a release, as kubeadm names it."""
    return f"registry.k8s.io/kube-scheduler:{version}"


def hyperkube_name(version: str) -> str:
    """The image that has the kube-scheduler of a release on an OpenShift."""
    return f"localhost/hyperkube:{version}"


def pause(reference: str = PAUSE) -> Image:
    """The image of a container that sleeps until it is stopped."""
    layer = _compiled("pause", "pause")
    return Image(reference, (layer,), ("/pause",), user="65535:65535")


def hyperkube(binary: Path, version: str) -> Image:
    """The kube-scheduler as OpenShift packages it: started as `hyperkube kube-scheduler`."""
    layers = (*scheduler(binary, version).layers, _compiled("hyperkube", "usr/local/bin/hyperkube"))
    return Image(hyperkube_name(version), layers, ("/usr/local/bin/hyperkube",), environment=PATH)


def of_size(reference: str, mebibytes: int) -> Image:
    """The image of `pause` made as large as one that people use; ImageLocality looks at that."""
    target = folder() / f"ballast-{hashlib.sha256(reference.encode()).hexdigest()[:12]}-{mebibytes}"
    with paths.locked(folder() / ".ballast.lock"):
        if not target.exists():
            content = target.with_suffix(".content")
            content.write_bytes(random.Random(reference).randbytes(mebibytes * 2**20))
            archive.pack_layer(target, {"ballast": content})
            content.unlink()
    return Image(reference, (*pause().layers, Layer.of(target)), ("/pause",), user="65535:65535")


def _compiled(name: str, path: str) -> Layer:
    """A layer with one small program."""
    source = _SOURCES / f"{name}.c"
    key = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    target = folder() / f"{name}-{key}.layer"
    with paths.locked(folder() / f".{name}.lock"):
        if not target.exists():
            binary = folder() / name
            run("cc", "-Os", "-static", "-o", binary, source)
            archive.pack_layer(target, {path: binary})
    return Layer.of(target)


def scheduler(binary: Path, version: str) -> Image:
    """The image of the kube-scheduler: the static binary alone, like the official one."""
    layers = (_program(binary, "kube-scheduler", version),)
    entrypoint = ("/usr/local/bin/kube-scheduler",)
    return Image(scheduler_name(version), layers, entrypoint, environment=PATH)


def component(name: str, binary: Path, version: str, reference: str) -> Image:
    """The image of a component of the control plane.

    Where one file is all components, the layer with it is that of the kube-scheduler, below one
    with a link: it is stored once on a node, and unpacked once for each component.
    """
    if name in (binary.resolve().name, "kube-scheduler"):
        layers: tuple[Layer, ...] = (_program(binary, name, version),)
    else:
        layers = (_program(binary, "kube-scheduler", version), _link(name))
    return Image(reference, layers, (f"/usr/local/bin/{name}",), environment=PATH)


def _link(name: str) -> Layer:
    """A layer in which a component is a link to the file that is all of them."""
    target = folder() / f"{name}-link.layer"
    with paths.locked(folder() / f".{name}.lock"):
        if not target.exists():
            link = folder() / f".{name}-link"
            link.unlink(missing_ok=True)
            link.symlink_to("kube-scheduler")
            archive.pack_layer(target, {f"usr/local/bin/{name}": link})
            link.unlink()
    return Layer.of(target)


def _program(binary: Path, name: str, version: str) -> Layer:
    """A layer with one static program."""
    status = binary.stat()
    identity = f"{binary.resolve()} {status.st_size} {status.st_mtime_ns}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:12]
    target = folder() / f"{name}-{version}-{key}.layer"
    with paths.locked(folder() / f".{name}.lock"):
        if not target.exists():
            if not is_static(binary):
                raise SandboxError(
                    f"{binary} is dynamically linked, so it cannot be made into an image; "
                    "take it off PATH and the sandbox gets its own"
                )
            archive.pack_layer(target, {f"usr/local/bin/{name}": binary.resolve()})
    return Layer.of(target)


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

"""Container images as data: layers that are tar files, written as an archive for containerd.

Nothing here needs a container engine, and the same input gives the same bytes: times, owners and
order are fixed, so an unchanged layer keeps its digest and is neither stored nor unpacked twice.
The archive is an OCI image layout that is a `docker save` archive as well, as Docker itself writes
it. Because blobs are found by digest, those that a node has already can be left out.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cluster.binaries import architecture

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_EPOCH = "1970-01-01T00:00:00Z"
_OCI = "application/vnd.oci.image"


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer in the cache."""

    path: Path  # its file, a tar or, for registries, a tar with gzip
    digest: str  # of the file: sha256, in hexadecimal
    content: str = ""  # of the tar that is compressed; empty if the file is not

    @classmethod
    def of(cls, path: Path) -> Layer:
        """Read the digest of a layer, which is kept beside it because hashing it takes a while."""
        note = path.with_name(f"{path.name}.sha256")
        if not note.exists():
            with path.open("rb") as file:
                note.write_text(hashlib.file_digest(file, "sha256").hexdigest())
        return cls(path, note.read_text())


@dataclass(frozen=True, slots=True)
class Image:
    """An image: its layers from the bottom up, and how its containers start."""

    reference: str
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...]
    user: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    created: str = _EPOCH
    architecture: str = field(default_factory=architecture)

    @property
    def digest(self) -> str:
        """The digest of the manifest, by which containerd knows the image."""
        return f"sha256:{_digest(_json(self._manifest(_json(self._config()))))}"

    def write(self, output: IO[bytes], present: Collection[str] = ()) -> None:
        """Write the archive to a stream, without the layers whose digests are ``present``."""
        config = _json(self._config())
        manifest = _json(self._manifest(config))
        name = _blob(_digest(config))
        docker = [
            {
                "Config": name,
                "RepoTags": [self.reference],
                "Layers": [_blob(layer.digest) for layer in self.layers],
            }
        ]
        with tarfile.open(fileobj=output, mode="w|", format=tarfile.GNU_FORMAT) as tar:
            _add_bytes(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
            _add_bytes(tar, "index.json", _json(self._index(manifest)))
            _add_bytes(tar, "manifest.json", _json(docker))
            _add_bytes(tar, name, config)
            _add_bytes(tar, _blob(_digest(manifest)), manifest)
            for layer in self.layers:
                if layer.digest not in present:
                    entry = tarfile.TarInfo(_blob(layer.digest))
                    entry.size = layer.path.stat().st_size
                    with layer.path.open("rb") as file:
                        tar.addfile(entry, file)

    def _config(self) -> dict[str, Any]:
        return {
            "architecture": self.architecture,
            "os": "linux",
            "created": self.created,
            "config": {
                "Entrypoint": list(self.entrypoint),
                **({"Cmd": list(self.arguments)} if self.arguments else {}),
                "Env": [f"{name}={value}" for name, value in sorted(self.environment.items())],
                "User": self.user,
                "WorkingDir": "/",
                **({"Labels": dict(self.labels)} if self.labels else {}),
            },
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{layer.content or layer.digest}" for layer in self.layers],
            },
            "history": [{"created": self.created} for _ in self.layers],
        }

    def _manifest(self, config: bytes) -> dict[str, Any]:
        return {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.manifest.v1+json",
            "config": _descriptor(f"{_OCI}.config.v1+json", _digest(config), len(config)),
            "layers": [
                _descriptor(
                    f"{_OCI}.layer.v1.tar{'+gzip' if layer.content else ''}",
                    layer.digest,
                    layer.path.stat().st_size,
                )
                for layer in self.layers
            ],
        }

    def _index(self, manifest: bytes) -> dict[str, Any]:
        entry = _descriptor(f"{_OCI}.manifest.v1+json", _digest(manifest), len(manifest))
        entry["annotations"] = {
            "io.containerd.image.name": self.reference,
            "org.opencontainers.image.ref.name": self.reference.rpartition(":")[2],
        }
        return {"schemaVersion": 2, "manifests": [entry]}


def compressed(layer: Layer, folder: Path) -> Layer:
    """The layer with gzip, as registries store it; kept in a folder, by its content."""
    target = folder / f"{layer.digest}.tar.gz"
    if not target.exists():
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with layer.path.open("rb") as source, temporary.open("wb") as file:
            packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
            with packed:
                shutil.copyfileobj(source, packed, 1 << 20)
        temporary.rename(target)
    return Layer(target, Layer.of(target).digest, layer.digest)


def pack_layer(target: Path, files: Mapping[str, Path]) -> Layer:
    """Write a layer of files and whole folders, by their path in the image (without a slash)."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(temporary, "w", format=tarfile.GNU_FORMAT) as tar:
        for name in _with_parents(files):
            if name in files:
                _add_tree(tar, files[name], name)
            else:
                entry = tarfile.TarInfo(name)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
    temporary.rename(target)
    return Layer.of(target)


def _with_parents(names: Iterable[str]) -> list[str]:
    wanted = set(names)
    parents = {str(parent) for name in wanted for parent in Path(name).parents}
    return sorted(wanted | parents - {"."})


def _add_tree(tar: tarfile.TarFile, source: Path, name: str) -> None:
    """Add a file or folder; what two builds of the same source may differ in is left out."""
    entry = tarfile.TarInfo(name)
    entry.uname = entry.gname = "root"
    if source.is_symlink():
        entry.type, entry.linkname = tarfile.SYMTYPE, str(source.readlink())
        tar.addfile(entry)
    elif source.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(entry)
        for child in sorted(source.iterdir()):
            _add_tree(tar, child, f"{name}/{child.name}")
    else:
        entry.mode = 0o755 if os.access(source, os.X_OK) else 0o644
        entry.size = source.stat().st_size
        with source.open("rb") as file:
            tar.addfile(entry, file)


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest}"


def _descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": size}

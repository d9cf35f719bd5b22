"""The Debian packages of the image: pinned by version and hash, kept in the cache.

`hack/release lock` writes debian.lock. Debian's mirrors drop packages that have an update;
snapshot.debian.org has all of them, by the time of the lock.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cluster import binaries, operator_image, packages, paths
from cluster.archive import Layer
from cluster.console import SandboxError, run, say, step

LOCK: Final = Path(__file__).with_name("debian.lock")

_ARCHIVES: Final = ("debian", "debian-security")
_MIRROR: Final = "https://deb.debian.org"
_SNAPSHOT: Final = "https://snapshot.debian.org/archive"
HEAD: Final = "# Debian packages of the image; `hack/release lock` writes this file. Time: "
"""The begin of a lock."""


@dataclass(frozen=True, slots=True)
class Package:
    """One package of the lock.

    Attributes:
        name: its name.
        version: its version.
        architecture: `amd64` or `all`.
        sha256: the hash of its file.
        path: of its file, in one of Debian's archives.
    """

    name: str
    version: str
    architecture: str
    sha256: str
    path: str


@dataclass(frozen=True, slots=True)
class Lock:
    """The packages of an image.

    Attributes:
        time: when they were the newest, as snapshot.debian.org writes it.
        packages: the packages, by name.
    """

    time: str
    packages: tuple[Package, ...]


def read(text: str) -> Lock:
    """Read a lock.

    Raises:
        SandboxError: a line is not one of a lock.
    """
    head, *lines = text.splitlines() or [""]
    if not head.startswith(HEAD):
        raise SandboxError("debian.lock has no time; run hack/release lock")
    found = []
    for line in lines:
        fields = line.split()
        if len(fields) != 5 or not re.fullmatch(r"[0-9a-f]{64}", fields[3]):
            raise SandboxError(
                f"debian.lock: {line!r} is not NAME VERSION ARCHITECTURE SHA256 PATH"
            )
        found.append(Package(*fields))
    return Lock(head.removeprefix(HEAD), tuple(found))


def write() -> int:
    """Lock the versions that Debian has today; returns the number of packages.

    Raises:
        SandboxError: this machine's apt does not have the packages of the image's Debian.
    """
    say("  what the image has today ...")
    with tarfile.open(operator_image.base().path) as tar:
        member = tar.extractfile("./var/lib/dpkg/status")
        status = member.read().decode() if member else ""
    found = [_field(part, "Package", "Version", "Architecture") for part in status.split("\n\n")]
    lines = []
    for name, version, architecture in sorted(one for one in found if one):
        shown = run("apt-cache", "show", f"{name}={version}")
        details = _field(shown.split("\n\n")[0], "SHA256", "Filename")
        if not details:
            raise SandboxError(
                f"apt does not know {name} {version}; run this on Debian "
                f"{operator_image.SUITE} after apt-get update"
            )
        lines.append(" ".join((name, version, architecture, *details)))
    time = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    LOCK.write_text("\n".join([f"{HEAD}{time}", *lines, ""]))
    return len(lines)


def _field(part: str, *names: str) -> tuple[str, ...]:
    values = [re.search(rf"^{name}: (.+)$", part, re.MULTILINE) for name in names]
    return tuple(value[1] for value in values if value) if all(values) else ()


def base(lock: Lock) -> Layer:
    """The image's lowest layer of exactly these packages, built if it is not cached.

    Raises:
        SandboxError: a package cannot be downloaded, or mmdebstrap fails.
    """
    packages.ensure(packages.IMAGE_TOOLS)
    key = hashlib.sha256(repr((lock.packages, operator_image.base_recipe())).encode())
    target = paths.cache_dir() / "release" / f"base-{key.hexdigest()[:16]}.layer"
    with paths.locked(paths.cache_dir() / ".release-base.lock"):
        if not target.exists():
            with tempfile.TemporaryDirectory() as folder:
                _repository(lock, Path(folder))
                with step("image: locked Debian packages"):
                    operator_image.debootstrap(target, f"deb [trusted=yes] copy://{folder} ./")
    return Layer.of(target)


def _repository(lock: Lock, folder: Path) -> None:
    """A repository that has the packages of the lock and no others."""
    index = []
    for package in lock.packages:
        file = _fetch(package, lock.time)
        (folder / file.name).symlink_to(file)
        control = run("dpkg-deb", "--field", file).rstrip()
        size = file.stat().st_size
        index.append(
            f"{control}\nFilename: ./{file.name}\nSize: {size}\nSHA256: {package.sha256}\n"
        )
    text = "\n".join(index).encode()
    (folder / "Packages").write_bytes(text)
    digest = hashlib.sha256(text).hexdigest()
    # mmdebstrap selects essential packages by the suite, which is read from this file.
    (folder / "Release").write_text(
        f"Suite: {operator_image.SUITE}\nCodename: {operator_image.SUITE}\n"
        f"SHA256:\n {digest} {len(text)} Packages\n"
    )


def _fetch(package: Package, time: str) -> Path:
    """The package's file: from the cache, a mirror, or the archive of all versions."""
    target = paths.cache_dir() / "debian" / f"{package.sha256[:12]}-{Path(package.path).name}"
    if target.exists():
        return target
    urls = [f"{_MIRROR}/{archive}/{package.path}" for archive in _ARCHIVES]
    urls += [f"{_SNAPSHOT}/{archive}/{time}/{package.path}" for archive in _ARCHIVES]
    for url in urls:
        try:
            content = binaries.fetch(url)
        except OSError:
            continue
        if hashlib.sha256(content).hexdigest() == package.sha256:
            paths.write_atomically(target, content)
            return target
    raise SandboxError(
        f"{package.name} {package.version} cannot be downloaded from {_MIRROR} or {_SNAPSHOT}; "
        "without a network, fill the cache first, or run hack/release lock for newer versions"
    )

"""The Debian packages of the image: pinned by version and hash, kept in the cache.

`hack/release lock` writes a lock for each architecture. Debian's mirrors drop packages that have an
update; snapshot.debian.org has all of them, by the time of the lock.
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

ARCHITECTURES: Final = ("amd64", "arm64")
"""What images are built for; each has a lock."""

_ARCHIVES: Final = ("debian", "debian-security")
_MIRROR: Final = "https://deb.debian.org"
_KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SNAPSHOT: Final = "https://snapshot.debian.org/archive"
HEAD: Final = "# Debian packages of the image; `hack/release lock` writes this file. Time: "
"""The beginning of a lock, before its time."""


@dataclass(frozen=True, slots=True)
class Package:
    """One package of the lock."""

    name: str
    version: str
    architecture: str  # that of the lock, or `all`
    sha256: str  # the hash of its file
    path: str  # of its file, in one of Debian's archives


@dataclass(frozen=True, slots=True)
class Lock:
    """The packages of an image."""

    architecture: str  # of the image
    time: str  # when they were the newest, as snapshot.debian.org writes it
    packages: tuple[Package, ...]  # the packages, by name


def file(architecture: str) -> Path:
    """The lock of an architecture."""
    return Path(__file__).with_name(f"debian-{architecture}.lock")


def read(architecture: str) -> Lock:
    """Read the lock of an architecture.

    Raises:
        SandboxError: it does not exist, or a line is not one of a lock.
    """
    if architecture not in ARCHITECTURES:
        raise SandboxError(f"there is no image for {architecture}, only for {ARCHITECTURES}")
    return parse(architecture, file(architecture).read_text())


def parse(architecture: str, text: str) -> Lock:
    """Read the text of a lock.

    Raises:
        SandboxError: a line is not one of a lock.
    """
    name = file(architecture).name
    head, *lines = text.splitlines() or [""]
    if not head.startswith(HEAD):
        raise SandboxError(f"{name} has no time; run hack/release lock")
    found = []
    for line in lines:
        fields = line.split()
        if len(fields) != 5 or not re.fullmatch(r"[0-9a-f]{64}", fields[3]):
            raise SandboxError(f"{name}: {line!r} is not NAME VERSION ARCHITECTURE SHA256 PATH")
        found.append(Package(*fields))
    return Lock(architecture, head.removeprefix(HEAD), tuple(found))


def write(architecture: str) -> int:
    """Lock the versions that Debian has today; returns the number of packages.

    Raises:
        SandboxError: Debian's mirror cannot be reached, or an image cannot be built.
    """
    say(f"  what the image for {architecture} has today ...")
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder, "base.tar")
        operator_image.debootstrap(image, architecture=architecture)
        with tarfile.open(image) as tar:
            member = tar.extractfile("./var/lib/dpkg/status")
            status = member.read().decode() if member else ""
        apt = _apt(Path(folder), architecture)
        installed = _packages(status, "Version", "Architecture")
        wanted = [f"{name}={version}" for name, (version, _of) in installed.items()]
        known = _packages(run("apt-cache", *apt, "show", *wanted), "SHA256", "Filename")
    if missing := installed.keys() - known.keys():
        names = ", ".join(sorted(missing))
        raise SandboxError(f"Debian's mirror has other versions of {names} now; run this again")
    lines = [" ".join((name, *installed[name], *known[name])) for name in sorted(installed)]
    time = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    file(architecture).write_text("\n".join([f"{HEAD}{time}", *lines, ""]))
    return len(lines)


def _apt(folder: Path, architecture: str) -> list[str]:
    """Options of an apt of its own, which knows the image's Debian and no other."""
    suites = (f"debian {operator_image.SUITE}", f"debian {operator_image.SUITE}-updates",
              f"debian-security {operator_image.SUITE}-security")  # fmt: skip
    sources = [f"deb [signed-by={_KEYRING}] {_MIRROR}/{suite} main\n" for suite in suites]
    (folder / "etc").mkdir()
    (folder / "etc/sources.list").write_text("".join(sources))
    (folder / "status").touch()
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    options = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "root",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "etc/sources.list",
        "Dir::Etc::sourceparts": folder / "etc/none",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    run("apt-get", *words, "update", timeout=600)
    return words


def _packages(text: str, *fields: str) -> dict[str, list[str]]:
    """Values of fields of each package in a control file, by the package's name."""
    found = {}
    for part in text.split("\n\n"):
        values = dict(re.findall(r"^([A-Za-z0-9-]+): (.+)$", part, re.MULTILINE))
        if values:
            found[values["Package"]] = [values[field] for field in fields]
    return found


def base(lock: Lock) -> Layer:
    """The image's lowest layer of exactly these packages, built if it is not cached.

    Raises:
        SandboxError: a package cannot be downloaded, or mmdebstrap fails.
    """
    packages.ensure(packages.IMAGE_TOOLS)
    key = hashlib.sha256(repr((lock, operator_image.base_recipe())).encode())
    target = paths.cache_dir() / "release" / f"base-{key.hexdigest()[:16]}.layer"
    with paths.locked(paths.cache_dir() / ".release-base.lock"):
        if not target.exists():
            with tempfile.TemporaryDirectory() as folder:
                _repository(lock, Path(folder))
                with step(f"image: locked Debian packages ({lock.architecture})"):
                    operator_image.debootstrap(
                        target,
                        f"deb [trusted=yes] copy://{folder} ./",
                        architecture=lock.architecture,
                    )
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

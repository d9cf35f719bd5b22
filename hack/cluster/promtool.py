"""Finding Prometheus and its promtool: on the machine, else downloaded, else built with Go.

The build is of the very programs, without the service discoveries, which no test needs: they are a
third of their packages. It takes some four minutes of one core and 0.8 GiB, once.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tarfile
from pathlib import Path
from typing import Final

from cluster import binaries, paths
from cluster.console import CommandError, SandboxError, run, say, step

VERSION: Final = "3.12.0"
"""Of Prometheus; the module's in ../promtool/go.mod is 0.312.0. It is the last one for Go 1.25."""

_RELEASES: Final = "https://github.com/prometheus/prometheus/releases/download"
_PACKAGES: Final = "github.com/prometheus/prometheus/cmd"
_SOURCE: Final = Path(__file__).resolve().parents[1] / "promtool"


def provide(program: str = "promtool") -> Path:
    """Return where promtool, or prometheus, is, getting it first if need be.

    Raises:
        SandboxError: It cannot be had on this machine.
    """
    own = _folder() / program
    if found := _installed(program) or _existing(own):
        return found
    with paths.locked(paths.cache_dir() / ".promtool.lock"):
        if not own.exists() and not _download(own):
            _build(own)
    return own


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None


def _folder() -> Path:
    digest = hashlib.sha256(VERSION.encode())
    for path in sorted(_SOURCE.glob("go.*")):
        digest.update(path.read_bytes())
    return paths.cache_dir() / "promtool" / f"v{VERSION}-{digest.hexdigest()[:12]}"


def _installed(program: str = "promtool") -> Path | None:
    """The machine's own, if it is of our major version: what rules mean changes with that."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        output = run(path, "--version", timeout=20)
    except (CommandError, OSError):
        return None
    found = re.search(r"version (\d+)\.", output)
    return Path(path) if found and found[1] == VERSION.partition(".")[0] else None


def _download(target: Path) -> bool:
    """Fetch the release and take the program out, if the checksum matches the release's."""
    archive = f"prometheus-{VERSION}.linux-{binaries.architecture()}.tar.gz"
    base = f"{_RELEASES}/v{VERSION}"
    try:
        sums = binaries.fetch(f"{base}/sha256sums.txt").decode()
    except OSError as error:
        say(f"  no release download ({getattr(error, 'reason', error)})")
        return False
    with step(f"downloading {target.name}"):
        content = binaries.fetch(f"{base}/{archive}")
    paths.write_atomically(target, unpack(content, archive, sums, target.name), 0o755)
    return True


def unpack(content: bytes, archive: str, sums: str, program: str = "promtool") -> bytes:
    """The program in a release's archive.

    Raises:
        SandboxError: the archive is not what `sums` (lines of `SHA256  NAME`) say, or has none.
    """
    expected = {name: digest for digest, name in map(str.split, sums.splitlines())}
    if hashlib.sha256(content).hexdigest() != expected.get(archive):
        raise SandboxError(f"{archive} does not match its checksum; try again")
    member = f"{archive.removesuffix('.tar.gz')}/{program}"
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        try:
            file = tar.extractfile(member)
        except KeyError:
            file = None
        if file is None:
            raise SandboxError(f"{archive} has no {member}")
        return file.read()


def _build(target: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise SandboxError(
            f"{target.name} {VERSION} is not on PATH, cannot be downloaded, and there is no Go to "
            f"build it. Install Go 1.25 or newer, or put {target.name} of Prometheus 3 on PATH."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    say(f"  building {target.name} from Go modules: minutes, but only once ...")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly"}
    temporary = target.with_name(f".{target.name}")
    with step(f"built {target.name}"):
        run(go, "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
            "-tags", "remove_all_sd", "-ldflags", "-s -w", "-o", temporary,
            f"{_PACKAGES}/{target.name}",
            cwd=_SOURCE, env=environment, timeout=3600)  # fmt: skip
    temporary.rename(target)

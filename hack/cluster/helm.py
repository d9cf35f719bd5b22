"""Finding Helm: on the machine, else downloaded, else built from its Go module (see ../helm).

Built in two minutes on two cores, less where Kubernetes has been built of the same libraries; kept
in the cache.
"""

from __future__ import annotations

import io
import re
import shutil
import tarfile
from pathlib import Path

from cluster import binaries, paths
from cluster.console import CommandError, SandboxError, run, say, step

VERSION = "v3.20.2"
"""The version that is downloaded or built; keep ../helm/go.mod in step."""

_OLDEST_MINOR = 18
"""Helm 3.18 was the first to print what hooks say."""

_DOWNLOADS = "https://get.helm.sh"
_SOURCE = Path(__file__).resolve().parents[1] / "helm"
_PACKAGE = "helm.sh/helm/v3/cmd/helm"


def provide() -> Path:
    """Return where Helm is, getting it first if it is missing.

    Raises:
        SandboxError: It cannot be had on this machine.
    """
    found = _search()
    if found is None:
        with paths.locked(paths.cache_dir() / ".helm.lock"):
            # The previous holder of the lock may have made it.
            found = _search() or _download() or _build()
    return found


def _search() -> Path | None:
    installed = shutil.which("helm")
    if installed and _will_do(Path(installed)):
        return Path(installed)
    return next((own for own in (_built(), _released()) if own.exists()), None)


def _will_do(path: Path) -> bool:
    try:
        return version_fits(run(path, "version", "--short", timeout=20))
    except (CommandError, OSError):
        return False


def version_fits(output: str) -> bool:
    """Whether the version that a Helm prints has the same major and is new enough."""
    found = re.search(r"v(\d+)\.(\d+)\.", output)
    return found is not None and found[1] == "3" and int(found[2]) >= _OLDEST_MINOR


def _released() -> Path:
    return paths.cache_dir() / "release" / f"helm-{VERSION}" / "helm"


def _built() -> Path:
    return binaries.built_from(f"helm-{VERSION}", sorted(_SOURCE.glob("go.*"))) / "helm"


def _download() -> Path | None:
    """Fetch the release, checked against its published sum; None if there is no answer."""
    machine = f"linux-{binaries.architecture()}"
    url = f"{_DOWNLOADS}/helm-{VERSION}-{machine}.tar.gz"
    try:
        content = binaries.fetch_checked(url, f"{url}.sha256sum")
    except OSError as error:
        say(f"  no download of Helm ({getattr(error, 'reason', error)})")
        return None
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        member = archive.extractfile(f"{machine}/helm")
        if member is None:
            raise SandboxError(f"{url} has no {machine}/helm")
        paths.write_atomically(_released(), member.read(), 0o755)
    return _released()


def _build() -> Path:
    go = shutil.which("go")
    if go is None:
        raise SandboxError(
            f"missing: Helm {VERSION}. It is not on PATH, cannot be downloaded, and there is no Go "
            "to build it. Install Go 1.25 or newer, or put Helm 3 on PATH."
        )
    say("  building Helm from Go modules: minutes, but only once ...")
    link = f"-X helm.sh/helm/v3/internal/version.version={VERSION}"
    with step("built Helm"):
        binaries.go_build(go, _SOURCE, _PACKAGE, link, _built())
    return _built()

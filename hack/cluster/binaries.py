"""Finding the Kubernetes binaries: on the machine, else downloaded, else built from Go modules.

The build makes one file that is all components (see ../controlplane); it takes some four minutes
on two cores and is kept in the cache, under a name that follows from its source.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import packages, paths
from cluster.console import EXISTING_CLUSTER, CommandError, SandboxError, run, say, step
from cluster.model import KUBERNETES_VERSION

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE = ("kubelet",)

_DOWNLOADS = "https://dl.k8s.io/release"
_CONNECT_TIMEOUT = 3.0
_SOURCE = Path(__file__).resolve().parents[1] / "controlplane"


def provide(components: Iterable[str]) -> dict[str, Path]:
    """Return where each component's binary is, getting what is missing first.

    Raises:
        SandboxError: Some cannot be had on this machine.
    """
    wanted = tuple(components)
    found = _search(wanted)
    if missing := [one for one in wanted if one not in found]:
        with paths.locked(paths.cache_dir() / ".binaries.lock"):
            found |= _search(missing)  # whoever had the lock may have made them
            for get in (_download, _debian_etcd, _build):
                if missing := [one for one in wanted if one not in found]:
                    get(missing)
                    found |= _search(missing)
    return found


def _search(wanted: Collection[str]) -> dict[str, Path]:
    places = [_build_folder(), _release_folder()]
    found = {}
    for component in wanted:
        own = (place / component for place in places if (place / component).exists())
        path = _installed(component) or next(own, None)
        if path:
            found[component] = path
    return found


def _installed(component: str) -> Path | None:
    """A binary of the machine, in envtest's folder or PATH, if it is of a version that will do."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        folders.insert(0, assets)
    for folder in folders:
        path = Path(folder, component)
        ours = path.is_relative_to(paths.state_root())  # a sandbox's own links go when it does
        if not ours and os.access(path, os.X_OK) and path.is_file() and will_do(component, path):
            return path
    return None


def will_do(component: str, path: Path) -> bool:
    """Whether a binary is of the sandbox's minor version (kubectl: one off at most)."""
    if component == "etcd":
        return True
    version = ("version", "--client") if component == "kubectl" else ("--version",)
    try:
        said = run(path, *version, timeout=20)
    except (CommandError, OSError):
        return False
    return version_fits(component, said)


def version_fits(component: str, said: str) -> bool:
    """Whether what a binary says about its version is near enough to ours."""
    ours, theirs = _minor(KUBERNETES_VERSION), _minor(said)
    return theirs is not None and abs(ours - theirs) <= (component == "kubectl")


def _minor(text: str) -> int:
    found = re.search(r"v1\.(\d+)\.", text)
    return int(found[1]) if found else -99


def _release_folder() -> Path:
    return paths.cache_dir() / "release" / KUBERNETES_VERSION


def _build_folder() -> Path:
    return build_folder(_SOURCE, KUBERNETES_VERSION)


def build_folder(source: Path, version: str) -> Path:
    """Where in the cache what is built of a Go module belongs."""
    digest = hashlib.sha256(version.encode())
    for path in sorted(source.glob("*")):
        if path.suffix in {".go", ".mod", ".sum"}:
            digest.update(path.read_bytes())
    return paths.cache_dir() / "build" / f"{version}-{digest.hexdigest()[:12]}"


def architecture() -> str:
    """This machine, in Kubernetes' words."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _download(missing: Collection[str]) -> None:
    """Fetch release binaries, each checked against its published sum; leave them out on failure."""
    released = [one for one in missing if one != "etcd"]
    if not released:
        return
    base = f"{_DOWNLOADS}/{KUBERNETES_VERSION}/bin/linux/{architecture()}"
    try:
        fetch(f"{base}/{released[0]}.sha256")
    except OSError as error:
        say(f"  no release download ({getattr(error, 'reason', error)})")
        return
    with step(f"downloading {', '.join(released)}"), ThreadPoolExecutor() as pool:
        list(pool.map(lambda one: _download_one(f"{base}/{one}", one), released))


def _download_one(url: str, component: str) -> None:
    content = fetch_checked(url, f"{url}.sha256")
    paths.write_atomically(_release_folder() / component, content, 0o755)


def fetch_checked(url: str, checksum: str) -> bytes:
    """Download what is at ``url``, whose SHA-256 is the first word at ``checksum``.

    Raises:
        OSError: There is no answer.
        SandboxError: It is something else.
    """
    expected = fetch(checksum).decode().split()[0]
    content = fetch(url)
    if hashlib.sha256(content).hexdigest() != expected:
        raise SandboxError(f"{url} is not what its checksum says; try again")
    return content


def fetch(url: str) -> bytes:
    """Download what is at ``url``; OSError, soon, if there is no answer."""
    with urllib.request.urlopen(url, timeout=_CONNECT_TIMEOUT) as answer:
        content: bytes = answer.read()
        return content


def _debian_etcd(missing: Collection[str]) -> None:
    """Kubernetes releases have no etcd; if that is all that is missing, the distribution's will do.

    A user who is not root gets it with the Go build, like everything else.
    """
    if list(missing) == ["etcd"] and os.geteuid() == 0 and packages.available():
        packages.install("etcd-server")


def _build(missing: Collection[str]) -> None:
    go = shutil.which("go")
    if go is None:
        raise SandboxError(
            f"missing: {', '.join(missing)} {KUBERNETES_VERSION}. They are not on PATH or in "
            "$KUBEBUILDER_ASSETS, cannot be downloaded, and there is no Go to build them. "
            "Install Go 1.25 or newer, or put the binaries on PATH. " + EXISTING_CLUSTER
        )
    folder = _build_folder()
    say("  building Kubernetes from Go modules: minutes, but only once ...")
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    version = "k8s.io/component-base/version"
    flags = (
        f"-X {version}.gitVersion={KUBERNETES_VERSION} "
        f"-X {version}.gitMajor={major} -X {version}.gitMinor={minor}"
    )
    with step("built Kubernetes"):
        go_build(go, _SOURCE, ".", flags, folder / "controlplane")
    for component in (*CONTROL_PLANE, *NODE):
        link = folder / component
        link.unlink(missing_ok=True)
        link.symlink_to("controlplane")


def go_build(go: str, module: Path, package: str, link: str, target: Path) -> None:
    """Build a program of a Go module whose dependencies are locked.

    Raises:
        SandboxError: It cannot be built.
    """
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly"}
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}")
    # Making debug information, which -s -w would drop, is a tenth of the compiler's work.
    run(go, "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
        "-ldflags", f"-s -w {link}", "-o", temporary, package,
        cwd=module, env=environment, timeout=3600)  # fmt: skip
    temporary.rename(target)

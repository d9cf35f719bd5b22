"""Finding the Kubernetes binaries: on the machine, else downloaded, else built from Go modules.

The build makes one file that is all components (see ../controlplane); it takes some four minutes
on two cores and is kept in the cache, under a name that follows from its source.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cluster import golang, packages, paths, releases
from cluster.console import EXISTING_CLUSTER, CommandError, SandboxError, run, say, step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE = ("kubelet",)

_DOWNLOADS = "https://dl.k8s.io/release"
_CONNECT_TIMEOUT = 3.0
SOURCE = Path(__file__).resolve().parents[1] / "controlplane"


_SCHEDULER: Final = "k8s.io/kubernetes/cmd/kube-scheduler"
"""kube-scheduler's own package."""

_TEST_HELPERS = {
    "k8s.io/apiserver": "pkg/admission/plugin/policy/generic/policy_test_context.go",
    "k8s.io/kubernetes": "pkg/scheduler/backend/queue/testing.go",
}
"""By module, files for the tests of other packages which no program uses, but which import a fake
client of every API: left in, they are a twentieth of the compiler's work."""


_VERSION_COMMANDS = {"kubeadm": ("version",), "kubectl": ("version", "--client")}
"""By component, what makes it print its version where --version does not."""


def provide(components: Iterable[str], version: str) -> dict[str, Path]:
    """Return where each component's binary of a release is, getting what is missing first.

    Raises:
        SandboxError: Some cannot be had on this machine.
    """
    wanted = tuple(components)
    ways: tuple[Callable[[Collection[str], str], None], ...] = (_download, _debian_etcd, _build)
    found = _search(wanted, version)
    if missing := [one for one in wanted if one not in found]:
        with paths.locked(paths.cache_dir() / ".binaries.lock"):
            found |= _search(missing, version)  # the previous holder of the lock may have made them
            for get in ways:
                if missing := [one for one in wanted if one not in found]:
                    get(missing, version)
                    found |= _search(missing, version)
    return found


def _search(wanted: Collection[str], version: str) -> dict[str, Path]:
    places = [release_folder(version)]
    if releases.is_pinned(version):
        places.insert(0, build_folder(version))
    found = {}
    for component in wanted:
        own = (place / component for place in places if (place / component).exists())
        path = _installed(component, version) or next(own, None)
        if path:
            found[component] = path
    return found


def _installed(component: str, version: str) -> Path | None:
    """A binary of the machine, in envtest's folder or PATH, if it is of a version that will do."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        folders.insert(0, assets)
    for folder in folders:
        path = Path(folder, component)
        ours = path.is_relative_to(paths.state_root())  # a sandbox's own links go when it does
        if ours or not os.access(path, os.X_OK) or not path.is_file():
            continue
        if _will_do(component, path, version):
            return path
    return None


def _will_do(component: str, path: Path, version: str) -> bool:
    if component == "etcd":
        return True
    words = _VERSION_COMMANDS.get(component, ("--version",))
    try:
        output = run(path, *words, timeout=20)
    except (CommandError, OSError):
        return False
    return version_fits(component, output, version)


def version_fits(component: str, output: str, version: str) -> bool:
    """Whether the version that a binary prints is close enough to a release.

    Any patch of the minor version stands for the pinned one; who asks for another patch means it.
    kubectl may be a minor version off, as it may be in any cluster.
    """
    if releases.is_pre_release(version):
        return version in output.split()
    found = re.search(r"v1\.(\d+)\.(\d+)", output)
    if found is None:
        return False
    if component == "kubectl":
        return abs(releases.minor(version) - int(found[1])) <= 1
    return found[0] == version or (
        releases.is_pinned(version) and int(found[1]) == releases.minor(version)
    )


def release_folder(version: str) -> Path:
    """Where the downloaded binaries of a release are."""
    return paths.cache_dir() / "release" / version


def build_folder(version: str) -> Path:
    """Where the binaries of a pinned release are that were built from what its sources are now."""
    modules = modules_file(version)
    checksums = modules.with_suffix(".sum")
    if releases.is_pre_release(version):
        # Not under the name of a release, because simulations choose among those.
        return built_from(f"kube-scheduler-{version}", (modules, checksums))
    return built_from(version, (modules, checksums, *sorted(SOURCE.glob("*.go"))))


def modules_file(version: str) -> Path:
    """The Go modules of a pinned release; the default's has the name that Go expects."""
    name = "go.mod" if version == releases.DEFAULT else f"v1.{releases.minor(version)}.mod"
    return SOURCE / name


def built_from(name: str, sources: Iterable[Path]) -> Path:
    """Where in the cache belongs what is built of these sources as they are now."""
    digest = hashlib.sha256(name.encode())
    for path in sources:
        digest.update(path.read_bytes())
    return paths.cache_dir() / "build" / f"{name}-{digest.hexdigest()[:12]}"


_MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}


def architecture() -> str:
    """This machine, in Kubernetes' words."""
    found = platform.machine()
    return {kernel: ours for ours, kernel in _MACHINES.items()}.get(found, found)


def machine(architecture: str) -> str:
    """An architecture in the kernel's words: `amd64` is `x86_64`."""
    return _MACHINES.get(architecture, architecture)


def _download(missing: Collection[str], version: str) -> None:
    """Fetch release binaries, each checked against its published sum; leave them out on failure."""
    released = [one for one in missing if one != "etcd"]
    if not released:
        return
    base = f"{_DOWNLOADS}/{version}/bin/linux/{architecture()}"
    try:
        fetch(f"{base}/{released[0]}.sha256")
    except OSError as error:
        say(f"  no release download ({getattr(error, 'reason', error)})")
        return
    folder = release_folder(version)
    with step(f"downloading {', '.join(released)} {version}"), ThreadPoolExecutor() as pool:
        list(pool.map(lambda one: _download_one(f"{base}/{one}", folder / one), released))


def _download_one(url: str, target: Path) -> None:
    content = fetch_checked(url, f"{url}.sha256")
    paths.write_atomically(target, content, 0o755)


def fetch_checked(url: str, checksum: str) -> bytes:
    """Download what is at ``url``, whose SHA-256 is the first word at ``checksum``.

    Raises:
        OSError: There is no answer.
        SandboxError: It is something else.
    """
    expected = fetch(checksum).decode().split()[0]
    content = fetch(url)
    if hashlib.sha256(content).hexdigest() != expected:
        raise SandboxError(f"{url} does not match its checksum; try again")
    return content


def fetch(url: str) -> bytes:
    """Download what is at ``url``; OSError, soon, if there is no answer."""
    with urllib.request.urlopen(url, timeout=_CONNECT_TIMEOUT) as answer:
        content: bytes = answer.read()
        return content


def _debian_etcd(missing: Collection[str], _: str) -> None:
    """Kubernetes releases have no etcd; if that is all that is missing, the distribution's will do.

    A user who is not root gets it with the Go build, like everything else.
    """
    if list(missing) == ["etcd"] and os.geteuid() == 0 and packages.available():
        packages.install("etcd-server")


def _build(missing: Collection[str], version: str) -> None:
    unavailable = (
        f"missing: {', '.join(missing)} {version}. They are not on PATH or in "
        "$KUBEBUILDER_ASSETS, cannot be downloaded, and"
    )
    if not releases.is_pinned(version):
        raise SandboxError(
            f"{unavailable} only {', '.join(releases.PINNED.values())} can be built here. "
            f"Ask for 1.{releases.minor(version)}, or put the binaries on PATH."
        )
    go = golang.provide(_needed_go(version))
    if go is None:
        raise SandboxError(
            f"{unavailable} there is no Go to build them. Install Go {_needed_go(version)} or "
            "newer, or put the binaries on PATH. " + EXISTING_CLUSTER
        )
    folder = build_folder(version)
    if releases.is_pre_release(version):
        if others := [one for one in missing if one != "kube-scheduler"]:
            raise SandboxError(
                f"{unavailable} of a pre-release only kube-scheduler is built, not "
                f"{', '.join(others)}"
            )
        with step(f"built kube-scheduler {version}"):
            go_build(go, SOURCE, _SCHEDULER, _version_flags(version),
                     folder / "kube-scheduler", "-modfile", modules_file(version))  # fmt: skip
        return
    say(f"  building Kubernetes {version} from Go modules: minutes, but only once ...")
    with step(f"built Kubernetes {version}"), tempfile.TemporaryDirectory() as temporary:
        without = _without_test_helpers(go, modules_file(version), Path(temporary))
        target = folder / "controlplane"
        go_build(go, SOURCE, ".", _version_flags(version), target, *without)
    for component in (*CONTROL_PLANE, *NODE):
        link = folder / component
        link.unlink(missing_ok=True)
        link.symlink_to("controlplane")


def provide_configuration_reader(version: str) -> Path:
    """Return the program that starts kube-scheduler of a release many times, building it first.

    It has only the scheduler's packages, so it is built in a minute where nothing else is needed.

    Raises:
        SandboxError: It cannot be built on this machine.
    """
    return _provide("configurations", "the reader of configurations", version)


def provide_scheduler(version: str) -> Path:
    """Return a kube-scheduler of a release, building only this program if it is missing.

    Raises:
        SandboxError: It cannot be built on this machine.
    """
    found = _search(("kube-scheduler",), version).get("kube-scheduler")
    return found or _provide("kube-scheduler", "kube-scheduler", version, _SCHEDULER)


def provide_scheduler_with_plugin(version: str) -> Path:
    """Return a kube-scheduler of a release with the plugin LongName, building it first.

    Raises:
        SandboxError: It cannot be built on this machine.
    """
    return _provide("plugin", "a kube-scheduler with a plugin", version)


def _provide(name: str, what: str, version: str, go_package: str = "") -> Path:
    """The program of a folder of `controlplane/`, or of another package, for a release."""
    package = SOURCE / name
    modules = modules_file(version)
    sources = (modules, modules.with_suffix(".sum"), *sorted(package.glob("*.go")))
    program = built_from(f"{name}-{version}", sources) / name
    with paths.locked(paths.cache_dir() / ".binaries.lock"):
        if not program.exists():
            go = golang.provide(_needed_go(version))
            if go is None:
                raise SandboxError(f"there is no Go; install Go {_needed_go(version)} or newer")
            with step(f"built {what} of Kubernetes {version}"):
                go_build(go, SOURCE, go_package or f"./{name}", _version_flags(version), program,
                         "-modfile", modules)  # fmt: skip
    return program


def provide_kubeadm(version: str) -> Path:
    """Return where kubeadm of a release is, getting it first; a build takes half a minute.

    It is a program of its own rather than a part of the others: it needs modules that they do not.

    Raises:
        SandboxError: It cannot be had on this machine.
    """
    folder = SOURCE / "kubeadm"
    modules = folder / f"v1.{releases.minor(version)}.mod"
    built = None
    if releases.is_pinned(version):
        sources = (modules, modules.with_suffix(".sum"))
        built = built_from(f"kubeadm-{version}", sources) / "kubeadm"
    with paths.locked(paths.cache_dir() / ".kubeadm.lock"):
        found = _search(("kubeadm",), version).get("kubeadm")
        if found is None and not (built and built.exists()):
            _download(("kubeadm",), version)
            found = _search(("kubeadm",), version).get("kubeadm")
        if found is not None:
            return found
        if built is None:
            raise SandboxError(
                f"kubeadm {version} is not on PATH and cannot be downloaded, and only "
                f"{', '.join(releases.PINNED.values())} can be built here"
            )
        if not built.exists():
            go = golang.provide(_needed_go(version))
            if go is None:
                raise SandboxError(f"there is no Go; install Go {_needed_go(version)} or newer")
            with step(f"built kubeadm {version}"):
                go_build(go, SOURCE, "k8s.io/kubernetes/cmd/kubeadm", _version_flags(version),
                         built, "-modfile", modules)  # fmt: skip
        return built


def _version_flags(version: str) -> str:
    """The linker's flags by which a component knows its version."""
    symbols = "k8s.io/component-base/version"
    return (
        f"-X {symbols}.gitVersion={version} "
        f"-X {symbols}.gitMajor=1 -X {symbols}.gitMinor={releases.minor(version)}"
    )


def _without_test_helpers(go: str, modules: Path, folder: Path) -> list[str | Path]:
    """Return the flags of a build by `modules` that leaves the test helpers out.

    Go lets files be left out (-overlay) where they are not in its cache of modules, so the modules
    that have them are replaced by links to where they are.
    """
    own = folder / "go.mod"
    shutil.copy(modules, own)
    shutil.copy(modules.with_suffix(".sum"), own.with_suffix(".sum"))
    output = run(go, "mod", "download", "-json", "-modfile", modules, *_TEST_HELPERS,
               cwd=SOURCE, env=_go_environment(), timeout=600)  # fmt: skip
    absent = {}
    for place, (module, helper) in zip(_folders(output), _TEST_HELPERS.items(), strict=True):
        link = folder / Path(module).name
        link.symlink_to(place)
        absent[str(link / helper)] = ""
        run(go, "mod", "edit", f"-replace={module}={link}", own)
    overlay = folder / "overlay.json"
    overlay.write_text(json.dumps({"Replace": absent}))
    return ["-modfile", own, "-overlay", overlay]


def _folders(downloaded: str) -> list[str]:
    """The folders of modules, from the output of `go mod download -json`: a sequence of objects."""
    decoder, rest, found = json.JSONDecoder(), downloaded.strip(), []
    while rest:
        module, end = decoder.raw_decode(rest)
        found.append(module["Dir"])
        rest = rest[end:].lstrip()
    return found


def go_build(
    go: str, module: Path, package: str, link: str, target: Path, *options: str | Path
) -> None:
    """Build a program of a Go module whose dependencies are locked, with further options.

    Raises:
        SandboxError: It cannot be built.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}")
    # Making debug information, which -s -w would drop, is a tenth of the compiler's work.
    run(go, "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", *options,
        "-ldflags", f"-s -w {link}", "-o", temporary, package,
        cwd=module, env=_go_environment(), timeout=3600)  # fmt: skip
    temporary.rename(target)


def _go_environment() -> dict[str, str]:
    return {
        # Few packages make the compiler need a gigabyte; collecting garbage before that is a sixth
        # of its work.
        "GOGC": "off", "GOMEMLIMIT": "1GiB",
        **os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly",
    }  # fmt: skip


def _needed_go(version: str) -> str:
    found = re.search(r"^go (1\.\d+)", modules_file(version).read_text(), re.MULTILINE)
    return found[1] if found else "1.25"

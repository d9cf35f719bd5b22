"""The distribution's packages that nodes need, installed without starting what they contain."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import paths
from cluster.console import EXISTING_CLUSTER, CommandError, SandboxError, run, say, step

if TYPE_CHECKING:
    from collections.abc import Iterator

CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))

NODE_TOOLS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "cc": "gcc libc6-dev",
}
"""What nodes need on PATH, and the Debian packages that have it."""

IMAGE_TOOLS = {"mmdebstrap": "mmdebstrap"}

EMULATION_TOOLS = {"qemu-aarch64-static": "qemu-user-static", "arch-test": "arch-test"}
"""What runs programs of another architecture, and shows that they run."""

SHELL_TOOLS = {"bash": "bash", "zsh": "zsh", "fish": "fish"}
"""What completion is tried with."""

_POLICY = Path("/usr/sbin/policy-rc.d")


def available() -> bool:
    """Whether packages can be installed here at all."""
    return shutil.which("apt-get") is not None


def cni_plugins() -> Path | None:
    """The folder with the CNI plugins."""
    return next((folder for folder in CNI_FOLDERS if (folder / "ptp").exists()), None)


def missing(tools: dict[str, str]) -> dict[str, str]:
    """The tools that are not on PATH (where root's own folders are always looked at)."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    absent = {tool: of for tool, of in tools.items() if shutil.which(tool, path=path) is None}
    if tools is NODE_TOOLS and cni_plugins() is None:
        absent["the CNI plugins"] = "containernetworking-plugins"
    return absent


def check(tools: dict[str, str]) -> list[str]:
    """Return the packages of the tools that are missing.

    Raises:
        SandboxError: They cannot be installed here.
    """
    absent = missing(tools)
    names = sorted({package for of in absent.values() for package in of.split()})
    if names and not available():
        raise SandboxError(
            f"missing: {', '.join(absent)}. This machine has no apt-get: install what your "
            f"distribution has for Debian's packages {', '.join(names)}. {EXISTING_CLUSTER}"
        )
    return names


def ensure(tools: dict[str, str]) -> None:
    """Install the packages of the tools that are missing.

    Raises:
        SandboxError: They cannot be installed here.
    """
    if names := check(tools):
        install(*names)


def install(*names: str) -> None:
    """Install packages quietly, refreshing the package lists only if that is needed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ("apt-get", "install", "--yes", "--no-install-recommends",
               "-o", "DPkg::Lock::Timeout=300", *names)  # fmt: skip
    alone = paths.locked(paths.cache_dir() / ".packages.lock")
    with alone, step(f"installed {', '.join(names)}"), _no_services():
        try:
            run(*command, env=environment, timeout=900)
        except CommandError:
            say("  refreshing the package lists ...")
            run("apt-get", "update", env=environment, timeout=300)
            run(*command, env=environment, timeout=900)


@contextlib.contextmanager
def _no_services() -> Iterator[None]:
    """Configure package scripts not to start services, unless this machine does already."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)

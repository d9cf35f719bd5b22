"""Programs of another architecture on this machine, by qemu's emulation of user programs."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cluster import binaries, packages, paths
from cluster.console import CommandError, SandboxError, run, succeeds

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORMATS: Final = Path("/proc/sys/fs/binfmt_misc")
_RULES: Final = Path("/usr/lib/binfmt.d")
"""The formats that Debian's qemu-user-static knows, as the kernel reads them."""


@contextmanager
def running(architecture: str) -> Iterator[None]:
    """Have the kernel start programs of an architecture until the block ends.

    Nothing changes for this machine's own architecture, or if the kernel starts them already.

    Raises:
        SandboxError: the kernel or the distribution cannot do it, or this is not root.
    """
    if architecture == binaries.architecture():
        yield
        return
    packages.ensure(packages.EMULATION_TOOLS)
    with paths.locked(paths.cache_dir() / ".emulation.lock"):
        if succeeds("arch-test", architecture):
            yield
            return
        name = f"qemu-{binaries.machine(architecture)}"
        with ExitStack() as undo:
            try:
                if not (_FORMATS / "register").exists():
                    run("mount", "-t", "binfmt_misc", "binfmt_misc", _FORMATS)
                    undo.callback(succeeds, "umount", _FORMATS)
                (_FORMATS / "register").write_text((_RULES / f"{name}.conf").read_text())
                undo.callback((_FORMATS / name).write_text, "-1")  # the kernel's word for "remove"
            except (CommandError, OSError) as error:
                raise SandboxError(
                    f"this machine cannot run programs of {architecture}: {error}. It needs root "
                    f"and the kernel's binfmt_misc; or leave {architecture} out with --architecture"
                ) from error
            yield

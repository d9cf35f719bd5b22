"""Checksums, and signatures by cosign where there is a key."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cluster.console import SandboxError, run, say
from releasing.provenance import digest

SUMS: Final = "SHA256SUMS"


def write_sums(files: Iterable[Path], folder: Path) -> Path:
    """Write the checksums of files, as `sha256sum --check` reads them."""
    target = folder / SUMS
    lines = [f"{digest(file)}  {file.name}\n" for file in sorted(files)]
    target.write_text("".join(lines))
    return target


def sign(files: Iterable[Path]) -> list[Path]:
    """Sign files with the key that $COSIGN_KEY names; none without it.

    A key needs no service of Sigstore's, so nothing is sent and no network is needed. Verify with
    `cosign verify-blob --key PUBLIC --insecure-ignore-tlog --bundle FILE.sigstore.json FILE`.

    Raises:
        SandboxError: cosign is not installed, or fails.
    """
    key = os.environ.get("COSIGN_KEY")
    if not key:
        say("  not signed: COSIGN_KEY does not name a key")
        return []
    cosign = shutil.which("cosign")
    if cosign is None:
        raise SandboxError("COSIGN_KEY is set and cosign is not on PATH; install it, or unset it")
    made = []
    with tempfile.TemporaryDirectory() as folder:
        services = Path(folder, "no-services.json")
        run(cosign, "signing-config", "create", "--out", services)
        for file in files:
            bundle = file.with_name(f"{file.name}.sigstore.json")
            run(cosign, "sign-blob", "--yes", "--key", key, "--signing-config", services,
                "--bundle", bundle, file)  # fmt: skip
            made.append(bundle)
    return made

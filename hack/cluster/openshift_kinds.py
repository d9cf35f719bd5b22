"""OpenShift's own definitions of its kinds, read from the Go module that ../openshift-client pins.

They refuse what our own definitions in crds/ accept: `managementState: Unmanaged`, for example.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Final

from cluster.console import SandboxError, run

MODULE: Final = "github.com/openshift/api"
KINDS: Final = {
    "config": (
        "apiservers", "clusteroperators", "clusterversions", "featuregates", "infrastructures",
        "schedulers",
    ),
    "operator": ("kubeschedulers",),
}  # fmt: skip
"""The part of a group's name before `.openshift.io` -> the plurals of its kinds."""

_PINNED: Final = Path(__file__).resolve().parents[1] / "openshift-client"
_VARIANTS: Final = ("", "-Default", "-SelfManagedHA-Default", "-SelfManagedHA")
"""Of a kind whose fields depend on feature sets: the definition that a cluster has by default."""


def definitions() -> list[Path]:
    """Return the files of the definitions, downloading the module first.

    Raises:
        SandboxError: Go is not installed, the module cannot be downloaded, or it lacks a kind.
    """
    folder = _module()
    return [definition(folder, group, plural) for group in KINDS for plural in KINDS[group]]


def definition(folder: Path, group: str, plural: str) -> Path:
    """Return the file of a kind in the module's folder.

    Raises:
        SandboxError: The module lacks it, or has several.
    """
    generated = folder / group / "v1/zz_generated.crd-manifests"
    files = [
        file for variant in _VARIANTS for file in generated.glob(f"*_{plural}{variant}.crd.yaml")
    ]
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        raise SandboxError(f"{MODULE} has not one definition of {plural}: {names}")
    return files[0]


def _module() -> Path:
    go = shutil.which("go")
    if go is None:
        raise SandboxError(
            f"the kinds of an OpenShift sandbox are those of the Go module {MODULE}: install Go "
            "1.25 or newer"
        )
    environment = {**os.environ, "GOWORK": "off"}
    download = (go, "mod", "download", "-json", MODULE)
    output = run(*download, env=environment, cwd=_PINNED, timeout=600)
    return Path(json.loads(output)["Dir"])

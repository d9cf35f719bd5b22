"""The plugin manifest for krew (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from releasing.source import Source
from releasing.standalone import PROGRAM

NAME: Final = "scheduler"
_DESCRIPTION: Final = """\
Shows why pods wait and where they would be placed, by the real kube-scheduler
over a copy of the cluster; checks, converts and composes configurations of
kube-scheduler without a cluster; and inspects kube-scheduler-operator, its
revisions and rollouts.
"""


def write(source: Source, archives: Sequence[Path], folder: Path) -> Path:
    """Write the manifest for the archives, one for each platform."""
    target = folder / f"{NAME}.yaml"
    text = yaml.safe_dump(manifest(source, archives), sort_keys=False)
    target.write_text(text)
    return target


def manifest(source: Source, archives: Sequence[Path]) -> dict[str, Any]:
    """The manifest as data; the platform of an archive is in its name."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": source.tag,
            "homepage": source.url,
            "shortDescription": "Explain and configure kube-scheduler",
            "description": _DESCRIPTION,
            "platforms": [_platform(source, archive) for archive in archives],
        },
    }


def _platform(source: Source, archive: Path) -> dict[str, Any]:
    system, machine = archive.name.removesuffix(".tar.gz").rsplit("-", 2)[1:]
    return {
        "selector": {"matchLabels": {"os": system, "arch": machine}},
        "uri": source.download(archive.name),
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "files": [{"from": f"{PROGRAM}/*", "to": "."}],
        "bin": PROGRAM,
    }

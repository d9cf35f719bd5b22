"""An earlier release: its image, and its manifests, made of its own commit.

The commit is that of the last tag before this one, or $KSO_UPGRADE_FROM.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.archive import Image, Layer
from cluster.console import CommandError, run
from releasing.source import INIT, declared

from .conftest import REPOSITORY

IMAGE: Final = "localhost/kube-scheduler-operator:released"
DEVELOPMENT_IMAGE: Final = "localhost/kube-scheduler-operator:dev"

_LAYERS: Final = """\
import json
from cluster import operator_image
image = operator_image.build()
print(json.dumps({
    "layers": [[str(one.path), one.digest] for one in image.layers],
    "entrypoint": image.entrypoint, "user": image.user, "environment": dict(image.environment),
}))
"""


def commit() -> str:
    """The commit of the release before this one; empty before the first one."""
    if chosen := os.environ.get("KSO_UPGRADE_FROM"):
        return run("git", "-C", REPOSITORY, "rev-parse", f"{chosen}^{{commit}}").strip()
    try:
        tag = run("git", "-C", REPOSITORY, "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD")
    except CommandError:
        return ""
    return run("git", "-C", REPOSITORY, "rev-parse", f"{tag.strip()}^{{commit}}").strip()


@dataclass(frozen=True)
class Release:
    """A checkout of an earlier release."""

    folder: Path  # the checkout

    @classmethod
    def export(cls, revision: str, folder: Path) -> Release:
        """Write the files of a commit into a folder."""
        command: list[str | Path] = ["git", "-C", REPOSITORY, "archive", "--format=tar", revision]
        content = subprocess.run(command, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=content, check=True)
        return cls(folder)

    @property
    def version(self) -> str:
        """Its version."""
        return declared(self.folder)[INIT]

    def image(self) -> Image:
        """Its operator image, built by its own program."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "hack")}
        printed = run(sys.executable, "-c", _LAYERS, env=environment, timeout=1800)
        found = json.loads(printed.splitlines()[-1])
        return Image(
            IMAGE,
            tuple(Layer(Path(path), digest) for path, digest in found["layers"]),
            tuple(found["entrypoint"]),
            user=found["user"],
            environment=found["environment"],
        )

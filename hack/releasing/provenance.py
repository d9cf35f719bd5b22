"""How the files of a release were made: an in-toto statement with SLSA provenance.

https://slsa.dev/spec/v1.0/provenance. It names no time and no run of a builder, so it is the same
for the same commit; the workflow adds the forge's own attestation.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from cluster import paths
from releasing import debian
from releasing.source import Source

NAME: Final = "provenance.intoto.json"
_PREFIX: Final = "https://kube-scheduler-operator.dev"
_LOCKS: Final = (
    paths.REPOSITORY / "requirements.lock",
    paths.REPOSITORY / "requirements-dev.lock",
    paths.REPOSITORY / "requirements-build.lock",
    *map(debian.file, debian.ARCHITECTURES),
)


def write(source: Source, files: Iterable[Path], folder: Path) -> Path:
    """Write the statement about files."""
    target = folder / NAME
    subjects = {file.name: digest(file) for file in files}
    builder = os.environ.get("BUILDER_ID") or f"{_PREFIX}/local"
    target.write_text(json.dumps(statement(source, subjects, builder), indent=1) + "\n")
    return target


def digest(file: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def statement(source: Source, subjects: dict[str, str], builder: str) -> dict[str, Any]:
    """The statement as data.

    Args:
        source: the commit.
        subjects: the sha256 of each file.
        builder: the URI of what ran the build.
    """
    locks = [
        {
            "name": str(file.relative_to(paths.REPOSITORY)),
            "digest": {"sha256": digest(file)},
        }
        for file in _LOCKS
    ]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": name, "digest": {"sha256": value}} for name, value in sorted(subjects.items())
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{_PREFIX}/make-release/v1",
                "externalParameters": {
                    "version": source.version,
                    "url": source.url,
                    "imageRepository": source.repository,
                    "imageDigest": source.digest,
                },
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": source.commit}},
                    *locks,
                ],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }

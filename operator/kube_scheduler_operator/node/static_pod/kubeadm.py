"""Reads what kubeadm wrote on this node, and whether an upgrade is running.

`kubeadm upgrade` creates a directory for the manifests that it is going to move into place, moves
them one after the other, waiting for each component, and removes the directory when all of them
run. Until then, kubeadm must not be disturbed. A failed upgrade leaves the directory behind and
moves nothing any more.

The manifests are YAML, for which the standard library has no parser. Only the form that kubeadm
writes is read: block style, two spaces, keys in order.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...base import files

API_SERVER: Final = "kube-apiserver"

WORK: Final = "kubeadm-upgraded-manifests"
"""Prefix of the directory in /etc/kubernetes/tmp (phases/upgrade/staticpods.go)."""

LONGEST_STEP: Final = 660.0
"""Seconds between two moves after which an upgrade counts as failed: kubeadm waits for 300 s until
the manifest is in use and for 300 s until the component runs."""

_ITEM: Final = re.compile(r"  - ")
_FIELD: Final = re.compile(r"(?:  - |    )(image|name): \"?([^\s\"]+)\"?")


@dataclass(frozen=True, slots=True)
class KubeadmFiles:
    # image of the scheduler in a manifest of kubeadm's form; empty if another program wrote it
    image: str = ""
    api_server: str = ""  # image of the API server in the manifest beside it; empty if unknown
    work: str = ""  # name of the directory of a running upgrade; empty if none is running


def read(manifest_path: Path, component: str, now: float) -> KubeadmFiles:
    """Read the manifests beside the scheduler's, and look for a running upgrade.

    `component` is the name of the scheduler's container; `now` is in seconds since 1970.
    """
    beside = manifest_path.with_name(f"{API_SERVER}.yaml")
    return KubeadmFiles(
        image_in(files.read(manifest_path), component),
        image_in(files.read(beside), API_SERVER),
        running_upgrade(upgrade_dir(manifest_path), now),
    )


def upgrade_dir(manifest_path: Path) -> Path:
    """Return the directory in which upgrades have theirs."""
    return manifest_path.parent.parent / "tmp"


def running_upgrade(directory: Path, now: float) -> str:
    """Name the directory of an upgrade that moved a manifest recently; empty without one."""
    names = []
    with contextlib.suppress(OSError):  # the last step of kubeadm removes it
        for path in directory.iterdir():
            if path.name.startswith(WORK) and not path.is_symlink():
                age = now - path.stat().st_mtime
                if -LONGEST_STEP < age < LONGEST_STEP:
                    names.append(path.name)
    return max(names, default="")


def image_in(data: bytes | None, component: str) -> str:
    """Read the image of container `component` from kubeadm's manifest; empty without one."""
    for fields in _containers((data or b"").decode(errors="replace")):
        if fields.get("name") == component:
            return fields.get("image", "")
    return ""


def _containers(text: str) -> Iterator[dict[str, str]]:
    lines = text.splitlines()
    try:
        begin = lines.index("  containers:", lines.index("spec:")) + 1
    except ValueError:
        return
    if "kind: Pod" not in lines:
        return
    fields: dict[str, str] = {}
    for line in lines[begin:]:
        if line[:2].strip() or line[2:3] not in ("-", " "):
            break  # the next field of the spec
        if _ITEM.match(line) and fields:
            yield fields
            fields = {}
        if field := _FIELD.match(line):
            fields[field[1]] = field[2]
    yield fields

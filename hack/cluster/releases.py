"""Which Kubernetes a sandbox runs: what can be asked for, and which release that means.

Of every minor version one release is pinned: its modules and their checksums are on record in
../controlplane, so that it can be built where nothing can be downloaded. Another patch of the same
minor versions will do where its binaries are on the machine or can be downloaded.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from cluster.console import SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "v1.35.4"
"""The version of a sandbox unless another one is requested."""

PINNED: Mapping[int, str] = {34: "v1.34.4", 35: DEFAULT, 36: "v1.36.3", 37: "v1.37.2"}
"""By minor version, the newest patch whose modules are on record.

The kubelets of all of them accept a containerd older than 2.0, which does not report its cgroup
driver, and (with failCgroupV1: false) cgroup v1. Older ones than 1.34 have not been tried.
"""

PRE_RELEASES: Mapping[int, str] = {38: "v1.38.0-beta.0"}
"""By minor version, the pre-release with which the rules are compared until there is a release.

The modules of its kube-scheduler are on record; no sandbox runs it.
"""

TESTED = (PINNED[35], PINNED[37])
"""The versions of `make test-versions` unless others are requested."""

VARIABLE = "KSO_KUBERNETES_VERSION"
"""The environment's word, for the sandbox and for all that starts one: tests, demo, benchmarks."""

PRE_RELEASE = re.compile(r"v1\.\d+\.\d+-(?:alpha|beta|rc)\.\d+")

_VERSION = re.compile(r"v?1\.(0|[1-9]\d*)(?:\.(0|[1-9]\d*))?")


def choose(asked: str | None = None) -> str:
    """The release that is meant: `1.34` is the pinned one, `1.34.2` and `v1.34.2` are that one.

    Args:
        asked: what the user wants; without it the environment's word counts, else the default.

    Raises:
        SandboxError: the text is not a version, or not one that a sandbox can run.
    """
    text = asked or os.environ.get(VARIABLE) or DEFAULT
    found = _VERSION.fullmatch(text)
    if found is None or int(found[1]) not in PINNED:
        problem = "is not a Kubernetes version" if found is None else "cannot run here"
        source = "" if asked else f" (from ${VARIABLE})"
        raise SandboxError(f"{text!r}{source} {problem}: a sandbox runs {span()}; ask for one of "
                           f"{', '.join(f'1.{one}' for one in PINNED)}, or for one of their "
                           f"patches, for example {DEFAULT}")  # fmt: skip
    minor, patch = int(found[1]), found[2]
    return PINNED[minor] if patch is None else f"v1.{minor}.{patch}"


def minor(version: str) -> int:
    """The minor number of a release: 35 for v1.35.4."""
    return int(version.split(".")[1])


def span() -> str:
    """From which to which minor version, as people say it."""
    return f"Kubernetes 1.{min(PINNED)} to 1.{max(PINNED)}"


def is_pinned(version: str) -> bool:
    """Whether it can be built: its modules are on record."""
    return version in PINNED.values() or is_pre_release(version)


def is_pre_release(version: str) -> bool:
    """Whether it is a pre-release on record, of which only kube-scheduler can be built."""
    return version in PRE_RELEASES.values()


def others() -> list[str]:
    """The pinned releases that are not the default, oldest first."""
    return [PINNED[one] for one in sorted(PINNED) if PINNED[one] != DEFAULT]

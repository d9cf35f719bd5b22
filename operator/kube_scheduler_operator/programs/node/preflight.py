"""Waits until the preflight container has accepted the configuration.

Both containers start together, because the kubelet takes up to two seconds from the end of an init
container to the next start, and the installer's own start overlaps with the preflight. After all
checks and with all plugins created, kube-scheduler writes its completed configuration as its last
action before exiting with 0 (LogOrWriteConfig at the end of Setup). If it rejects the
configuration, it never writes the file.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from ...base import files
from . import processes

POLL: Final = 0.05
"""Seconds between reads of the file."""

FLAG: Final = "--write-config-to"
"""Flag that distinguishes the preflight from other schedulers on the node."""


def wait(effective_config: Path, proc: Path) -> bytes:
    """Wait until the preflight of this pod has passed; returns its output.

    Waits indefinitely if it fails: the operator sees the reason in the Pod and handles it.

    Args:
        effective_config: file to which the preflight writes the completed configuration.
        proc: /proc of the node.
    """
    own_pod, _ = processes.parse_mounts((proc / "self/mountinfo").read_text(errors="replace"))
    while True:
        # The file is complete once its writer has exited. Finding the writer is expensive.
        if files.read(effective_config) and not processes.operands(proc, {own_pod}, FLAG):
            return files.read(effective_config) or b""
        time.sleep(POLL)

"""Whether the operand's own binary has accepted the configuration, in the container beside us.

Both containers start together, because the kubelet takes up to two seconds from the end of an init
container to the next start, and the installer's own start overlaps with the check. kube-scheduler
writes its completed configuration as the last thing before it ends with 0, once everything has been
checked and every plugin built (LogOrWriteConfig, called at the end of Setup). One that refuses
never writes it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ...base import files
from . import processes

if TYPE_CHECKING:
    from pathlib import Path

POLL: Final = 0.05
"""Seconds between looks; nothing else waits for the answer."""

FLAG: Final = "--write-config-to"
"""What tells the check from any other scheduler on the node."""


def wait(effective_config: Path, proc: Path) -> bytes:
    """Wait until the check of this pod has passed, for ever if it does not: its output.

    Who refuses or cannot be started is for the operator to judge, which sees the reason.

    Args:
        effective_config: where the check writes the completed configuration.
        proc: /proc of the node.
    """
    own_pod, _ = processes.parse_mounts((proc / "self/mountinfo").read_text(errors="replace"))
    while True:
        # What is read after its writer has gone is whole. Looking for the writer is what costs.
        if files.read(effective_config) and not processes.operands(proc, {own_pod}, FLAG):
            return files.read(effective_config) or b""
        time.sleep(POLL)

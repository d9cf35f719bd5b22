"""Waits for the operator's permission to roll out: one node at a time replaces its scheduler.

The operator grants it with an annotation of the installer pod, which the kubelet mounts as a file.
In the other direction, the file --staged reports that the revision is staged: the startup probe
checks for it, and the operator sees that the container has started.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Final

from ...base import files
from ...base.names import PERMISSION_GRANTED

log = logging.getLogger(__name__)

POLL: Final = 0.1
"""Seconds between reads; the kubelet takes longer to update the file."""


def is_granted(path: Path) -> bool:
    """Whether the permission to roll out is granted."""
    return (files.read(path) or b"").decode(errors="replace").strip() == PERMISSION_GRANTED


def wait(path: Path) -> None:
    """Wait for the permission indefinitely: to cancel, the operator deletes the pod."""
    log.info("The revision is staged; waiting for permission to roll out")
    while not is_granted(path):
        time.sleep(POLL)
    log.info("Permission to roll out granted")

"""Whether this node may change its scheduler: one node at a time does, and the operator says which.

It says so with an annotation of the installer's pod, which the kubelet shows as a file. The other
way round the file --staged says that a revision waits here: the kubelet looks for it with the
startup probe, and the operator sees that the container has started.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from ...base import files
from ...base.names import GO_AHEAD

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

POLL: Final = 0.1
"""Seconds between looks; the kubelet takes longer to show a change."""


def has_come(path: Path) -> bool:
    """Whether the go-ahead is given."""
    return (files.read(path) or b"").decode(errors="replace").strip() == GO_AHEAD


def wait(path: Path) -> None:
    """Wait for the go-ahead, for ever: if it is not to come, the operator deletes the pod."""
    log.info("The revision is staged; waiting until it is this node's turn")
    while not has_come(path):
        time.sleep(POLL)
    log.info("It is this node's turn")

"""Directories that may not be read: root, as whom the tests run, may read all of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any


def refusing(directory: str) -> Callable[[str], Any]:
    """`os.scandir` of a user who may not read a directory."""
    scan = os.scandir

    def refuse(path: str) -> Any:
        if str(path) == directory:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scan(path)

    return refuse

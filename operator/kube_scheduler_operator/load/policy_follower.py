"""The load policy in a file that changes while the program runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ..base.klog import kv
from .policy import LoadPolicy, LoadPolicyError
from .policy_files import read_policy

log = logging.getLogger(__name__)

_LOOK: Final = 1.0
"""Seconds between two looks at the file: requests come more often than it changes."""


class PolicyFile:
    """The last policy in a file that could be read; the default before there was any.

    Args:
        path: of the file.
        clock: seconds.

    Attributes:
        policy: to go by.
        error: why the file as it is now is not gone by; empty: it is.
    """

    def __init__(self, path: str, clock: Callable[[], float]) -> None:
        self._path, self._clock = Path(path), clock
        self._looked = clock()
        self._seen: tuple[int, int, int] | None = None
        self._text = ""
        self.policy = LoadPolicy()
        self.error = ""
        self._read()

    def changed(self) -> bool:
        """Whether there is a new policy; looks at most once a second."""
        now = self._clock()
        if 0.0 <= now - self._looked < _LOOK:
            return False
        self._looked = now
        return self._read()

    def _read(self) -> bool:
        try:
            status = self._path.stat()
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if seen == self._seen:
                return False
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return self._bad(str(error))
        self._seen = seen
        if text == self._text:
            return False
        try:
            policy = read_policy(text).policy
        except LoadPolicyError as error:
            return self._bad(str(error))
        self.error, self._text = "", text
        if policy == self.policy:
            return False
        self.policy = policy
        log.info("Read the load policy", extra=kv(file=str(self._path)))
        return True

    def _bad(self, why: str) -> bool:
        if why != self.error:
            self.error = why
            log.error("The load policy stays as it was", extra=kv(file=str(self._path), why=why))
        return False

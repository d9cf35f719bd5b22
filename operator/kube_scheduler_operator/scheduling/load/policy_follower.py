"""The load policy in a file that may change while the program runs."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ...base.findings import Problem
from ...base.klog import kv
from .policy import LoadPolicy, LoadPolicyError
from .policy_files import read_policy

log = logging.getLogger(__name__)

INTERVAL: Final = 1.0
"""Minimum seconds between reads of the file: requests are more frequent than changes."""


class PolicyFollower:
    """The last valid policy in a file; the default policy before the first one.

    The file is read at most once per `interval` seconds. With `required`, it must be valid at the
    start.

    Raises:
        LoadPolicyError, OSError: the file is required and not valid.
    """

    def __init__(
        self,
        path: str | Path,
        clock: Callable[[], float],
        *,
        interval: float = INTERVAL,
        required: bool = False,
    ) -> None:
        self._path, self._clock, self._interval = Path(path), clock, interval
        self._read_at = clock()
        self._content: bytes | None = None
        self._rejected: bytes | None = None
        self.policy = LoadPolicy()  # the policy in use
        self.error = ""  # why the current file is not in use; empty if it is
        if required:
            self._accept(self._path.read_bytes())
        else:
            self._read()

    @property
    def digest(self) -> str:
        """The first ten hexadecimal digits of the SHA-256 of the content in use."""
        return hashlib.sha256(self._content or b"").hexdigest()[:10]

    def changed(self) -> bool:
        """Read the file if the interval has passed; returns whether the policy changed."""
        now = self._clock()
        if 0.0 <= now - self._read_at < self._interval:
            return False
        self._read_at = now
        return self._read()

    def _read(self) -> bool:
        content = None
        try:
            content = self._path.read_bytes()
            if content == self._content:
                self._rejected, self.error = None, ""
                return False
            if content == self._rejected:
                return False
            return self._accept(content)
        except (OSError, LoadPolicyError) as error:
            self._rejected = content
            if str(error) != self.error:
                self.error = str(error)
                log.error(
                    "Keeping the previous load policy",
                    extra=kv(file=str(self._path), err=self.error),
                )
            return False

    def _accept(self, content: bytes) -> bool:
        """Use new content. Raises LoadPolicyError."""
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise LoadPolicyError([Problem("Unreadable", (), str(error))]) from error
        loaded = read_policy(text)
        for note in loaded.notes:
            log.warning("Load policy: %s", note.sentence)
        before, self.policy = self.policy, loaded.policy
        self._content, self._rejected, self.error = content, None, ""
        if before == self.policy:
            return False
        log.info("Loaded the load policy", extra=kv(file=str(self._path)))
        return True

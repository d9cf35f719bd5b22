"""The API server's version that schedulers follow while a provider upgrades the control plane.

A control plane has several API servers, and during an upgrade their answers differ. kube-scheduler
must not be newer than any of them, so an older version counts at once, but a newer one only after
all answers have shown it for some time.
"""

from __future__ import annotations

from typing import Final

from ...config.language.versions import Version

INTERVAL_SECONDS: Final = 60.0
"""The longest time between two requests."""


class FollowedVersion:
    """The version that schedulers follow.

    `recorded` is the version that was followed last, if any; all answers must show a newer version
    for `settling` seconds.
    """

    def __init__(self, recorded: str = "", settling: float = 600.0) -> None:
        self.text = recorded  # `gitVersion` of the API server; empty before the first answer
        self.newer = ""  # a newer one that some answers have shown since
        self._settling = settling
        self._since: float | None = None

    @property
    def interval(self) -> float:
        """Seconds until the next request."""
        return max(1.0, min(INTERVAL_SECONDS, self._settling / 10))

    def observe(self, text: str, now: float) -> bool:
        """Note an answer at the monotonic time `now`; return whether anything changed."""
        before = self.text, self.newer
        answered, followed = _parsed(text), _parsed(self.text)
        if answered is None:
            return False
        if followed is None or answered <= followed:
            self.text, self.newer, self._since = text, "", None
        elif self._since is None:
            self.newer, self._since = text, now
        elif now - self._since >= self._settling:
            self.text, self.newer, self._since = text, "", None
        else:
            newer = _parsed(self.newer)
            if newer is None or answered < newer:
                self.newer = text
        return before != (self.text, self.newer)


def _parsed(text: str) -> Version | None:
    try:
        return Version.parse(text)
    except ValueError:
        return None

"""The result of an installer: the JSON in its termination message and in outcome.json.

The kubelet truncates termination messages at 4096 bytes, so free text is shortened until the JSON
fits; machine-readable fields (result, revisions, retry) are never shortened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from ...base.foreign_text import foreign
from ...base.json_text import parse_json
from ...base.limits import FOREIGN_NAME
from ...base.revision_number import revision_number
from . import message
from .message import UNKNOWN, BootTime

STOCK: Final = 0
"""The "revision" of the manifest that the node had before the operator."""

_SHORTEST_TEXT: Final = 64
_MOST_RETRIES: Final = 1_000_000
_NO_STEPS: Final[Mapping[str, float]] = MappingProxyType({})


class InstallerOutcome(StrEnum):
    INSTALLED = "Installed"
    """The revision runs and stayed healthy for the settling time."""

    ROLLED_BACK = "RolledBack"
    """The revision failed; the last good manifest runs again and is healthy."""

    UNHEALTHY = "Unhealthy"
    """Neither the revision nor the last good manifest became healthy: the node needs an admin."""

    RESTORED = "Restored"
    """The manifest that predates the operator runs again; the operator's files are removed."""

    KEPT = "Kept"
    """No manifest on the node predates the operator, so the operator's scheduler stays."""

    SUPERSEDED = "Superseded"
    """The node already has a newer revision; nothing was changed."""

    OVERTAKEN = "Overtaken"
    """`kubeadm upgrade` may be running, or wrote another version; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Result:
    result: InstallerOutcome
    revision: int  # the revision to install
    node: str
    last_good_revision: int  # the node's last known good revision; 0 is the stock manifest
    retry: int = 0  # number of the attempt; an attempt is never repeated
    reason: str = ""  # why it failed; empty after a success
    last_error: str = ""  # the scheduler's last logged error, if any
    # duration of each step in seconds, in order
    steps: Mapping[str, float] = field(default_factory=lambda: _NO_STEPS)
    # names that look like revision directories but are not; they are not removed
    strangers: tuple[str, ...] = ()
    kubeconfig: str = ""  # fingerprint of the kubeconfig that the revision was started with
    newest: int = 0  # the highest number of a verified revision on the node; 0 without one
    restarted: bool = True  # whether the scheduler was replaced; otherwise the revision already ran
    image: str = ""  # the image in the manifest in place, if kubeadm wrote it
    api_server: str = ""  # the image of the node's API server; empty if unknown
    work: str = ""  # the directory of a running `kubeadm upgrade`; empty without one
    read: BootTime = UNKNOWN  # when the installer had this result, on its node

    @property
    def failed(self) -> bool:
        """Whether this revision was started on the node and failed."""
        return self.result in (InstallerOutcome.ROLLED_BACK, InstallerOutcome.UNHEALTHY)

    def serialise(self, limit: int = message.LIMIT) -> str:
        """Return the result as one line of JSON of at most `limit` bytes."""
        text = self._json()
        shortened = self
        while len(text.encode()) > limit:
            longest = max(len(shortened.reason), len(shortened.last_error))
            if longest <= _SHORTEST_TEXT:
                return replace(shortened, steps=_NO_STEPS, strangers=())._json()
            keep = max(longest * 3 // 4, _SHORTEST_TEXT)
            shortened = replace(
                shortened,
                reason=_shortened(shortened.reason, keep),
                last_error=_shortened(shortened.last_error, keep),
            )
            text = shortened._json()
        return text

    def _json(self) -> str:
        fields: dict[str, Any] = {
            "result": self.result.value,
            "revision": self.revision,
            "node": self.node,
            "lastGoodRevision": self.last_good_revision,
            "retry": self.retry,
            "reason": self.reason,
            "lastWords": self.last_error,
            "steps": {name: round(seconds, 3) for name, seconds in self.steps.items()},
            "strangers": list(self.strangers),
            "kubeconfig": self.kubeconfig,
            "newest": self.newest,
            "restarted": self.restarted,
            "image": self.image,
            "apiServer": self.api_server,
            "work": self.work,
            **self.read.fields(),
        }
        return message.serialise(fields)

    @classmethod
    def parse(cls, text: str | bytes) -> Result | None:
        """Parse the output of `serialise`; None for anything else.

        A killed container leaves no termination message, and with FallbackToLogsOnError the
        kubelet uses log lines instead: neither is a result.
        """
        try:
            document = parse_json(text)
            return cls(
                result=InstallerOutcome(document["result"]),
                revision=_number(document["revision"]),
                node=str(document["node"]),
                last_good_revision=_number(document["lastGoodRevision"]),
                retry=max(0, min(int(document.get("retry", 0)), _MOST_RETRIES)),
                reason=foreign(str(document.get("reason", "")), message.LIMIT),
                last_error=foreign(str(document.get("lastWords", "")), message.LIMIT),
                steps={str(k): float(v) for k, v in dict(document.get("steps") or {}).items()},
                strangers=tuple(
                    foreign(str(name), FOREIGN_NAME) for name in document.get("strangers") or ()
                ),
                kubeconfig=str(document.get("kubeconfig", "")),
                newest=revision_number(document.get("newest", 0)),
                restarted=document.get("restarted") is not False,
                image=str(document.get("image", "")),
                api_server=str(document.get("apiServer", "")),
                work=str(document.get("work", "")),
                read=BootTime.parse(document),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return None


def _number(value: object) -> int:
    """Return a revision number, or 0 for the scheduler before the operator."""
    number = revision_number(value)
    if number or value == STOCK:
        return number
    raise ValueError(value)


def _shortened(text: str, length: int) -> str:
    """Cut the middle out of `text`: the beginning has the error, the end the cause."""
    if len(text) <= length:
        return text
    head = (length - 1) // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"

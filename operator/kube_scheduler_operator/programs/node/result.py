"""What an installer has to say: the JSON in its termination message and in outcome.json.

The kubelet cuts termination messages at 4096 bytes, so the free texts are shortened until the
whole fits; what a machine decides by (result, revisions, retry) is never cut.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MESSAGE_LIMIT: Final = 4096
"""Bytes of a termination message that the kubelet keeps."""

STOCK: Final = 0
"""The "revision" of the manifest that was on the node before the first one of ours."""

_SHORTEST_TEXT: Final = 64
_NO_STEPS: Final[Mapping[str, float]] = MappingProxyType({})


class Verdict(StrEnum):
    """How an installation ended."""

    INSTALLED = "Installed"
    """The revision runs and stayed healthy for the settling time."""

    ROLLED_BACK = "RolledBack"
    """It did not; the last good manifest is back and healthy."""

    UNHEALTHY = "Unhealthy"
    """It did not, and neither does what is in its place now: a human is needed on this node."""

    RESTORED = "Restored"
    """What was there before the operator runs again; nothing of the operator is left here."""

    KEPT = "Kept"
    """Nothing was there before the operator, so its scheduler stays: a human must bring another."""

    SUPERSEDED = "Superseded"
    """A newer revision is on the node already; nothing was touched."""


@dataclass(frozen=True, slots=True)
class Result:
    """The definitive end of one installer.

    Attributes:
        result: how it ended.
        revision: the revision that was to be installed.
        node: where.
        last_good_revision: what the node falls back to from now on; 0 is the stock manifest.
        retry: which attempt it was; the same attempt is never made twice.
        reason: one sentence for a human; empty after a success.
        last_words: the scheduler's own last error, if it said one.
        steps: seconds that every step took, in the order of the steps.
        strangers: names of directories that look like revisions, are not, and were left alone.
        kubeconfig: fingerprint of the kubeconfig that the revision was started with.
    """

    result: Verdict
    revision: int
    node: str
    last_good_revision: int
    retry: int = 0
    reason: str = ""
    last_words: str = ""
    steps: Mapping[str, float] = field(default_factory=lambda: _NO_STEPS)
    strangers: tuple[str, ...] = ()
    kubeconfig: str = ""

    @property
    def failed(self) -> bool:
        """Whether this revision was tried on the node and did not work."""
        return self.result in (Verdict.ROLLED_BACK, Verdict.UNHEALTHY)

    def serialise(self, limit: int = MESSAGE_LIMIT) -> str:
        """This result as one line of JSON of at most `limit` bytes."""
        text = self._json()
        result = self
        while len(text.encode()) > limit:
            longest = max(len(result.reason), len(result.last_words))
            if longest <= _SHORTEST_TEXT:
                return replace(result, steps=_NO_STEPS, strangers=())._json()
            keep = max(longest * 3 // 4, _SHORTEST_TEXT)
            result = replace(
                result,
                reason=_shortened(result.reason, keep),
                last_words=_shortened(result.last_words, keep),
            )
            text = result._json()
        return text

    def _json(self) -> str:
        document: dict[str, Any] = {
            "result": self.result.value,
            "revision": self.revision,
            "node": self.node,
            "lastGoodRevision": self.last_good_revision,
            "retry": self.retry,
            "reason": self.reason,
            "lastWords": self.last_words,
            "steps": {name: round(seconds, 3) for name, seconds in self.steps.items()},
            "strangers": list(self.strangers),
            "kubeconfig": self.kubeconfig,
        }
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def parse(cls, text: str | bytes) -> Result | None:
        """The result that `serialise` wrote, or None if `text` is anything else.

        A container that was killed leaves no message, and with FallbackToLogsOnError the kubelet
        puts log lines there: neither is a result.
        """
        try:
            document = json.loads(text)
            return cls(
                result=Verdict(document["result"]),
                revision=int(document["revision"]),
                node=str(document["node"]),
                last_good_revision=int(document["lastGoodRevision"]),
                retry=int(document.get("retry", 0)),
                reason=str(document.get("reason", "")),
                last_words=str(document.get("lastWords", "")),
                steps={str(k): float(v) for k, v in dict(document.get("steps") or {}).items()},
                strangers=tuple(str(name) for name in document.get("strangers") or ()),
                kubeconfig=str(document.get("kubeconfig", "")),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def _shortened(text: str, length: int) -> str:
    """`text` with its middle left out: its beginning names the error, its end the cause."""
    if len(text) <= length:
        return text
    head = (length - 1) // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"

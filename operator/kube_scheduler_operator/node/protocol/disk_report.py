"""The state of a node's disk: the JSON in the termination message of a guard.

A guard and its operator have no other channel. The operator takes numbers only from here
and from results of installers, never from a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from ...base.json_text import parse_json
from ...base.limits import MESSAGE
from ...base.revision_number import revision_number
from . import message
from .message import UNKNOWN, BootTime

_LISTED: Final = 20
_LONGEST_PATH: Final = 150


@dataclass(frozen=True, slots=True)
class DiskReport:
    # the revision that was installed last and stayed healthy; 0: none of the operator's
    revision: int = 0
    content: str = ""  # the content hash of that revision, if its directory is verified
    newest: int = 0  # the highest number of a verified revision on the node; 0 without one
    kubeconfig: str = ""  # fingerprint of the scheduler's kubeconfig; empty if it is not watched
    # the files that were changed by hand: the manifest, files of the revision's directory
    edits: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # those of them that were deleted
    edit: str = ""  # fingerprint of these changes; empty without any
    labelled: int = 0  # the revision in the label of the manifest in place; 0 without one
    image: str = ""  # the image in the manifest in place, if kubeadm wrote it
    api_server: str = ""  # the image of this node's API server; empty if unknown
    work: str = ""  # the directory of a running `kubeadm upgrade`; empty without one
    # when it was read; two reports of the same state are equal
    read: BootTime = field(default=UNKNOWN, compare=False)

    @property
    def changes(self) -> str:
        """Name the files that were changed, and those that were deleted; empty without any."""
        changed = [path for path in self.edits if path not in self.missing]
        parts = [f"{', '.join(changed)} changed"] if changed else []
        if self.missing:
            verb = "was" if len(self.missing) == 1 else "were"
            parts.append(f"{', '.join(self.missing)} {verb} deleted")
        return " and ".join(parts)

    def serialise(self) -> str:
        """Return one line of JSON that fits into a termination message."""
        shown = self.edits[:_LISTED]
        fields = {name: getattr(self, name) for name in DiskReport.__slots__ if name != "read"}
        while True:
            missing = [path for path in self.missing if path in shown]
            fields |= {"edits": _short(shown), "missing": _short(missing), **self.read.fields()}
            text = message.serialise(fields)
            if len(text.encode()) <= message.LIMIT or not shown:
                return text
            shown = shown[:-1]

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse the output of `serialise`; None for anything else."""
        try:
            document: Mapping[str, Any] = parse_json(text, MESSAGE)
            return cls(
                revision=revision_number(document["revision"]),
                content=str(document["content"]),
                newest=revision_number(document["newest"]),
                kubeconfig=str(document["kubeconfig"]),
                edits=tuple(str(path) for path in list(document["edits"])[:_LISTED]),
                missing=tuple(str(path) for path in list(document.get("missing", ()))[:_LISTED]),
                edit=str(document["edit"]),
                labelled=revision_number(document["labelled"]),
                image=str(document.get("image", "")),
                api_server=str(document.get("api_server", "")),
                work=str(document.get("work", "")),
                read=BootTime.parse(document),
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None


def _short(paths: Sequence[str]) -> list[str]:
    return [path[-_LONGEST_PATH:] for path in paths]

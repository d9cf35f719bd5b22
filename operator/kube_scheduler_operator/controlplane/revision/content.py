"""The content of a revision, and its identity: a hash over all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...nodeprotocol.revision_content import content_hash


@dataclass(frozen=True, slots=True)
class RevisionContent:
    """The data of the ConfigMaps of a revision."""

    parts: Mapping[str, Mapping[str, str]]  # ConfigMap -> key -> text
    # what users had set for it (inputs.py), if known; not part of its identity
    inputs: str = field(default="", compare=False)
    # what its rules change for the cluster's Pods (placement_check.py), in words; not part of its
    # identity; empty if they change nothing or it was not checked
    placements: str = field(default="", compare=False)

    @property
    def hash(self) -> str:
        """SHA-256 over names, keys and values in a canonical order, 64 hex digits."""
        return content_hash(self.parts)

    def differences(self, other: RevisionContent | None) -> tuple[str, ...]:
        """The parts that differ in `other`, a sentence each, sorted by name."""
        found = []
        for name in sorted(self.parts):
            before = other.parts.get(name) if other else None
            if before is None:
                found.append(f"required configmap/{name} has been created")
            elif before != self.parts[name]:
                found.append(f"required configmap/{name} has changed")
        return tuple(found)

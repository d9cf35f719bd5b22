"""The content of a revision, and its identity: a hash over all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....node.protocol.revision_content import content_hash


@dataclass(frozen=True, slots=True)
class RevisionContent:
    parts: Mapping[str, Mapping[str, str]]  # ConfigMap -> key -> text
    # not part of its identity: the settings of users for it (recorded_inputs.py), if known, and
    # what its rules change for the cluster's Pods (placement_gate.py), in words
    inputs: str = field(default="", compare=False)
    placements: str = field(default="", compare=False)

    @property
    def hash(self) -> str:
        """SHA-256 over names, keys and values in a canonical order, 64 hex digits."""
        return content_hash(self.parts)

    def differences(self, other: RevisionContent | None) -> tuple[str, ...]:
        """One sentence for each part that differs in `other`, sorted by name."""
        sentences = []
        for name in sorted(self.parts):
            before = other.parts.get(name) if other else None
            if before is None:
                sentences.append(f"required configmap/{name} has been created")
            elif before != self.parts[name]:
                sentences.append(f"required configmap/{name} has changed")
        return tuple(sentences)

"""What a revision consists of, and its identity: a hash over all of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Content:
    """The data of the ConfigMaps that make up a revision: name -> key -> text.

    Attributes:
        parts: all that a scheduler is given.
        inputs: what users had set for it (inputs.py), if that is known; no part of its identity.
    """

    parts: Mapping[str, Mapping[str, str]]
    inputs: str = field(default="", compare=False)

    @property
    def hash(self) -> str:
        """SHA-256 over names, keys and values in a canonical order, 64 hex digits."""
        canonical = json.dumps(self.parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def differences(self, other: Content | None) -> tuple[str, ...]:
        """The parts that are not the same in `other`, in words, sorted by name."""
        found = []
        for name in sorted(self.parts):
            before = other.parts.get(name) if other else None
            if before is None:
                found.append(f"required configmap/{name} has been created")
            elif before != self.parts[name]:
                found.append(f"required configmap/{name} has changed")
        return tuple(found)

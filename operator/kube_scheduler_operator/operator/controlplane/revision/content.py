"""The content of a revision, and its identity: a hash over all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....base import names
from ....base.json_text import parse_json
from ....base.objects import entries, mapping
from ....node.protocol.revision_content import content_hash
from ...model.pod_status import named


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

    @property
    def config(self) -> Mapping[str, Any]:
        """KubeSchedulerConfiguration; empty if it is missing or damaged, like the next ones."""
        return self._document(names.CONFIG, names.CONFIG_KEY)

    @property
    def pod(self) -> Mapping[str, Any]:
        return self._document(names.POD, names.POD_KEY)

    @property
    def operand(self) -> Mapping[str, Any]:
        """The container of kube-scheduler."""
        return named(self._containers, names.OPERAND)

    @property
    def image(self) -> str:
        container = next(iter(self._containers), {})
        return str(container.get("image") or "")

    @property
    def _containers(self) -> list[Mapping[str, Any]]:
        return [mapping(item) for item in entries(mapping(self.pod.get("spec")).get("containers"))]

    def _document(self, part: str, key: str) -> Mapping[str, Any]:
        try:
            return mapping(parse_json(self.parts[part][key]))
        except (KeyError, ValueError):
            return {}

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

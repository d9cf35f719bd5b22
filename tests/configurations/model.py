"""A generated configuration: its group, name, document and feature gates."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

API_VERSION = "kubescheduler.config.k8s.io/v1"
TYPE = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}


@dataclass(frozen=True, slots=True)
class Made:
    """One configuration."""

    group: str  # one of generate.GROUPS
    name: str  # description of the change
    config: dict[str, Any]  # the document
    gates: dict[str, bool] = field(default_factory=dict)  # the value of --feature-gates, by name

    @property
    def text(self) -> str:
        """The content of the file."""
        return json.dumps(self.config, sort_keys=True, separators=(",", ":"))

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that set the gates."""
        if not self.gates:
            return ()
        listed = ",".join(f"{name}={str(value).lower()}" for name, value in self.gates.items())
        return (f"--feature-gates={listed}",)


def typed(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with apiVersion and kind, unless it has its own."""
    return {**TYPE, **config}

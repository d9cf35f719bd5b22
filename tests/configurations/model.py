"""What the generator makes: one configuration, what it is an example of, and how it is run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

API_VERSION = "kubescheduler.config.k8s.io/v1"
TYPE = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}


@dataclass(frozen=True, slots=True)
class Made:
    """One configuration.

    Attributes:
        group: the class of configurations that it belongs to (generate.GROUPS).
        name: what was done, for people.
        config: the document.
        gates: the value of --feature-gates, by name.
    """

    group: str
    name: str
    config: dict[str, Any]
    gates: dict[str, bool] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The file, which is as long as the configuration is complicated."""
        return json.dumps(self.config, sort_keys=True, separators=(",", ":"))

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that set the gates."""
        if not self.gates:
            return ()
        listed = ",".join(f"{name}={str(value).lower()}" for name, value in self.gates.items())
        return (f"--feature-gates={listed}",)


def typed(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with its type, unless it says another."""
    return {**TYPE, **config}

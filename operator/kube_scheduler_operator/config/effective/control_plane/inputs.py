from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ....base.objects import mapping
from ....base.platform import Platform
from ..facts import Facts
from ..objects import Objects


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that the control plane's configuration depends on."""

    objects: Objects
    facts: Facts
    # TLS settings that replace those of an APIServer with an error
    accepted_serving: Mapping[str, Any] | None = None

    @property
    def platform(self) -> Platform:
        return self.facts.platform

    @property
    def scheduler(self) -> Mapping[str, Any]:
        """The spec of the Scheduler; empty if it does not exist."""
        return mapping(mapping(self.objects.scheduler).get("spec"))

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec of the KubeScheduler."""
        return mapping(self.objects.kubescheduler.get("spec"))

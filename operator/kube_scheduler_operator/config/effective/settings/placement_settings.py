"""Whether an edit is simulated before it is rolled out: `spec.placementCheck` as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ....base.objects import mapping

OFF: Final = "Off"
GATE: Final = "Gate"

DEFAULT_SECONDS: Final = 300
"""Enough to pull two images on a new node, read a cluster and try 2,000 kinds of Pods."""


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    mode: str = OFF  # Off, Warn or Gate
    seconds: int = DEFAULT_SECONDS  # limit from the request to the answer
    approved: str = ""  # hash of the configuration that may be rolled out whatever it changes


def placement_settings(spec: Mapping[str, Any] | None) -> PlacementSettings:
    """Read the settings in a valid spec; a zero value counts as unset."""
    check = mapping(mapping(spec).get("placementCheck"))
    return PlacementSettings(
        str(check.get("mode") or OFF),
        int(check.get("timeoutSeconds") or DEFAULT_SECONDS),
        str(check.get("approved") or ""),
    )

"""The priorities of the PriorityClasses that every cluster has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BUILT_IN_PRIORITIES: Final[Mapping[str, int]] = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
"""PriorityClass -> its value (pkg/apis/scheduling/types.go in Kubernetes)."""

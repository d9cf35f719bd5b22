"""What AKS documents as configurable in its scheduler.

operator/profiles/aks.py names the sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import Path
from ...language.plugins.effective_plugins import named_plugins

NAME: Final = "upstream"
RESERVED_PROFILE: Final = "aks-system"
FIELDS: Final = (
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "profiles",
)
PLUGINS: Final = frozenset(
    {
        "DefaultBinder", "DefaultPreemption", "ImageLocality", "InterPodAffinity", "NodeAffinity",
        "NodeName", "NodePorts", "NodeResourcesBalancedAllocation", "NodeResourcesFit",
        "NodeUnschedulable", "NodeVolumeLimits", "PodTopologySpread", "PrioritySort",
        "SchedulingGates", "TaintToleration", "VolumeBinding", "VolumeRestrictions", "VolumeZone",
    }
)  # fmt: skip


def unsupported_plugins(profile: Mapping[str, Any]) -> Iterator[tuple[Path, str, str]]:
    """Yield (path, name, what is wrong) of each plugin of a profile that users cannot configure."""
    what = f"is not one of the {len(PLUGINS)} plugins that AKS documents as configurable"
    for path, name in named_plugins(profile):
        if name not in PLUGINS and name != "*":
            yield path, name, f"{name} {what}"

"""What AKS documents as configurable in its scheduler.

operator/profiles/aks.py names the sources.
"""

from __future__ import annotations

from typing import Final

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

"""Which plugins decide between the node of a running pod and the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .decisions import PodDecision

_NAMED: Final = 2
_DECIDES: Final[Mapping[str, str]] = {
    "NodeResourcesFit": "the requests of pods and the profile's scoringStrategy",
    "NodeResourcesBalancedAllocation": "the requests of pods",
    "ImageLocality": "the images that nodes report",
    "NodeAffinity": "the pod's preferred node affinity and the profile's addedAffinity",
    "InterPodAffinity": "the preferred pod affinity and anti-affinity of all pods",
    "PodTopologySpread": "constraints with ScheduleAnyway and the profile's defaultConstraints",
    "TaintToleration": "the taints of nodes with the effect PreferNoSchedule",
}
"""What a plugin scores by, and so what can be changed."""


def lead_of(decision: PodDecision, node: str) -> str:
    """Say why a node has more points than the next one, or fewer than the best; empty: unknown."""
    totals = decision.totals
    others = [other for other in totals if other != node]
    if node not in totals or not others:
        return ""
    best = max(others, key=lambda other: totals[other])
    if totals[best] == totals[node]:  # a tie: how it is ahead of the others
        others = [other for other in others if totals[other] < totals[node]]
        best = max(others, key=lambda other: totals[other], default=node)
    first, second = (node, best) if totals[node] >= totals[best] else (best, node)
    lead = totals[first] - totals[second]
    if not lead:
        return ""
    ahead, behind = decision.scores.get(first, {}), decision.scores.get(second, {})
    gains = {name: ahead.get(name, 0) - behind.get(name, 0) for name in {**ahead, **behind}}
    decisive = sorted((name for name in gains if gains[name] > 0), key=lambda name: -gains[name])
    if not decisive:
        return ""
    named = " and ".join(f"{name} gives it {gains[name]} more" for name in decisive[:_NAMED])
    least = min(gains, key=lambda name: gains[name])
    if gains[least] < 0:
        named += f", while {least} gives {second} {-gains[least]} more"
    changed = _DECIDES.get(decisive[0])
    by = f"; {decisive[0]} scores by {changed}" if changed else ""
    points = "1 point" if lead == 1 else f"{lead} points"
    return f"{first} has {points} more than {second}: {named}{by}."

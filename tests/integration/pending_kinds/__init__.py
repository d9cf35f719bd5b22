"""Kinds of Pending: what keeps a pod from all nodes, how it is named, and how it is repaired."""

from __future__ import annotations

from . import affinities, devices, nodes, requests, spreads, volumes  # noqa: F401
from .situation import CONFIGURATION, NAMESPACE, OTHER_NAMESPACE, PRIORITIES, Object, Situation
from .table import KINDS
from .workloads import GATES, MISPLACEMENTS, REFUSALS, ROLLOUTS, Misplacement, Refusal, Rollout

__all__ = [
    "CONFIGURATION",
    "GATES",
    "KINDS",
    "MISPLACEMENTS",
    "NAMESPACE",
    "OTHER_NAMESPACE",
    "PRIORITIES",
    "REFUSALS",
    "ROLLOUTS",
    "Misplacement",
    "Object",
    "Refusal",
    "Rollout",
    "Situation",
]

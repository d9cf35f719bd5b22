"""Replacements of old plugins, by extension point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..language.plugins.in_tree_plugins import PLUGINS, Plugin
from .old_defaults import (
    AVOID,
    CLOUD_LIMITS,
    FIT,
    NODE_LABEL,
    RESOURCE_LIMITS,
    SERVICE_AFFINITY,
    SPREAD,
    SPREADING,
    STRATEGIES,
)

LIMITS: Final = "NodeVolumeLimits"

BEFORE: Final[Mapping[str, str]] = {"filter": "preFilter", "score": "preScore"}
"""Point -> the point at which a plugin prepares for it."""

FOLLOWS: Final[Mapping[str, str]] = {
    "preFilter": "filter",
    "preScore": "score",
    "preEnqueue": "postFilter",
    "placementScore": "score",
    "podGroupPostFilter": "postFilter",
}
"""Point that a plugin began to implement later -> the point to which it belongs.

A plugin that is disabled at the second must not run at the first.
"""


def replacement(name: str, point: str, known: Mapping[str, Plugin]) -> str | None:
    """Return the plugin that replaces `name`, if any; `known` are the target's plugins."""
    if name in STRATEGIES:
        return FIT if point == "score" else None
    if name in SPREADING:
        return SPREAD if point in ("preScore", "score", "multiPoint") else None
    if name == NODE_LABEL:
        return "NodeAffinity" if point in ("filter", "score") else None
    if name == SERVICE_AFFINITY:
        return SPREAD if point == "score" else None
    if name in CLOUD_LIMITS and name not in known:
        return LIMITS
    if name == "VolumeBinding" and point == "postBind":
        return None  # up to 1.18; preBind covers it
    if name in known:
        return name
    was_removed = name in PLUGINS or name in (AVOID, RESOURCE_LIMITS)
    return None if was_removed else name

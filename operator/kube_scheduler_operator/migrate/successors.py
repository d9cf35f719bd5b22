"""Which plugin does today, at one extension point, what an old plugin did there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..schedulerconfig.catalogue import PLUGINS, Plugin
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
"""The point at which a plugin prepares what it does at another one."""

FOLLOWS: Final[Mapping[str, str]] = {
    "preFilter": "filter",
    "preScore": "score",
    "preEnqueue": "postFilter",
    "placementScore": "score",
}
"""A point that a plugin came to implement -> the one that it belongs to.

A plugin that was turned off at the second must not come back at the first.
"""


def successor(name: str, point: str, known: Mapping[str, Plugin]) -> str | None:
    """The plugin of the target that stands for `name` at `point`; None if there is none.

    Args:
        name: a plugin of the old version, or one that is not kube-scheduler's own.
        point: an extension point, or multiPoint.
        known: the plugins of the target (catalogue.plugins).
    """
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
        return None  # 1.18 and before; preBind does all of it
    if name in known:
        return name
    gone = name in PLUGINS or name in _WITHOUT
    return None if gone else name


_WITHOUT: Final = frozenset((AVOID, RESOURCE_LIMITS))

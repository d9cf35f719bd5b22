"""The RuntimeClass of a pod, which changes where it can run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.objects import mapping
from .kinds import RUNTIME_CLASSES, Object
from .world import World


def runtime_class(spec: Mapping[str, Any], world: World) -> Object | None:
    """Return the RuntimeClass of a pod; None without one, or if the world does not have it."""
    name = spec.get("runtimeClassName")
    return world.get(RUNTIME_CLASSES, str(name)) if name else None


def class_selector(runtime: Mapping[str, Any] | None) -> Mapping[str, str]:
    """Return the nodeSelector that a RuntimeClass adds to its pods."""
    return mapping(mapping(mapping(runtime).get("scheduling")).get("nodeSelector"))

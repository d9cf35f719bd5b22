"""The status that cluster-autoscaler writes to a ConfigMap, as YAML from version 1.30 on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_MESSAGE, FOREIGN_NAME, FOREIGN_REASON
from ..base.objects import entries, mapping
from .autoscaling_kinds import AUTOSCALER_STATUS, STATUS_KEY
from .read_files import documents
from .world import World

_RUNNING: Final = "Running"
_BACKOFF: Final = "Backoff"
_UNHEALTHY: Final = "Unhealthy"
_MOST_GROUPS: Final = 1000


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """A node group as cluster-autoscaler reports it; a number that is not reported is None."""

    name: str
    target: int | None = None  # nodes that the cloud is to have
    least: int | None = None
    most: int | None = None
    registered: int | None = None  # Nodes of it
    not_started: int = 0  # of these, those that are not ready yet
    healthy: bool = True
    scale_up: str = ""  # e.g. Backoff, InProgress
    since: str = ""  # of scale_up
    error: str = ""  # of a Backoff

    @property
    def is_full(self) -> bool:
        return self.target is not None and self.most is not None and self.target >= self.most

    @property
    def backs_off(self) -> bool:
        return self.scale_up == _BACKOFF

    @property
    def upcoming(self) -> int:
        """Nodes that were asked for and are not there."""
        if self.target is None or self.registered is None:
            return 0
        return max(self.target - self.registered, 0)


@dataclass(frozen=True, slots=True)
class AutoscalerStatus:
    groups: tuple[GroupStatus, ...] = ()
    time: str = ""  # when it was written
    idle: str = ""  # why cluster-autoscaler makes no nodes at all
    unreadable: str = ""  # why nothing else is known


def autoscaler_status(world: World) -> AutoscalerStatus | None:
    """Return what cluster-autoscaler reports; None: its ConfigMap is not in the world."""
    namespace, name = STATUS_KEY
    config_map = world.get(AUTOSCALER_STATUS, name, namespace)
    if config_map is None:
        return None
    text = mapping(config_map.get("data")).get("status")
    try:
        (status,) = documents(text if isinstance(text, str) else "")
    except (ValueError, RecursionError, yaml.YAMLError):
        status = None
    if not isinstance(status, Mapping) or "autoscalerStatus" not in status:
        return AutoscalerStatus(
            unreadable=f"ConfigMap {namespace}/{name} has no status as YAML, which "
            "cluster-autoscaler writes from version 1.30 on"
        )
    listed = entries(status.get("nodeGroups"))[:_MOST_GROUPS]
    groups = tuple(_group(one) for one in listed if isinstance(one, Mapping) and one.get("name"))
    time = foreign(str(status.get("time") or ""), FOREIGN_REASON).partition(".")[0]
    return AutoscalerStatus(groups, time, _idle(status))


def _idle(status: Mapping[str, Any]) -> str:
    running = str(status.get("autoscalerStatus"))
    if running != _RUNNING:
        message = str(status.get("message") or "")
        text = foreign(f"{running}{': ' if message else ''}{message}", FOREIGN_MESSAGE)
        return f"cluster-autoscaler is {text}"
    health = mapping(mapping(status.get("clusterWide")).get("health"))
    if health.get("status") == _UNHEALTHY:
        return (
            "cluster-autoscaler reports the cluster as Unhealthy (too many nodes are not ready) "
            "and makes no node until it is healthy"
        )
    return ""


def _group(group: Mapping[str, Any]) -> GroupStatus:
    health, scale_up = mapping(group.get("health")), mapping(group.get("scaleUp"))
    registered = mapping(mapping(health.get("nodeCounts")).get("registered"))
    info = mapping(scale_up.get("backoffInfo"))
    error = ": ".join(str(info[key]) for key in ("errorCode", "errorMessage") if info.get(key))
    return GroupStatus(
        foreign(str(group["name"]), FOREIGN_NAME),
        _count(health.get("cloudProviderTarget")),
        _count(health.get("minSize")),
        _count(health.get("maxSize")),
        _count(registered.get("total")),
        _count(registered.get("notStarted")) or 0,
        health.get("status") != _UNHEALTHY,
        foreign(str(scale_up.get("status") or ""), FOREIGN_REASON),
        foreign(str(scale_up.get("lastTransitionTime") or ""), FOREIGN_REASON),
        foreign(error, FOREIGN_MESSAGE),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

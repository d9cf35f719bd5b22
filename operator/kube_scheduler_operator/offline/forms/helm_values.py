"""Helm values of charts that make the configuration of a scheduler from lists.

Source: kubernetes-sigs/scheduler-plugins 0.34.7, manifests/install/charts/as-a-second-scheduler:
values.yaml and templates/configmap.yaml (one profile; plugins are listed at multiPoint).
"""

from __future__ import annotations

from typing import Final

from ...base.findings import Path
from ...schedulerconfig.source import Document
from ...schedulerconfig.source_tree import Position, SourceNode
from .form import CommandLine, Contents, Form, Part, listed, made_of, node_at, scalar
from .objects import at, text, value_of, version_of_image
from .workload import is_stock

_LABEL: Final = "Helm values of scheduler-plugins"
_PATHS: Final[tuple[tuple[Path, Path], ...]] = (
    (("profiles", 0, "plugins", "multiPoint"), ("plugins",)),
    (("profiles", 0, "pluginConfig"), ("pluginConfig",)),
    (("profiles", 0, "schedulerName"), ("scheduler", "name")),
    (("leaderElection", "resourceName"), ("scheduler", "name")),
    (("leaderElection",), ("scheduler",)),
    (("profiles",), ("scheduler",)),
)


def read(document: Document) -> Contents | None:
    """plugins.enabled, plugins.disabled and pluginConfig of the chart of scheduler-plugins."""
    value = value_of(document)
    if "kind" in value or not isinstance(at(value, "scheduler"), dict):
        return None
    if not ("plugins" in value or "pluginConfig" in value):
        return None
    name = node_at(document, ("scheduler", "name"))
    fields: dict[str, SourceNode] = {
        "schedulerName": name or scalar(document.root.position, "scheduler-plugins-scheduler")
    }
    enabled, disabled = (node_at(document, ("plugins", key)) for key in ("enabled", "disabled"))
    lists = {
        key: listed(node.position, [_named(each) for each in node.items])
        for key, node in (("enabled", enabled), ("disabled", disabled))
        if node is not None
    }
    position = document.root.position
    if lists:
        point = _plain(position, lists)
        fields["plugins"] = _plain(point.position, {"multiPoint": point})
    config = node_at(document, ("pluginConfig",))
    if config is not None:
        fields["pluginConfig"] = config
    profile = _plain(position, fields)
    elected = node_at(document, ("scheduler", "leaderElect"))
    election = _plain(
        position,
        {
            "leaderElect": elected or scalar(position, False),
            "resourceName": fields["schedulerName"],
            "resourceNamespace": scalar(position, "scheduler-plugins"),
        },
    )
    root = made_of(position, {"profiles": listed(position, [profile]), "leaderElection": election})
    image = text(at(value, "scheduler", "image"))
    command = CommandLine(
        _LABEL,
        at=("scheduler",),
        image=image,
        image_at=("scheduler", "image"),
        version=version_of_image(image) if is_stock(image) else None,
        account="scheduler-plugins-scheduler",
        replicas=_count(at(value, "scheduler", "replicaCount")),
    )
    part = Part(root, _LABEL, _PATHS, command=0)
    return Contents(parts=(part,), commands=(command,))


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 1


def _named(node: SourceNode) -> SourceNode:
    """An entry of a plugin list for a name; the chart writes its first letter as a capital."""
    data = node.data
    name = data[:1].upper() + data[1:] if isinstance(data, str) else data
    return _plain(node.position, {"name": SourceNode(node.position, name)})


def _plain(position: Position, fields: dict[str, SourceNode]) -> SourceNode:
    start = next(iter(fields.values())).position if fields else position
    data = {key: node.data for key, node in fields.items()}
    return SourceNode(start, data, {key: (node.position, node) for key, node in fields.items()})


SCHEDULER_PLUGINS: Final = Form(
    "Helm values of scheduler-plugins (`plugins.enabled`, `pluginConfig`)",
    "kubernetes-sigs/scheduler-plugins 0.34.7, manifests/install/charts",
    read,
)

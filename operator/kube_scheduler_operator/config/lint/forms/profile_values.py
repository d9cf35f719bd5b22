"""Helm values with a part of a profile: its plugins or their arguments, without the configuration.

The template of a chart writes the rest, as that of JupyterHub's user-scheduler does:
jupyterhub/zero-to-jupyterhub-k8s 4.3, jupyterhub/templates/scheduling/user-scheduler/configmap.yaml
(`scheduling.userScheduler.plugins` and `pluginConfig`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import Path
from ....base.objects import mapping
from ....base.source.reader import Document
from ....base.source.tree import SourceNode
from ...language.plugins.effective_plugins import MULTI_POINT
from ...language.schema import POINTS
from .document_fields import objects, value_of
from .form import Contents, Part, assembled, with_type

_LABEL: Final = "Helm values with a profile"
_FIELDS: Final = ("plugins", "pluginConfig")
_DEEPEST: Final = 6
"""Levels of maps below which no chart has them."""
_LISTS: Final = ("enabled", "disabled")


def read(document: Document) -> Contents | None:
    if "kind" in value_of(document):
        return None
    parts = tuple(_part(path, node) for path, node in _profiles(document.root, (), 0))
    return Contents(parts=parts) if parts else None


def _profiles(node: SourceNode, path: Path, depth: int) -> Iterator[tuple[Path, SourceNode]]:
    value = mapping(node.data)
    if "kind" in value or depth > _DEEPEST:
        return
    if _is_profile(value):
        yield path, node
        return
    for key, (_, child) in node.fields.items():
        yield from _profiles(child, (*path, key), depth + 1)


def _is_profile(value: Mapping[str, Any]) -> bool:
    """Report whether a map has lists of plugins at extension points, or arguments of plugins."""
    points = mapping(value.get("plugins"))
    lists = (mapping(points.get(point)) for point in (*POINTS, MULTI_POINT))
    entries_of = (entry for each in lists for key in _LISTS for _, entry in objects(each.get(key)))
    configured = (entry for _, entry in objects(value.get("pluginConfig")) if "args" in entry)
    return any("name" in entry for entry in (*entries_of, *configured))


def _part(path: Path, node: SourceNode) -> Part:
    """Return the configuration that a chart makes of a profile's fields."""
    profile: dict[str, Any] = {"schedulerName": "of-the-chart"}
    profile |= {key: node.fields[key][1] for key in _FIELDS if key in node.fields}
    config = {"profiles": [profile], "leaderElection": {"leaderElect": False}}
    root = with_type(assembled(config, node.position))
    paths: list[tuple[Path, Path]] = [
        (("profiles", 0, key), (*path, key)) for key in _FIELDS if key in profile
    ]
    return Part(root, _LABEL, (*paths, ((), path)))

"""Any other document with a whole configuration of a scheduler somewhere in it.

Helm values of any chart, HelmRelease, HelmChart, Application, cloud-config and MachineConfig, for
example. A KubeSchedulerConfiguration is a text, or a part of the document with its own `kind`;
Volcano's configuration is a text. A text may be encoded, as files of cloud-init and Ignition are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...base.findings import Path
from ...base.objects import mapping
from ...schedulerconfig.schema import KIND
from ...schedulerconfig.source import Document
from ...schedulerconfig.source_tree import SourceNode
from ..volcano import looks_like_volcano
from .encodings import decoded
from .form import Contents, Form, Part, Text
from .objects import label_of, text, value_of

CONFIGURATION: Final = re.compile(rf"""^[\s{{,]*["']?kind["']?\s*:\s*["']?{KIND}\b""", re.MULTILINE)
"""The line that makes a text a configuration, even if it is broken."""
_STARTS: Final = re.compile(
    r"""^[\s{,]*["']?kind["']?\s*:\s*["']?(?:Pod|DaemonSet|Deployment|ClusterConfiguration)\b"""
    r"""|^ExecStart[ \t]*=[^\n]*kube-scheduler\b""",
    re.MULTILINE,
)
"""The line of an object or a unit that starts a kube-scheduler, or lets kubeadm start one."""
DEEPEST: Final = 12
"""Levels below which no chart keeps a configuration."""


def read(document: Document) -> Contents | None:
    """The configurations in a document of another kind."""
    value = value_of(document)
    if not value or value.get("kind") == KIND:
        return None
    owner = label_of(value) or "file"
    texts: list[Text] = []
    parts: list[Part] = []
    for path, node in _walk(document.root, (), 0, {}):
        if isinstance(node.data, str):
            siblings = mapping(document.data(path[:-1]))
            # Ignition has the path beside `contents`, which has the text.
            target = text(siblings.get("path")) or text(document.data((*path[:-2], "path")))
            content = decoded(node.data, siblings)
            texts.append(Text(path, content, target or owner, node_path=target))
        else:
            parts.append(Part(node, owner, (((), path),)))
    return Contents(tuple(texts), tuple(parts)) if texts or parts else None


def _is_kube_schedulers(text: str) -> bool:
    """Whether a text is a configuration, or an object that may start a kube-scheduler."""
    if KIND in text and CONFIGURATION.search(text) is not None:
        return True
    if "scheduler" in text and _STARTS.search(text) is not None:
        return True
    return "tiers" in text and looks_like_volcano(text)


def _walk(
    node: SourceNode, path: Path, depth: int, parent: Mapping[str, Any]
) -> Iterator[tuple[Path, SourceNode]]:
    if depth > DEEPEST:
        return
    if isinstance(node.data, str):
        if _is_kube_schedulers(decoded(node.data, parent)):
            yield path, node
    elif isinstance(node.data, dict) and path and node.data.get("kind") == KIND:
        yield path, node
    else:
        for key, (_, child) in node.fields.items():
            yield from _walk(child, (*path, key), depth + 1, mapping(node.data))
        for index, child in enumerate(node.items):
            yield from _walk(child, (*path, index), depth + 1, {})


EMBEDDED: Final = Form(
    "any other document with a KubeSchedulerConfiguration, or Volcano's configuration, in it (Helm "
    "values, HelmRelease, cloud-config …)",
    "the field `kind` of the configuration; `actions` and `tiers` of Volcano's",
    read,
)

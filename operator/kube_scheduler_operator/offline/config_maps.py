"""Files of kube-scheduler in ConfigMaps, as manifests of secondary schedulers have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.objects import mapping
from ..schedulerconfig.schema import KIND
from ..schedulerconfig.source import Document, Position, read
from ..schedulerconfig.source_encoding import LINE_BREAK, characters
from ..schedulerconfig.versions import Version

CONFIG_MAP: Final = "ConfigMap"
_POLICY: Final = re.compile(r"""\bkind["']?\s*:\s*["']?Policy\b""")
_STOCK: Final = "/kube-scheduler"


@dataclass(frozen=True, slots=True)
class MountedFile:
    """A file in a ConfigMap.

    Attributes:
        config_map: the ConfigMap's name.
        key: the file's name.
        text: its content.
        position: of the key in the manifest.
        lines: the lines of the manifest from the first line of the content on; empty if the
            manifest has the content in another form.
        version: of the kube-scheduler that mounts it; None if no image shows it.
        workload: its kind and name.
    """

    config_map: str
    key: str
    text: str
    position: Position
    lines: tuple[str, ...] = ()
    version: Version | None = None
    workload: str = ""

    def in_manifest(self, position: Position) -> Position:
        """The position in the manifest of one in the content; that of the key if it differs."""
        index = position.line - 1
        content = LINE_BREAK.split(self.text)
        if index < min(len(content), len(self.lines)):
            line, found = content[index], self.lines[index]
            if found.endswith(line):
                first = self.position.line + 1
                return Position(first + index, len(found) - len(line) + position.column)
        return self.position


def mounted_files(
    document: Document, manifest: str | bytes, images: Mapping[tuple[str, str], tuple[str, Version]]
) -> Iterator[MountedFile]:
    """The files of kube-scheduler in a document.

    Args:
        document: any object.
        manifest: the content of its file.
        images: what `scheduler_images` found.
    """
    value = mapping(document.value)
    if value.get("apiVersion") != "v1" or value.get("kind") != CONFIG_MAP:
        return
    metadata = mapping(value.get("metadata"))
    text = manifest if isinstance(manifest, str) else characters(manifest).text
    lines = LINE_BREAK.split(text)
    name = str(metadata.get("name") or "")
    workload, version = images.get((_namespace(metadata), name), ("", None))
    for key, content in mapping(value.get("data")).items():
        if isinstance(content, str) and _is_of_kube_scheduler(content):
            at = document.position(("data", key))
            rest = tuple(lines[at.line :])
            yield MountedFile(name, str(key), content, at, rest, version, workload)


def scheduler_images(
    objects: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, str], tuple[str, Version]]:
    """(namespace, ConfigMap) -> the workload that mounts it, and its kube-scheduler's version."""
    found = {}
    for obj in objects:
        metadata, spec = mapping(obj.get("metadata")), mapping(obj.get("spec"))
        pod = spec if obj.get("kind") == "Pod" else _pod_of(spec)
        version = _version(pod.get("containers"))
        if version is None:
            continue
        workload = f"{obj.get('kind')} {metadata.get('name')}"
        for volume in _objects(pod.get("volumes")):
            name = mapping(volume.get("configMap")).get("name")
            found[_namespace(metadata), str(name)] = (workload, version)
    return found


def _pod_of(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(spec.get("template")).get("spec"))


def _version(containers: Any) -> Version | None:
    """The version of Kubernetes' own kube-scheduler among containers."""
    for container in _objects(containers):
        image = str(container.get("image") or "")
        if f"/{image.partition('@')[0].rpartition(':')[0]}".endswith(_STOCK):
            try:
                return Version.of_image(image)
            except ValueError:
                continue
    return None


def _is_of_kube_scheduler(text: str) -> bool:
    """Whether a file is a configuration or a Policy, even if it is broken."""
    if KIND not in text and not _POLICY.search(text):
        return False
    documents, error = read(text)
    kinds = [mapping(each.root.data).get("kind") for each in documents]
    return error is not None or any(kind in (KIND, "Policy") for kind in kinds)


def _namespace(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("namespace") or "default")


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from map(mapping, value if isinstance(value, list) else ())

"""Separates the metadata of a manifest from what other clients wrote on its mirror Pod.

Other clients can write labels and annotations of a mirror Pod, which then are not settings of the
scheduler. `managedFields` shows which ones the kubelet wrote when it created the Pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...base import names
from ...base.objects import Object, mapping
from ...kube.store import MIRROR_ANNOTATION

_GROUPS: Final = ("annotations", "labels")


def of_manifest(pod: Object) -> Object:
    """The Pod with the labels and annotations of its manifest, and without managedFields.

    If managedFields are missing, all labels and annotations count as the manifest's.
    """
    metadata = mapping(pod.get("metadata"))
    foreign = frozenset(foreign_metadata(pod))
    kept = {
        group: {key: value for key, value in pairs.items() if f"{group}.{key}" not in foreign}
        for group in _GROUPS
        if isinstance(pairs := metadata.get(group), Mapping)
    }
    others = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**pod, "metadata": {**others, **kept}}


def foreign_by_node(pods: Mapping[str, Object]) -> dict[str, tuple[str, ...]]:
    """Node -> `foreign_metadata` of its mirror Pod, for those that have any."""
    foreign = {node: tuple(foreign_metadata(pod)) for node, pod in pods.items()}
    return {node: keys for node, keys in foreign.items() if keys}


def foreign_metadata(pod: Object) -> Iterator[str]:
    """The labels and annotations that other clients wrote: `labels.KEY`, `annotations.KEY`.

    Without the operator's own on its Pods, even if another client changed their value.
    """
    metadata = mapping(pod.get("metadata"))
    kubelets = _kubelets_fields(metadata.get("managedFields"))
    if kubelets is None:
        return
    written = {group: mapping(kubelets.get(f"f:{group}")) for group in _GROUPS}
    ours = any(key.startswith(f"f:{names.PREFIX}/") for key in written["annotations"])
    for group in _GROUPS:
        for key in sorted(map(str, mapping(metadata.get(group)))):
            if f"f:{key}" in written[group]:
                continue
            if not (ours and (key == names.REVISION_LABEL or key.startswith(f"{names.PREFIX}/"))):
                yield f"{group}.{key}"


def _kubelets_fields(managed: Any) -> Mapping[str, Any] | None:
    """The metadata that the creator of the mirror Pod wrote; None if unknown."""
    for entry in managed if isinstance(managed, list | tuple) else ():
        fields = mapping(mapping(mapping(entry).get("fieldsV1")).get("f:metadata"))
        if f"f:{MIRROR_ANNOTATION}" in mapping(fields.get("f:annotations")):
            return fields
    return None

"""The objects of an overlay of deploy/, built with the features of kustomize that they use.

An integration test compares the outcome with that of kustomize itself, so whatever else is checked
here holds for what users apply.
"""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"

_USED = {
    "apiVersion",
    "kind",
    "resources",
    "namespace",
    "patches",
    "labels",
    "images",
    "configMapGenerator",
    "generatorOptions",
}
_CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "Namespace",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
_WORKLOADS = {"Deployment", "DaemonSet"}

Object = dict[str, Any]


def build(directory: Path) -> list[Object]:
    """The objects of an overlay.

    Raises:
        ValueError: it uses something of kustomize that is not known here.
    """
    overlay = yaml.safe_load((directory / "kustomization.yaml").read_text())
    if unknown := set(overlay) - _USED:
        raise ValueError(f"{directory}: {sorted(unknown)}")
    objects = [
        obj for resource in overlay.get("resources", ()) for obj in _resource(directory / resource)
    ]
    objects += _config_maps(directory, overlay)
    for patch in overlay.get("patches", ()):
        _apply(directory, patch, objects)
    if "namespace" in overlay:
        _move(objects, overlay["namespace"])
    for labels in overlay.get("labels", ()):
        _label(objects, labels)
    for image in overlay.get("images", ()):
        _set_image(objects, image)
    return objects


def _resource(path: Path) -> list[Object]:
    """The objects of a file or of another overlay."""
    if path.is_dir():
        return build(path)
    return [obj for obj in yaml.safe_load_all(path.read_text()) if obj]


def _config_maps(directory: Path, overlay: Object) -> list[Object]:
    """ConfigMaps of files, under the names that the overlay gives them."""
    options = dict(overlay.get("generatorOptions") or {})
    if overlay.get("configMapGenerator") and options.pop("disableNameSuffixHash", None) is not True:
        raise ValueError(f"{directory}: names with a hash")
    if unknown := set(options) - {"labels"}:
        raise ValueError(f"{directory}: generatorOptions {sorted(unknown)}")
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": generated["name"], "labels": dict(options.get("labels", {}))},
            "data": {name: (directory / name).read_text() for name in generated["files"]},
        }
        for generated in overlay.get("configMapGenerator", ())
    ]


def _apply(directory: Path, patch: Object, objects: list[Object]) -> None:
    operations = yaml.safe_load((directory / patch["path"]).read_text())
    matching = [obj for obj in objects if _matches(obj, patch["target"])]
    if not matching:
        raise ValueError(f"{directory}: {patch} is for nothing")
    if isinstance(operations, dict) and operations.get("$patch") == "delete":
        objects[:] = [obj for obj in objects if obj not in matching]
        return
    for obj in matching:
        if isinstance(operations, list):
            _patch(obj, operations)
        else:
            _annotate(obj, operations)


def _matches(obj: Object, target: Object) -> bool:
    """Whether kind, name and namespace match, which are regular expressions."""
    return all(
        re.fullmatch(pattern, (obj if key == "kind" else obj["metadata"]).get(key, ""))
        for key, pattern in target.items()
    )


def _annotate(obj: Object, patch: Object) -> None:
    """The only merge patch in use: annotations."""
    if set(patch) != {"apiVersion", "kind", "metadata"} or set(patch["metadata"]) != {
        "name", "annotations",
    }:  # fmt: skip
        raise ValueError(f"another merge patch: {patch}")
    metadata = obj["metadata"]
    metadata["annotations"] = {
        **metadata.get("annotations", {}),
        **patch["metadata"]["annotations"],
    }


def _patch(obj: Object, operations: list[Object]) -> None:
    for operation in operations:
        *parents, last = [
            int(part) if part.isdecimal() else part for part in operation["path"].split("/")[1:]
        ]
        place: Any = obj
        for part in parents:
            place = place[part]
        if operation["op"] == "remove":
            del place[last]
            continue
        value = deepcopy(operation["value"])
        if last == "-":
            place.append(value)
        elif operation["op"] == "replace" or last not in place:
            place[last] = value
        else:
            raise ValueError(f"{operation['path']} is there already: say replace")


def _move(objects: list[Object], namespace: str) -> None:
    accounts = {o["metadata"]["name"] for o in objects if o["kind"] == "ServiceAccount"}
    for obj in objects:
        if obj["kind"] not in _CLUSTER_SCOPED:
            obj["metadata"]["namespace"] = namespace
        for subject in obj.get("subjects", ()):
            if subject["name"] in accounts:  # other subjects keep their namespace
                subject["namespace"] = namespace


def _label(objects: list[Object], labels: Object) -> None:
    if unknown := set(labels) - {"pairs", "includeTemplates"}:
        raise ValueError(f"labels: {sorted(unknown)}")
    for obj in objects:
        metadata = [obj["metadata"]]
        if labels.get("includeTemplates") and obj["kind"] in _WORKLOADS:
            metadata.append(obj["spec"]["template"]["metadata"])
        for one in metadata:
            one["labels"] = {**one.get("labels", {}), **labels["pairs"]}


def _containers(objects: list[Object]) -> list[Object]:
    return [
        container
        for obj in objects
        if obj["kind"] in _WORKLOADS
        for container in obj["spec"]["template"]["spec"]["containers"]
    ]


def _set_image(objects: list[Object], image: Object) -> None:
    for container in _containers(objects):
        if container["image"].rpartition(":")[0] == image["name"]:
            container["image"] = f"{image['newName']}:{image['newTag']}"

"""The manifests of a release, as they are in OpenShift's release payload: one object a file.

The cluster-version operator applies them in the order of their names. The first number is the run
level: kinds come before the operator, and what needs Prometheus' kinds comes last.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster import paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from cluster.api import Object

PROFILE = "include.release.openshift.io/self-managed-high-availability"
IMAGE_REFERENCES = paths.REPOSITORY / "deploy/openshift/image-references"
_ORDER = {
    "Namespace": 0, "NetworkPolicy": 1, "Scheduler": 2, "KubeScheduler": 2, "Service": 2,
    "ConfigMap": 3, "Role": 4, "RoleBinding": 4, "ClusterRole": 4, "ClusterRoleBinding": 4,
    "ServiceAccount": 5, "ClusterOperator": 7,
}  # fmt: skip
_OF_WORKLOADS = 6


def file_name(manifest: Object) -> str:
    """The name of the file of a manifest."""
    kind, metadata = manifest["kind"], manifest["metadata"]
    parts = (kind, metadata.get("namespace", ""), metadata["name"])
    words = re.sub(r"[^a-z0-9.]+", "-", "-".join(filter(None, parts)).lower())
    if kind == "CustomResourceDefinition":
        return f"0000_10_kube-scheduler-operator_{words}.json"
    level = "90" if manifest["apiVersion"].startswith("monitoring.coreos.com") else "25"
    number = _ORDER.get(kind, _OF_WORKLOADS)
    return f"0000_{level}_kube-scheduler-operator_{number:02}_{words}.json"


@dataclass(frozen=True)
class Release:
    """What a release puts in the place of placeholders."""

    version: str  # the release's
    kubernetes: str  # kube-scheduler's version
    images: Mapping[str, str]  # by the names that `image-references` gives them


def references(text: str) -> dict[str, str]:
    """The images in manifests by their names in a release, from a file `image-references`."""
    import yaml

    return {tag["name"]: tag["from"]["name"] for tag in yaml.safe_load(text)["spec"]["tags"]}


def substitute(text: str, release: Release, placeholders: Mapping[str, str]) -> str:
    """Put images and versions of a release in the place of their placeholders.

    Args:
        text: a manifest.
        release: the release.
        placeholders: the images in manifests by their names in a release.

    Raises:
        KeyError: the release lacks an image.
    """
    for name, placeholder in placeholders.items():
        text = text.replace(placeholder, release.images[name])
    version, kubernetes = release.version, release.kubernetes
    text = text.replace("0.0.1-snapshot-kubernetes", kubernetes.removeprefix("v"))
    return text.replace("0.0.1-snapshot", version)


def write(folder: Path, manifests: Iterable[Object], release: Release) -> None:
    """Write a payload, and remove the files of an earlier one."""
    placeholders = references(IMAGE_REFERENCES.read_text())
    files = {}
    for manifest in manifests:
        if manifest["kind"] == "CustomResourceDefinition":
            # Elsewhere these definitions are applied by hand, so they are not annotated in crds/.
            annotations = {**manifest["metadata"].get("annotations", {}), PROFILE: "true"}
            manifest["metadata"]["annotations"] = annotations
        text = substitute(json.dumps(manifest, indent=1), release, placeholders)
        files[file_name(manifest)] = text
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        paths.write_atomically(folder / name, text)
    for path in folder.glob("*.json"):
        if path.name not in files:
            path.unlink()


def read(folder: Path) -> list[Object]:
    """The manifests of a payload that this cluster gets, in order."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return [one for one in found if one["metadata"].get("annotations", {}).get(PROFILE) == "true"]

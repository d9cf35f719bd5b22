"""The manifests of a release, as they are in OpenShift's release payload: one object a file.

The cluster-version operator applies them in the order of their names. The first number is the run
level: kinds come before the operator, and what needs Prometheus' kinds comes last.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from cluster import paths

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cluster.api import Object

PROFILE = "include.release.openshift.io/self-managed-high-availability"
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


def substitute(text: str, version: str, kubernetes: str) -> str:
    """Put the versions of a release in the place of their placeholders."""
    text = text.replace("0.0.1-snapshot-kubernetes", kubernetes.removeprefix("v"))
    return text.replace("0.0.1-snapshot", version)


def write(folder: Path, manifests: Iterable[Object], version: str, kubernetes: str) -> None:
    """Write a payload, and remove the files of an earlier one."""
    files = {}
    for manifest in manifests:
        if manifest["kind"] == "CustomResourceDefinition":
            # Elsewhere these definitions are applied by hand, so they are not annotated in crds/.
            annotations = {**manifest["metadata"].get("annotations", {}), PROFILE: "true"}
            manifest["metadata"]["annotations"] = annotations
        text = substitute(json.dumps(manifest, indent=1), version, kubernetes)
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

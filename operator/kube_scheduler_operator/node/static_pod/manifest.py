"""Static pod manifests: inserts the revision number and reads revision and probe.

The revision number is inserted into declared fields of the parsed object only. Replacing text would
also rewrite a profile, an argument or an image that happens to contain the placeholder. Other
manifests (kubeadm's) are YAML, for which the standard library has no parser; the only value needed
from them, the port, is found in their arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from ...base.names import (
    CONTENT_HASH_ANNOTATION,
    KUBECONFIG_ANNOTATION,
    KUBECONFIG_EXPIRES_ANNOTATION,
    REVISION_LABEL,
)
from ...base.revision_number import revision_number
from ..protocol.revision_content import PLACEHOLDER
from .revision_directory import PREFIX, number_of

RESOURCE_VOLUME: Final = "resource-dir"
"""The hostPath volume with the revision's directory on the node."""

_STOCK_PORT: Final = 10259
_DIRECTORY_IN_TEXT: Final = re.compile(rb"/(" + PREFIX.encode() + rb"[1-9][0-9]*)\b")


class ManifestError(ValueError):
    """An invalid manifest; the message has the field and the reason."""


@dataclass(frozen=True, slots=True)
class Probe:
    host: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class Manifest:
    data: bytes
    revision: int | None  # the revision; None for a manifest that the operator did not write
    probe: Probe  # readiness probe of its scheduler
    labelled: int = 0  # the revision in its label, whatever else it contains; 0 without one
    directory: int = 0  # the revision whose directory it mounts; 0: none
    image: str = ""  # the image of its first container; empty in YAML
    # another operator wrote it, which names and numbers its directories alike (OpenShift's)
    foreign: bool = False

    @property
    def name(self) -> str:
        """Name for messages."""
        return "the stock manifest" if self.revision is None else f"revision {self.revision}"

    @property
    def mounts_revision(self) -> bool:
        """Whether it mounts a directory of this operator, perhaps edited by a person."""
        return self.directory > 0 and not self.foreign

    def of_another_operator(self) -> Manifest:
        return replace(self, revision=None, foreign=True)


def static_pod_for_revision(
    pod: Mapping[str, Any],
    revision: int,
    content_hash: str = "",
    kubeconfig: str = "",
    kubeconfig_expires: str = "",
) -> dict[str, Any]:
    """Return the static pod of one revision: a copy of `pod` with its placeholders replaced.

    Args:
        pod: a Pod with `REVISION` in `metadata.labels.revision` and in the hostPath of the volume
            `resource-dir`.
        revision: the number of the revision.
        content_hash: value of the annotation kube-scheduler-operator.dev/content-hash, if any.
        kubeconfig: fingerprint of the node's kubeconfig, for its annotation: a new one changes the
            manifest and so restarts the scheduler.
        kubeconfig_expires: expiry of its certificate (RFC 3339), for its annotation.

    Raises:
        ManifestError: a field is missing or does not have the placeholder.
    """
    static_pod = deepcopy(dict(pod))
    labels = _mapping(_mapping(static_pod, "metadata"), "labels", "metadata.")
    if labels.get(REVISION_LABEL) != PLACEHOLDER:
        raise ManifestError(
            f"metadata.labels.{REVISION_LABEL} of the static pod must be {PLACEHOLDER!r}, "
            f"not {labels.get(REVISION_LABEL)!r}"
        )
    labels[REVISION_LABEL] = str(revision)
    host_path = _resource_host_path(static_pod)
    path = host_path.get("path")
    if not isinstance(path, str) or path.count(PLACEHOLDER) != 1:
        raise ManifestError(
            f"spec.volumes[{RESOURCE_VOLUME}].hostPath.path of the static pod must contain "
            f"{PLACEHOLDER!r} exactly once, not be {path!r}"
        )
    host_path["path"] = path.replace(PLACEHOLDER, str(revision))
    annotations = {
        CONTENT_HASH_ANNOTATION: content_hash,
        KUBECONFIG_ANNOTATION: kubeconfig,
        KUBECONFIG_EXPIRES_ANNOTATION: kubeconfig_expires,
    }
    values = {key: value for key, value in annotations.items() if value}
    if values:
        static_pod["metadata"].setdefault("annotations", {}).update(values)
    return static_pod


def serialise(pod: Mapping[str, Any]) -> bytes:
    """Return the manifest file of a pod: indented JSON (valid YAML), deterministic."""
    return (json.dumps(pod, indent=2, sort_keys=True) + "\n").encode()


def parse(data: bytes, static_pod_name: str) -> Manifest:
    """Parse a manifest; never fails: anything else counts as a manifest without a revision."""
    pod = _json_pod(data)
    if pod is None:
        match = _DIRECTORY_IN_TEXT.search(data)
        directory = number_of(match[1].decode()) if match else 0
        return Manifest(data, None, _probe_of_text(data), directory=directory)
    return Manifest(
        data,
        _revision_of(pod, static_pod_name),
        _probe_of_pod(pod),
        _labelled(pod),
        _directory(pod),
        _image(pod),
    )


def is_plausible(data: bytes) -> bool:
    """Return whether `data` looks like a Pod: an empty or truncated file is not usable."""
    pod = _json_pod(data)
    if pod is not None:
        return bool(pod.get("spec"))
    text = data.decode(errors="replace")
    return bool(re.search(r"^kind:\s*[\"']?Pod\b", text, re.M) and re.search(r"^spec:", text, re.M))


def log_directory_prefix(pod: Mapping[str, Any], node: str) -> str:
    """Return the prefix of the kubelet's log directories of `pod` on `node`, up to the UID."""
    metadata = pod["metadata"]
    return f"{metadata['namespace']}_{metadata['name']}-{node}_"


def _json_pod(data: bytes) -> dict[str, Any] | None:
    try:
        pod = json.loads(data)
    except ValueError:
        return None
    return pod if isinstance(pod, dict) and pod.get("kind") == "Pod" else None


def _revision_of(pod: Mapping[str, Any], static_pod_name: str) -> int | None:
    try:
        if pod["metadata"]["name"] != static_pod_name:
            return None
        path = str(_resource_host_path(pod)["path"])
    except (KeyError, TypeError, ValueError):
        return None
    revision = _labelled(pod)
    return revision if revision and path.endswith(f"-{revision}") else None


def _labelled(pod: Mapping[str, Any]) -> int:
    try:
        return revision_number(pod["metadata"]["labels"][REVISION_LABEL])
    except (KeyError, TypeError):
        return 0


def _image(pod: Mapping[str, Any]) -> str:
    try:
        return str(pod["spec"]["containers"][0]["image"])
    except (KeyError, IndexError, TypeError):
        return ""


def _directory(pod: Mapping[str, Any]) -> int:
    try:
        return number_of(PurePosixPath(str(_resource_host_path(pod)["path"])).name)
    except (KeyError, TypeError, ValueError):
        return 0


def _probe_of_pod(pod: Mapping[str, Any]) -> Probe:
    try:
        container = pod["spec"]["containers"][0]
        get = container["readinessProbe"]["httpGet"]
        port = get["port"]
        if isinstance(port, str):
            port = next(p["containerPort"] for p in container["ports"] if p["name"] == port)
        path = str(get.get("path") or "/")
        path = path if path.startswith("/") else f"/{path}"  # as the kubelet; OpenShift: "healthz"
        return Probe(str(get.get("host") or "127.0.0.1"), int(port), path)
    except (KeyError, IndexError, TypeError, ValueError, StopIteration):
        return _probe_of_text(json.dumps(pod).encode())


def _probe_of_text(data: bytes) -> Probe:
    """Return the probe of another manifest, from its flags: every release serves /healthz."""
    text = data.decode(errors="replace")
    address = re.search(r"--bind-address=([0-9A-Fa-f.:]+)", text)
    port = re.search(r"--secure-port=([0-9]+)", text)
    host = address[1] if address and address[1] not in ("0.0.0.0", "::") else "127.0.0.1"
    return Probe(host, int(port[1]) if port else _STOCK_PORT, "/healthz")


def _resource_host_path(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec = _mapping(pod, "spec")
    volumes = spec.get("volumes")
    if isinstance(volumes, Sequence):
        for volume in volumes:
            if isinstance(volume, dict) and volume.get("name") == RESOURCE_VOLUME:
                return _mapping(volume, "hostPath", f"spec.volumes[{RESOURCE_VOLUME}].")
    raise ManifestError(f"spec.volumes of the static pod has no volume {RESOURCE_VOLUME!r}")


def _mapping(parent: Mapping[str, Any], key: str, prefix: str = "") -> dict[str, Any]:
    value = parent.get(key)
    if not isinstance(value, dict):
        raise ManifestError(f"{prefix}{key} of the static pod is missing or is not an object")
    return value

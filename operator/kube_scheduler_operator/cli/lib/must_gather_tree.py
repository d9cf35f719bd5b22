"""What `kubectl scheduler must-gather` writes: a tree of files as `oc adm inspect` has it. Pure.

Secrets never get into it: of Secret objects only names, types and the names of their keys are kept;
private keys and credentials that people put elsewhere (an extender's tlsConfig.keyData, say) are
blotted out wherever they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from ...base import names
from ...kube.resource import SECRETS, Resource

REDACTED: Final = "(redacted)"
_CONFIDENTIAL: Final = frozenset(
    {"keydata", "client-key-data", "token", "password", "bearertoken", "authorization"}
)
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_BEARER: Final = re.compile(r"\b(Bearer )[A-Za-z0-9._~+/=-]{8,}")


def files(resource: Resource, objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Objects of one kind as files: path in the tree -> YAML.

    Cluster-scoped ones have a file each, namespaced ones a list per namespace, and pods both.
    """
    group = resource.group or "core"
    tree: dict[str, str] = {}
    lists: dict[str, list[Any]] = {}
    for obj in objects:
        shown = secret_summary(obj) if resource == SECRETS else redacted(_without_noise(obj))
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        if not resource.namespaced:
            tree[f"cluster-scoped-resources/{group}/{resource.plural}/{name}.yaml"] = _yaml(shown)
            continue
        lists.setdefault(namespace, []).append(shown)
        if resource.plural == "pods":
            tree[f"namespaces/{namespace}/pods/{name}/{name}.yaml"] = _yaml(shown)
    for namespace, items in lists.items():
        document = {"apiVersion": "v1", "kind": "List", "items": items}
        tree[f"namespaces/{namespace}/{group}/{resource.plural}.yaml"] = _yaml(document)
    return tree


def log_path(namespace: str, pod: str, container: str, *, previous: bool) -> str:
    """Where the log of a container belongs."""
    name = "previous" if previous else "current"
    return f"namespaces/{namespace}/pods/{pod}/{container}/{container}/logs/{name}.log"


def logs_of(pod: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """The logs that a pod has: (container, previous)."""
    status = pod.get("status") or {}
    found = []
    for key in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(key) or ():
            state = container.get("state") or {}
            if "running" in state or "terminated" in state:
                found.append((container["name"], False))
            if (container.get("lastState") or {}).get("terminated"):
                found.append((container["name"], True))
    return found


def is_one_of_many(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is one that every node has, and is well: its log would be that of thousands."""
    labels = pod["metadata"].get("labels") or {}
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return labels.get("app") == names.NODE_METRICS and ready


def secret_summary(secret: Mapping[str, Any]) -> dict[str, Any]:
    """What may be known about a Secret."""
    metadata = secret["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            key: metadata[key]
            for key in ("name", "namespace", "creationTimestamp")
            if key in metadata
        },
        "type": secret.get("type", ""),
        "keys": sorted({*(secret.get("data") or {}), *(secret.get("stringData") or {})}),
    }


def redacted(value: Any) -> Any:
    """A copy without credentials, also in the JSON texts that ConfigMaps hold."""
    if isinstance(value, Mapping):
        return {
            key: REDACTED if _is_confidential(key, item) else redacted(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [redacted(item) for item in value]
    if isinstance(value, str):
        return redacted_text(_redacted_json(value))
    return value


def redacted_text(text: str) -> str:
    """A text, a log say, without private keys and bearer tokens."""
    return _BEARER.sub(rf"\1{REDACTED}", _PRIVATE_KEY.sub(REDACTED, text))


def _is_confidential(key: Any, value: Any) -> bool:
    return isinstance(value, str) and bool(value) and str(key).lower() in _CONFIDENTIAL


def _redacted_json(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        document = json.loads(text)
    except ValueError:
        return text
    clean = redacted(document)
    if clean == document:
        return text  # letter by letter: hashes are over it
    return json.dumps(clean, ensure_ascii=False)


def _without_noise(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: item for key, item in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)

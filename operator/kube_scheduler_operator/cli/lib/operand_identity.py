"""Which scheduler a node runs: pod, image, command line; what `status --verbose` adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base import names


def identity(pod: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Which scheduler this is; who it is to the API server is in a file on its node."""
    from ...model import operand_pods

    if pod is None:
        return None
    found = operand_pods.read(pod)
    status = pod.get("status") or {}
    statuses = status.get("containerStatuses") or ()
    container: Mapping[str, Any] = next((c for c in statuses if c.get("name") == names.OPERAND), {})
    running = (container.get("state") or {}).get("running") or {}
    return {
        "pod": f"{pod['metadata'].get('namespace', '')}/{found.name}",
        "created": pod["metadata"].get("creationTimestamp", ""),
        "started": running.get("startedAt", ""),
        "restarts": found.restarts,
        "revisionLabel": found.revision,
        "contentHash": found.content_hash,
        "kubeconfigFingerprint": found.kubeconfig,
        "image": found.image,
        "imageID": container.get("imageID", ""),
        "command": list(found.arguments),
        "trouble": found.trouble,
        "lastWords": found.last_words,
    }


def render_identity(node: str, scheduler: Mapping[str, Any] | None) -> list[str]:
    """The same as text, under the name of its node."""
    if scheduler is None:
        return [f"{node}: no scheduler pod"]
    revision = scheduler["revisionLabel"]
    facts = {
        "pod": f"{scheduler['pod']}, created {scheduler['created']}",
        "started": f"{scheduler['started'] or 'not running'}, {scheduler['restarts']} restarts",
        "revision": str(revision) if revision else "none: it is not the operator's",
        "content": scheduler["contentHash"],
        "kubeconfig": scheduler["kubeconfigFingerprint"],
        "image": " ".join(filter(None, (scheduler["image"], scheduler["imageID"]))),
        "trouble": scheduler["trouble"],
        "last words": scheduler["lastWords"],
    }
    lines = [f"{node}:"]
    for name, fact in facts.items():
        if fact:
            lines.append(f"  {name:<11} {fact.splitlines()[-1]}")
    command = scheduler["command"]
    lines.append(f"  {'command':<11} {command[0] if command else ''}")
    lines += [f"  {'':<13} {argument}" for argument in command[1:]]
    return lines

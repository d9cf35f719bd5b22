"""The extender API v1, continued: what bind and preempt send and hear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from .node_names import Names
from .wire import Args, WireError, document, pod_of


class Binding:
    """ExtenderBindingArgs."""

    __slots__ = ("name", "namespace", "node", "uid")

    def __init__(self, body: bytes) -> None:
        given = document(body)
        values = [given.get(key) for key in ("podname", "podnamespace", "poduid", "node")]
        name, namespace, uid, node = values
        if not all(isinstance(value, str) and value for value in (name, namespace, node)):
            raise WireError("PodName, PodNamespace and Node must be texts")
        self.name, self.namespace, self.node = str(name), str(namespace), str(node)
        self.uid = uid if isinstance(uid, str) else ""


def read_preemption(body: bytes) -> tuple[Args, list[Any]]:
    """ExtenderPreemptionArgs: the pod with the candidate nodes, and the victims on each.

    Returns:
        The nodes as ExtenderArgs by name, and for each the MetaVictims of an answer.

    Raises:
        WireError: what is wrong with the request.
    """
    given = document(body)
    pod = pod_of(given)
    meta, whole = given.get("nodenametometavictims"), given.get("nodenametovictims")
    victims = meta if meta else whole if whole else {}
    if not isinstance(victims, dict):
        raise WireError("NodeNameToVictims must be an object of nodes and victims")
    names = list(victims)
    return Args(pod, Names(names)), [_meta(victims[name]) for name in names]


def _meta(victims: Any) -> dict[str, Any]:
    """MetaVictims of MetaVictims or of Victims, which hold whole pods."""
    if not isinstance(victims, dict):
        raise WireError("victims must be an object with Pods and NumPDBViolations")
    given = {key.lower(): value for key, value in victims.items()}
    pods, violations = given.get("pods") or [], given.get("numpdbviolations") or 0
    if not isinstance(pods, list) or not isinstance(violations, int):
        raise WireError("victims must have a list of Pods and a number NumPDBViolations")
    return {"Pods": [{"UID": _uid(pod)} for pod in pods], "NumPDBViolations": violations}


def _uid(pod: Any) -> str:
    if not isinstance(pod, dict):
        raise WireError("Pods of victims must be objects")
    metadata = pod.get("metadata")
    found = (
        metadata.get("uid")
        if isinstance(metadata, dict)
        else next((value for key, value in pod.items() if key.lower() == "uid"), None)
    )
    if not isinstance(found, str):
        raise WireError("Pods of victims must have an UID")
    return found


def preempted(names: Sequence[str], victims: Sequence[Any]) -> bytes:
    """ExtenderPreemptionResult: the candidates that are left."""
    left = dict(zip(names, victims, strict=True))
    return orjson.dumps({"NodeNameToMetaVictims": left})

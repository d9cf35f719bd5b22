"""Hashes everything but the question that the result of a simulation depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from ..kube.resource import Resource
from .kinds import KINDS, NODES, PODS, Object
from .world import Entry, World

_UNRELATED: Final[Mapping[Resource, str]] = {PODS: "conditions", NODES: "images"}
"""Fields of the status that no filter reads: kube-scheduler writes one while a Pod waits, the
kubelet the other after each pull."""


def situation(world: World, others: Any) -> str:
    """Return the SHA-256 (hex) of all that decides which nodes accept the Pods of a world.

    `others` is further JSON data on which the result depends.
    """
    digest = hashlib.sha256(orjson.dumps(others, option=orjson.OPT_SORT_KEYS))
    for resource, kind in KINDS.items():
        if kind.read_by_scheduler:
            for _, entry in sorted(world.objects[resource].items()):
                digest.update(_relevant(resource, entry))
    return digest.hexdigest()


def _relevant(resource: Resource, entry: Entry) -> bytes:
    """Return the object as JSON, without its unrelated field."""
    field = _UNRELATED.get(resource)
    if field is None:
        return entry.content
    obj: Object = entry.object()
    obj["status"].pop(field, None)
    return orjson.dumps(obj)

"""Stored objects with resourceVersions, for test clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube_scheduler_operator.kube.resource import Resource
from kube_scheduler_operator.kube.store import Store


class Stored:
    """A store that gives every write a new resourceVersion."""

    def __init__(self) -> None:
        self._store = Store()
        self._version = 0

    def _keep(self, resource: Resource, obj: Mapping[str, Any]) -> Any:
        kept = self._next(obj)
        self._store.put(resource, kept)
        return kept

    def _forget(self, resource: Resource, obj: Mapping[str, Any]) -> None:
        self._store.remove(resource, self._next(obj))

    def _next(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        self._version += 1
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}

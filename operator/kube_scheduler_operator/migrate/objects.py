"""Objects of the operator's API as the result of a conversion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.findings import Problem
from ..kube.resource import Resource
from .changes import Change


@dataclass(frozen=True, slots=True)
class ConvertedObjects:
    """The result of a conversion to objects."""

    objects: tuple[dict[str, Any], ...]  # for `kubectl apply`
    changes: tuple[Change, ...]  # differences from the old documents, unordered
    problems: tuple[Problem, ...] = ()  # errors with which the scheduler does not start


def operator_object(resource: Resource, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """An object of the operator's API group."""
    metadata = {"name": name}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": dict(spec),
    }

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
    """The result of a conversion to objects.

    Attributes:
        objects: for `kubectl apply`.
        changes: differences from the old documents, unordered.
        problems: errors with which the scheduler does not start.
    """

    objects: tuple[dict[str, Any], ...]
    changes: tuple[Change, ...]
    problems: tuple[Problem, ...] = ()


def operator_object(resource: Resource, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """An object of the operator's API group."""
    metadata = {"name": name}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": dict(spec),
    }

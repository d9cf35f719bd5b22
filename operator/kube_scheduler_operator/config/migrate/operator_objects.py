"""Objects of the operator's API as the result of a conversion."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ...base.findings import Problem
from ...kube.resource import Resource
from .changes import Change


@dataclass(frozen=True, slots=True)
class ConvertedObjects:
    objects: tuple[dict[str, Any], ...]  # for `kubectl apply`
    changes: tuple[Change, ...]  # differences from the old documents, unordered
    problems: tuple[Problem, ...] = ()  # errors with which the scheduler does not start


def operator_object(resource: Resource, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "spec": dict(spec),
    }


def free_name(base: str, used: Collection[str]) -> str:
    """Return `base`, numbered from 2 if the name is used."""
    name, number = base, 1
    while name in used:
        number += 1
        name = f"{base}-{number}"
    return name

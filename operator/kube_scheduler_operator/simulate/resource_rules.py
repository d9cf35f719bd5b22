"""Resources of new pods: what is set for a whole pod, and which the API server refuses as invalid.

Sources in Kubernetes: defaultPodRequests in pkg/apis/core/v1/defaults.go, and
validateResourceRequirements and validatePodResourceConsistency in
pkg/apis/core/validation/validation.go; messages are its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import mapping
from ..base.quantities import CPU, MEMORY, amounts
from .constraint import quantity_text
from .kinds import Object
from .pod_amounts import is_for_whole_pods, pod_amounts

_HUGE_PAGES: Final = "hugepages-"
_KUBERNETES: Final = "kubernetes.io/"


def default_pod_requests(spec: Object) -> None:
    """Set the requests of a pod that has limits for all its containers together."""
    resources = mapping(spec.get("resources"))
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    if limits:
        needed = _of_containers(spec).items()
        own = {name: quantity_text(name, value) for name, value in needed if name in (CPU, MEMORY)}
        spec["resources"] = {**resources, "requests": {**limits, **own, **requests}}


def _of_containers(spec: Mapping[str, Any]) -> dict[str, float]:
    alone = {key: value for key, value in spec.items() if key != "resources"}
    return pod_amounts(alone, "requests", overhead=False)


def invalid_resources(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is invalid about the resources of a pod and its containers."""
    for kind in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(kind) or ()):
            yield from _invalid(container, f"spec.{kind}[{at}].resources")
    yield from _invalid(spec, "spec.resources")
    yield from _beyond_pod(spec)


def _invalid(holder: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield which requests do not fit their limits."""
    resources = mapping(holder.get("resources"))
    limits = amounts(resources.get("limits"))
    for name, request in amounts(resources.get("requests")).items():
        limit, shown = limits.get(name), foreign(name, FOREIGN_NAME)
        if limit is None:
            if not _may_exceed(name):
                yield (
                    f"{path}.limits: Required value: Limit must be set for non overcommitable "
                    "resources"
                )
            continue
        start = f'{path}.requests: Invalid value: "{quantity_text(name, request)}": must be'
        if request != limit and not _may_exceed(name):
            yield f"{start} equal to {shown} limit of {quantity_text(name, limit)}"
        elif request > limit:
            yield f"{start} less than or equal to {shown} limit of {quantity_text(name, limit)}"


def _beyond_pod(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield where containers request, or are limited to, more than their pod."""
    own = mapping(spec.get("resources"))
    needed = _of_containers(spec)
    for name, request in amounts(own.get("requests")).items():
        if is_for_whole_pods(name) and needed.get(name, 0.0) > request:
            yield (
                f'spec.resources.requests[{name}]: Invalid value: "{quantity_text(name, request)}"'
                ": must be greater than or equal to aggregate container requests of "
                f"{quantity_text(name, needed[name])}"
            )
    most = amounts(own.get("limits"))
    for at, container in enumerate(spec.get("containers") or ()):
        limits = amounts(mapping(container.get("resources")).get("limits"))
        for name, limit in limits.items():
            if name in most and limit > most[name]:
                yield (
                    f"spec.resources.containers[{at}][{foreign(name, FOREIGN_NAME)}].limits: "
                    f'Invalid value: "{quantity_text(name, limit)}": must be less than or equal to '
                    f"pod limits of {quantity_text(name, most[name])}"
                )


def _may_exceed(resource: str) -> bool:
    """Return whether limits of a resource may exceed its requests."""
    is_native = "/" not in resource or _KUBERNETES in resource
    return is_native and not resource.startswith(_HUGE_PAGES)

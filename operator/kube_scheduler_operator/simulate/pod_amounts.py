"""What a pod requests, or is limited to, as the API server's admission adds it up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..base.objects import mapping
from ..base.quantities import CPU, MEMORY, amounts

Field = Literal["requests", "limits"]


def pod_amounts(spec: Mapping[str, Any], field: Field, *, overhead: bool) -> dict[str, float]:
    """Return the amount of each resource: CPU in millicores, all others in base units.

    Unlike those of a kubelet, limits count although another container has none. With `overhead`,
    that of the runtime is added, to limits only where there is one.
    """
    total: dict[str, float] = {}
    for container in spec.get("containers") or ():
        _add(total, _of(container, field))
    sidecars: dict[str, float] = {}
    largest: dict[str, float] = {}
    for container in spec.get("initContainers") or ():
        own = _of(container, field)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            own = dict(sidecars)
        else:
            _add(own, sidecars)
        _raise(largest, own)
    _raise(total, largest)
    total |= {name: amount for name, amount in _of(spec, field).items() if is_for_whole_pods(name)}
    if overhead:
        for name, amount in amounts(spec.get("overhead")).items():
            if field == "requests" or total.get(name):
                total[name] = total.get(name, 0.0) + amount
    return total


def is_for_whole_pods(resource: str) -> bool:
    """Return whether `spec.resources` of a pod may have a resource."""
    return resource in (CPU, MEMORY) or resource.startswith("hugepages-")


def _of(holder: Mapping[str, Any], field: Field) -> dict[str, float]:
    return amounts(mapping(holder.get("resources")).get(field))


def _add(total: dict[str, float], more: Mapping[str, float]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0.0) + amount


def _raise(total: dict[str, float], least: Mapping[str, float]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0.0), amount)

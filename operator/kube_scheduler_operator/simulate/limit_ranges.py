"""LimitRanges: the defaults and bounds of new pods, as the API server's LimitRanger applies them.

Source: plugin/pkg/admission/limitranger in Kubernetes; messages are its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..base.objects import mapping
from ..base.quantities import amount
from .constraint import containers, quantity_text
from .kinds import LIMIT_RANGES, Object
from .pod_amounts import pod_amounts
from .world import World

Texts = Mapping[str, str]
"""Resource name to quantity, as written."""


def set_defaults(spec: Object, world: World, namespace: str) -> None:
    """Set the requests and limits of containers that have none."""
    for limit in _limits(world, namespace):
        if limit.get("type") != "Container":
            continue
        for container in containers(spec):
            resources = dict(mapping(container.get("resources")))
            for field, key in (("limits", "default"), ("requests", "defaultRequest")):
                values = {**mapping(limit.get(key)), **mapping(resources.get(field))}
                if values:
                    resources[field] = values
            if resources:
                container["resources"] = resources


def violations(spec: Mapping[str, Any], world: World, namespace: str) -> Iterator[str]:
    """Yield why LimitRanges refuse a pod, in the words of the API server."""
    for limit in _limits(world, namespace):
        kind = str(limit.get("type"))
        if kind == "Container":
            for container in containers(spec):
                resources = mapping(container.get("resources"))
                yield from _outside(
                    kind, limit, _texts(resources.get("requests")), _texts(resources.get("limits"))
                )
        elif kind == "Pod":
            yield from _outside(kind, limit, _total(spec, "requests"), _total(spec, "limits"))


def _limits(world: World, namespace: str) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of all LimitRanges of a namespace, with the defaults of the API."""
    for (own, _), entry in sorted(world.objects[LIMIT_RANGES].items()):
        if own != namespace:
            continue
        for limit in mapping(entry.object().get("spec")).get("limits") or ():
            if limit.get("type") == "Container":
                default = {**mapping(limit.get("max")), **mapping(limit.get("default"))}
                requests = {
                    **mapping(limit.get("min")), **default, **mapping(limit.get("defaultRequest")),
                }  # fmt: skip
                limit = {**limit, "default": default, "defaultRequest": requests}
            yield limit


def _total(spec: Mapping[str, Any], field: Any) -> Texts:
    sums = pod_amounts(spec, field, overhead=False)
    return {name: quantity_text(name, value) for name, value in sums.items()}


def _texts(resources: Any) -> Texts:
    return {name: str(value) for name, value in mapping(resources).items()}


def _outside(kind: str, limit: Mapping[str, Any], requests: Texts, limits: Texts) -> Iterator[str]:
    for name, least in _texts(limit.get("min")).items():
        start = f"minimum {name} usage per {kind} is {least}"
        request, own = requests.get(name), limits.get(name)
        if request is None:
            yield f"{start}.  No request is specified"
        elif amount(name, request) < amount(name, least):
            yield f"{start}, but request is {request}"
        elif own is not None and amount(name, own) < amount(name, least):
            yield f"{start}, but limit is {own}"
    for name, most in _texts(limit.get("max")).items():
        start = f"maximum {name} usage per {kind} is {most}"
        request, own = requests.get(name), limits.get(name)
        if own is None:
            yield f"{start}.  No limit is specified"
        elif amount(name, own) > amount(name, most):
            yield f"{start}, but limit is {own}"
        elif request is not None and amount(name, request) > amount(name, most):
            yield f"{start}, but request is {request}"
    for name, ratio in _texts(limit.get("maxLimitRequestRatio")).items():
        yield from _ratio(kind, name, ratio, requests.get(name, "0"), limits.get(name, "0"))


def _ratio(kind: str, name: str, ratio: str, request: str, limit: str) -> Iterator[str]:
    start = f"{name} max limit to request ratio per {kind} is {ratio}"
    if not amount(name, request):
        yield f"{start}, but no request is specified or request is 0"
    elif not amount(name, limit):
        yield f"{start}, but no limit is specified or limit is 0"
    else:
        used = amount(name, limit) / amount(name, request)
        if used > amount("cpu", ratio) / 1000:
            yield f"{start}, but provided ratio is {used:f}"

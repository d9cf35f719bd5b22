"""The defaults of the API of a Pod that scheduling reads; a Pod of an API server has them all."""

from __future__ import annotations

from ..base.objects import mapping
from .constraint import containers
from .kinds import Object


def set_api_defaults(spec: Object) -> None:
    """Complete the spec of a Pod in place, before any admission plugin."""
    spec.setdefault("schedulerName", "default-scheduler")
    for container in containers(spec):
        resources = mapping(container.get("resources"))
        limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
        if not limits.keys() <= requests.keys():
            container["resources"] = {**resources, "requests": {**limits, **requests}}
        for port in container.get("ports") or () if spec.get("hostNetwork") else ():
            if not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort")

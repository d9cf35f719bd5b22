"""Objects that a tenant may create, and that cost their readers more than others.

The API server accepts 3 MiB of JSON, and etcd 1.5 MiB: a Pod with 200,000 environment entries. Half
of them are enough here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

ENTRIES: Final = 100_000


def large_pod(name: str, namespace: str = "tenant", **fields: Any) -> dict[str, Any]:
    """A Pod with 100,000 environment entries."""
    containers = [{"name": "c", "image": "i", "env": ENTRIES * [{"name": "A"}]}]
    return hostile(name, namespace, spec={"containers": containers, **fields})


def hostile(name: str, namespace: str = "tenant", **fields: Any) -> dict[str, Any]:
    """An object with these fields."""
    metadata = {"name": name, "uid": f"uid-{name}", **fields.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **fields}


def levels(count: int) -> str:
    """JSON of an object in an object in …"""
    return '{"a":' * count + "1" + "}" * count


def _requesting(resources: int, name: str = "c") -> dict[str, Any]:
    """A container that requests and limits that many resources, CPU among them."""
    amounts = {f"example.com/{number:05}": "1" for number in range(1, resources)} | {"cpu": "1m"}
    return {"name": name, "image": "i", "resources": {"requests": amounts, "limits": amounts}}


HOSTILE: Final[dict[str, dict[str, Any]]] = {
    "100,000 environment entries": large_pod("hostile"),
    "a megabyte of labels": hostile(
        "hostile",
        metadata={"labels": {f"example.com/{number:06}": "x" * 60 for number in range(13_000)}},
    ),
    "a megabyte of an annotation": hostile(
        "hostile", metadata={"annotations": {"example.com/a": "[{," * 350_000}}
    ),
    "100,000 fields of managers": hostile(
        "hostile",
        metadata={
            "managedFields": [{"fieldsV1": {f"f:{number}": {} for number in range(100_000)}}]
        },
    ),
    "a string of a megabyte": hostile("hostile", spec={"schedulerName": "\x01" * 1_000_000}),
    "an owner of a megabyte": hostile(
        "hostile",
        metadata={
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "\x01" * 1_000_000, "name": "a", "uid": "u"}
            ]
        },
    ),
    "20,000 resources": hostile("hostile", spec={"containers": [_requesting(20_000)]}),
    "5,000 containers": hostile(
        "hostile", spec={"containers": [_requesting(1, f"c{number}") for number in range(5000)]}
    ),
    "20,000 tolerations": hostile(
        "hostile", spec={"tolerations": [{"key": f"a/{number}"} for number in range(20_000)]}
    ),
}
"""What one of them contains -> the object."""


def odd_pods() -> Iterator[dict[str, Any]]:
    """Pods with values that are valid, and that no ordinary Pod has."""
    old, late = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
    emptied: dict[str, Any] = dict.fromkeys(
        ("affinity", "initContainers", "nodeName", "nodeSelector", "overhead", "priority",
         "resourceClaims", "schedulingGates", "tolerations", "topologySpreadConstraints",
         "volumes", "securityContext", "ephemeralContainers", "resources")
    )  # fmt: skip
    container = {"name": "c", "image": "", "ports": None, "resources": {"requests": None}}
    statuses: dict[str, Any] = {
        "conditions": None,
        "containerStatuses": [{"name": "c", "state": {}, "lastState": {}, "restartCount": 0}],
        "initContainerStatuses": None,
        "startTime": None,
    }
    specs: dict[str, dict[str, Any]] = {
        "empty": {},
        "nulls": {**emptied, "containers": [container]},
        "empty-lists": {**{key: [] for key in emptied if key.endswith("s")}, "containers": []},
        "quantities": {
            "containers": [
                {"name": f"c{number}", "resources": {"requests": {"cpu": amount, amount: "1"}}}
                for number, amount in enumerate(("9223372036854775807", "1n", "0", "8E", "-1"))
            ]
        },
        "terms": {"affinity": {"nodeAffinity": None, "podAffinity": {}, "podAntiAffinity": None}},
        "priority": {"priority": -(2**31), "preemptionPolicy": "Never", "priorityClassName": ""},
        "gates": {"schedulingGates": [{"name": "a"}] * 100},
        "claims": {"resourceClaims": [{"name": "a"}], "volumes": [{"name": "v"}]},
        "spread": {"topologySpreadConstraints": [{"maxSkew": 2**31 - 1, "topologyKey": "k"}]},
    }
    for name, spec in specs.items():
        for created in (old, late, None):
            place = {"creationTimestamp": created, "labels": None, "annotations": None}
            suffix = (created or "never")[:4]
            status = statuses if created == late else {}
            yield hostile(f"{name}-{suffix}", metadata=place, spec=spec, status=status)
    yield {**hostile("without-status"), "spec": {"containers": [container]}}
    owners = [{"apiVersion": "a/b", "kind": "", "name": "", "uid": "", "controller": None}]
    yield hostile("owned", metadata={"ownerReferences": owners}, spec={}, status=statuses)


def many_pods(count: int = 2000, **fields: Any) -> Iterator[dict[str, Any]]:
    """Pods that wait for as many schedulers."""
    for number in range(count):
        spec = {"schedulerName": f"forged-{number}", "containers": [{"name": "c"}], **fields}
        yield hostile(f"p-{number}", spec=spec, status={"phase": "Pending"})

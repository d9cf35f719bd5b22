"""Objects that a tenant may create, and that cost their readers more than others.

The API server accepts 3 MiB of JSON, and etcd 1.5 MiB: a Pod with 200,000 environment entries. Half
of them are enough here.
"""

from __future__ import annotations

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
}
"""What one of them contains -> the object."""

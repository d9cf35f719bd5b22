"""Pods as an API server writes them in protobuf, for servers that are played."""

from __future__ import annotations

from datetime import datetime
from typing import Any

TEXT, NUMBER, TIME, STRINGS, QUANTITIES = "text", "number", "time", "strings", "quantities"

# Name -> (number, what it is; a dictionary is a message, a list of one is repeated). The numbers
# are of generated.proto, and a real API server is asked in tests/integration/test_protobuf.py.
METADATA = {
    "name": (1, TEXT),
    "generateName": (2, TEXT),
    "namespace": (3, TEXT),
    "uid": (5, TEXT),
    "resourceVersion": (6, TEXT),
    "generation": (7, NUMBER),
    "creationTimestamp": (8, TIME),
    "deletionTimestamp": (9, TIME),
    "labels": (11, STRINGS),
    "annotations": (12, STRINGS),
    "ownerReferences": (13, [{"kind": (1, TEXT), "name": (3, TEXT), "controller": (6, NUMBER)}]),
}
RESOURCES = {"limits": (1, QUANTITIES), "requests": (2, QUANTITIES)}
CONTAINER = {
    "name": (1, TEXT),
    "image": (2, TEXT),
    "env": (7, [{"name": (1, TEXT)}]),
    "resources": (8, RESOURCES),
    "restartPolicy": (24, TEXT),
}
POD = {
    "metadata": (1, METADATA),
    "spec": (
        2,
        {
            "containers": (2, [CONTAINER]),
            "restartPolicy": (3, TEXT),
            "nodeName": (10, TEXT),
            "schedulerName": (19, TEXT),
            "initContainers": (20, [CONTAINER]),
            "priority": (25, NUMBER),
            "overhead": (32, QUANTITIES),
            "schedulingGates": (38, [{"name": (1, TEXT)}]),
            "resources": (40, RESOURCES),
        },
    ),
    "status": (
        3,
        {
            "phase": (1, TEXT),
            "conditions": (
                2,
                [{"type": (1, TEXT), "status": (2, TEXT), "lastTransitionTime": (4, TIME)}],
            ),
            "startTime": (7, TIME),
        },
    ),
}
STATUS = {"status": (2, TEXT), "message": (3, TEXT), "reason": (4, TEXT), "code": (6, NUMBER)}


def change(kind: str, obj: Any) -> bytes:
    """One frame of a watch."""
    message = STATUS if kind == "ERROR" else POD
    event = field(1, kind.encode()) + field(2, field(1, whole(encode(obj, message))))
    return len(event).to_bytes(4) + event


LIST_METADATA = {"resourceVersion": (2, TEXT), "continue": (3, TEXT)}


def listed(items: list[Any], metadata: dict[str, str]) -> bytes:
    """A list of Pods."""
    raw = field(1, encode(metadata, LIST_METADATA))
    return whole(raw + b"".join(field(2, encode(item, POD)) for item in items), "PodList")


def whole(raw: bytes, kind: str = "Pod") -> bytes:
    """An object with the prefix of its type."""
    return b"k8s\0" + field(1, field(1, b"v1") + field(2, kind.encode())) + field(2, raw)


def encode(obj: Any, message: Any) -> bytes:
    """Encode an object; fields that the table does not list are omitted."""
    found = bytearray()
    for name, (number, what) in message.items():
        value = obj.get(name)
        if value is None:
            continue
        if isinstance(what, list):
            found += b"".join(field(number, encode(each, what[0])) for each in value)
        elif isinstance(what, dict):
            found += field(number, encode(value, what))
        elif what == TEXT:
            found += field(number, value.encode())
        elif what == NUMBER:
            found += varint(number << 3) + varint(int(value))
        elif what == TIME:
            at = int(datetime.fromisoformat(value).timestamp())
            found += field(number, varint(1 << 3) + varint(at))
        else:
            for key, each in value.items():
                text = str(each).encode()
                each_value = field(1, text) if what == QUANTITIES else text
                found += field(number, field(1, key.encode()) + field(2, each_value))
    return bytes(found)


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])

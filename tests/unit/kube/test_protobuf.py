"""Protobuf: listed fields are decoded, others skipped, and invalid data is an error."""

from __future__ import annotations

import contextlib
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.kube.protobuf import (
    METADATA,
    ChangeDecoder,
    Message,
    UnreadableError,
    number,
    part,
    parts,
    quantities,
    status,
    strings,
    text,
    time,
)

from . import encoding
from .encoding import field, varint

NAMED = Message(
    text(1, "name"),
    number(2, "count"),
    time(3, "at"),
    part(4, "inner", Message(text(1, "name"), number(3, "more"))),
    parts(5, "many", Message(text(1, "name"))),
    strings(6, "labels"),
    quantities(7, "requests"),
    text(20, "far"),
)
OBJECT = Message(part(1, "metadata", Message(*METADATA)))


def read(data: bytes) -> dict[str, Any]:
    return NAMED.read(data, 0, len(data))


def quantity(name: bytes, value: bytes) -> bytes:
    return field(1, name) + field(2, field(1, value))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", {}),
        (field(1, b"a"), {"name": "a"}),
        (field(1, "ä".encode()), {"name": "ä"}),
        (field(1, b""), {}),
        (field(1, b"x" * 300), {"name": "x" * 300}),
        (field(20, b"two bytes of tag"), {"far": "two bytes of tag"}),
        (b"\x10\x00", {"count": 0}),
        (b"\x10" + varint(300), {"count": 300}),
        (b"\x10" + varint(2**64 - 1), {"count": 2**64 - 1}),
        (field(3, b"\x08" + varint(1_700_000_000)), {"at": 1_700_000_000}),
        (field(3, b"\x08" + varint(1_700_000_000) + b"\x10\x05"), {"at": 1_700_000_000}),
        (field(3, b"\x08" + varint(2**64 - 60)), {"at": -60}),
        (field(3, b""), {}),
        (field(4, field(1, b"i") + b"\x18\x07"), {"inner": {"name": "i", "more": 7}}),
        (field(4, b""), {"inner": {}}),
        (field(5, field(1, b"a")) + field(5, b""), {"many": [{"name": "a"}, {}]}),
        (
            field(6, field(1, b"app") + field(2, b"web")) + field(6, field(1, b"gone")),
            {"labels": {"app": "web", "gone": ""}},
        ),
        (
            field(7, quantity(b"cpu", b"250m")) + field(7, field(1, b"memory")),
            {"requests": {"cpu": "250m", "memory": "0"}},
        ),
    ],
)
def test_listed_fields_are_decoded(data: bytes, found: dict[str, Any]) -> None:
    assert read(data) == found


@pytest.mark.parametrize(
    "unknown",
    [
        field(9, b"text"),
        field(9, b"long" * 100),
        varint(9 << 3) + varint(1),
        varint(9 << 3) + varint(2**40),
        varint(9 << 3 | 1) + b"12345678",
        varint(9 << 3 | 5) + b"1234",
        varint(2**28 << 3 | 2) + b"\x01a",
        varint(1 << 3) + b"\x01",  # a number instead of a string
        field(2, b"text"),  # and the other way round
    ],
)
def test_other_fields_are_skipped(unknown: bytes) -> None:
    assert read(unknown + field(1, b"a") + unknown) == {"name": "a"}


def test_equal_messages_share_one_object() -> None:
    first, second = read(field(5, field(1, b"a")))["many"], read(field(5, field(1, b"a")))["many"]
    assert first is not second
    assert first[0] is second[0]


@pytest.mark.parametrize(("size", "count"), [(1, 20_000), (10_000, 2_000), (1_000_000, 30)])
def test_cache_is_bounded(size: int, count: int) -> None:
    """The parts of all pods that ever were would be gigabytes."""
    many = Message(parts(1, "many", Message(text(1, "name"))))
    tracemalloc.start()
    try:
        for at in range(count):
            name = str(at).ljust(size, "x")
            data = field(1, field(1, name.encode()))
            assert many.read(data, 0, len(data)) == {"many": [{"name": name}]}
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 4 * 2**20


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",  # no length
        b"\x0a\x05abc",
        b"\x10",
        b"\x10\x80",
        b"\x10" + b"\xff" * 11,
        b"\x0b",  # a group, which no encoder has written for years
        b"\x09123",
        field(4, b"\x0a\x05abc"),
        field(1, b"\xff"),
    ],
)
def test_invalid_data_is_an_error(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        read(data)
    frame = field(1, b"ADDED") + field(2, field(1, encoding.whole(field(1, data))))
    changes = ChangeDecoder(Message(part(1, "metadata", NAMED)))
    with pytest.raises(UnreadableError, match="protobuf"):
        list(changes.feed(len(frame).to_bytes(4) + frame))


POD = {"metadata": {"name": "p", "namespace": "shop", "uid": "u", "resourceVersion": "7"}}


def test_events_are_returned_once_complete() -> None:
    data = b"".join(encoding.change(kind, POD) for kind in ("ADDED", "MODIFIED", "DELETED"))
    expected = [{"type": kind, "object": POD} for kind in ("ADDED", "MODIFIED", "DELETED")]
    assert list(ChangeDecoder(OBJECT).feed(data)) == expected
    bit_by_bit = ChangeDecoder(OBJECT)
    assert [each for at in data for each in bit_by_bit.feed(bytes([at]))] == expected


def test_error_event_has_a_status() -> None:
    gone = {
        "kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired",
        "code": 410,
    }  # fmt: skip
    (change,) = ChangeDecoder(OBJECT).feed(encoding.change("ERROR", gone))
    assert change == {"type": "ERROR", "object": gone}


def test_status_of_an_error_response() -> None:
    refused = {
        "kind": "Status", "status": "Failure", "message": "no", "reason": "Forbidden", "code": 403
    }  # fmt: skip
    assert status(encoding.whole(encoding.encode(refused, encoding.STATUS), "Status")) == refused
    for data in (b"", b"no mark", b"k8s\0", b"k8s\0\x12\x05a", b'{"kind":"Status"}'):
        with pytest.raises(UnreadableError):
            status(data)


@pytest.mark.parametrize(
    "frame",
    [
        b"",  # neither a type nor an object
        field(1, b"ADDED"),
        field(1, b"ADDED") + field(2, b""),
        field(1, b"ADDED") + field(2, field(1, b"")),
        field(1, b"ADDED") + field(2, field(1, b"k8s\0")),
        field(1, b"ADDED") + field(2, field(1, b"{}")),
    ],
)
def test_invalid_event_is_an_error(frame: bytes) -> None:
    with pytest.raises(UnreadableError):
        list(ChangeDecoder(OBJECT).feed(len(frame).to_bytes(4) + frame))


def test_impossible_length_is_an_error() -> None:
    with pytest.raises(UnreadableError, match="exceeds"):
        list(ChangeDecoder(OBJECT).feed(b'{"type":"ADDED"'))


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_an_error(data: bytes) -> None:
    for given_bytes in (data, len(data).to_bytes(4) + data):
        with contextlib.suppress(UnreadableError):
            list(ChangeDecoder(OBJECT).feed(given_bytes))


@given(st.data())
def test_event_with_a_wrong_byte_is_decoded_or_an_error(data: st.DataObject) -> None:
    frame = bytearray(encoding.change("ADDED", POD))
    frame[data.draw(st.integers(4, len(frame) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableError):
        list(ChangeDecoder(OBJECT).feed(bytes(frame)))

"""Decodes selected fields of Kubernetes' protobuf into the structure of its JSON.

The API server encodes an object once for all clients that watch it as protobuf, such as
kube-scheduler and kubelets. JSON would be encoded for this client alone, which costs more CPU than
an extender uses to place the Pod. A `Message` lists the fields to decode; all others are skipped.

Format: https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
and https://protobuf.dev/programming-guides/encoding/; field numbers are in the files
generated.proto of k8s.io/api and k8s.io/apimachinery, and never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ..base.bounded_cache import BoundedCache
from ..base.times import rfc3339

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
ACCEPT: Final = f"{MEDIA_TYPE};stream=watch, application/json"
"""Accept header of a watch. Kinds without protobuf, such as all CRDs, come as JSON."""

_MAGIC: Final = b"k8s\0"
"""Prefix of every object that carries its own type."""

_LENGTH: Final = 4
"""Bytes of the length before each frame."""

CHANGE_LIMIT: Final = 16 * 1024 * 1024
"""Largest watch event in any encoding, bytes; etcd's default limit for objects is 1.5 MiB."""

_CACHE_ENTRIES, _CACHE_BYTES = 4096, 512 * 1024
"""Size of the cache of one field; a full cache is emptied."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NO_VARINT: Final = 0b101
"""Bits that are zero in the wire types of fields that begin with a varint: _VARINT and _BYTES."""
_LONGEST_VARINT: Final = 64
_SIGN: Final = 1 << 63
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Found = dict[str, Any]
Put = Callable[[Found, bytes, int, int], None]
"""Takes the fields decoded so far, the data, and the begin and end of the field in it."""


class UnreadableError(ValueError):
    """The data is not valid protobuf of the expected type."""


class Field:
    """One field of a message: its number in generated.proto, and its name in JSON.

    `put` decodes it; None: a number or a bool, decoded as a number.
    """

    __slots__ = ("name", "put", "tag")

    def __init__(self, number: int, name: str, put: Put | None = None) -> None:
        self.tag = number << 3 | (_VARINT if put is None else _BYTES)
        self.name = name
        self.put = put


class Message:
    """The fields to decode of a message; a field of another type counts as absent."""

    __slots__ = ("_numbers", "_puts")

    def __init__(self, *fields: Field) -> None:
        self._numbers = {field.tag: field.name for field in fields if field.put is None}
        self._puts = {field.tag: field.put for field in fields if field.put is not None}

    def read(self, data: bytes, at: int, end: int) -> Found:
        """Return the fields in `data[at:end]` as in JSON, with times in seconds since 1970.

        Raises:
            ValueError, IndexError: invalid data.
        """
        # This runs for every change of every Pod. Most lengths are one byte, and one call costs as
        # much as everything else for a skipped field.
        values: Found = {}
        numbers, puts = self._numbers, self._puts
        while at < end:
            tag = data[at]
            at += 1
            if tag > 0x7F:
                tag, at = varint(data, at - 1)
            if tag & _NO_VARINT:
                at += _fixed_size(tag)
                continue
            value = data[at]  # a number, or the length of bytes
            at += 1
            if value > 0x7F:
                value, at = varint(data, at - 1)
            if not tag & _BYTES:
                if (name := numbers.get(tag)) is not None:
                    values[name] = value
                continue
            begin, at = at, at + value
            if at > end:
                break
            if (put := puts.get(tag)) is not None:
                put(values, data, begin, at)
        if at != end:
            raise UnreadableError("a field exceeds its message")
        return values


def _fixed_size(tag: int) -> int:
    """Return the size of a field that does not begin with a varint, in bytes."""
    kind = tag & 7
    if kind == _FIXED64:
        return 8
    if kind == _FIXED32:
        return 4
    raise UnreadableError(f"unknown wire type {kind}")


def varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """Return the number at `at` and its end; seven bits per byte, the least significant first.

    Raises:
        IndexError: the data ends before it.
        UnreadableError: it is too long.
    """
    value = shift = 0
    while shift < _LONGEST_VARINT:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise UnreadableError("a number exceeds 64 bits")


# --- kinds of fields ------------------------------------------------------------------------------


def number(at: int, name: str) -> Field:
    """Return a non-negative integer, or a bool as 0 or 1."""
    return Field(at, name)


def text(at: int, name: str) -> Field:
    """Return a string; omitted if empty, as in JSON."""

    def put(values: Found, data: bytes, begin: int, end: int) -> None:
        if end > begin:
            values[name] = data[begin:end].decode()

    return Field(at, name, put)


def begin_of_text(at: int, name: str, most: int) -> Field:
    """Return the first bytes of a string whose length the API server does not limit."""

    def put(values: Found, data: bytes, begin: int, end: int) -> None:
        if end > begin:
            values[name] = data[begin : min(end, begin + most)].decode(errors="ignore")

    return Field(at, name, put)


def time(at: int, name: str) -> Field:
    """Return a Time in whole seconds since 1970; omitted if zero."""

    def put(values: Found, data: bytes, begin: int, end: int) -> None:
        if seconds := _seconds(data, begin, end):
            values[name] = seconds

    return Field(at, name, put)


def date(at: int, name: str) -> Field:
    """Return a Time as in JSON; omitted if zero, or not a date."""

    def put(values: Found, data: bytes, begin: int, end: int) -> None:
        if seconds := _seconds(data, begin, end):
            with suppress(OverflowError):
                values[name] = rfc3339(_EPOCH + timedelta(seconds=seconds))

    return Field(at, name, put)


def present(at: int, name: str) -> Field:
    """Return whether a message or a list has any content: True, or omitted."""

    def put(values: Found, _data: bytes, _begin: int, _end: int) -> None:
        values[name] = True

    return Field(at, name, put)


def part(at: int, name: str, message: Message) -> Field:
    """Return a nested message."""

    def put(values: Found, data: bytes, begin: int, end: int) -> None:
        values[name] = message.read(data, begin, end)

    return Field(at, name, put)


def parts(at: int, name: str, message: Message) -> Field:
    """Decode a list of messages. Equal ones are decoded once and share an object: never change it.

    The containers of a Deployment's thousand Pods are equal byte by byte.
    """
    read = _cached(lambda data: message.read(data, 0, len(data)))

    def put(values: Found, data: bytes, begin: int, end: int) -> None:
        values.setdefault(name, []).append(read(data[begin:end]))

    return Field(at, name, put)


def strings(at: int, name: str) -> Field:
    """Return a map from strings to strings."""
    return _map(at, name, Message(text(1, "key"), text(2, "value")), lambda value: value or "")


def quantities(at: int, name: str) -> Field:
    """Return a map from strings to quantities as strings."""
    entry = Message(text(1, "key"), part(2, "value", _QUANTITY))
    return _map(at, name, entry, lambda value: (value or {}).get("string", "0"))


def _map(at: int, name: str, entry: Message, valued: Callable[[Any], str]) -> Field:
    def pair(data: bytes) -> tuple[str, str]:
        values = entry.read(data, 0, len(data))
        return values.get("key", ""), valued(values.get("value"))

    read = _cached(pair)

    def put(values: Found, data: bytes, begin: int, end: int) -> None:
        key, value = read(data[begin:end])
        values.setdefault(name, {})[key] = value

    return Field(at, name, put)


def _cached(read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    cache: BoundedCache[bytes, Any] = BoundedCache(_CACHE_ENTRIES, _CACHE_BYTES)
    get = cache.get

    def cached(data: bytes) -> Any:
        value = get(data)
        if value is None:
            value = read(data)
            cache.keep(data, value, len(data))
        return value

    return cached


def _seconds(data: bytes, begin: int, end: int) -> int:
    seconds: int = _TIME.read(data, begin, end).get("seconds", 0)
    return seconds if seconds < _SIGN else seconds - 2 * _SIGN


def _raw(at: int, name: str) -> Field:
    """Return the position of a field that is decoded later: (begin, end)."""

    def put(values: Found, _data: bytes, begin: int, end: int) -> None:
        values[name] = begin, end

    return Field(at, name, put)


_TIME: Final = Message(number(1, "seconds"))
_QUANTITY: Final = Message(text(1, "string"))

METADATA: Final = (
    text(1, "name"),
    text(3, "namespace"),
    text(5, "uid"),
    text(6, "resourceVersion"),
)
"""The fields of ObjectMeta that a reflector needs."""

_STATUS: Final = Message(
    part(1, "metadata", Message(text(3, "continue"))),
    text(2, "status"),
    text(3, "message"),
    text(4, "reason"),
    number(6, "code"),
)
_UNKNOWN: Final = Message(_raw(2, "raw"))
_EVENT: Final = Message(text(1, "type"), part(2, "object", Message(_raw(1, "raw"))))


# --- responses -----------------------------------------------------------------------------------


def status(data: bytes) -> Found:
    """Return the Status of an error response.

    Raises:
        UnreadableError: not a Status.
    """
    try:
        return _status(data, 0, len(data))
    except (IndexError, KeyError, ValueError) as error:
        raise UnreadableError("the API server returned invalid protobuf") from error


class ChangeDecoder:
    """Decodes a watch of objects with these fields."""

    def __init__(self, message: Message) -> None:
        self._message = message
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Found]:
        """Yield the complete events: `type` and `object`, as in JSON.

        Raises:
            UnreadableError: invalid data.
        """
        data, at = self._rest + data, 0
        while len(data) - at >= _LENGTH:
            begin = at + _LENGTH
            end = begin + int.from_bytes(data[at:begin])
            if end - begin > CHANGE_LIMIT:
                raise UnreadableError(f"a watch event exceeds {CHANGE_LIMIT} bytes")
            if end > len(data):
                break
            try:
                yield self._change(data, begin, end)
            except (IndexError, KeyError, ValueError) as error:
                raise UnreadableError("the API server sent invalid protobuf") from error
            at = end
        self._rest = data[at:]

    def _change(self, data: bytes, begin: int, end: int) -> Found:
        event = _EVENT.read(data, begin, end)
        kind = event["type"]
        begin, end = event["object"]["raw"]
        if kind == "ERROR":
            return {"type": kind, "object": _status(data, begin, end)}
        return {"type": kind, "object": _object(self._message, data, begin, end)}


def _status(data: bytes, begin: int, end: int) -> Found:
    return {"kind": "Status", **_object(_STATUS, data, begin, end)}


def _object(message: Message, data: bytes, begin: int, end: int) -> Found:
    if not data.startswith(_MAGIC, begin):
        raise UnreadableError("an object without the prefix of its type")
    begin, end = _UNKNOWN.read(data, begin + len(_MAGIC), end)["raw"]
    return message.read(data, begin, end)

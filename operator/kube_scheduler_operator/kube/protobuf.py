"""Kubernetes' protobuf, as far as somebody asks for: a few fields of an object, in JSON's shape.

The API server writes an object as protobuf once for everybody who watches it so, kube-scheduler and
the kubelets among them; as JSON it would write each change for us alone, which costs it more than
placing the pod costs an extender. Who reads so says which fields it wants (`Message`); all others
are stepped over and never decoded.

Format: https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
and https://protobuf.dev/programming-guides/encoding/; the numbers of fields are in the files
generated.proto of k8s.io/api and k8s.io/apimachinery, and never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
ACCEPT: Final = f"{MEDIA_TYPE};stream=watch, application/json"
"""Of a watch. A server that has no protobuf of a kind, as of every CRD, answers with JSON."""

_MAGIC: Final = b"k8s\0"
"""Before every object that says itself what it is."""

_LENGTH: Final = 4
"""Bytes of a frame's length, before the frame."""

CHANGE_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of one change in a watch, however written; etcd takes objects of 1.5 MiB by default."""

_KEPT, _KEPT_BYTES = 4096, 512 * 1024
"""So many different parts of a field are remembered, of so many bytes; then from new."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 64
_SIGN: Final = 1 << 63

Found = dict[str, Any]
Put = Callable[[Found, bytes, int, int], None]
"""Takes what was found so far, the bytes, and where in them the field begins and ends."""


class UnreadableError(ValueError):
    """The bytes are not what they are said to be."""


class Field:
    """One field of a message.

    Args:
        number: from generated.proto.
        name: as in JSON.
        put: reads it; None: it is a number or a bool, and read as a number.
    """

    __slots__ = ("name", "put", "tag")

    def __init__(self, number: int, name: str, put: Put | None = None) -> None:
        self.tag = number << 3 | (_VARINT if put is None else _BYTES)
        self.name = name
        self.put = put


class Message:
    """The fields that are read of a message; one of another type counts as absent."""

    __slots__ = ("_numbers", "_puts")

    def __init__(self, *fields: Field) -> None:
        self._numbers = {field.tag: field.name for field in fields if field.put is None}
        self._puts = {field.tag: field.put for field in fields if field.put is not None}

    def read(self, data: bytes, at: int, end: int) -> Found:
        """What is in `data[at:end]`: in a dictionary as of JSON, with times in seconds since 1970.

        Raises:
            ValueError, IndexError: It is no such message.
        """
        # This is run for every change of every pod: the lengths of most fields are one byte, and a
        # call costs as much as all else that is done for a field that nobody wants.
        found: Found = {}
        numbers, puts = self._numbers, self._puts
        while at < end:
            tag = data[at]
            at += 1
            if tag > 0x7F:
                tag, at = _varint(data, at - 1)
            kind = tag & 7
            if kind == _BYTES:
                size = data[at]
                at += 1
                if size > 0x7F:
                    size, at = _varint(data, at - 1)
                begin, at = at, at + size
                if at > end:
                    break
                if (put := puts.get(tag)) is not None:
                    put(found, data, begin, at)
            elif kind == _VARINT:
                value = data[at]
                at += 1
                if value > 0x7F:
                    value, at = _varint(data, at - 1)
                if (name := numbers.get(tag)) is not None:
                    found[name] = value
            elif kind == _FIXED64:
                at += 8
            elif kind == _FIXED32:
                at += 4
            else:
                raise UnreadableError(f"a field of the unknown wire type {kind}")
        if at != end:
            raise UnreadableError("a field goes beyond its message")
        return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends; seven bits a byte, the least first."""
    value = shift = 0
    while shift < _LONGEST_VARINT:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise UnreadableError("a number of more than 64 bits")


# --- kinds of fields ------------------------------------------------------------------------------


def number(at: int, name: str) -> Field:
    """A whole number that is not negative, or a bool as 0 or 1."""
    return Field(at, name)


def text(at: int, name: str) -> Field:
    """A string; an empty one is left out, as JSON does."""

    def put(found: Found, data: bytes, begin: int, end: int) -> None:
        if end > begin:
            found[name] = data[begin:end].decode()

    return Field(at, name, put)


def time(at: int, name: str) -> Field:
    """A Time: whole seconds since 1970; none is left out."""

    def put(found: Found, data: bytes, begin: int, end: int) -> None:
        if seconds := _TIME.read(data, begin, end).get("seconds"):
            found[name] = seconds if seconds < _SIGN else seconds - 2 * _SIGN

    return Field(at, name, put)


def part(at: int, name: str, message: Message) -> Field:
    """A message in the message."""

    def put(found: Found, data: bytes, begin: int, end: int) -> None:
        found[name] = message.read(data, begin, end)

    return Field(at, name, put)


def parts(at: int, name: str, message: Message) -> Field:
    """A list of messages. Equal ones are read once, and are then the same object: do not change it.

    The containers of a Deployment's thousand pods are the same, byte by byte.
    """
    read = _remembered(lambda data: message.read(data, 0, len(data)))

    def put(found: Found, data: bytes, begin: int, end: int) -> None:
        found.setdefault(name, []).append(read(data[begin:end]))

    return Field(at, name, put)


def strings(at: int, name: str) -> Field:
    """A map from strings to strings."""
    return _map(at, name, Message(text(1, "key"), text(2, "value")), lambda value: value or "")


def quantities(at: int, name: str) -> Field:
    """A map from strings to quantities, which are strings too."""
    entry = Message(text(1, "key"), part(2, "value", _QUANTITY))
    return _map(at, name, entry, lambda value: (value or {}).get("string", "0"))


def _map(at: int, name: str, entry: Message, valued: Callable[[Any], str]) -> Field:
    def pair(data: bytes) -> tuple[str, str]:
        found = entry.read(data, 0, len(data))
        return found.get("key", ""), valued(found.get("value"))

    read = _remembered(pair)

    def put(found: Found, data: bytes, begin: int, end: int) -> None:
        key, value = read(data[begin:end])
        found.setdefault(name, {})[key] = value

    return Field(at, name, put)


def _remembered(read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    known: dict[bytes, Any] = {}
    room = _KEPT_BYTES

    def remembered(data: bytes) -> Any:
        nonlocal room
        value = known.get(data)
        if value is None:
            value = read(data)
            if len(known) >= _KEPT or len(data) > room:
                known.clear()
                room = _KEPT_BYTES
            if len(data) <= room:
                known[data] = value
                room -= len(data)
        return value

    return remembered


def _raw(at: int, name: str) -> Field:
    """Where something is that is read later: (begin, end)."""

    def put(found: Found, _data: bytes, begin: int, end: int) -> None:
        found[name] = begin, end

    return Field(at, name, put)


_TIME: Final = Message(number(1, "seconds"))
_QUANTITY: Final = Message(text(1, "string"))

METADATA: Final = (
    text(1, "name"),
    text(3, "namespace"),
    text(5, "uid"),
    text(6, "resourceVersion"),
)
"""Fields of ObjectMeta without which nobody can follow objects."""

_STATUS: Final = Message(
    text(2, "status"), text(3, "message"), text(4, "reason"), number(6, "code")
)
_UNKNOWN: Final = Message(_raw(2, "raw"))
_EVENT: Final = Message(text(1, "type"), part(2, "object", Message(_raw(1, "raw"))))


# --- what a server sends --------------------------------------------------------------------------


def status(data: bytes) -> Found:
    """The Status of an answer that refuses something.

    Raises:
        UnreadableError: It is none.
    """
    try:
        return _status(data, 0, len(data))
    except (IndexError, KeyError, ValueError) as error:
        raise UnreadableError("the API server answered with broken protobuf") from error


class Changes:
    """Reads a watch.

    Args:
        message: what is read of the objects.
    """

    def __init__(self, message: Message) -> None:
        self._message = message
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Found]:
        """The changes that are complete now: `type` and `object`, as in JSON.

        Raises:
            UnreadableError: These are no changes.
        """
        data, at = self._rest + data, 0
        while len(data) - at >= _LENGTH:
            begin = at + _LENGTH
            end = begin + int.from_bytes(data[at:begin])
            if end - begin > CHANGE_LIMIT:
                raise UnreadableError(f"a change of more than {CHANGE_LIMIT} bytes")
            if end > len(data):
                break
            try:
                yield self._change(data, begin, end)
            except (IndexError, KeyError, ValueError) as error:
                raise UnreadableError("the API server sent broken protobuf") from error
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
        raise UnreadableError("an object without its mark")
    begin, end = _UNKNOWN.read(data, begin + len(_MAGIC), end)["raw"]
    return message.read(data, begin, end)

"""A list in protobuf, object by object while it arrives, so that memory does not depend on it.

A tenant may create Pods of megabytes each. Of an object that is larger than the limit, only its
name is read. Field numbers are those of generated.proto in k8s.io/apimachinery.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..base.limits import LIST_ITEM_BYTES
from . import protobuf
from .protobuf import MEDIA_TYPE, Message, UnreadableError

ACCEPT: Final = f"{MEDIA_TYPE}, application/json"
"""Accept header of a list. Kinds without protobuf, such as all CRDs, come as JSON."""

_AS_METADATA: Final = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
ACCEPT_METADATA: Final = f"{MEDIA_TYPE};{_AS_METADATA}, application/json;{_AS_METADATA}"
"""Accept header of a list of which only metadata is sent; of CRDs in protobuf as well."""

_MAGIC: Final = b"k8s\0"

_UNKNOWN_RAW, _LIST_METADATA, _LIST_ITEM = 0x12, 0x0A, 0x12
"""Tags: `raw` of Unknown, which has the list, and the two fields of every list."""

_PREFIX: Final = 4096
"""Bytes that name an object that is left out: metadata comes first, with name and namespace in
front of labels and annotations."""

_METADATA_BYTES: Final = 64 * 1024
"""Metadata of a list: a version and a token."""

_LIST_META: Final = Message(protobuf.text(2, "resourceVersion"), protobuf.text(3, "continue"))
_OBJECT_META, _NAME, _NAMESPACE, _UID = 0x0A, 0x0A, 0x1A, 0x2A


@dataclass(frozen=True, slots=True)
class Oversized:
    """An object that is larger than the limit."""

    namespace: str  # from its first bytes; empty if they are not there
    name: str
    uid: str
    size: int


class ListDecoder:
    """Decodes one page.

    `item_limit` is the size in bytes of the largest object that is returned.
    """

    def __init__(self, item_limit: int = LIST_ITEM_BYTES) -> None:
        # of the list: `resourceVersion` and, unless it is the last page, `continue`
        self.metadata: dict[str, str] = {}
        self._item_limit = item_limit
        self._data = bytearray()
        self._skip = 0  # bytes to come of a field that is not read
        self._left = -1  # bytes of the list still to come; -1: it has not begun

    def feed(self, data: bytes) -> Iterator[bytes | Oversized]:
        """Yield the objects that are complete, as they were encoded.

        Raises:
            UnreadableError: invalid data.
        """
        if skipped := min(self._skip, len(data)):
            self._skip -= skipped
            data = data[skipped:]
        self._data += data
        if self._left < 0 and not self._begin():
            return
        at = 0
        while at < len(self._data) and self._left > 0:
            try:
                end, element = self._field(at)
            except IndexError:  # more is to come
                break
            if element is not None:
                yield element
            self._left -= end - at
            at = end
        if self._left == 0:  # what follows has no objects
            at = max(at, len(self._data))
        self._skip += max(at - len(self._data), 0)
        del self._data[:at]

    def close(self) -> None:
        """End the response.

        Raises:
            UnreadableError: the list is incomplete.
        """
        if self._left or self._skip:
            raise UnreadableError("the list is incomplete")

    def _begin(self) -> bool:
        """Return whether the list has begun; removes what is in front of it."""
        if not _MAGIC.startswith(bytes(self._data[: len(_MAGIC)])):
            raise UnreadableError("a list without the prefix of its type")
        at = len(_MAGIC)
        try:
            while True:
                tag, size, begin = self._header(at)
                if tag == _UNKNOWN_RAW:
                    break
                if size > _METADATA_BYTES:
                    raise UnreadableError("the type of a list is too long")
                at = begin + size
        except IndexError:
            return False
        self._left = size
        del self._data[:begin]
        return True

    def _header(self, at: int) -> tuple[int, int, int]:
        """Return tag, size and begin of the content of a field."""
        tag, at = protobuf.varint(self._data, at)
        if tag & 7 != 2:  # of a list and its envelope, all fields have a length
            raise UnreadableError(f"unknown field {tag >> 3} of a list")
        size, at = protobuf.varint(self._data, at)
        return tag, size, at

    def _field(self, at: int) -> tuple[int, bytes | Oversized | None]:
        """Return the end of a field, which may be to come, and the object in it.

        Raises:
            IndexError: more bytes are needed.
        """
        tag, size, begin = self._header(at)
        end = begin + size
        if end - at > self._left:
            raise UnreadableError("an object exceeds its list")
        if tag == _LIST_ITEM:
            if size > self._item_limit:
                self._need(min(end, begin + _PREFIX))
                return end, _named(bytes(self._data[begin : begin + _PREFIX]), size)
            self._need(end)
            return end, bytes(self._data[begin:end])
        if tag == _LIST_METADATA:
            if size > _METADATA_BYTES:
                raise UnreadableError("the metadata of a list is too long")
            self._need(end)
            self.metadata = _LIST_META.read(bytes(self._data), begin, end)
        return end, None

    def _need(self, end: int) -> None:
        if end > len(self._data):
            raise IndexError


def _named(prefix: bytes, size: int) -> Oversized:
    """Return an object by the begin of it."""
    names: dict[int, str] = {}
    try:
        tag, at = protobuf.varint(prefix, 0)
        _, at = protobuf.varint(prefix, at)
        while tag == _OBJECT_META and at < len(prefix):
            field, at = protobuf.varint(prefix, at)
            length, at = protobuf.varint(prefix, at)
            if field & 7 != 2 or at + length > len(prefix):
                break
            names[field] = prefix[at : at + length].decode()
            at += length
    except (IndexError, ValueError):
        pass  # what was read before
    return Oversized(names.get(_NAMESPACE, ""), names.get(_NAME, ""), names.get(_UID, ""), size)

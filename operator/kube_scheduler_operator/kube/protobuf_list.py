"""A list in protobuf, object by object while it arrives, so that memory does not depend on it.

A tenant may create Pods of megabytes each. Of an object that is larger than the limit, only its
name is read. Field numbers are those of generated.proto in k8s.io/apimachinery.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import aiohttp

from ..base.limits import LIST_ITEM_BYTES
from . import protobuf
from .api import LeftOut, Object
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

_AT_ONCE: Final = 64 * 1024

_LIST_META: Final = Message(protobuf.text(2, "resourceVersion"), protobuf.text(3, "continue"))
_OBJECT_META, _NAME, _NAMESPACE, _UID = 0x0A, 0x0A, 0x1A, 0x2A


class ListReader:
    """Reads one page; each of its methods raises UnreadableError for invalid data."""

    def __init__(
        self, kind: str, content: aiohttp.StreamReader, item_limit: int = LIST_ITEM_BYTES
    ) -> None:
        # of the list: `resourceVersion` and, unless it is the last page, `continue`
        self.metadata: Object = {}
        self.size = 0  # bytes that were read
        self._kind = kind  # of the objects
        self._content = content
        self._item_limit = item_limit  # bytes of the largest object that is returned

    async def objects(self) -> AsyncIterator[bytes | LeftOut]:
        """Yield the objects as they were encoded, and those that are too large by name."""
        length = await self._length()
        end = self.size + length
        while self.size < end:
            tag, size = await self._header()
            if self.size + size > end:
                raise UnreadableError("an object exceeds its list")
            if tag == _LIST_ITEM and size > self._item_limit:
                prefix = await self._read(min(size, _PREFIX))
                yield _left_out(self._kind, prefix, size)
                await self._skip(size - len(prefix))
            elif tag == _LIST_ITEM:
                yield await self._read(size)
            elif tag == _LIST_METADATA:
                if size > _METADATA_BYTES:
                    raise UnreadableError("the metadata of a list is too long")
                self.metadata = decode(_LIST_META, await self._read(size))
            else:
                await self._skip(size)
        async for data in self._content.iter_any():  # what follows has no objects
            self.size += len(data)

    async def _length(self) -> int:
        """Read what is in front of the list; return the bytes of the list."""
        if await self._read(len(_MAGIC)) != _MAGIC:
            raise UnreadableError("a list without the prefix of its type")
        while True:
            tag, size = await self._header()
            if tag == _UNKNOWN_RAW:
                return size
            if size > _METADATA_BYTES:
                raise UnreadableError("the type of a list is too long")
            await self._read(size)

    async def _header(self) -> tuple[int, int]:
        """Return the tag of a field and the bytes of its content."""
        data = await self._read(2)  # each of the two numbers has at least one byte
        while True:
            try:
                tag, at = protobuf.varint(data, 0)
                size, _ = protobuf.varint(data, at)
                break
            except IndexError:
                data += await self._read(1)
        if tag & 7 != 2:  # of a list and its envelope, all fields have a length
            raise UnreadableError(f"unknown field {tag >> 3} of a list")
        return tag, size

    async def _skip(self, size: int) -> None:
        while size:
            size -= len(await self._read(min(size, _AT_ONCE)))

    async def _read(self, size: int) -> bytes:
        self.size += size
        parts: list[bytes] = []
        try:
            while size:  # a larger part would let the connection buffer twice as much
                parts.append(await self._content.readexactly(min(size, _AT_ONCE)))
                size -= len(parts[-1])
        except asyncio.IncompleteReadError as error:
            raise UnreadableError("the list is incomplete") from error
        return b"".join(parts)


def decode(message: Message, data: bytes) -> Object:
    try:
        return message.read(data, 0, len(data))
    except IndexError as error:
        raise UnreadableError("an object ends within a field") from error


def _left_out(kind: str, prefix: bytes, size: int) -> LeftOut:
    """Name an object by its first bytes; without a name if that is not in them."""
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
    namespace, name, uid = (names.get(tag, "") for tag in (_NAMESPACE, _NAME, _UID))
    return LeftOut(kind, namespace, name, uid, f"{size} bytes")

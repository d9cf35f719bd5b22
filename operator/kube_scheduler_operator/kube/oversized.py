"""Names objects that are too large to be decoded, and logs each once."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from ..base.bounded_cache import Recent
from ..base.json_text import TooLargeError, read_json
from .api import LeftOut, ListResult, Object
from .reading import Loads
from .token_bucket import TokenBucket

log = logging.getLogger(__name__)

LEFT_OUT: Final = "leftOut"
"""Key of an object of which only the identity was read; the value is the exceeded limit."""

_REMEMBERED: Final = 1024

_AT_ONCE: Final = 20
"""Objects that are named in the log; a tenant may create, and change, thousands."""

_REFILL: Final = 60.0
"""Seconds until a further one is."""

_TOKEN: Final = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")\s*(:?)|[\[\]{}]', re.DOTALL)
_Path: TypeAlias = tuple[bytes, ...]


def _path(*keys: str) -> _Path:
    """Return the keys from the root; an element of a list has an empty one."""
    return tuple(f'"{key}"'.encode() if key else b"" for key in keys)


_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion")
_EVENT: Final[Mapping[_Path, str]] = {
    _path("type"): "type",
    _path("object", "apiVersion"): "apiVersion",
    _path("object", "kind"): "kind",
    **{_path("object", "metadata", key): key for key in _IDENTITY},
}
_METADATA: Final = 3
"""The level of an object's metadata in an event of a watch."""

_LIST: Final[Mapping[_Path, str]] = {
    _path("metadata", "resourceVersion"): "listVersion",
    _path("metadata", "continue"): "continue",
    **{_path("items", "", "metadata", key): key for key in _IDENTITY},
}


class Notices:
    """Logs objects that are left out, each once; of many at a time, only their number."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._known: Recent[LeftOut, None] = Recent(_REMEMBERED)
        self._room = TokenBucket(_AT_ONCE, _REFILL, clock)
        self._unnamed = 0  # objects that were left out and not named since the last line

    def report(self, left_out: Iterable[LeftOut]) -> None:
        """Log these objects."""
        for obj in left_out:
            if obj not in self._known:
                self._log(obj)
            self._known.keep(obj, None)

    def _log(self, obj: LeftOut) -> None:
        if self._room.left() < 1:
            self._unnamed += 1
            return
        self._room.spend()
        more = f", and so are {self._unnamed} more objects" if self._unnamed else ""
        log.warning("%s%s", obj, more)
        self._unnamed = 0

    def event(self, line: str | bytes, loads: Loads = json.loads) -> Any:
        """Decode a line of a watch; of an object that is too large, log it and return its deletion.

        Raises:
            ValueError: this is not JSON, or does not name its object.
        """
        try:
            return read_json(line, loads=loads)
        except TooLargeError as error:
            data = line if isinstance(line, bytes) else line.encode()
            event, left_out = without_content(data, error)
        self.report((left_out,))
        return event


def without_content(line: bytes, error: TooLargeError) -> tuple[Object, LeftOut]:
    """Return a deletion in place of an oversized object's watch event, and what is left out.

    A client that knew the object has an outdated state of it, so to the client it is deleted.

    Raises:
        TooLargeError: `error`, if the event does not name its object.
    """
    texts = _outline(line, _EVENT, _METADATA)
    metadata: dict[str, str] = {key: texts[key] for key in _IDENTITY if key in texts}
    if "name" not in metadata:
        raise error
    obj: Object = {
        "apiVersion": texts.get("apiVersion"),
        "kind": texts.get("kind"),
        "metadata": metadata,
    }
    deletion: Object = {"type": "DELETED", "object": obj}
    if texts["type"] != "DELETED":
        obj[LEFT_OUT] = error.excess
    return deletion, _left_out(texts.get("kind", ""), texts, error.excess)


def identity(left_out: LeftOut) -> Object:
    """Return what is known of an object that a list leaves out."""
    fields = {"name": left_out.name, "namespace": left_out.namespace, "uid": left_out.uid}
    metadata = {key: value for key, value in fields.items() if value}
    return {"metadata": metadata, LEFT_OUT: left_out.excess}


def first_of_list(kind: str, text: bytes, excess: str) -> ListResult:
    """Return a page with the metadata of one oversized object, without decoding the object."""
    texts = _outline(text, _LIST)
    named = (_left_out(kind, texts, excess),) if "name" in texts else ()
    return ListResult([], texts.get("listVersion", ""), named, texts.get("continue", ""))


def _left_out(kind: str, texts: Mapping[str, str], excess: str) -> LeftOut:
    return LeftOut(kind, texts.get("namespace", ""), texts["name"], texts.get("uid", ""), excess)


def _outline(text: bytes, fields: Mapping[_Path, str], until: int = 0) -> dict[str, str]:
    """Return the strings at these paths; ends at the end of the level `until` that has the name."""
    texts: dict[str, str] = {}
    keys: list[bytes] = []
    longest = max(map(len, fields))
    for token in _TOKEN.finditer(text):
        bracket = token[0]
        if bracket in b"[{":
            keys.append(b"")
        elif bracket in b"]}":
            if len(keys) == until and "name" in texts:
                break
            del keys[-1:]
        elif token[2] and keys:
            keys[-1] = token[1]
        elif len(keys) <= longest and (name := fields.get(tuple(keys))):
            texts[name] = json.loads(token[1])
    return texts

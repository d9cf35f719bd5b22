"""Objects that are too large to be decoded: what they are called, and that it is logged once."""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final

from ..base.json_text import TooLargeError
from .api import LeftOut, Object

log = logging.getLogger(__name__)

_REMEMBERED: Final = 1024

_TOKEN: Final = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")\s*(:?)|[\[\]{}]', re.DOTALL)
_METADATA: Final = 3
"""The level of an object's metadata in an event of a watch."""

_FIELDS: Final[Mapping[int, Mapping[tuple[bytes, ...], str]]] = {
    1: {(b'"type"',): "type"},
    2: {
        (b'"object"', name): key
        for name, key in ((b'"apiVersion"', "apiVersion"), (b'"kind"', "kind"))
    },
    _METADATA: {
        (b'"object"', b'"metadata"', f'"{key}"'.encode()): key
        for key in ("name", "namespace", "uid", "resourceVersion")
    },
}


class Notices:
    """Logs every object that is left out, once."""

    def __init__(self) -> None:
        self._known: OrderedDict[LeftOut, None] = OrderedDict()

    def report(self, found: Iterable[LeftOut]) -> None:
        """These objects were left out."""
        for each in found:
            if each not in self._known:
                log.warning("%s", each)
            self._known[each] = None
            self._known.move_to_end(each)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)


def without_content(line: bytes, error: TooLargeError) -> tuple[Object, LeftOut]:
    """An event of a watch whose object is too large: a deletion, and what is left out.

    Whoever knew the object knows an old state of it, so it does not exist any more.

    Raises:
        TooLargeError: `error`, if the event does not name its object.
    """
    found = _outline(line)
    metadata: dict[str, str] = {
        key: found[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in found
    }
    if "name" not in metadata:
        raise error
    obj: Object = {
        "apiVersion": found.get("apiVersion"),
        "kind": found.get("kind"),
        "metadata": metadata,
    }
    kind, namespace = found.get("kind", "object"), metadata.get("namespace", "")
    left_out = LeftOut(kind, namespace, metadata["name"], metadata.get("uid", ""), error.excess)
    return {"type": "DELETED", "object": obj}, left_out


def _outline(line: bytes) -> dict[str, str]:
    """The texts of _FIELDS; metadata is in front of everything that may be large."""
    found: dict[str, str] = {}
    keys: list[bytes] = []
    for token in _TOKEN.finditer(line):
        bracket = token[0]
        if bracket in b"[{":
            keys.append(b"")
        elif bracket in b"]}":
            if len(keys) == _METADATA and "name" in found:
                break
            del keys[-1:]
        elif token[2] and keys:
            keys[-1] = token[1]
        elif name := _FIELDS.get(len(keys), {}).get(tuple(keys)):
            found[name] = json.loads(token[1])
    return found

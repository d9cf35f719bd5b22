"""Leaves the many objects that configure no scheduler out of Lists, before files are checked.

A check reads every character of a file with its position, which takes seconds for thousands of
Pods.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from ...base.objects import mapping
from ...simulate.kinds import KINDS
from ...simulate.process import PROGRAM

_LIST: Final = re.compile(rb"^items:[ \t]*\n(?=- )", re.MULTILINE)
_ITEM: Final = re.compile(rb"^- ", re.MULTILINE)
_END: Final = re.compile(rb"^(?![- \n])", re.MULTILINE)
_KIND: Final = re.compile(rb"^  kind:[ \t]*(\w+)[ \t]*$", re.MULTILINE)
_ALIAS: Final = re.compile(rb"(?:- |: )[&*]\w")
_BULK: Final = frozenset(kind.resource.kind for kind in KINDS.values() if kind.read_by_scheduler)
_NAME: Final = PROGRAM.encode()


def without_bulk(content: str | bytes) -> str | bytes:
    """Return a file without the Nodes, Pods and so on in its List that start no kube-scheduler."""
    data = content.encode() if isinstance(content, str) else content
    if data.lstrip()[:1] == b"{":
        try:
            document = orjson.loads(data)
        except ValueError:
            return content  # the check reports it
        return _of_json(document, content)
    return _of_yaml(data) if _LIST.search(data) and not _ALIAS.search(data) else content


def _of_json(document: Any, content: str | bytes) -> str | bytes:
    items = mapping(document).get("items")
    if not isinstance(items, list):
        return content
    return orjson.dumps({**document, "items": [item for item in items if not _is_bulk(item)]})


def _is_bulk(item: Any) -> bool:
    bulk = isinstance(item, Mapping) and item.get("kind") in _BULK
    return bulk and _NAME not in orjson.dumps(item)


def _of_yaml(data: bytes) -> bytes:
    kept, at = [], 0
    for start in (match.end() for match in _LIST.finditer(data)):
        kept.append(data[at:start])
        end = _END.search(data, start)
        at = end.start() if end is not None else len(data)
        begins = [match.start() for match in _ITEM.finditer(data, start, at)]
        for begin, stop in zip(begins, (*begins[1:], at), strict=True):
            item = data[begin:stop]
            kind = _KIND.search(item)
            if kind is None or kind[1].decode() not in _BULK or _NAME in item:
                kept.append(item)
    return b"".join((*kept, data[at:]))

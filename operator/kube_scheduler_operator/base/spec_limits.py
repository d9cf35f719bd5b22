"""The check of a spec against limits.py: its depth, its size and its values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .findings import Path, Problem
from .json_text import exceeds_depth
from .limits import DEPTH, SPEC_BYTES

TOO_DEEP: Final = "TooDeep"
TOO_LARGE: Final = "TooLarge"
NOT_JSON: Final = "InvalidValue"
_SHOWN: Final = 6  # parts of the path of a value that is nested too deep

# Results for the specs of the last snapshot, by identity: specs rarely change, and a cache with a
# fixed number of entries would keep earlier versions of large ones.
_checked: dict[int, tuple[Any, tuple[Problem, ...]]] = {}


def check_specs(specs: Iterable[Any]) -> None:
    """Check `specs`, and keep their problems for `limit_problems` until the next call."""
    wanted = {id(spec): spec for spec in specs if spec}
    known = {key: entry for key, entry in _checked.items() if key in wanted}
    _checked.clear()
    _checked.update(known)
    for key, spec in wanted.items():
        if key not in known:
            _checked[key] = spec, _find_problems(spec)


def limit_problems(spec: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return why a spec cannot be processed, with paths in it; usually empty."""
    known = _checked.get(id(spec))
    return known[1] if known is not None else _find_problems(spec)


def _find_problems(spec: Any) -> tuple[Problem, ...]:
    if exceeds_depth(spec, DEPTH):
        path = _deepest(spec)[:_SHOWN]
        message = f"this is nested in more than {DEPTH} levels; use fewer levels, or remove it"
        return (Problem(TOO_DEEP, path, message),)
    problem = next(_not_json(spec, ()), None)
    if problem is not None:
        return (problem,)
    size = json_bytes(spec)
    if size > SPEC_BYTES:
        message = (
            f"this has {size} bytes as JSON, and the limit is {SPEC_BYTES}; shorten it, or divide "
            "it into several objects"
        )
        return (Problem(TOO_LARGE, (), message),)
    return ()


def json_bytes(value: Any) -> int:
    """Return the size of a JSON value in compact form."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    return len(text.encode("utf-8", "surrogatepass"))


def data_bytes(data: Mapping[str, str]) -> int:
    """Return the size of the data of a ConfigMap."""
    return sum(len(key.encode()) + len(text.encode()) for key, text in data.items())


def _deepest(spec: Mapping[str, Any]) -> Path:
    """Find the path of a value below DEPTH levels."""
    stack: list[tuple[Any, Path]] = [(spec, ())]
    while stack:
        value, path = stack.pop()
        if len(path) >= DEPTH:
            return path
        children = value.items() if isinstance(value, Mapping) else enumerate(value)
        stack += (
            (child, (*path, key))
            for key, child in children
            if isinstance(child, (dict, list)) and exceeds_depth(child, DEPTH - len(path) - 1)
        )
    return ()


def _not_json(value: Any, path: Path) -> Iterator[Problem]:
    """Yield values that cannot be encoded as JSON in UTF-8, which no API server returns."""
    if isinstance(value, str):
        if not value.isascii() and not _encodable(value):
            message = "this has half of a UTF-16 surrogate pair, not a character; remove it"
            yield Problem(NOT_JSON, path, message)
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield Problem(NOT_JSON, path, f"{value} is not a number in JSON; write a number")
    elif isinstance(value, Mapping):
        for key, child in value.items():
            if not isinstance(key, str) or not _encodable(key):
                yield Problem(NOT_JSON, path, f"the key {key!r} is not text in UTF-8; rename it")
            else:
                yield from _not_json(child, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, child in enumerate(value):
            yield from _not_json(child, (*path, index))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

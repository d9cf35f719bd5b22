"""Mutations of a valid configuration: one change at one path, for all paths."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

Path = tuple[str | int, ...]
Change = tuple[str, Callable[[], Any]]
"""Description of a change, and a function that applies it; few of them are called."""

OTHER_TYPES: tuple[Any, ...] = ("1", "", 1, 0, 1.5, True, [], ["x"], {}, {"x": 1})
NUMBERS: tuple[Any, ...] = (
    -1, 0, 1, 2, 9, 10, 11, 99, 100, 101, -(2**31) - 1, -(2**31), 2**31 - 1, 2**31, 2**63 - 1,
    2**63, 3e38, 3.5e38, 1e-50, 0.1, 1.0,
)  # fmt: skip
TEXTS = (
    "", " ", "a b", "*", "a" * 63, "a" * 64, "a/b/c", "example.com/", "/a", "Example.com/a", "-a",
    "a-", "a_b.c-d", "ü", "example.com/" + "a" * 63, "requests.cpu", "kubernetes.io/x",
    "requests.example.com/a", "sub.kubernetes.io/x", f"{'a' * 250}.com/x",
)  # fmt: skip
DURATIONS = (
    "0", "0s", "+0", "-0", "5", "", " 5s", "5s ", "5 s", "-1s", "+1s", "1h30m", "1.5s", ".5s",
    "5.s", ".s", "1s500ms", "1500us", "1500µs", "1500μs", "1ns", "0.4ns", "1d", "1S", "1e3s",
    "٣s", "00s", "00", "1h0", "999999h", "2562047h47m16.854775807s", "2562047h47m16.854775808s",
    "-2562047h47m16.854775808s", "99999999999999999999s", "1.0000000009s", "PT5S",
    "0.3333333333333333333h",
)  # fmt: skip


def nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every path in a document with its value, from the top down."""
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from nodes(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from nodes(item, (*path, index))


def changed(config: dict[str, Any], path: Path, change: Callable[[Any, Any], None]) -> Any:
    """A copy after `change(parent, key)` at a nonempty path."""
    copied = copy.deepcopy(config)
    parent: Any = copied
    for part in path[:-1]:
        parent = parent[part]
    change(parent, path[-1])
    return copied


def replaced(config: dict[str, Any], path: Path, value: Any) -> Any:
    """A copy with another value at a path."""
    if not path:
        return copy.deepcopy(value)

    def put(parent: Any, key: Any) -> None:
        parent[key] = copy.deepcopy(value)

    return changed(config, path, put)


def shown(path: Path) -> str:
    return ".".join(map(str, path)) or "the top"


def removals(config: dict[str, Any]) -> Iterator[Change]:
    """Without one field or list entry."""

    def remove(parent: Any, key: Any) -> None:
        del parent[key]

    for path, _ in nodes(config):
        if path:
            yield f"without {shown(path)}", partial(changed, config, path, remove)


def nulls(config: dict[str, Any]) -> Iterator[Change]:
    for path, _ in nodes(config):
        if path:
            yield f"null for {shown(path)}", partial(replaced, config, path, None)


def misspelt(config: dict[str, Any]) -> Iterator[Change]:
    """A misspelled field name."""

    def rename(new: str) -> Callable[[Any, Any], None]:
        def change(parent: Any, key: Any) -> None:
            parent[new] = parent.pop(key)

        return change

    for path, _ in nodes(config):
        if path and isinstance(key := path[-1], str):
            for new in (key[0].upper() + key[1:], key + "s", key.lower() + "_"):
                yield f"{new} for {shown(path)}", partial(changed, config, path, rename(new))


def unknown(config: dict[str, Any]) -> Iterator[Change]:
    """An unknown field in every object."""
    for path, value in nodes(config):
        if isinstance(value, dict):
            for name, item in (("noSuchField", 1), ("nothing", None)):
                wider = {**value, name: item}
                yield f"{name} in {shown(path)}", partial(replaced, config, path, wider)


def other_types(config: dict[str, Any]) -> Iterator[Change]:
    for path, value in nodes(config):
        for other in OTHER_TYPES:
            if path and type(other) is not type(value):
                yield f"{other!r} for {shown(path)}", partial(replaced, config, path, other)


def entries(config: dict[str, Any]) -> Iterator[Change]:
    """Lists with a duplicate entry, in reverse order, empty, or with null."""
    for path, value in nodes(config):
        if isinstance(value, list) and value:
            yield f"{shown(path)} begins twice", partial(replaced, config, path, [value[0], *value])
            yield f"{shown(path)} backwards", partial(replaced, config, path, value[::-1])
            yield f"{shown(path)} empty", partial(replaced, config, path, [])
            yield f"{shown(path)} with null", partial(replaced, config, path, [None, *value])


def numbers(config: dict[str, Any]) -> Iterator[Change]:
    for path, value in nodes(config):
        if isinstance(value, int | float) and not isinstance(value, bool):
            for number in NUMBERS:
                yield f"{number} for {shown(path)}", partial(replaced, config, path, number)


def texts(config: dict[str, Any]) -> Iterator[Change]:
    """Various names for a string, and its lower and upper case."""
    for path, value in nodes(config):
        if isinstance(value, str) and not _is_duration(value) and len(value) < 100:
            for text in (*TEXTS, value.lower(), value.upper()):
                yield f"{text!r} for {shown(path)}", partial(replaced, config, path, text)


def durations(config: dict[str, Any]) -> Iterator[Change]:
    for path, value in nodes(config):
        if isinstance(value, str) and _is_duration(value):
            for text in DURATIONS:
                yield f"{text!r} for {shown(path)}", partial(replaced, config, path, text)


def _is_duration(text: str) -> bool:
    return text[:1].isdigit() and text[-1:] == "s"

"""Files as people, editors and attackers damage them: mutations of documents and of their bytes.

One seed makes one file, so that a failure can be repeated.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import yaml

from .mutations import DURATIONS, NUMBERS, OTHER_TYPES, TEXTS, Path, nodes

HUGE = (2**63, -(2**64), 10**30, 10**400, 1e300, float("inf"), float("nan"))
ODD = (
    "\x00", "a\x00b", "\U0001f600", "\u202eabc", "\ufeff", "\u0085", "\u2028", "e\u0301", "\u017f",
    "K", "İ", "١٢", "²", "\ufffe", "\U0010ffff", "\x7f", "\x1b[31m", "a\nb", "a\r\nb", "\t",
    "y", "no", "~", "null", "1e1", "0x1F", "010", "1:30", ".inf", ".nan", "2024-01-01", "<<", "=",
    "- a", "a: b", "*a", "&a", "!!binary é", "{", "}", "[", "%", "@", "`", "'", '"', "{{ x }}",
    "http://[::1", "http://a:99999/x", "http://a b", "https://%zz/", "//", "a" * 300, "9" * 5000,
)  # fmt: skip
KEYS = (1, 1.5, True, None, "", " ", "a.b", "a/b", "metadata", "spec", "kind", "name", "args", "<<")
TOKENS = (
    b"\t", b" ", b"\n", b"---\n", b"...\n", b": ", b"- ", b"? ", b"&a ", b"*a", b"!!binary ",
    b"!!str ", b"!!float ", b"!x ", b"|\n", b">-\n", b"#", b"\x00", b"\xff", b"\xc3",
    b"\xed\xa0\x80",
    b"\xe2\x80\x9c", b"\xc2\xa0", b"{", b"}", b"[", b"]", b",", b"'", b'"', b"%YAML 1.9\n", b"@",
    b"<<: *a\n", b"null", b"\r", b"\xef\xbb\xbf", b"1e999", b"0x", b".nan",
)  # fmt: skip
MISSING = b"missing"
"""Content that stands for a file that does not exist."""
DIRECTORY = b"directory"
"""Content that stands for a directory."""


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """One file."""

    seed: int  # repeats it
    name: str  # of the undamaged file
    damage: tuple[str, ...]  # description of the mutations
    data: bytes  # its content; the object MISSING or DIRECTORY stands for itself

    def __str__(self) -> str:
        return f"KSO_SEED={self.seed}: {self.name}, {', '.join(self.damage)}"


def damaged_file(seed: int, corpus: Sequence[tuple[str, Sequence[Any]]]) -> DamagedFile:
    """The file of a seed: one of the corpus, (name, documents), with one to four mutations."""
    rng = Random(seed)
    name, originals = rng.choice(corpus)
    documents = copy.deepcopy(list(originals))
    if rng.random() < 0.01:
        special = rng.choice((b"", b"\n", b"---\n", b"null", b"[]", b"{}", MISSING, DIRECTORY))
        return DamagedFile(seed, name, (repr(special),), special)
    damage = []
    for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 1, 2, 2, 3))):
        index = rng.randrange(len(documents))
        mutate = rng.choice(STRUCTURAL)
        documents[index] = mutate(rng, documents[index])
        damage.append(mutate.__name__)
    if rng.random() < 0.1:
        documents = [_wrapped(rng, documents)]
        damage.append("wrapped")
    data = _text(rng, documents).encode()
    for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 1, 2)) if damage else rng.choice((1, 2, 4))):
        change = rng.choices(TEXTUAL, WEIGHTS)[0]
        data = change(rng, data)
        damage.append(change.__name__)
    return DamagedFile(seed, name, tuple(damage), data)


# --- documents --------------------------------------------------------------------------------


def _put(document: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    parent = document
    for part in path[:-1]:
        parent = parent[part]
    parent[path[-1]] = value
    return document


def _somewhere(rng: Random, document: Any) -> tuple[Path, Any]:
    """A path with its value; the top, apiVersion and kind seldom, because commands stop there."""
    every = list(nodes(document))
    inner = [each for each in every if each[0] and each[0][-1] not in ("apiVersion", "kind")]
    return rng.choice(every if rng.random() < 0.02 or not inner else inner)


def another_type(rng: Random, document: Any) -> Any:
    path, _ = _somewhere(rng, document)
    return _put(document, path, copy.deepcopy(rng.choice((*OTHER_TYPES, None))))


def odd_text(rng: Random, document: Any) -> Any:
    path, _ = _somewhere(rng, document)
    return _put(document, path, rng.choice((*ODD, *TEXTS, *DURATIONS)))


def odd_number(rng: Random, document: Any) -> Any:
    path, _ = _somewhere(rng, document)
    return _put(document, path, rng.choice((*HUGE, *NUMBERS)))


def odd_key(rng: Random, document: Any) -> Any:
    maps = [value for _, value in nodes(document) if isinstance(value, dict)]
    if not maps:
        return document
    chosen = rng.choice(maps)
    key = rng.choice((*KEYS, *ODD))
    keep = rng.random() < 0.5
    chosen[key] = chosen.pop(rng.choice(list(chosen))) if chosen and keep else rng.choice(ODD)
    return document


def without(rng: Random, document: Any) -> Any:
    path, _ = _somewhere(rng, document)
    if not path:
        return {}
    parent = document
    for part in path[:-1]:
        parent = parent[part]
    del parent[path[-1]]
    return document


def moved(rng: Random, document: Any) -> Any:
    """The value of one field at another one, which makes wrong shapes and nests copies."""
    path, _ = _somewhere(rng, document)
    _, value = _somewhere(rng, document)
    return _put(document, path, copy.deepcopy(value))


def many(rng: Random, document: Any) -> Any:
    """A list or a map with many entries."""
    path, value = _somewhere(rng, document)
    size = rng.choice((2, 3, 3, 20, 20, 300))
    if rng.random() < 0.5:
        return _put(document, path, [value] * size)
    return _put(document, path, {f"k{index}": value for index in range(size)})


def nested(rng: Random, document: Any) -> Any:
    path, value = _somewhere(rng, document)
    for _ in range(rng.choice((1, 2, 5, 40, 90))):
        value = {"a": value} if rng.random() < 0.5 else [value]
    return _put(document, path, value)


STRUCTURAL: tuple[Callable[[Random, Any], Any], ...] = (
    another_type, another_type, another_type, odd_text, odd_text, odd_number, odd_key, without,
    moved, moved, many, nested,
)  # fmt: skip


def _wrapped(rng: Random, documents: list[Any]) -> Any:
    """The documents in a List, in a ConfigMap, or as the kubectl annotation of one."""
    if rng.random() < 0.5:
        return {"apiVersion": "v1", "kind": "List", "items": documents}
    key = rng.choice(("config.yaml", "policy.cfg", "README", "scheduler-config.yaml"))
    data = {key: _text(rng, documents)}
    metadata = {"name": "c", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _text(rng: Random, documents: list[Any]) -> str:
    try:
        return _written(rng, documents)
    except RecursionError:  # nested several times; PyYAML cannot write it
        return "nested: " + "{a: " * 400 + "b" + "}" * 400


def _written(rng: Random, documents: list[Any]) -> str:
    if len(documents) == 1 and rng.random() < 0.25:
        return json.dumps(documents[0], default=str, skipkeys=True, ensure_ascii=rng.random() < 0.5)
    flow = rng.choice((None, False, False))  # True would begin with {, like JSON
    return yaml.dump_all(
        documents,
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        sort_keys=False,
        allow_unicode=rng.random() < 0.5,
        default_flow_style=flow,
    )


# --- bytes ------------------------------------------------------------------------------------


def line_twice(rng: Random, data: bytes) -> bytes:
    """A line, usually a key, a second time."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    line = rng.choice(lines)
    at = rng.randrange(len(lines) + 1) if rng.random() < 0.3 else lines.index(line)
    return b"".join((*lines[:at], line, *lines[at:]))


def line_missing(rng: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def indented(rng: Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = rng.randrange(len(lines))
    lines[at] = rng.choice((b"  ", b"\t", b"- ", b"    ")) + lines[at]
    return b"".join(lines)


def token(rng: Random, data: bytes) -> bytes:
    """A few bytes with a meaning for YAML, somewhere."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) + data[at:]


def bytes_lost(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 2, 10, 100)) :]


def truncated(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def random_bytes(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 3, 50))) + data[at:]


def encoded(rng: Random, data: bytes) -> bytes:
    text = data.decode(errors="replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig")))


def other_lines(rng: Random, data: bytes) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\t\n", b" # c\n", b"\x85")))


def aliases(rng: Random, data: bytes) -> bytes:
    """An anchor at one value and its alias at another one; often the alias is inside the anchor."""
    values = [at for at in range(len(data) - 1) if data[at : at + 2] == b": "]
    if not values:
        return data
    first, last = sorted((rng.choice(values), rng.choice(values)))
    return data[: first + 2] + b"&a " + data[first + 2 : last + 2] + b"*a " + data[last + 2 :]


def alias_bomb(rng: Random, data: bytes) -> bytes:
    width, rows = rng.choice((2, 9)), rng.choice((4, 9, 30))
    lines = ["x0: &x0 lol"]
    for row in range(1, rows):
        lines.append(f"x{row}: &x{row} [{', '.join([f'*x{row - 1}'] * width)}]")
    bomb = "\n".join(lines).encode() + b"\n"
    return bomb + data if rng.random() < 0.5 else data + b"\n" + bomb


def deep(rng: Random, data: bytes) -> bytes:
    """Thousands of levels at some value."""
    count = rng.choice((99, 100, 1000, 5000))
    levels = rng.choice((b"[", b"{a: ", b'{"a":', b"- ", b"? ")) * count
    at = rng.choice([0, *(at + 2 for at in range(len(data) - 1) if data[at : at + 2] == b": ")])
    return data[:at] + levels + data[at:]


def huge_scalar(rng: Random, data: bytes) -> bytes:
    at = rng.choice([0, *(at + 2 for at in range(len(data) - 1) if data[at : at + 2] == b": ")])
    filler = rng.choice((b"a", b"1", b"\xc3\xa9", b"a ", b"#", b"0x1", b"-", b"\\"))
    return data[:at] + filler * rng.choice((5000, 40000)) + data[at:]


TEXTUAL: tuple[Callable[[Random, bytes], bytes], ...] = (
    line_twice, line_missing, indented, token, bytes_lost, truncated, random_bytes, encoded,
    other_lines, aliases, alias_bomb, deep, huge_scalar,
)  # fmt: skip
WEIGHTS = (4, 2, 2, 4, 2, 1, 1, 1, 1, 3, 0.2, 1, 1)
"""Probabilities; reading an alias bomb takes half a second."""

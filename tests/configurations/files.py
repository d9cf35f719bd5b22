"""Files with a KubeSchedulerConfiguration, as people and templates write them, and broken ones.

A file follows from its seed: a configuration is changed, written in a random style, damaged as text
and encoded. Half of the files are valid.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import yaml

from .by_hand import GOOD
from .generate import configurations
from .model import TYPE, typed
from .mutations import DURATIONS, NUMBERS, OTHER_TYPES, nodes, replaced
from .seeds import seeds

ODD_SCALARS = (
    "", "~", "null", "Null", "y", "n", "yes", "on", "Off", "TRUE", "tRue", "0x10", "0X1F", "010",
    "0o17", "0b11", "1_000", "1e1", "1E+1", "1.0", "1.", ".5", "+5", "-0", "089", ".inf", "-.Inf",
    ".nan", "1e400", "18446744073709551616", "9223372036854775808", "2147483648", "1:30",
    "2020-01-01", "2020-01-01T00:00:00Z", "5", "'5'", '"5"', "!!int '5'", "!!str 5", "!!float 5",
    "!!float 5.5", "!!bool yes", "!!null ''", "!!binary YQ==", "!!binary x", "!!timestamp x",
    "!local 5", "! 5", "!!int x", "'it''s'", '"\\x41"', '"\\u00e9"', '"\\q"', "|\n      text",
    ">-\n      text\n      more", "[]", "{}", "[1]", "{a: }", "{a:}", "[a?b]", "{a: b:c}", "<<",
    "=", "*none", "&a x", "a b", "a #b", "a: b", "@x", "%x", "`x`", "-x", "- x", "?x", ":x", "a:b",
    "1s", "15s", "1m", "\u00a0x", "\u201cx\u201d", "é", "\ufeffx", "0", "1", "16", "100", "true",
    "false", "leases", "default-scheduler",
)  # fmt: skip
"""Texts for a value, as they are written in YAML."""
FITTING: dict[type, tuple[str, ...]] = {
    bool: ("y", "n", "yes", "No", "on", "Off", "TRUE", "true", "False", "!!bool yes", "~", ""),
    int: (
        "0x10", "010", "0o17", "0b11", "1_0", "1e1", "1.0", "1.", "+5", "!!int '5'", "!!float 5",
        "089", "~", "", "5 # five", "{}", "!!int 7",
    ),
    str: (
        "'it''s'", '"\\x41"', "|\n      a\n      b", ">-\n      a\n      b", "2020-01-01", "1:30",
        "!!str 5", "!!binary YQ==", "a:b", "a#b", "a,b", "=", "<<", "a\n      b", "é", "~", "",
        "'a\n      b'", "! 5", "-x", "?x", ":x", "[a?b]", "\u201cx\u201d",
    ),
}  # fmt: skip
"""By type, texts that are mostly valid."""
PIECES = (
    "\t", " ", "  ", "\n", "\r\n", "\r", "\u00a0", "\u0085", "\u2028", ":", ": ", "-", "- ", "#",
    " # comment", ",", "[", "]", "{", "}", "&a ", "*a", "!!str ", "?", "? ", "|", ">", "'", '"',
    "%", "@", "`", "---", "\n---\n", "\n...\n", "\x01", "\x7f", "\u201c", "\u2019", "<<: *a", "\\",
    "null", "~", "0", "x", "\n  ", "\n    ", "\n\t",
)  # fmt: skip
BEFORE = (
    "", "\n", "---\n", "# comment\n", "# comment\n---\n", "%YAML 1.1\n---\n", "%YAML 1.2\n---\n",
    "%TAG ! tag:x,2000:\n---\n", "%FOO\n---\n", "--- # comment\n", "---\n---\n", "null\n---\n",
    "---\n# empty\n---\n", "...\n", "kind: Pod\napiVersion: v1\n---\n", "\t\n", "  \n", "{}\n---\n",
    "\u00a0", "\ufeff", "a: b\n---\n", "--- |\n",
)  # fmt: skip
AFTER = (
    "", "\n", "\n\n", "\n---\n", "\n...\n", "\n--- # comment\n", "\n---\na: [\n", "\n---\na: 1\n",
    "\n---\nkind: Pod\napiVersion: v1\n", "\n...\ntext\n", "\n---\n- \tx\n", "\n# comment",
    "\n---\nkind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1beta3\n",
    "\n---\nkind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1\na: 1\n",
    "\n---\na: \x01\n", "\n\t", "\n  ", " x", "\n%YAML 1.1\n---\na: 1\n", "\n---\n*a\n",
)  # fmt: skip
_RAW = re.compile(r"""["']?RAW(\d+)RAW["']?""")
_MARK = "RAW%dRAW"


def file(seed: str, minor: int) -> bytes:
    """The file of a seed for 1.`minor`."""
    rng = Random(f"{seed} {minor}")
    config = _base(rng, minor)
    raw: list[str] = []
    for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 2))):
        config = _changed(rng, config, raw)
    text = _written(rng, config)
    text = _RAW.sub(lambda found: raw[int(found[1])], text)
    for change in (_repeated, _merged, _damaged, _damaged, _lines):
        if rng.random() < 0.05:
            text = change(rng, text)
    if rng.random() < 0.12:
        text = rng.choice(BEFORE) + text
    if rng.random() < 0.3:
        text = text.rstrip("\n") + rng.choice(AFTER)
    return _encoded(rng, text)


def files(seed: str, number: int, minor: int) -> Iterator[tuple[str, bytes]]:
    """(seed, content) of files."""
    for index in range(number):
        yield f"{seed}/{index}", file(f"{seed}/{index}", minor)


def _base(rng: Random, minor: int) -> dict[str, Any]:
    if rng.random() < 0.8:
        return copy.deepcopy(rng.choice([*seeds(minor).values(), *map(typed, GOOD.values())]))
    while True:
        made = rng.choice(configurations(minor))
        if not made.gates:
            return copy.deepcopy(made.config)


def _changed(rng: Random, config: dict[str, Any], raw: list[str]) -> Any:
    """Another value at one path, or a further field."""
    places = [path for path, _ in nodes(config) if path]
    if rng.random() < 0.9:
        places = [path for path in places if path[0] not in TYPE]
    objects = [(path, value) for path, value in nodes(config) if isinstance(value, dict)]
    kind = rng.random()
    if not places:
        return config
    if kind < 0.1:
        path, value = rng.choice(objects)
        name = rng.choice(("metadata", "enableHttps", "resource", "lockObjectName", "1", "y", ""))
        return replaced(config, path, {**value, name: rng.choice((None, "", 1, {}))})
    path = rng.choice(places)
    if kind < 0.3:
        return replaced(config, path, None)
    if kind < 0.75:
        values = dict(nodes(config))
        fitting = FITTING.get(type(values[path]), ODD_SCALARS)
        raw.append(rng.choice(ODD_SCALARS if rng.random() < 0.2 else fitting))
        return replaced(config, path, _MARK % (len(raw) - 1))
    return replaced(config, path, rng.choice(rng.choice((OTHER_TYPES, NUMBERS, DURATIONS))))


class _Dumper(yaml.SafeDumper):
    """Writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _written(rng: Random, config: Any) -> str:
    style = rng.random()
    if style < 0.07:
        return json.dumps(config, ensure_ascii=rng.random() < 0.5)
    if style < 0.12:
        return json.dumps(config, indent=rng.choice((1, 2, "\t")))
    if style < 0.22:
        text = json.dumps(config, indent=2)
    else:
        text = yaml.dump(
            config, Dumper=_Dumper, indent=rng.choice((2, 2, 4)), width=rng.choice((20, 80, 1000)),
            default_flow_style=rng.choice((False, False, False, None, True)), sort_keys=False,
            default_style=rng.choice((None, None, None, None, "'", '"')), allow_unicode=True,
        )  # fmt: skip
    if text.startswith("{") and rng.random() < 0.9:
        return rng.choice(("# a map in one line\n", "--- ", "---\n")) + text
    return text


def _repeated(rng: Random, text: str) -> str:
    """A line or a key twice, or one less."""
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    return "".join(lines[:at] + rng.choice(([lines[at]] * 2, [])) + lines[at + 1 :])


def _merged(rng: Random, text: str) -> str:
    """An anchor, and an alias or a merge key in another line."""
    lines = text.splitlines(keepends=True)
    starts = [index for index, line in enumerate(lines) if line.rstrip().endswith(":")]
    ends = [index for index, line in enumerate(lines) if ": " in line]
    if not starts or not ends:
        return text
    first, last = rng.choice(starts), rng.choice(ends)
    lines[first] = lines[first].rstrip() + " &a\n"
    name, _, value = lines[last].partition(": ")
    indent = name[: len(name) - len(name.lstrip(" -"))].replace("-", " ")
    merged = rng.choice(
        (f"{name}: *a\n", f"{name}: {value}{indent}<<: *a\n", f"{name}: [*a, *a]\n")
    )
    return "".join([*lines[:last], merged, *lines[last + 1 :]])


def _damaged(rng: Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    piece = rng.choice((*PIECES, ""))
    if piece == "\u0085" and text.startswith("{"):
        piece = ""  # kube-scheduler keeps it in a JSON string, and writes it as a line break
    return text[:at] + piece + text[at + rng.choice((0, 0, 1, 2)) :]


def _lines(rng: Random, text: str) -> str:
    """The whole file with other line ends, indentation, comments or quotes."""
    change: Callable[[str], str] = rng.choice((
        lambda one: one.replace("\n", "\r\n"),
        lambda one: one.replace("\n", "\r"),
        lambda one: one.replace("  ", "\t"),
        lambda one: one.replace("\n", " # comment\n"),
        lambda one: one.replace("\n", "\t# comment\n"),
        lambda one: one.replace("\n", "\n\n"),
        lambda one: one.replace(": ", ":\u00a0", 1),
        lambda one: one.replace(": ", ":\t"),
        lambda one: one.replace('"', "\u201d"),
        lambda one: one.replace("\n", "\n "),
        lambda one: one.replace("- ", "-   "),
    ))  # fmt: skip
    return change(text)


def _encoded(rng: Random, text: str) -> bytes:
    kind = rng.random()
    if kind < 0.04:
        return b"\xff\xfe" + text.encode("utf-16-le")
    if kind < 0.08:
        return b"\xfe\xff" + text.encode("utf-16-be")
    if kind < 0.12:
        return b"\xef\xbb\xbf" + text.encode()
    if kind < 0.13:
        return text.encode("utf-16-le")
    data = text.encode()
    if kind < 0.15:
        at = rng.randrange(len(data) + 1)
        data = data[:at] + bytes([rng.randrange(256)]) + data[at:]
    return data

"""Random JSON values that a user may write into a free-form field, as text.

Text, because not all of them are values of Python: duplicate keys, halves of surrogate pairs,
numbers beyond every type, and thousands of levels.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

KEYS = (
    "", " ", "__proto__", "a.b/c", "a b", "$ref", "[0]", "-", "..", "~1", "%2F", "null", "name",
    "kind", "apiVersion", "args", "enabled", "schedulerName", "plugins", "pluginConfig", "\u202e",
    "\U0001f600", "\x00", "\n", "k" * 300, "spec", "metadata", "managedFields", "1", "true",
)  # fmt: skip
TEXTS = (
    "", "NaN", "Infinity", "-inf", "1e400", "null", "\x00", "\u2028", "\ufeff", "\U0001f600", "٣",
    "0x10", "1_000", "{{ names }}", "{% raw %}", "*", "&a", "!!python/object:x",
    "x" * 70_000,
)  # fmt: skip
RAW_TEXTS = (r'"\ud800"', r'"\udc00x"', r'"\ud83d\ude00"', r'"\u0000"', r'"a\/b"')
NUMBERS = (
    "0", "-0", "-1", "1.0", "5.0", "0.1", "2147483648", "9223372036854775807",
    "9223372036854775808", "18446744073709551616", "1e19", "1e308", "1e400", "-1e400", "1e-400",
    "123456789012345678901234567890", "9" * 400,
)  # fmt: skip
DEPTHS = (2, 10, 63, 64, 65, 100, 300, 600, 995, 1_500, 5_000)


def odd_json(rng: random.Random) -> str:
    """A value of a random kind."""
    return rng.choice(_KINDS)(rng)


def odd_object(rng: random.Random) -> str:
    """An object, for fields without a schema of their own."""
    if rng.random() < 0.5:
        return _deep_object(rng)
    size = rng.randint(0, 6)
    return _object((_key(rng), odd_json(rng)) for _ in range(size))


def nested(levels: int, inner: str = "1", *, key: str = "a", lists: bool = False) -> str:
    """Objects or lists in that many levels."""
    if lists:
        return "[" * levels + inner + "]" * levels
    opening = f"{{{json.dumps(key)}:"
    return opening * levels + inner + "}" * levels


def _deep_object(rng: random.Random) -> str:
    return nested(rng.choice(DEPTHS), _leaf(rng), key=_short_key(rng))


def _deep_list(rng: random.Random) -> str:
    return nested(rng.choice(DEPTHS), _leaf(rng), lists=True)


def _deep_mixture(rng: random.Random) -> str:
    levels = rng.choice(DEPTHS)
    opening = [rng.choice(("[", '{"":', '{"a":null,"b":', '[null,"x",')) for _ in range(levels)]
    closing = ["]" if one.startswith("[") else "}" for one in reversed(opening)]
    return "".join((*opening, _leaf(rng), *closing))


def _wide_object(rng: random.Random) -> str:
    count = rng.choice((10, 1_000, 5_000))
    return _object((f"k{index}", _leaf(rng)) for index in range(count))


def _wide_list(rng: random.Random) -> str:
    return f"[{','.join(_leaf(rng) for _ in range(rng.choice((10, 1_000, 5_000))))}]"


def _duplicates(rng: random.Random) -> str:
    key = _key(rng)
    return _object([(key, _leaf(rng)), (key, _leaf(rng)), ("a", "null"), ("a", "{}")])


def _bush(rng: random.Random, levels: int = 4) -> str:
    if levels == 0 or rng.random() < 0.3:
        return _leaf(rng)
    children = [_bush(rng, levels - 1) for _ in range(rng.randint(0, 4))]
    if rng.random() < 0.5:
        return f"[{','.join(children)}]"
    return _object((_key(rng), child) for child in children)


def _leaf(rng: random.Random) -> str:
    kind = rng.randrange(6)
    if kind == 0:
        return "null"
    if kind == 1:
        return rng.choice(NUMBERS)
    if kind == 2:
        return rng.choice(RAW_TEXTS)
    if kind == 3:
        return rng.choice(("true", "false", "{}", "[]"))
    text = rng.choice(TEXTS)
    return json.dumps(text if len(text) < 1_000 or rng.random() < 0.01 else text[:50])


def _key(rng: random.Random) -> str:
    return rng.choice(KEYS)


def _short_key(rng: random.Random) -> str:
    return rng.choice([key for key in KEYS if len(key) < 20])


def _object(items: object) -> str:
    pairs = ",".join(f"{json.dumps(key)}:{value}" for key, value in items)  # type: ignore[attr-defined]
    return f"{{{pairs}}}"


_KINDS: tuple[Callable[[random.Random], str], ...] = (
    _deep_object, _deep_list, _deep_mixture, _wide_object, _wide_list, _duplicates, _bush, _bush,
    _leaf,
)  # fmt: skip

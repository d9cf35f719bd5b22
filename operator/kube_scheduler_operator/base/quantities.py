"""Kubernetes resource quantities: `250m`, `1.5`, `512Mi`, `2e3`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

_QUANTITY: Final = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))([eE][+-]?\d{1,3}|[A-Za-z]{0,2})", re.ASCII
)
_SUFFIXES: Final[Mapping[str, Decimal]] = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    **{f"{letter}i": Decimal(2 ** (10 * power)) for power, letter in enumerate("KMGTPE", start=1)},
}
_LARGEST: Final = Decimal(2**63 - 1)

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"

_LONGEST_CACHED: Final = 64
"""Characters; the API server writes no longer quantity, and other input may have a megabyte."""


def quantity(text: str, *, milli: bool = False) -> float:
    """Parse a quantity in its base unit, or in thousandths of it; round up to an integer, as Go.

    Raises:
        ValueError: the text is not a quantity.
    """
    return (_cached if len(text) <= _LONGEST_CACHED else _quantity)(text, milli=milli)


def _quantity(text: str, *, milli: bool) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is not a quantity such as 250m, 1.5 or 512Mi')
    number, suffix = Decimal(match[1]), match[2]
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
        number = number.scaleb(int(suffix[1:]))
    elif (factor := _SUFFIXES.get(suffix)) is not None:
        number *= factor
    else:
        raise ValueError(f'"{text}" has an unknown suffix; use m, k, M, G, Ki, Mi, Gi or none')
    if milli:
        number *= 1000
    return float(math.ceil(max(min(number, _LARGEST), -_LARGEST)))


_cached: Final = lru_cache(maxsize=4096)(_quantity)


def amount(name: str, value: Any) -> float:
    """Parse the quantity of a resource: CPU in millicores, everything else in base units.

    Raises:
        ValueError: it is not a quantity.
    """
    return quantity(str(value), milli=name == CPU)


def amounts(resources: Any) -> dict[str, float]:
    """Parse a resource list.

    Invalid quantities are ignored: the API server rejects them, and other input must not stop a
    scheduler.
    """
    numbers: dict[str, float] = {}
    if not isinstance(resources, Mapping):
        return numbers
    for name, value in resources.items():
        try:
            numbers[name] = amount(name, value)
        except ValueError:
            continue
    return numbers

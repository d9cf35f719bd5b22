"""What devices of one pool share: counters of partitions, and the completeness of the pool.

Source: the allocator of dynamic-resource-allocation/structured (pools_*.go, allocator_*.go) of
Kubernetes 1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME
from ..base.objects import mapping
from ..base.quantities import quantity

Pool = tuple[str, str]
"""Driver and name."""
_Counter = tuple[str, str]
"""Counter set and name."""
_KI: Final = 1024


def pool_of(slice_: Mapping[str, Any]) -> Pool:
    spec = mapping(slice_.get("spec"))
    return str(spec.get("driver")), str(mapping(spec.get("pool")).get("name") or "")


def incomplete_pools(slices: Iterable[Mapping[str, Any]]) -> Mapping[Pool, str]:
    """Return, of the pools of which ResourceSlices are missing, how many there are.

    kube-scheduler allocates no device of such a pool.
    """
    newest: dict[Pool, int] = {}
    seen: Counter[tuple[Pool, int]] = Counter()
    expected: dict[Pool, int] = {}
    for each in slices:
        pool = mapping(mapping(each.get("spec")).get("pool"))
        key = pool_of(each)
        generation = int(pool.get("generation") or 0)
        seen[key, generation] += 1
        if generation >= newest.get(key, generation):
            newest[key] = generation
            expected[key] = int(pool.get("resourceSliceCount") or 1)
    return {
        key: f"{seen[key, generation]} of {expected[key]}"
        for key, generation in newest.items()
        if seen[key, generation] < expected[key]
    }


@dataclass(frozen=True, slots=True)
class SharedCounters:
    """The counters of a pool, each (counter set, counter)."""

    left: Mapping[_Counter, float]
    whole: Mapping[_Counter, str]  # as they are written


def counters_of(slices: Iterable[Mapping[str, Any]], allocated: Collection[str]) -> SharedCounters:
    """Return the counters of the ResourceSlices of a pool.

    `allocated` has the names of the devices of the pool that claims have.
    """
    left: dict[_Counter, float] = {}
    whole: dict[_Counter, str] = {}
    for each in slices:
        spec = mapping(each.get("spec"))
        for counters in spec.get("sharedCounters") or ():
            for name, content in mapping(counters.get("counters")).items():
                key = (str(counters.get("name")), str(name))
                whole[key] = str(mapping(content).get("value"))
                left[key] = left.get(key, 0.0) + _amount(whole[key])
        for other in spec.get("devices") or ():
            for key, amount in _consumed(other).items() if other.get("name") in allocated else ():
                left[key] = left.get(key, 0.0) - amount
    return SharedCounters(left, whole)


def used_up(device: Mapping[str, Any], counters: SharedCounters) -> str:
    """Return which counter of its pool has too little left for a device; empty: none has."""
    for key, amount in _consumed(device).items():
        left = counters.left.get(key, 0.0)
        if left < amount:
            counter_set, counter = (foreign(text, FOREIGN_NAME) for text in key)
            total = foreign(counters.whole.get(key, "0"), FOREIGN_NAME)
            return (
                f"needs {_written(amount)} of the counter {counter} of {counter_set}, of which "
                f"{_written(max(left, 0.0))} of {total} is left"
            )
    return ""


def _consumed(device: Mapping[str, Any]) -> dict[_Counter, float]:
    content = {**device, **mapping(device.get("basic"))}
    return {
        (str(one.get("counterSet")), str(name)): _amount(str(mapping(value).get("value")))
        for one in content.get("consumesCounters") or ()
        for name, value in mapping(one.get("counters")).items()
    }


def _amount(text: str) -> float:
    """Read a quantity; 0 if it is none, which no API server accepts."""
    try:
        return quantity(text)
    except ValueError:
        return 0.0


def _written(amount: float) -> str:
    for unit, size in (("Ti", _KI**4), ("Gi", _KI**3), ("Mi", _KI**2)):
        if amount >= size and amount % size == 0:
            return f"{amount / size:.0f}{unit}"
    return f"{amount:g}"

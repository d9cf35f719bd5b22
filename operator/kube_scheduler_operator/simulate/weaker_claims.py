"""ResourceClaims that demand less than one that no node meets."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME, FOREIGN_REASON
from ..base.objects import mapping
from .constraint import Rank
from .device_selectors import MayFail, guard_claim, guard_text
from .kinds import DEVICE_TAINT_RULES, Object

_MET_BY_NONE: Final = ", which no free device meets"
MOST_TRIED: Final = 4
"""Of each kind of change, and of other things that are named."""

Setters = Callable[[Mapping[str, Any]], list[str]]
"""Returns who sets taints of devices that a request does not tolerate."""


@dataclass(frozen=True, slots=True)
class WeakerClaim:
    text: str  # the change, in the imperative
    change: Callable[[Object], object]  # of `spec.devices`, in place
    field: str  # that it sets, as a path there; empty: it stands for a change of something else
    rank: Rank


def weaker_claims(
    devices: Mapping[str, Any], title: str, setters: Setters, may_fail: MayFail
) -> Iterator[WeakerClaim]:
    """Yield what may be changed in `spec.devices` of the ResourceClaim `title`."""
    if changed := guard_claim(copy.deepcopy(dict(devices)), may_fail):
        text = guard_text(title, [expression for _, expression in changed])
        field = changed[0][0] if len(changed) == 1 else "requests"
        yield WeakerClaim(text, partial(guard_claim, may_fail=may_fail), field, Rank.MEND)
    for number, constraint in enumerate((devices.get("constraints") or ())[:MOST_TRIED]):
        name = foreign(str(constraint.get("matchAttribute") or ""), FOREIGN_NAME)
        text = f"remove the constraint matchAttribute {name} of {title}"
        change = partial(_without_constraint, number)
        yield WeakerClaim(text, change, f"constraints[{number}]", Rank.DROP)
    for index, request in enumerate(devices.get("requests") or ()):
        for of_request in _changes(request, setters, may_fail):
            field = f"requests[{index}].{of_request.field}" if of_request.field else ""
            change = partial(_in_request, index, of_request.change)
            yield replace(of_request, change=change, field=field)


_Row = tuple[bool, str, Callable[[Object], None], str, Rank]
"""Whether it applies, its text, the change of a request, the field of it that is set, and rank."""


def _changes(
    request: Mapping[str, Any], setters: Setters, may_fail: MayFail
) -> Iterator[WeakerClaim]:
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or ()
    name = foreign(str(request.get("name") or ""), FOREIGN_NAME)
    several = any(int(one.get("count") or 1) > 1 for one in alternatives)
    rows = [
        (several, f"add an alternative with 1 device to request {name}", _add_alternative,
         "firstAvailable", Rank.LESS),
        *(_of_exactly(exactly, setters, may_fail) if isinstance(exactly, Mapping) else ()),
    ]  # fmt: skip
    for applies, text, change, field, rank in rows:
        if applies:
            yield WeakerClaim(text, change, field, rank)


def _shown_by(setters: Sequence[str]) -> str:
    """Return what shows the taints: the DeviceTaintRules, and the slices of a driver."""
    title = f"{DEVICE_TAINT_RULES.kind} "
    rules = [one.removeprefix(title) for one in setters if one.startswith(title)]
    named = [f"{DEVICE_TAINT_RULES.kind.lower()} {' '.join(rules)}"] if rules else []
    return " and ".join([*named, "resourceslices"] if len(rules) < len(setters) else named)


def _of_exactly(exactly: Mapping[str, Any], setters: Setters, may_fail: MayFail) -> list[_Row]:
    by = setters(exactly)
    who = " and ".join(by)
    everything = exactly.get("allocationMode") == "All"
    count = int(exactly.get("count") or 1)
    return [
        (bool(who), f"end the taint of the devices, which {who} sets: kubectl describe "
         f"{_shown_by(by)}",
         partial(_set, tolerations=[{"operator": "Exists"}]), "", Rank.MEND),
        *((True, f"correct the selector {text}{'' if may_fail(text) else _MET_BY_NONE}",
           partial(_without_selector, number), f"exactly.selectors[{number}]", Rank.RULE)
          for number, text in enumerate(selector_texts(exactly)[:MOST_TRIED])),
        (everything, "request 1 device instead of all",
         partial(_set, allocationMode="ExactCount", count=1), "exactly.allocationMode", Rank.LESS),
        *((True, f"request {counted(fewer)} instead of {count}",
           partial(_set, count=fewer), "exactly.count", Rank.LESS)
          for fewer in range(count - 1, 0, -1)[:MOST_TRIED]),
    ]  # fmt: skip


def _in_request(index: int, change: Callable[[Object], object], devices: Object) -> None:
    change(devices["requests"][index])


def _set(request: Object, **fields: Any) -> None:
    request["exactly"].update(fields)


def _without_selector(number: int, request: Object) -> None:
    del request["exactly"]["selectors"][number]


def _add_alternative(request: Object) -> None:
    alternatives = request["firstAvailable"]
    alternatives.append({**alternatives[-1], "name": "one", "count": 1})


def _without_constraint(number: int, devices: Object) -> None:
    del devices["constraints"][number]


def counted(count: int) -> str:
    return f"{count} device{'s' * (count != 1)}"


def selector_texts(request: Mapping[str, Any]) -> list[str]:
    """Return the selectors of a request."""
    return [
        foreign(str(mapping(selector.get("cel")).get("expression") or ""), FOREIGN_REASON)
        for selector in request.get("selectors") or ()
    ]

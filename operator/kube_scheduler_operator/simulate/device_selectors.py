"""Selectors of devices that fail for some device, which ends an attempt of kube-scheduler.

An expression fails where it reads an attribute or a capacity that a device lacks. kube-scheduler
evaluates selectors device by device until it has enough, and looks through pools in the order of a
map: if one pool has a device that fits and another one a device for which a selector fails, one
attempt succeeds and the next one ends with an error. Source: `selectorsMatch` and `GatherPools` of
dynamic-resource-allocation/structured, Kubernetes 1.34 to 1.37.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME, FOREIGN_REASON
from ..base.objects import entries, mapping
from .kinds import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from .world import World

_FAILED: Final = re.compile(
    r"\b(class|claim) (\S+): selector #(\d+)(?: on device (\S+))?: CEL runtime error: "
    r"(.+?)(?:\. consider using CEL|$)"
)
"""What kube-scheduler reports; the device from 1.37 on."""
_MISSING: Final = re.compile(r"no such key: (.+)")
_READ: Final = re.compile(
    r"""device\.(attributes|capacity)\s*\[\s*(['"])([^'"]+)\2\s*\]\s*"""
    r"""(?:\.\s*([A-Za-z_]\w*)|\[\s*(['"])([^'"]+)\5\s*\])"""
)
_LONGEST: Final = 10_000
"""Characters of an expression that is read; the API server permits 10 KiB."""


class Read(NamedTuple):
    """What an expression reads of a device."""

    field: str  # "attributes" or "capacity"
    domain: str
    key: str

    @property
    def guard(self) -> str:
        return f'"{self.key}" in device.{self.field}["{self.domain}"]'

    def is_of(self, device: Mapping[str, Any], driver: str) -> bool:
        """Whether a device has it; names without a domain are of the driver."""
        names = mapping(device.get(self.field))
        return f"{self.domain}/{self.key}" in names or (self.domain == driver and self.key in names)


def unguarded(expression: str) -> list[Read]:
    """Return what an expression reads without testing first whether a device has it."""
    text = expression[:_LONGEST]
    reads = (
        Read(field, domain, name or quoted)
        for field, _, domain, name, _, quoted in _READ.findall(text)
    )
    return [read for read in dict.fromkeys(reads) if not _is_tested(read.key, text)]


def _is_tested(key: str, expression: str) -> bool:
    name = re.escape(key)
    tests = rf"""['"]{name}['"]\s+in\b|\bhas\([^()]*\b{name}\s*\)|\.\?\s*{name}\b|\[\s*\?"""
    return re.search(tests, expression) is not None


def guarded(expression: str) -> str:
    """Return an expression that is false for a device that lacks what it reads; empty: as it is."""
    if len(expression) > _LONGEST or not (reads := unguarded(expression)):
        return ""
    return " && ".join([*(read.guard for read in reads), f"({expression})"])


def lacking(slices: Iterable[Mapping[str, Any]], reads: Sequence[Read]) -> Iterator[str]:
    """Yield the devices of ResourceSlices that lack something, as driver/pool/name."""
    for each in slices if reads else ():
        spec = mapping(each.get("spec"))
        driver, pool = str(spec.get("driver")), mapping(spec.get("pool")).get("name")
        for device in map(mapping, entries(spec.get("devices"))):
            content = {**device, **mapping(device.get("basic"))}
            if not all(read.is_of(content, driver) for read in reads):
                yield f"{driver}/{pool}/{device.get('name')}"


MayFail = Callable[[str], bool]
"""Returns whether an expression may fail for a device."""


def guard(holder: Any, may_fail: MayFail) -> list[tuple[int, str]]:
    """Guard the selectors of a request, or of a DeviceClass' spec, in place; return the changed."""
    changed = []
    for index, expression in enumerate(expressions(holder)):
        if may_fail(expression) and (whole := guarded(expression)):
            holder["selectors"][index]["cel"]["expression"] = whole
            changed.append((index, whole))
    return changed


def guard_claim(devices: Any, may_fail: MayFail) -> list[tuple[str, str]]:
    """Guard the selectors in `spec.devices` of a claim in place.

    Return the path and the expression of each that changed.
    """
    changed = []
    for number, request in enumerate(entries(devices.get("requests"))):
        holders = [("exactly", request["exactly"])] if "exactly" in request else []
        alternatives = enumerate(entries(request.get("firstAvailable")))
        holders += [(f"firstAvailable[{index}]", one) for index, one in alternatives]
        for path, holder in holders:
            changed += [
                (f"requests[{number}].{path}.selectors[{index}].cel.expression", text)
                for index, text in guard(holder, may_fail)
            ]
    return changed


def guard_text(owner: str, changed: Sequence[str]) -> str:
    """Return the advice, in the imperative."""
    what = "selector" if len(changed) == 1 else "selectors"
    shown = "; ".join(foreign(text, FOREIGN_REASON) for text in changed)
    return (
        f"guard the {what} of {owner}, so that devices without what is read do not fit instead of "
        f"ending the attempt: {shown}"
    )


def expressions(holder: Mapping[str, Any]) -> list[str]:
    """Return the expressions of a DeviceClass' spec, or of a request."""
    selectors = map(mapping, entries(holder.get("selectors")))
    return [str(mapping(selector.get("cel")).get("expression") or "") for selector in selectors]


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """A selector that failed, as kube-scheduler reported it."""

    of_class: bool  # whether a DeviceClass has the selector; otherwise a ResourceClaim
    name: str  # of the DeviceClass; namespace/name of the ResourceClaim
    index: int  # of the selector there
    device: str  # driver/pool/name; empty: kube-scheduler does not name it
    error: str

    def is_of(self, claim: Mapping[str, Any], classes: Iterable[str]) -> bool:
        """Whether a claim has the selector, or one of its DeviceClasses has it."""
        if self.of_class:
            return self.name in classes
        metadata = mapping(claim.get("metadata"))
        return self.name == f"{metadata.get('namespace')}/{metadata.get('name')}"

    def text(self, world: World) -> str:
        """Say which selector failed, and for which device."""
        owner = f"{'DeviceClass' if self.of_class else 'ResourceClaim'} {_shown(self.name)}"
        expression = self._expression(world)
        selector = (
            f"the selector {foreign(expression, FOREIGN_REASON)}"
            if expression
            else (f"selector {self.index}")
        )
        where = _device_text(self.device) if self.device else "a device"
        without = lacking(world.all(RESOURCE_SLICES), self._missing_of(expression))
        if not self.device and (device := next(without, "")):
            where = f"devices that lack what it reads, such as {_device_text(device)}"
        return f"{selector} of {owner} fails for {where}: {_shown(self.error)}"

    def _expression(self, world: World) -> str:
        """Return the expression; that of a claim may be in any of its requests."""
        if self.of_class:
            holders = [mapping(mapping(world.get(DEVICE_CLASSES, self.name)).get("spec"))]
        else:
            namespace, _, name = self.name.partition("/")
            claim = mapping(world.get(RESOURCE_CLAIMS, name, namespace))
            holders = list(requests_of(claim))
        found = [own[self.index] for own in map(expressions, holders) if self.index < len(own)]
        reading = (one for one in found if self._missing_of(one))
        return next(reading, found[0] if found else "")

    def _missing_of(self, expression: str) -> list[Read]:
        """Return those reads of an expression that may have failed."""
        missing = _MISSING.match(self.error)
        reads = unguarded(expression)
        return [read for read in reads if missing is not None and read.key == missing[1]]


def requests_of(claim: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the requests of a ResourceClaim that have selectors, with all alternatives."""
    devices = mapping(mapping(claim.get("spec")).get("devices"))
    for request in map(mapping, entries(devices.get("requests"))):
        if "exactly" in request:
            yield mapping(request["exactly"])
        yield from map(mapping, entries(request.get("firstAvailable")))


def failed_selector(words: Sequence[str]) -> SelectorFailure | None:
    """Return the failure that a reason of kube-scheduler reports; None: none does."""
    for word in words:
        if (found := _FAILED.search(word)) is not None:
            kind, name, index, device, error = found.groups()
            return SelectorFailure(kind == "class", name, int(index), device or "", error)
    return None


def failure_notes(world: World, *words: str) -> Iterator[str]:
    """Yield what a selector that failed means for other attempts."""
    if (failure := failed_selector(words)) is not None:
        yield (
            f"{failure.text(world)}. kube-scheduler ends an attempt when it gets to such a device, "
            "and looks through the pools of devices in no fixed order: its answer may differ from "
            "attempt to attempt"
        )


def _device_text(device: str) -> str:
    driver, _, rest = device.partition("/")
    pool, _, name = rest.rpartition("/")
    return f"device {_shown(name)} of pool {_shown(pool)} of driver {_shown(driver)}"


def _shown(text: str) -> str:
    return foreign(text, FOREIGN_NAME)

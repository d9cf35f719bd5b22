"""Feature gates: which ones a version knows, and which are on where a check depends on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from .. import assets
from .values import boolean
from .versions import Version

_DEFAULTS: Final[Mapping[str, Mapping[int, bool]]] = {
    # Per gate: from which minor on it is on or off.
    "DRADeviceBindingConditions": {34: False, 36: True},
    "DRAResourceClaimDeviceStatus": {32: False, 33: True},
    "DRASchedulerFilterTimeout": {34: True},
    "DynamicResourceAllocation": {29: False, 34: True},
    "GangScheduling": {35: False},
    "NodeDeclaredFeatures": {35: False, 36: True},
    "StorageCapacityScoring": {33: False},
    "VolumeCapacityPriority": {29: False},
}


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of one scheduler: what its flags say, else the defaults of its version."""

    version: Version
    explicit: Mapping[str, bool] = field(default_factory=dict)

    def enabled(self, name: str) -> bool | None:
        """Whether the gate is on; None if this cannot be told."""
        if name in self.explicit:
            return self.explicit[name]
        if "AllAlpha" in self.explicit or "AllBeta" in self.explicit:
            return None
        default: bool | None = None
        for since, value in sorted(_DEFAULTS.get(name, {}).items()):
            if since <= self.version.minor:
                default = value
        return default


def parse_gates(values: Iterable[str]) -> dict[str, bool]:
    """The gates of `--feature-gates` flags: `A=true,B=false`, each also as `kube:A=true`.

    Raises:
        ValueError: an entry is not `name=true` or `name=false`.
    """
    gates: dict[str, bool] = {}
    for entry in (part.strip() for value in values for part in value.split(",")):
        if not entry:
            continue
        name, equals, text = entry.rpartition(":")[2].partition("=")
        if not equals:
            raise ValueError(f'"{entry}" has no value; write {name}=true or {name}=false')
        gates[name.strip()] = boolean(text.strip())
    return gates


@cache
def known_gates(minor: int) -> Mapping[str, bool | None] | None:
    """The gates that kube-scheduler 1.`minor` knows, None where this is not on record.

    The value is None for a gate that can be set, else the only value that it may be set to.
    Recorded from the program itself by asking it about every gate in its sources.
    """
    record = assets.directory("bindata").joinpath("feature-gates", f"v1.{minor}.txt")
    if not record.is_file():
        return None
    gates: dict[str, bool | None] = {}
    for line in record.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, locked = line.partition("=")
            gates[name] = boolean(locked) if locked else None
    return gates

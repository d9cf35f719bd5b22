"""Feature gates: which ones a version knows, and which are on by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from ..base import assets
from .go_values import boolean
from .versions import Version

FLAG: Final = "feature-gates"


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of one scheduler: what its flags say, else the defaults of its version."""

    version: Version
    explicit: Mapping[str, bool] = field(default_factory=dict)

    def enabled(self, name: str) -> bool | None:
        """Whether the gate is on; None if this cannot be told."""
        if name in self.explicit:
            return self.explicit[name]
        # A version that is not on record yet is taken to be like the newest one that is.
        state = _states(min(self.version.minor, max(_record().patches))).get(name)
        if state is None:
            return None
        # Alpha gates are off by default, beta gates may be on; which a gate is, is not on record.
        kinds = ("AllBeta",) if state.default else ("AllAlpha", "AllBeta")
        turned = any(self.explicit.get(kind) is (not state.default) for kind in kinds)
        return None if turned and not state.locked else state.default


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


def known_gates(minor: int) -> Mapping[str, bool | None] | None:
    """The gates that kube-scheduler 1.`minor` knows, None where this is not on record.

    The value is None for a gate that can be set, else the only value that it may be set to.
    """
    if minor not in _record().patches:
        return None
    states = _states(minor).items()
    return {name: state.default if state.locked else None for name, state in states}


def knows(version: Version, name: str) -> bool | None:
    """Whether a version has a gate; None if this cannot be told.

    A patch release that is newer than the one on record may have brought it: some mitigations come
    that way. What an earlier minor version had was removed, and does not come back.
    """
    record = _record()
    if version.minor not in record.patches:
        return None
    if name in _states(version.minor):
        return True
    removed = min(record.minors.get(name, {version.minor: None})) < version.minor
    return False if removed or version.patch <= record.patches[version.minor] else None


@dataclass(frozen=True, slots=True)
class _State:
    """What is true of a gate: its default, and whether it may have no other value."""

    default: bool
    locked: bool


@dataclass(frozen=True, slots=True)
class _Record:
    """What hack/feature-gates wrote: patch versions by minor, and states by gate and minor."""

    patches: Mapping[int, int]
    minors: Mapping[str, Mapping[int, _State]]


@cache
def _record() -> _Record:
    patches: dict[int, int] = {}
    minors: dict[str, dict[int, _State]] = {}
    for line in assets.text("bindata", "feature-gates.txt").splitlines():
        name, *fields = line.split()
        if name == "releases":
            versions = [Version.parse(field) for field in fields]
            patches = {version.minor: version.patch for version in versions}
        elif name != "#":
            states = minors.setdefault(name, {})
            for field in fields:
                span, _, text = field.partition(":")
                first, _, last = span.partition("-")
                state = _State(text.startswith("on"), text.endswith("!"))
                states |= dict.fromkeys(range(int(first), int(last or first) + 1), state)
    return _Record(patches, minors)


@cache
def _states(minor: int) -> Mapping[str, _State]:
    """The gates of a minor version."""
    found = _record().minors.items()
    return {name: states[minor] for name, states in found if minor in states}

"""Feature gates: which ones a version has, and their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Final

from ...base import assets
from ...base.go_values import boolean
from .versions import Version

FLAG: Final = "feature-gates"
FLAG_PREFIX: Final = f"--{FLAG}="


@dataclass(frozen=True, slots=True)
class Gates:
    """The feature gates of one scheduler: explicit ones, and the defaults of its version."""

    version: Version
    explicit: Mapping[str, bool] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.version, frozenset(self.explicit.items())))

    def enabled(self, name: str) -> bool | None:
        """Return whether the gate is enabled; None if unknown."""
        if name in self.explicit:
            return self.explicit[name]
        # A newer version is assumed to be like the newest recorded one.
        state = _states(min(self.version.minor, max(_record().patches))).get(name)
        if state is None:
            return None
        # Alpha gates are off by default, beta gates may be on; the stage is not recorded.
        kinds = ("AllBeta",) if state.default else ("AllAlpha", "AllBeta")
        turned = any(self.explicit.get(kind) is (not state.default) for kind in kinds)
        return None if turned and not state.locked else state.default


def parse_gates(values: Iterable[str]) -> dict[str, bool]:
    """Parse `--feature-gates` flags: `A=true,B=false`, each also as `kube:A=true`.

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
    """Return the gates of kube-scheduler 1.`minor`; None if that version is not recorded.

    The value is None for a gate that can be set, and the locked value otherwise.
    """
    if minor not in _record().patches:
        return None
    states = _states(minor).items()
    return MappingProxyType(
        {name: state.default if state.locked else None for name, state in states}
    )


def has_gate(version: Version, name: str) -> bool | None:
    """Return whether a version has a gate; None if unknown.

    A patch release newer than the recorded one may add a gate, as some mitigations do. A gate that
    an earlier minor had was removed and does not return.
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
    default: bool
    locked: bool  # to the default


@dataclass(frozen=True, slots=True)
class _Record:
    """The output of hack/feature-gates: patch versions by minor, states by gate and minor."""

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
    return {name: states[minor] for name, states in _record().minors.items() if minor in states}

"""Feature gates: which ones a version has, their defaults, and which others they need."""

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
_COMPONENT: Final = "kube"
"""The component whose gates kube-scheduler registers; an empty one means it too."""
_NEEDS: Final = "needs="
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
        state = self._states.get(name)
        if state is None:
            return None
        return self.explicit.get(_OF_STAGE.get(state.stage, ""), state.default)

    def unmet(self) -> dict[str, tuple[str, ...]]:
        """Return the enabled gates that need others, and which of those are disabled.

        kube-scheduler exits if there are any, since 1.35 (`featureGate.unsafeSetFromMap` of
        k8s.io/component-base).
        """
        found = {
            name: tuple(needed for needed in state.needs if self.enabled(needed) is False)
            for name, state in self._states.items()
            if state.needs and self.enabled(name)
        }
        return {name: disabled for name, disabled in found.items() if disabled}

    @property
    def _states(self) -> Mapping[str, _State]:
        # A newer version is assumed to be like the newest recorded one.
        return _states(min(self.version.minor, max(_record().patches)))


def parse_gates(values: Iterable[str]) -> dict[str, bool]:
    """Parse `--feature-gates` flags: `A=true,B=false`, each also as `kube:A=true`.

    Raises:
        ValueError: an entry is not `name=true` or `name=false`, or is of another component.
    """
    gates: dict[str, bool] = {}
    for entry in (part.strip() for value in values for part in value.split(",")):
        if not entry:
            continue
        component, of, rest = entry.partition(":")
        name, equals, text = (rest if of else entry).partition("=")
        if of and component.strip() not in ("", _COMPONENT):
            raise ValueError(
                f'"{entry}": kube-scheduler has no component "{component.strip()}"; write {rest}'
            )
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

    A release newer than the recorded one, or than the recorded pre-release, may add a gate, as some
    mitigations do. A gate that an earlier minor had was removed and does not return.
    """
    record = _record()
    if version.minor not in record.patches:
        return None
    if name in _states(version.minor):
        return True
    removed = min(record.minors.get(name, {version.minor: None})) < version.minor
    return False if removed or version.patch <= record.patches[version.minor] else None


def versions_with_gate(name: str) -> tuple[int, int] | None:
    """Return the first and the last recorded minor of 1.x that has a gate; None: none has it."""
    minors = _record().minors.get(name)
    return (min(minors), max(minors)) if minors else None


@dataclass(frozen=True, slots=True)
class _State:
    default: bool
    locked: bool  # to the default
    stage: str = ""  # "alpha" or "beta"; empty for another one
    needs: tuple[str, ...] = ()  # the gates that must be enabled if it is


_OF_STAGE: Final = {"alpha": "AllAlpha", "beta": "AllBeta"}
"""Stage -> the gate that sets all gates of the stage that are not set, locked ones too."""


@dataclass(frozen=True, slots=True)
class _Record:
    """The output of hack/feature-gates: patch versions by minor, states by gate and minor."""

    patches: Mapping[int, int]  # -1: a pre-release, older than any patch
    minors: Mapping[str, Mapping[int, _State]]


@cache
def _record() -> _Record:
    patches: dict[int, int] = {}
    minors: dict[str, dict[int, _State]] = {}
    for line in assets.text("bindata", "feature-gates.txt").splitlines():
        name, *fields = line.split()
        if name == "releases":
            versions = [Version.parse(field) for field in fields]
            patches = {version.minor: -1 if version.pre else version.patch for version in versions}
        elif name != "#":
            states = minors.setdefault(name, {})
            for field in fields:
                span, _, text = field.partition(":")
                first, _, last = span.partition("-")
                default, *others = text.split(",")
                stage = next((other for other in others if other in _OF_STAGE), "")
                needs = next((o.removeprefix(_NEEDS) for o in others if o.startswith(_NEEDS)), "")
                state = _State(
                    default.startswith("on"),
                    default.endswith("!"),
                    stage,
                    tuple(needs.split("+")) if needs else (),
                )
                states |= dict.fromkeys(range(int(first), int(last or first) + 1), state)
    return _Record(patches, minors)


@cache
def _states(minor: int) -> Mapping[str, _State]:
    return {name: states[minor] for name, states in _record().minors.items() if minor in states}

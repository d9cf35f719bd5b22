"""What newer versions of kube-scheduler refuse of what objects lead to.

Each version is composed as the operator would compose it after an upgrade.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from ...base.findings import Finding
from ...base.objects import entries
from ..language.feature_gates import FLAG_PREFIX
from ..language.validation.upgrades import (
    UpgradeStep,
    VersionRefusal,
    upgrade_steps,
    version_refusal,
)
from ..language.versions import Version
from .attachment import ValidationResult, rejection_findings
from .control_plane.compose import Composition, compose
from .extenders.validate import ExtenderResult
from .facts import Facts
from .objects import Objects
from .secondary.scheduler import (
    CONTROL_PLANE,
    EffectiveSecondaries,
    EffectiveSecondary,
    effective_secondaries,
    named,
)

_OTHER_IMAGE: Final = (
    "its image may have plugins of its own, and what a newer image has is not visible"
)


@dataclass(frozen=True, slots=True)
class UpgradedContent:
    """What a kube-scheduler is started with."""

    config: Mapping[str, Any]
    arguments: tuple[str, ...] = ()
    title: str = ""  # of the file that has it; empty: the scheduler is known

    @property
    def gate_flags(self) -> list[str]:
        """The flags that decide placements."""
        return [flag for flag in self.arguments if flag.startswith(FLAG_PREFIX)]


class Upgrade(Protocol):
    """What is upgraded: one scheduler, or the schedulers in files."""

    @property
    def title(self) -> str:
        """Its name in sentences."""

    @property
    def version(self) -> Version:
        """The version that runs now."""

    @property
    def stock(self) -> bool:
        """Whether it has Kubernetes' own plugins only."""

    def steps(self, target: Version) -> Sequence[UpgradeStep]:
        """Return what each minor version up to `target` changes."""

    def contents(self, version: Version) -> Sequence[UpgradedContent]:
        """Return what a version would run."""


@dataclass(frozen=True)
class ControlPlaneUpgrade:
    """The control plane's scheduler in newer versions."""

    current: Composition
    title: str = CONTROL_PLANE

    @property
    def version(self) -> Version:
        return self.current.inputs.facts.version

    @property
    def stock(self) -> bool:
        return self.current.inputs.facts.is_stock

    def steps(self, target: Version) -> tuple[UpgradeStep, ...]:
        extenders = _of_others(self.current.config or {}, self.current.extenders)
        return upgrade_steps(
            self.version, target, self._refusals, extenders, _doubt(stock=self.stock)
        )

    def contents(self, version: Version) -> Sequence[UpgradedContent]:
        composition = self._composed(version)
        if composition.config is None:
            return ()
        return (UpgradedContent(composition.config, composition.arguments),)

    def _refusals(self, version: Version) -> Iterator[VersionRefusal]:
        composition = self._composed(version)
        results = (*composition.results, *composition.extenders)
        yield from _refused(version, composition.findings, results)

    def _composed(self, version: Version) -> Composition:
        if version.short == self.version.short:
            return self.current
        inputs = self.current.inputs
        return compose(replace(inputs, facts=inputs.facts.of_version(version)))


@dataclass(frozen=True)
class SecondaryUpgrade:
    """A SecondaryScheduler in newer versions, as if its own image were of each."""

    name: str
    objects: Objects
    facts: Facts
    control_plane: tuple[str, ...]  # the schedulerNames of the control plane's scheduler
    # minor version -> what all SecondarySchedulers lead to; those of one cluster share it
    composed: dict[str, EffectiveSecondaries] = field(default_factory=dict, compare=False)

    @property
    def title(self) -> str:
        return named(self.name)

    @property
    def version(self) -> Version:
        return self._current.target.gates.version

    @property
    def stock(self) -> bool:
        return self._current.target.stock

    def steps(self, target: Version) -> tuple[UpgradeStep, ...]:
        current = self._current
        extenders = _of_others(current.composition.config, current.extenders)
        return upgrade_steps(
            self.version, target, self._refusals, extenders, _doubt(stock=self.stock)
        )

    def contents(self, version: Version) -> Sequence[UpgradedContent]:
        composition = self._composed(version).composition
        return (UpgradedContent(composition.config, composition.arguments),)

    def _refusals(self, version: Version) -> Iterator[VersionRefusal]:
        scheduler = self._composed(version)
        results = (*scheduler.profiles, *scheduler.extenders)
        yield from _refused(version, scheduler.all_findings, results)

    @property
    def _current(self) -> EffectiveSecondary:
        return self._of("", self.facts)

    def _composed(self, version: Version) -> EffectiveSecondary:
        if version.short == self.version.short:
            return self._current
        return self._of(version.short, self.facts.of_version(version))

    def _of(self, version: str, facts: Facts) -> EffectiveSecondary:
        if version not in self.composed:
            made = effective_secondaries(self.objects, facts, self.control_plane)
            self.composed[version] = made
        return self.composed[version].of(self.name)


def secondary_upgrades(
    objects: Objects, facts: Facts, served: tuple[str, ...]
) -> list[SecondaryUpgrade]:
    """Return the SecondarySchedulers; `served` are the control plane's schedulerNames."""
    current = effective_secondaries(objects, facts, served)
    composed = {"": current}
    return [
        SecondaryUpgrade(scheduler.name, objects, facts, served, composed)
        for scheduler in current.schedulers
        if isinstance(scheduler, EffectiveSecondary)  # `check` reports those with a defect
    ]


@dataclass(frozen=True, slots=True)
class RecordedUpgrade:
    """What an upgrade has for some versions, as another process gets it."""

    title: str
    version: Version
    stock: bool
    recorded_steps: tuple[UpgradeStep, ...]
    recorded_contents: Mapping[str, tuple[UpgradedContent, ...]]  # by minor version

    def steps(self, _target: Version) -> Sequence[UpgradeStep]:
        return self.recorded_steps

    def contents(self, version: Version) -> Sequence[UpgradedContent]:
        return self.recorded_contents.get(version.short, ())


def recorded(upgrade: Upgrade, target: Version) -> RecordedUpgrade:
    """Return all that an upgrade has up to a version."""
    steps = tuple(upgrade.steps(target))
    versions = (upgrade.version, *(step.version for step in steps))
    contents = {version.short: tuple(upgrade.contents(version)) for version in versions}
    return RecordedUpgrade(upgrade.title, upgrade.version, upgrade.stock, steps, contents)


def _of_others(config: Mapping[str, Any], results: Iterable[ExtenderResult]) -> list[Any]:
    """Return the extenders of a configuration, with nothing in the place of our own agents.

    Agents accept all that kube-scheduler sends (`scheduling/extender/wire.py`).
    """
    agents = [result.entry for result in results if result.agent is not None]
    return [{} if extender in agents else extender for extender in entries(config.get("extenders"))]


def _doubt(*, stock: bool) -> str:
    return "" if stock else _OTHER_IMAGE


def _refused(
    version: Version, findings: Iterable[Finding], results: Iterable[ValidationResult]
) -> Iterator[VersionRefusal]:
    blocking = (finding for finding in findings if finding.blocking)
    rejected = (finding for result in results for finding in rejection_findings(result))
    for finding in (*blocking, *rejected):
        place = (finding.path, finding.reason)
        yield version_refusal(version, place, finding.message, finding.text)

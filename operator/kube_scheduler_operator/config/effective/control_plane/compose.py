"""The control plane's effective configuration: the file and the flags of its kube-scheduler.

profile fragment <- default configuration <- observed configuration <- overrides, each merged over
those to its left; then validated. Whatever users wrote, the result is a Composition: its findings
report all errors, and a blocking one keeps the schedulers on their current revision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ....base import names
from ....base.bounded_cache import cached_by_content
from ....base.findings import Finding, Path, Problem, format_path
from ....base.go_values import seconds
from ....base.objects import mapping
from ...language.command_line import Flags, render
from ...language.flags import ELECTION_FLAGS
from ...language.merging.merge import Layers, override_path, sets_path, without_empty_values
from ...language.schema import DEFAULT_SCHEDULER
from ...language.validation.configuration import Target, validate_config
from ...language.warnings.configuration import control_plane_warnings
from ..extenders.validate import ExtenderResult
from ..profiles.validate import ProfileResult
from .base_configuration import Base, base_configuration, override_finding, target_finding
from .inputs import Inputs
from .observe_attached import (
    EXTENDERS,
    PROFILES,
    ObservedExtenders,
    ObservedProfiles,
    observe_extenders,
    observe_profiles,
)
from .overrides import ARGUMENTS, ROOT, SERVING_INFO, Overrides


@dataclass(frozen=True, slots=True)
class Composition:
    inputs: Inputs = field(compare=False)
    base: Base = field(compare=False)
    # the KubeSchedulerConfiguration; None if it cannot be composed
    config: Mapping[str, Any] | None
    arguments: tuple[str, ...]  # in the documented order
    observed_config: Mapping[str, Any]  # the desired `KubeScheduler.spec.observedConfig`
    findings: tuple[Finding, ...]  # all errors and warnings, in the order of the steps
    results: tuple[ProfileResult, ...] = ()
    extenders: tuple[ExtenderResult, ...] = ()
    # SchedulerExtenders that are moving to another scheduler, which has not accepted them yet
    leaving: tuple[ExtenderResult, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that block a new revision."""
        return tuple(finding for finding in self.findings if finding.blocking)

    @property
    def blocking(self) -> bool:
        """Whether an error blocks a new revision."""
        return self.config is None or bool(self.errors)


def compose(inputs: Inputs) -> Composition:
    """Compose and validate the effective configuration; never raise, whatever users wrote."""
    base = base_configuration(inputs)
    extenders = observe_extenders(inputs, base)
    profiles = observe_profiles(inputs, base, extenders)
    observed, overrides, flags = base.observed, base.overrides, base.flags
    findings = [*base.findings, *extenders.findings, *profiles.findings]
    adopted = _adopted_profiles(observed, profiles)
    observed = {key: value for key, value in observed.items() if key != PROFILES}
    if adopted:
        observed[PROFILES] = adopted
    if extenders.own:
        observed[EXTENDERS] = [*extenders.own, *_adopted_extenders(observed, extenders)]
    config: dict[str, Any] | None = None
    if base.fragments is not None:
        fragment = {key: observed[key] for key in observed if key not in (ARGUMENTS, SERVING_INFO)}
        profile, default = base.fragments
        if profiles.all:
            profile = {**profile, "profiles": list(profiles.all)}
        layers = Layers.of(profile, default, fragment, overrides.config)
        config, tidied = _merged(layers)
        # Validated before it is tidied: `profiles: {}` is an error.
        problems, warnings = _problems(layers, base.target, _elected(config, flags))
        findings += _refused(problems, config, overrides)
        from_objects = frozenset(str(profile["schedulerName"]) for profile in profiles.own)
        own = len(extenders.own)
        findings += _surprising(warnings, config, overrides, from_objects, own, base.fragments[0])
        config = tidied
    if profiles.own:
        observed = {**observed, PROFILES: [*profiles.own, *adopted]}
    return Composition(
        inputs,
        base,
        config,
        render(flags),
        observed,
        tuple(findings),
        profiles.results,
        extenders.results,
        extenders.leaving,
    )


def _adopted_profiles(
    observed: Mapping[str, Any], profiles: ObservedProfiles
) -> list[Mapping[str, Any]]:
    """Return the adopted configuration's profiles that no SchedulerProfile replaces."""
    adopted = observed.get(PROFILES)
    if not isinstance(adopted, list):
        return []
    replaced = {str(profile["schedulerName"]) for profile in profiles.own}
    default = DEFAULT_SCHEDULER if len(adopted) == 1 else ""
    return [
        profile
        for profile in adopted
        if str(mapping(profile).get("schedulerName") or default) not in replaced
    ]


def _adopted_extenders(
    observed: Mapping[str, Any], extenders: ObservedExtenders
) -> list[Mapping[str, Any]]:
    """Return the adopted configuration's extenders that no SchedulerExtender replaces."""
    replaced = {entry.get("urlPrefix") for entry in extenders.own}
    adopted = observed.get(EXTENDERS)
    return [
        extender
        for extender in (adopted if isinstance(adopted, list) else ())
        if mapping(extender).get("urlPrefix") not in replaced
    ]


def _refused(
    problems: Sequence[Problem], config: Mapping[str, Any], overrides: Overrides
) -> Iterator[Finding]:
    for problem in problems:
        flag = ELECTION_FLAGS.get(str(problem.path[-1]), "")
        if problem.path[0] == "leaderElection" and flag in overrides.arguments:
            path: Path | None = (ARGUMENTS, flag)
        else:
            path = override_path(problem.path, config, overrides.config)
        if path is not None:
            yield override_finding(problem, path)
        else:
            at = format_path(("config", *problem.path))
            yield target_finding(problem.reason, at, problem.sentence, blocking=True)


def _surprising(
    warnings: Sequence[Problem],
    config: Mapping[str, Any],
    overrides: Overrides,
    from_objects: Collection[str],
    extenders: int,
    named: Mapping[str, Any],
) -> Iterator[Finding]:
    """Yield warnings, except those that the status of an object of its own reports.

    These are about profiles named in `from_objects`, and about the first `extenders` extenders.
    `named` is the configuration of the profile that the Scheduler names.
    """
    for problem in warnings:
        if problem.path[0] == "extenders" and _index(problem.path) < extenders:
            continue
        path = override_path(problem.path, config, overrides.config)
        if path is None and problem.path[0] == "profiles" and len(problem.path) > 1:
            profile = config["profiles"][problem.path[1]]
            if profile["schedulerName"] in from_objects:
                continue
        at = format_path((*ROOT, *path) if path is not None else ("config", *problem.path))
        layers = overrides.config, named
        if [sets_path(problem.path, config, layer) for layer in layers] == [False, True]:
            at = "spec.profile"
        yield Finding(
            names.CONFIGURATION_WARNINGS, problem.reason, at, problem.sentence, blocking=False
        )


def _index(path: Path) -> int:
    return path[1] if len(path) > 1 and isinstance(path[1], int) else 0


@lru_cache(maxsize=4)
def _merged(layers: Layers) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the merged layers, and the same tidied; cached, so callers must not change them."""
    config = layers.merged()
    return config, without_empty_values(config)


@cached_by_content(4)
def _problems(
    layers: Layers, target: Target, election: Mapping[str, Any]
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Return (errors, otherwise warnings); cached: most reconciles have the same configuration."""
    config, _ = _merged(layers)
    problems = tuple(validate_config(config, target, election))
    return problems, () if problems else tuple(control_plane_warnings(config, target))


def _elected(config: Mapping[str, Any], flags: Flags) -> dict[str, Any]:
    """Return the effective leader election: flags win over the file."""
    election = dict(mapping(config.get("leaderElection")))
    for key, flag in ELECTION_FLAGS.items():
        for value in flags.get(flag, ()):
            try:
                seconds(value)
            except ValueError:
                continue  # validation of the flags reports the error
            election[key] = value
    return election

"""Findings about settings that a provider does not support, in one form for all providers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from ....base.findings import Path, format_path, listing
from ...effective.secondary.compose import ELECTION, RESERVED, SETTINGS
from ...language.feature_gates import FLAG as FEATURE_GATES
from .desired import Desired, scheduler_name
from .provider import ProviderFinding

SECONDARY: Final = "run the profile in a SecondaryScheduler"
_SECONDARY_FIELDS: Final = {FEATURE_GATES: "featureGates", "v": "logLevel"}
"""Flag -> the field of a SecondaryScheduler's spec for it."""


def unsupported(
    desired: Desired,
    provider: str,
    *,
    profile: int | None = None,
    fields: Collection[str] = (),
    flags: Collection[str] = (),
) -> Iterator[ProviderFinding]:
    """Report what a provider with a configuration of its own does not support.

    Args:
        desired: the scheduler.
        provider: its name in messages.
        profile: the index of the only profile that it supports; None: it supports all.
        fields: the fields of the configuration that it supports besides profiles.
        flags: the flags that it supports.
    """
    if profile is not None:
        yield from _profiles(desired, provider, profile)
    yield from _settings(desired, provider, fields)
    yield from unsupported_agents(desired)
    yield from _extenders(desired, provider)
    yield from _flags(desired, provider, flags)


def unsupported_agents(desired: Desired) -> Iterator[ProviderFinding]:
    """Report agents of SchedulerExtenders, which only the operator starts."""
    for extender in desired.extenders:
        if extender.agent is not None:
            yield ProviderFinding(
                "AgentNotSupported",
                f"SchedulerExtender/{extender.name} spec.agent",
                "the operator runs agents beside its own schedulers only",
                "set spec.scheduler to a SecondaryScheduler, or use spec.url and run the extender "
                "yourself",
            )


def _extenders(desired: Desired, provider: str) -> Iterator[ProviderFinding]:
    """Report extenders, for a provider that supports none; agents have a finding of their own."""
    for index in range(len(desired.config.get("extenders") or ())):
        if index < len(desired.extenders) and desired.extenders[index].agent is not None:
            continue
        yield ProviderFinding(
            "ExtenderNotSupported",
            desired.extender(index),
            f"{provider} does not support extenders",
            "set spec.scheduler of the SchedulerExtender to a SecondaryScheduler",
        )


def _settings(
    desired: Desired, provider: str, supported: Collection[str]
) -> Iterator[ProviderFinding]:
    """Report fields of the configuration other than `supported`."""
    message = f"{provider} does not support this field"
    if supported:
        message = f"{provider} supports only {listing(supported)}"
    for path in _leaves(desired.settings, lambda key: key in supported):
        there = format_path(("spec", "config", *path)) if path[0] in SETTINGS else ""
        yield ProviderFinding(
            "FieldNotSupported", desired.setting(*path), message, _remove_or_set(there)
        )


def _flags(
    desired: Desired, provider: str, supported: Collection[str]
) -> Iterator[ProviderFinding]:
    """Report flags other than `supported`."""
    for name in desired.flags:
        if name not in supported:
            yield ProviderFinding(
                "FlagNotSupported",
                desired.flag(name),
                f"{provider} does not support the flag {'-' if len(name) == 1 else '--'}{name}",
                _remove_or_set(_flag_of_a_secondary_scheduler(name)),
            )


def _profiles(desired: Desired, provider: str, taken: int) -> Iterator[ProviderFinding]:
    """Report all profiles except the one at the index `taken`."""
    for index, profile in enumerate(desired.profiles):
        if index != taken:
            yield ProviderFinding(
                "ProfileNotSupported",
                desired.profile(index),
                f'{provider} does not support the profile "{scheduler_name(profile)}"',
                SECONDARY,
            )


def _flag_of_a_secondary_scheduler(name: str) -> str:
    """Return the field for a flag; empty if a SecondaryScheduler does not support it."""
    if name in _SECONDARY_FIELDS:
        return f"spec.{_SECONDARY_FIELDS[name]}"
    if name in RESERVED or name.startswith(ELECTION):
        return ""
    return format_path(("spec", "extraArguments", name))


def _remove_or_set(there: str) -> str:
    return f"remove it, or set {there} of a SecondaryScheduler" if there else "remove it"


def _leaves(value: Mapping[str, Any], skip: Callable[[str], bool], at: Path = ()) -> Iterator[Path]:
    for key, item in value.items():
        if not at and skip(key):
            continue
        if isinstance(item, Mapping) and item:
            yield from _leaves(item, skip, (*at, key))
        else:
            yield (*at, key)


def unsupported_repetitions(desired: Desired, who: str, fix: str) -> Iterator[ProviderFinding]:
    """Report flags with several values, of which the map of `who` keeps one."""
    for name, values in desired.flags.items():
        if len(values) > 1:
            yield ProviderFinding(
                "RepeatedFlagNotSupported",
                desired.flag(name),
                f"{who} accepts a flag once, and --{name} has {len(values)} values, of which only "
                "the last one is written",
                fix,
            )

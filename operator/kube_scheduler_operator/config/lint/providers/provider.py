"""What a provider of clusters or an autoscaler is, and what it makes of objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ....base import names
from ....base.findings import ERROR, WARNING, Finding, Path, Problem, Severity, format_path, listing
from ...effective.control_plane.compose import Composition
from ...effective.secondary.compose import ELECTION, RESERVED, SETTINGS
from ...language.feature_gates import FLAG as FEATURE_GATES
from ...language.versions import Version
from .desired import Desired, read_desired, scheduler_name


@dataclass(frozen=True, slots=True)
class ProviderFile:
    """A file or an object for the provider."""

    path: str  # its absolute path on control-plane nodes, or a file name without a directory
    use: str  # how the provider gets it, in one line
    content: Any


@dataclass(frozen=True, slots=True)
class ProviderFinding:
    """A setting that the provider does not support as it is."""

    reason: str  # a CamelCase identifier, for programs
    path: str  # the object and its field: `KubeScheduler/cluster spec.logLevel`
    message: str
    fix: str
    severity: Severity = ERROR  # if the provider's scheduler would differ from the desired one


@dataclass(frozen=True, slots=True)
class ProviderOutput:
    files: tuple[ProviderFile, ...]
    findings: tuple[ProviderFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderFormat:
    """The files and settings that a provider of clusters or an autoscaler supports."""

    name: str  # in `--for`
    source: str  # the document that defines the format, with its version
    # writes the files for a desired scheduler and a release of the provider (None: unknown)
    write: Callable[[Desired, Version | None], ProviderOutput]


def provider_output(
    provider: ProviderFormat,
    release: Version | None,
    composition: Composition,
    beside: Iterable[str] = (),
) -> ProviderOutput:
    """Return the provider's files and all findings; no files if kube-scheduler would not start.

    `beside` has the objects that the operator runs beside a provider's scheduler, as `Kind/name`.
    """
    message = (
        f"the operator runs it in the cluster; it is not part of the files for {provider.name}"
    )
    findings = [
        *_composed(composition),
        *(
            ProviderFinding("RunsInTheCluster", obj, message, "apply it to the cluster", WARNING)
            for obj in beside
        ),
    ]
    if composition.blocking:
        return ProviderOutput((), tuple(findings))
    output = provider.write(read_desired(composition), release)
    return ProviderOutput(output.files, (*findings, *output.findings))


def _composed(composition: Composition) -> Iterator[ProviderFinding]:
    for finding in composition.findings:
        # The message of this condition is about the operator's own clusters.
        if finding.condition != names.OVERRIDES_UPGRADEABLE:
            degraded = finding.blocking or finding.condition.endswith("Degraded")
            yield _converted(finding, ERROR if degraded else WARNING)
    for result in (*composition.results, *composition.extenders):
        for finding in result.warnings:
            yield _converted(finding, WARNING)


def _converted(finding: Finding, severity: Severity) -> ProviderFinding:
    wrong, fix = Problem(finding.reason, (), finding.message).parts
    return ProviderFinding(finding.reason, finding.path, wrong, fix, severity)


# --- settings that a provider does not support ---------------------------------------------------

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

    It supports `fields` of the configuration besides profiles, `flags`, and all profiles or only
    the one with the index `profile`.
    """
    if profile is not None:
        yield from _profiles(desired, provider, profile)
    yield from _settings(desired, provider, fields)
    yield from unsupported_agents(desired)
    yield from _extenders(desired, provider)
    yield from _flags(desired, provider, flags)


def unsupported_agents(desired: Desired) -> Iterator[ProviderFinding]:
    """Report agents of SchedulerExtenders, which only the operator starts."""
    message = "the operator runs agents beside its own schedulers only"
    fix = (
        "set spec.scheduler to a SecondaryScheduler, or use spec.url and run the extender yourself"
    )
    for extender in desired.extenders:
        if extender.agent is not None:
            path = f"SchedulerExtender/{extender.name} spec.agent"
            yield ProviderFinding("AgentNotSupported", path, message, fix)


def _extenders(desired: Desired, provider: str) -> Iterator[ProviderFinding]:
    """Report extenders, for a provider that supports none; agents have a finding of their own."""
    message = f"{provider} does not support extenders"
    fix = "set spec.scheduler of the SchedulerExtender to a SecondaryScheduler"
    for index in range(len(desired.config.get("extenders") or ())):
        if not (index < len(desired.extenders) and desired.extenders[index].agent is not None):
            yield ProviderFinding("ExtenderNotSupported", desired.extender(index), message, fix)


def _settings(
    desired: Desired, provider: str, supported: Collection[str]
) -> Iterator[ProviderFinding]:
    """Report fields of the configuration other than `supported`."""
    message = f"{provider} does not support this field"
    if supported:
        message = f"{provider} supports only {listing(supported)}"
    others = {key: value for key, value in desired.settings.items() if key not in supported}
    for path in _leaves(others):
        fix = _remove_or_set(("spec", "config", *path) if path[0] in SETTINGS else ())
        yield ProviderFinding("FieldNotSupported", desired.setting(*path), message, fix)


def _flags(
    desired: Desired, provider: str, supported: Collection[str]
) -> Iterator[ProviderFinding]:
    """Report flags other than `supported`."""
    for name in desired.flags:
        if name not in supported:
            flag = f"-{name}" if len(name) == 1 else f"--{name}"
            message = f"{provider} does not support the flag {flag}"
            fix = _remove_or_set(_field_of_secondary_scheduler(name))
            yield ProviderFinding("FlagNotSupported", desired.flag(name), message, fix)


def _profiles(desired: Desired, provider: str, taken: int) -> Iterator[ProviderFinding]:
    """Report all profiles except the one at the index `taken`."""
    for index, profile in enumerate(desired.profiles):
        if index != taken:
            message = f'{provider} does not support the profile "{scheduler_name(profile)}"'
            path = desired.profile(index)
            yield ProviderFinding("ProfileNotSupported", path, message, SECONDARY)


def _field_of_secondary_scheduler(flag: str) -> Path:
    """Return the field for a flag; empty if a SecondaryScheduler does not support it."""
    if flag in _SECONDARY_FIELDS:
        return ("spec", _SECONDARY_FIELDS[flag])
    is_reserved = flag in RESERVED or flag.startswith(ELECTION)
    return () if is_reserved else ("spec", "extraArguments", flag)


def _remove_or_set(path: Path) -> str:
    other = f", or set {format_path(path)} of a SecondaryScheduler" if path else ""
    return f"remove it{other}"


def _leaves(value: Mapping[str, Any], at: Path = ()) -> Iterator[Path]:
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            yield from _leaves(item, (*at, key))
        else:
            yield (*at, key)


def unsupported_repetitions(desired: Desired, who: str, fix: str) -> Iterator[ProviderFinding]:
    """Report flags with several values, of which the map of `who` keeps one."""
    for name, values in desired.flags.items():
        if len(values) > 1:
            message = (
                f"{who} accepts a flag once, and --{name} has {len(values)} values, of which only "
                "the last one is written"
            )
            yield ProviderFinding("RepeatedFlagNotSupported", desired.flag(name), message, fix)

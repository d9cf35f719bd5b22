"""Validation of a KubeSchedulerConfiguration with the same result as kube-scheduler's at startup.

Types (decode.py) are checked first, then the rules. Messages add the field and the fix. The
preflight with the real program decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ....base.decoding import UNKNOWN_FIELD
from ....base.findings import Path, Problem
from ....base.go_values import duration_text, nanoseconds
from ..decode import INVALID, decode_problems, decoded
from ..plugins.in_tree_plugins import on_record
from ..plugins.target_scheduler import Target
from ..schema import API_VERSION, ARGS, CONFIGURATION, KIND, TIMINGS
from .extenders import validate_extenders
from .known_plugins import UNKNOWN_PLUGIN
from .profiles import (
    ValidatedProfile,
    ignores_resources,
    validate_percentages,
    validate_profile,
    validate_profiles,
)

__all__ = ["UNKNOWN_PLUGIN", "Target", "validate_config"]

INVALID_LEADER_ELECTION: Final = "InvalidLeaderElection"

_UNPRINTABLE: Final = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")
_JITTER: Final = 1.2  # client-go requires renewDeadline > 1.2 * retryPeriod


def validate_config(
    config: Mapping[str, Any], target: Target, election: Mapping[str, Any] | None = None
) -> list[Problem]:
    """Return all problems; rules are evaluated only if all types are right.

    `election` is leaderElection merged with the command line's flags.
    """
    profiles = config.get("profiles")
    ignores = ignores_resources(config.get("extenders"))
    read = [
        validate_profile({} if profile is None else profile, target, ignores=ignores)
        for profile in (profiles if isinstance(profiles, list) else ())
    ]
    problems = [*_type_meta(config), *unprintable(config), *_types(config, read, target)]
    for index, profile in enumerate(read):
        problems += (problem.below(("profiles", index)) for problem in profile.arguments)
    if any(problem.reason != UNKNOWN_FIELD for problem in problems):
        return problems
    others = {key: value for key, value in config.items() if key != "profiles"}
    config = decoded(others, CONFIGURATION, target.minor)
    problems += _top_level(config, target)
    problems += _leader_election(election or config.get("leaderElection", {}))
    problems += validate_profiles(read or [validate_profile({}, target, ignores=ignores)])
    problems += validate_extenders(config.get("extenders", ()))
    return problems


def _types(
    config: Mapping[str, Any], profiles: Sequence[ValidatedProfile], target: Target
) -> Iterator[Problem]:
    """Yield type errors of a configuration whose profiles are already validated."""
    strict = on_record(target.gates.version)
    for key, value in config.items():
        if key == "profiles" and isinstance(value, list):
            for index, profile in enumerate(profiles):
                yield from (problem.below((key, index)) for problem in profile.types)
        else:
            yield from decode_problems({key: value}, CONFIGURATION, (), target.minor, strict=strict)


def _leader_election(election: Mapping[str, Any]) -> Iterator[Problem]:
    """Check the lock and the three timings, with kube-scheduler's defaults."""
    if election.get("leaderElect") is False:
        return
    path: Path = ("leaderElection",)
    lock = election.get("resourceLock")
    if lock not in (None, "", "leases"):
        message = f'"{lock}" is not supported; use "leases"'
        yield Problem(INVALID_LEADER_ELECTION, (*path, "resourceLock"), message)
    values = {}
    for name, default in TIMINGS.items():
        text = election.get(name) or default
        values[name] = nanoseconds(text) or nanoseconds(default)  # zero means unset
        if values[name] < 0:
            message = f"{text} must be greater than 0; use a longer time (default: {default})"
            yield Problem(INVALID_LEADER_ELECTION, (*path, name), message)
    lease, renew, retry = values.values()
    if lease <= renew:
        yield Problem(
            INVALID_LEADER_ELECTION,
            (*path, "leaseDuration"),
            f"{duration_text(lease)} must be greater than renewDeadline ({duration_text(renew)}); "
            "raise it, or lower renewDeadline",
        )
    # kube-scheduler reports this when leader election starts, after it accepted the configuration.
    if renew <= int(_JITTER * retry):
        yield Problem(
            INVALID_LEADER_ELECTION,
            (*path, "renewDeadline"),
            f"{duration_text(renew)} must be greater than 1.2 times retryPeriod "
            f"({duration_text(retry)}); raise it, or lower retryPeriod",
        )


def unprintable(config: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield characters with which kube-scheduler cannot log its configuration, and exits."""
    # Nearly every configuration only has printable characters, which takes a fifth of the time to
    # check that finding others with their paths takes.
    if not _texts(config).isprintable():
        yield from _unprintable(config, ())


def _texts(value: Any) -> str:
    """Join all keys and strings in a value."""
    texts: list[str] = []
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict):
            left += item
            left += item.values()
        elif isinstance(item, list):
            left += item
    return "".join(texts)


def _unprintable(value: Any, path: Path) -> Iterator[Problem]:
    if isinstance(value, str):
        if match := _UNPRINTABLE.search(value):
            message = f"contains the control character U+{ord(match[0]):04X}; remove it"
            yield Problem(INVALID, path, message)
    elif isinstance(value, dict):
        if path[-2:-1] == ("pluginConfig",) and str(value.get("name")) not in ARGS:
            return  # kube-scheduler drops it, or prints it as it is written: lint/configurations.py
        for key, item in value.items():
            yield from _unprintable(key, (*path, key))
            yield from _unprintable(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unprintable(item, (*path, index))


def _type_meta(config: Mapping[str, Any]) -> Iterator[Problem]:
    for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if config.get(key) != expected:
            yield Problem(INVALID, (key,), f'must be "{expected}"')


def _top_level(config: Mapping[str, Any], target: Target) -> Iterator[Problem]:
    if config.get("parallelism", 16) <= 0:
        message = "must be greater than 0; use 1 or more (default: 16)"
        yield Problem(INVALID, ("parallelism",), message)
    yield from validate_percentages(config, target)
    initial, longest = (
        config.get("podInitialBackoffSeconds", 1),
        config.get("podMaxBackoffSeconds", 10),
    )
    if initial <= 0:
        message = "must be greater than 0; use 1 or more (default: 1)"
        yield Problem(INVALID, ("podInitialBackoffSeconds",), message)
    if longest < initial:
        message = (
            f"{longest} must not be less than podInitialBackoffSeconds ({initial}); raise it, or "
            "lower podInitialBackoffSeconds"
        )
        yield Problem(INVALID, ("podMaxBackoffSeconds",), message)
    if config.get("clientConnection", {}).get("burst", 0) < 0:
        yield Problem(INVALID, ("clientConnection", "burst"), "must not be negative; use 0 or more")

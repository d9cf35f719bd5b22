"""Check a KubeSchedulerConfiguration the way kube-scheduler does when it starts, in milliseconds.

First the types (decode.py), then the rules. The verdict is kube-scheduler's, also where that is
surprising; the messages say precisely and early what is wrong and what to do. The preflight with
the real program has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base.findings import Path, Problem
from .catalogue import on_record
from .check_extenders import DUPLICATE, INVALID_EXTENDER, check_extenders
from .check_profiles import (
    INVALID_PROFILE,
    UNKNOWN_PLUGIN,
    WRONG_POINT,
    ReadProfile,
    check_percentage,
    check_profiles,
    decoded_profile,
    drops_resources,
    read_profile,
)
from .decode import INVALID, UNKNOWN_FIELD, decode, decoded
from .go_values import duration_text, nanoseconds
from .memo import within
from .schema import API_VERSION, CONFIGURATION, KIND
from .target import Target

__all__ = [
    "DUPLICATE", "INVALID", "INVALID_EXTENDER", "INVALID_LEADER_ELECTION", "INVALID_PROFILE",
    "UNKNOWN_PLUGIN", "WRONG_POINT", "Target", "check_config", "decoded_config",
]  # fmt: skip

INVALID_LEADER_ELECTION: Final = "InvalidLeaderElection"

TIMINGS: Final = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
"""Those of leader election, with their defaults."""
_JITTER: Final = 1.2  # client-go's leader election demands renewDeadline > 1.2 * retryPeriod


def check_config(
    config: Mapping[str, Any], target: Target, election: Mapping[str, Any] | None = None
) -> list[Problem]:
    """Everything that is wrong; the rules are only looked at when all types are right.

    Args:
        config: the configuration, as JSON has it.
        target: the scheduler that will read it.
        election: leaderElection with the flags of the command line over it, if there are any.
    """
    profiles = config.get("profiles")
    drops = drops_resources(config.get("extenders"))
    read = [
        read_profile({} if profile is None else profile, target, drops=drops)
        for profile in (profiles if isinstance(profiles, list) else ())
    ]
    problems = [*_type_meta(config), *_types(config, read, target)]
    for index, profile in enumerate(read):
        problems += within(profile.arguments, ("profiles", index))
    if any(problem.reason != UNKNOWN_FIELD for problem in problems):
        return problems
    others = {key: value for key, value in config.items() if key != "profiles"}
    config = decoded(others, CONFIGURATION, target.minor)
    problems += _top_level(config)
    problems += _leader_election(election or config.get("leaderElection", {}))
    problems += check_profiles(read or [read_profile({}, target, drops=drops)])
    problems += check_extenders(config.get("extenders", ()))
    return problems


def _types(
    config: Mapping[str, Any], profiles: Sequence[ReadProfile], target: Target
) -> Iterator[Problem]:
    """What is wrong with the types of a configuration; `profiles` are its own."""
    strict = on_record(target.gates.version)
    for key, value in config.items():
        if key == "profiles" and isinstance(value, list):
            for index, profile in enumerate(profiles):
                yield from within(profile.types, ("profiles", index))
        else:
            yield from decode({key: value}, CONFIGURATION, (), target.minor, strict=strict)


def decoded_config(config: Mapping[str, Any], minor: int) -> dict[str, Any]:
    """A copy of a configuration whose types are right, as kube-scheduler 1.`minor` holds it.

    Without nulls and unknown fields, also in the arguments of plugins that it reads.
    """
    copied: dict[str, Any] = decoded(config, CONFIGURATION, minor)
    if "profiles" in copied:
        copied["profiles"] = [
            decoded_profile(profile or {}, minor) for profile in config["profiles"]
        ]
    return copied


def _leader_election(election: Mapping[str, Any]) -> Iterator[Problem]:
    """The rules between the three timings, with kube-scheduler's defaults for missing ones."""
    if election.get("leaderElect") is False:
        return
    path: Path = ("leaderElection",)
    if election.get("resourceLock") not in (None, "", "leases"):
        yield Problem(
            INVALID_LEADER_ELECTION, (*path, "resourceLock"), 'only "leases" is left; use that'
        )
    values = {}
    for name, default in TIMINGS.items():
        text = election.get(name) or default
        values[name] = nanoseconds(text) or nanoseconds(default)  # zero means not set
        if values[name] < 0:
            yield Problem(INVALID_LEADER_ELECTION, (*path, name), f"{text} must be more than zero")
    lease, renew, retry = values.values()
    if lease <= renew:
        yield Problem(
            INVALID_LEADER_ELECTION,
            (*path, "leaseDuration"),
            f"{duration_text(lease)} must be more than renewDeadline ({duration_text(renew)}); "
            "raise it",
        )
    # kube-scheduler finds this when it begins to elect, after it has accepted the configuration.
    if renew <= int(_JITTER * retry):
        yield Problem(
            INVALID_LEADER_ELECTION,
            (*path, "renewDeadline"),
            f"{duration_text(renew)} must be more than 1.2 times retryPeriod "
            f"({duration_text(retry)}); raise it",
        )


def _type_meta(config: Mapping[str, Any]) -> Iterator[Problem]:
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if config.get(key) != wanted:
            yield Problem(INVALID, (key,), f'this must be "{wanted}"')


def _top_level(config: Mapping[str, Any]) -> Iterator[Problem]:
    if config.get("parallelism", 16) <= 0:
        yield Problem(INVALID, ("parallelism",), "this must be more than 0; the default is 16")
    yield from check_percentage(config, ())
    initial, longest = (
        config.get("podInitialBackoffSeconds", 1),
        config.get("podMaxBackoffSeconds", 10),
    )
    if initial <= 0:
        yield Problem(INVALID, ("podInitialBackoffSeconds",), "this must be more than 0")
    if longest < initial:
        yield Problem(
            INVALID,
            ("podMaxBackoffSeconds",),
            f"{longest} must not be less than podInitialBackoffSeconds ({initial}); raise it",
        )
    if config.get("clientConnection", {}).get("burst", 0) < 0:
        yield Problem(INVALID, ("clientConnection", "burst"), "this must not be negative")

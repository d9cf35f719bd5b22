"""Check a KubeSchedulerConfiguration the way kube-scheduler does when it starts, in milliseconds.

First the types (decode.py), then the rules. The verdict is kube-scheduler's, also where that is
surprising; the messages say precisely and early what is wrong and what to do. The preflight with
the real program has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .catalogue import on_record
from .check_extenders import DUPLICATE, INVALID_EXTENDER, check_extenders
from .check_profiles import (
    INVALID_PROFILE,
    UNKNOWN_PLUGIN,
    WRONG_POINT,
    check_percentage,
    check_profiles,
)
from .decode import INVALID, UNKNOWN_FIELD, decode, decoded
from .findings import Path, Problem
from .schema import API_VERSION, CONFIGURATION, GROUP, KIND, args_struct
from .target import Target
from .values import duration_text, nanoseconds

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
    strict = on_record(target.gates.version)
    problems = [
        *_type_meta(config),
        *decode(config, CONFIGURATION, (), target.minor, strict=strict),
    ]
    for index, profile in enumerate(_objects(config.get("profiles"))):
        problems += _decode_args(profile, ("profiles", index), target, strict=strict)
    if any(problem.reason != UNKNOWN_FIELD for problem in problems):
        return problems
    config = decoded_config(config, target.minor)
    problems += _top_level(config)
    problems += _leader_election(election or config.get("leaderElection", {}))
    problems += check_profiles(config, target)
    problems += check_extenders(config.get("extenders", ()))
    return problems


def decoded_config(config: Mapping[str, Any], minor: int) -> dict[str, Any]:
    """A copy of a configuration whose types are right, as kube-scheduler 1.`minor` holds it.

    Without nulls and unknown fields, also in the arguments of plugins that it reads.
    """
    copied: dict[str, Any] = decoded(config, CONFIGURATION, minor)
    for profile in copied.get("profiles", ()):
        for entry in profile.get("pluginConfig", ()):
            struct = args_struct(entry.get("name", ""), minor)
            if struct is not None and "args" in entry:
                entry["args"] = decoded(entry["args"], struct, minor)
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


def _decode_args(
    profile: Mapping[str, Any], path: Path, target: Target, *, strict: bool
) -> Iterator[Problem]:
    for index, entry in enumerate(_objects(profile.get("pluginConfig"))):
        name, args = entry.get("name"), entry.get("args")
        struct = args_struct(name, target.minor) if isinstance(name, str) else None
        if struct is None or args is None:
            continue
        where = (*path, "pluginConfig", index, "args")
        yield from decode(args, struct, where, target.minor, strict=strict)
        # What is left out is taken for what it must be, also the version after the group.
        known = {
            "apiVersion": (None, "", "/", f"{GROUP}/", API_VERSION),
            "kind": (None, "", f"{name}Args"),
        }
        for key, values in known.items():
            if isinstance(args, Mapping) and args.get(key) not in values:
                yield Problem(
                    INVALID, (*where, key), f'this must be "{values[-1]}"; it can be left out'
                )


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


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """The entries of a list, with something empty for those that are no objects."""
    for item in value if isinstance(value, list) else ():
        yield item if isinstance(item, Mapping) else {}

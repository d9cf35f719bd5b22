"""Check a KubeSchedulerConfiguration the way kube-scheduler does when it starts, in milliseconds.

First the types (schema.py), then the rules. Whatever kube-scheduler accepts must pass here: the
check exists to say precisely and early what is wrong, the preflight with the real program decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from .catalogue import NEVER_IN_V1, PLUGINS, on_record, plugins
from .effective import Effective, effective_plugins
from .findings import Path, Problem, did_you_mean
from .gates import Gates
from .plugin_args import check_args
from .schema import (
    API_VERSION,
    ARGS,
    ARGS_SINCE,
    CONFIGURATION,
    KIND,
    UNKNOWN_FIELD,
    decode,
)
from .values import is_extended_resource, seconds

INVALID: Final = "InvalidConfiguration"
UNKNOWN_PLUGIN: Final = "UnknownPlugin"
WRONG_POINT: Final = "WrongExtensionPoint"
DUPLICATE: Final = "Duplicate"
INVALID_PROFILE: Final = "InvalidProfile"
INVALID_EXTENDER: Final = "InvalidExtender"
INVALID_LEADER_ELECTION: Final = "InvalidLeaderElection"

_JITTER: Final = 1.2  # client-go's leader election demands renewDeadline > 1.2 * retryPeriod
_TIMINGS: Final = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}


@dataclass(frozen=True, slots=True)
class Target:
    """The scheduler that will read the configuration.

    Attributes:
        gates: its version and feature gates.
        stock: False for an image that may have more plugins than the catalogue.
    """

    gates: Gates
    stock: bool = True

    @property
    def minor(self) -> int:
        """The minor of 1.x."""
        return self.gates.version.minor

    @property
    def plugins_on_record(self) -> bool:
        """True if a plugin that the catalogue does not know cannot exist."""
        return self.stock and on_record(self.gates.version)


def check_config(
    config: Mapping[str, Any], target: Target, election: Mapping[str, Any] | None = None
) -> list[Problem]:
    """Everything that is wrong; the rules are only looked at when all types are right.

    Args:
        config: the configuration, without nulls.
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
    problems += _top_level(config)
    problems += _leader_election(election or config.get("leaderElection") or {})
    problems += _profiles(config, target)
    problems += _extenders(config.get("extenders") or ())
    return problems


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
    for name, default in _TIMINGS.items():
        text = election.get(name) or default
        values[name] = seconds(text) or seconds(default)  # zero means not set
        if values[name] < 0:
            yield Problem(INVALID_LEADER_ELECTION, (*path, name), f"{text} must be more than zero")
    lease, renew, retry = values.values()
    if lease <= renew:
        yield Problem(
            INVALID_LEADER_ELECTION,
            (*path, "leaseDuration"),
            f"{lease:g}s must be more than renewDeadline ({renew:g}s); raise it",
        )
    if renew <= _JITTER * retry:
        yield Problem(
            INVALID_LEADER_ELECTION,
            (*path, "renewDeadline"),
            f"{renew:g}s must be more than 1.2 times retryPeriod ({retry:g}s); raise it",
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
        struct = ARGS.get(name) if isinstance(name, str) else None
        if struct is None or args is None or target.minor < ARGS_SINCE.get(name or "", 0):
            continue
        where = (*path, "pluginConfig", index, "args")
        yield from decode(args, struct, where, target.minor, strict=strict)
        for key, wanted in (("apiVersion", API_VERSION), ("kind", f"{name}Args")):
            if isinstance(args, Mapping) and args.get(key) not in (None, "", wanted):
                yield Problem(
                    INVALID, (*where, key), f'this must be "{wanted}"; it can be left out'
                )


def _top_level(config: Mapping[str, Any]) -> Iterator[Problem]:
    if config.get("parallelism", 16) <= 0:
        yield Problem(INVALID, ("parallelism",), "this must be more than 0; the default is 16")
    yield from _percentage(config, ())
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
    if (config.get("clientConnection") or {}).get("burst", 0) < 0:
        yield Problem(INVALID, ("clientConnection", "burst"), "this must not be negative")


def _percentage(owner: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    value = owner.get("percentageOfNodesToScore", 0)
    if not 0 <= value <= 100:
        yield Problem(
            INVALID, (*path, "percentageOfNodesToScore"), f"{value} is out of range; use 0 to 100"
        )


def _profiles(config: Mapping[str, Any], target: Target) -> Iterator[Problem]:
    profiles: Sequence[Mapping[str, Any]] = config.get("profiles") or [{}]
    drops_resources = any(
        resource.get("ignoredByScheduler")
        for extender in config.get("extenders") or ()
        for resource in extender.get("managedResources") or ()
    )
    first: Effective | None = None
    seen: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path: Path = ("profiles", index)
        name = profile.get("schedulerName", "default-scheduler" if len(profiles) == 1 else "")
        if not name:
            yield Problem(
                INVALID_PROFILE,
                (*path, "schedulerName"),
                "this is missing; every profile needs a name of its own",
            )
        elif name in seen:
            yield Problem(
                DUPLICATE,
                (*path, "schedulerName"),
                f'profiles[{seen[name]}] has the name "{name}" as well; rename one',
            )
        seen.setdefault(name, index)
        yield from _percentage(profile, path)
        yield from _plugin_lists(profile, path, target)
        effective = effective_plugins(profile, target.gates)
        yield from _framework(effective, path, target)
        yield from _plugin_config(profile, path, effective, target)
        if drops_resources and "NodeResourcesFit" not in (*effective.named, *_configured(profile)):
            yield Problem(
                INVALID_PROFILE,
                (*path, "plugins"),
                "ignoredByScheduler resources of extenders need NodeResourcesFit; enable it",
            )
        if first is None:
            first = effective
        else:
            yield from _same_queue(profiles[0], profile, first, effective, path)


def _plugin_lists(profile: Mapping[str, Any], path: Path, target: Target) -> Iterator[Problem]:
    known = plugins(target.gates.version)
    for point, lists in (profile.get("plugins") or {}).items():
        for index, entry in enumerate((lists or {}).get("enabled") or ()):
            name = entry.get("name", "")
            where = (*path, "plugins", point, "enabled", index, "name")
            plugin = known.get(name)
            if plugin is None:
                if target.plugins_on_record:
                    yield Problem(UNKNOWN_PLUGIN, where, _unknown_plugin(name, target))
            elif (
                target.plugins_on_record
                and point != "multiPoint"
                and not plugin.implements(point, target.minor)
            ):
                points = ", ".join(plugin.points_at(target.minor))
                yield Problem(
                    WRONG_POINT,
                    where,
                    f'plugin "{name}" does not extend {point}; it can be at {points}',
                )


def _unknown_plugin(name: str, target: Target) -> str:
    """Why a plugin is not there, and what to do."""
    minor = target.minor
    other = PLUGINS.get(name)
    if other is not None and other.until is not None and other.until < minor:
        return f'plugin "{name}" was removed in Kubernetes 1.{other.until + 1}; remove it'
    if other is not None and other.since > minor:
        return f'plugin "{name}" came with Kubernetes 1.{other.since}, this is 1.{minor}; remove it'
    hint = did_you_mean(name, plugins(target.gates.version))
    return f'kube-scheduler 1.{minor} has no plugin "{name}"{hint or "; remove it"}'


def _framework(effective: Effective, path: Path, target: Target) -> Iterator[Problem]:
    for point, name in dict.fromkeys(effective.twice):
        yield Problem(
            DUPLICATE, (*path, "plugins", point), f'plugin "{name}" is enabled twice; remove one'
        )
    if effective.unknown or not on_record(target.gates.version):
        return  # what they implement is not known, so nothing can be counted
    if any(total < 0 for total in list(accumulate(effective.weights))[:-1]):
        # It computes how much room is left for the next weight, which then overflows.
        yield Problem(
            INVALID_PROFILE,
            (*path, "plugins", "score"),
            "a negative weight makes the sum of the weights negative; use 1 or more",
        )
    sorters = [entry.name for entry in effective.points["queueSort"]]
    if len(sorters) != 1:
        yield Problem(
            INVALID_PROFILE,
            (*path, "plugins", "queueSort"),
            f"{len(sorters)} plugins sort the queue and one must; enable PrioritySort alone",
        )
    if not effective.points["bind"]:
        yield Problem(
            INVALID_PROFILE,
            (*path, "plugins", "bind"),
            "no bind plugin is left; enable DefaultBinder",
        )


def _plugin_config(
    profile: Mapping[str, Any], path: Path, effective: Effective, target: Target
) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, entry in enumerate(profile.get("pluginConfig") or ()):
        name, where = entry.get("name", ""), (*path, "pluginConfig", index)
        if name in seen:
            yield Problem(DUPLICATE, (*where, "name"), f'"{name}" is there twice; merge the two')
        seen.add(name)
        if name in NEVER_IN_V1 and target.minor >= 32:
            yield Problem(UNKNOWN_PLUGIN, (*where, "name"), _unknown_plugin(name, target))
        # kube-scheduler reads the arguments of NodeResourcesFit only when it builds the plugin.
        if name == "NodeResourcesFit" and name not in effective.named:
            continue
        if target.minor >= ARGS_SINCE.get(name, 0) and name in ARGS:
            yield from check_args(name, entry.get("args") or {}, (*where, "args"), target.gates)


def _same_queue(
    first: Mapping[str, Any],
    other: Mapping[str, Any],
    first_effective: Effective,
    effective: Effective,
    path: Path,
) -> Iterator[Problem]:
    """There is one queue, so all profiles must sort it alike."""

    def listed(profile: Mapping[str, Any]) -> list[Any]:
        lists = (profile.get("plugins") or {}).get("queueSort") or {}
        return [
            [(item.get("name"), item.get("weight") or 0) for item in lists.get(key) or ()]
            for key in ("enabled", "disabled")
        ]

    def sorter(profile: Mapping[str, Any], points: Effective) -> Any:
        entries = points.points["queueSort"]
        return entries and (entries[0].name, _configured(profile).get(entries[0].name))

    if listed(first) != listed(other) or sorter(first, first_effective) != sorter(other, effective):
        yield Problem(
            INVALID_PROFILE,
            (*path, "plugins", "queueSort"),
            "all profiles share one queue, so queueSort and its arguments must be the same in all",
        )


def _configured(profile: Mapping[str, Any]) -> dict[str, Any]:
    return {entry.get("name"): entry.get("args") for entry in profile.get("pluginConfig") or ()}


def _extenders(extenders: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    binder: int | None = None
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path: Path = ("extenders", index)
        if extender.get("prioritizeVerb") and extender.get("weight", 0) <= 0:
            yield Problem(
                INVALID_EXTENDER, (*path, "weight"), "an extender that prioritizes needs 1 or more"
            )
        if extender.get("bindVerb"):
            if binder is not None:
                yield Problem(
                    INVALID_EXTENDER,
                    (*path, "bindVerb"),
                    f"extenders[{binder}] binds already, and only one may; remove one bindVerb",
                )
            binder = index if binder is None else binder
        tls = extender.get("tlsConfig") or {}
        if tls.get("insecure") and (tls.get("caFile") or tls.get("caData")):
            yield Problem(
                INVALID_EXTENDER,
                (*path, "tlsConfig", "insecure"),
                "an insecure client takes no CA; remove insecure or the CA",
            )
        for position, resource in enumerate(extender.get("managedResources") or ()):
            name = resource.get("name", "")
            where = (*path, "managedResources", position, "name")
            if not is_extended_resource(name):
                yield Problem(
                    INVALID_EXTENDER,
                    where,
                    f'"{name}" is not an extended resource; write one such as example.com/gpu',
                )
            if name in managed:
                yield Problem(DUPLICATE, where, f'"{name}" is managed twice; remove one')
            managed.add(name)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """The entries of a list, with something empty for those that are no objects."""
    for item in value if isinstance(value, list) else ():
        yield item if isinstance(item, Mapping) else {}

"""The configuration as kube-scheduler completes it: decoded, defaulted, all profiles built.

This is what `kube-scheduler --config FILE --write-config-to OUT` writes: every default at the top,
the plugin lists of every profile merged with the default ones, the arguments of all plugins that
are built, and extenders. The defaults are those of pkg/scheduler/apis/config/v1/defaults.go.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .catalogue import default_plugins
from .check import TIMINGS, decoded_config
from .complete_args import complete_args
from .effective_plugins import Entry, PluginSet, merge_with_defaults
from .go_values import duration_text, nanoseconds
from .schema import (
    API_VERSION,
    CONFIGURATION,
    DURATION,
    KIND,
    POINTS,
    POINTS_SINCE,
    Map,
    Struct,
    Type,
    args_struct,
)
from .schema import List as ListType
from .target import Target

_FIT: Final = "NodeResourcesFit"
_EXTENDER_TIMEOUT: Final = "5s"


def complete(
    config: Mapping[str, Any], target: Target, election: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What kube-scheduler makes of a configuration in which `check_config` finds nothing.

    A feature gate of which it cannot be told whether it is on counts as off.

    Args:
        config: the configuration, as JSON has it.
        target: the scheduler that reads it.
        election: leaderElection with the flags of the command line over it, if there are any.

    Returns:
        The document as JSON has it; durations as Go prints them, `qps` as a float32.
    """
    given = decoded_config(config, target.minor)
    profiles = given.get("profiles") or [{}]
    ignored = [
        resource["name"]
        for extender in given.get("extenders", ())
        for resource in extender.get("managedResources", ())
        if resource.get("ignoredByScheduler")
    ]
    profiling = given.get("enableProfiling", True)
    client = given.get("clientConnection", {})
    whole = {
        "parallelism": 16,
        "percentageOfNodesToScore": 0,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        # Contention profiling comes with profiling, and without it only if it is asked for.
        "enableContentionProfiling": profiling,
        **given,
        "apiVersion": API_VERSION,
        "kind": KIND,
        "enableProfiling": profiling,
        "leaderElection": _leader_election(election or given.get("leaderElection", {})),
        "clientConnection": {
            **client,
            "contentType": client.get("contentType") or "application/vnd.kubernetes.protobuf",
            "qps": _float32(client.get("qps", 0)) or 50,
            "burst": client.get("burst") or 100,
        },
        "profiles": [
            _profile(profile, target, ignored, alone=len(profiles) == 1) for profile in profiles
        ],
        "extenders": [
            {**extender, "httpTimeout": _duration(extender.get("httpTimeout"), _EXTENDER_TIMEOUT)}
            for extender in given.get("extenders", ())
        ],
    }
    written: dict[str, Any] = encode(whole, CONFIGURATION, target.minor)
    return written


def encode(value: Any, kind: Type, minor: int) -> Any:
    """What Go writes of a decoded value: fields that are empty only where their struct says so."""
    if isinstance(kind, Struct):
        found = {}
        for name in kind.known(minor):
            item = value.get(name)
            if item is None:
                written, item = _absent(name, kind)
            else:
                filled = item not in ("", 0, False) and item != []
                whole = isinstance(kind.fields[name], Struct) or kind.fields[name] == "any"
                written = filled or whole or name in kind.always or name in kind.optional
            if written:
                found[name] = None if item is None else encode(item, kind.fields[name], minor)
        return found
    if isinstance(kind, ListType):
        return [encode(item, kind.item, minor) for item in value]
    if isinstance(kind, Map):
        return {key: encode(item, kind.item, minor) for key, item in value.items()}
    return duration_text(nanoseconds(value)) if kind == DURATION else value


def _absent(name: str, kind: Struct) -> tuple[bool, Any]:
    """(whether, what) is written of a field that was not given."""
    field = kind.fields[name]
    if name in kind.optional:
        return name in kind.always, None
    if isinstance(field, Struct):
        return True, {}
    if isinstance(field, ListType):
        return name in kind.always, None
    zero = {"bool": False, "string": "", DURATION: "0s"}
    return name in kind.always, zero.get(str(field), 0)


def _leader_election(election: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "leaderElect": election.get("leaderElect", True),
        **{name: _duration(election.get(name), default) for name, default in TIMINGS.items()},
        "resourceLock": election.get("resourceLock") or "leases",
        "resourceName": election.get("resourceName") or "kube-scheduler",
        "resourceNamespace": election.get("resourceNamespace") or "kube-system",
    }


def _duration(text: str | None, default: str) -> str:
    """The duration; zero is taken for not given."""
    return text if text and nanoseconds(text) else default


def _profile(
    profile: Mapping[str, Any], target: Target, ignored: Sequence[str], *, alone: bool
) -> dict[str, Any]:
    plugins, named = _plugins(profile.get("plugins", {}), target)
    given = {entry.get("name", ""): entry.get("args") for entry in profile.get("pluginConfig", ())}
    entries = []
    for name in sorted(named):
        kind = args_struct(name, target.minor)
        args = given.get(name)
        if kind is not None:
            args = complete_args(name, args or {}, target.gates)
            if name == _FIT and ignored:
                args["ignoredResources"] = list(ignored)  # what the profile says is replaced
            typed = {"apiVersion": API_VERSION, "kind": f"{name}Args"}
            args = encode({**args, **typed}, kind, target.minor)
        if args is not None:
            entries.append({"name": name, "args": args})
    default = {"schedulerName": "default-scheduler"} if alone else {}
    return {**default, **profile, "plugins": plugins, "pluginConfig": entries}


def _plugins(lists: Mapping[str, Any], target: Target) -> tuple[dict[str, Any], set[str]]:
    """(plugin lists merged with the default ones, the names of all plugins in them)."""
    defaults = PluginSet(
        tuple(Entry(name, weight) for name, weight in default_plugins(target.gates))
    )
    merged: dict[str, Any] = {}
    named: set[str] = set()
    for point in (*POINTS, "multiPoint"):
        if POINTS_SINCE.get(point, 0) > target.minor:
            continue
        here = lists.get(point, {})
        disabled = [item.get("name", "") for item in here.get("disabled", ())]
        enabled = tuple(
            Entry(item.get("name", ""), item.get("weight", 0)) for item in here.get("enabled", ())
        )
        result = merge_with_defaults(
            defaults if point == "multiPoint" else PluginSet(),
            PluginSet(enabled, frozenset(disabled)),
        )
        merged[point] = {
            "enabled": [{"name": item.name, "weight": item.weight} for item in result.enabled],
            "disabled": [{"name": name, "weight": 0} for name in disabled],
        }
        named.update(item.name for item in result.enabled)
    return merged, named


def _float32(number: float) -> float:
    """The shortest decimal that is the same float32, which is how Go writes one."""
    wanted = struct.pack("f", number)
    if not any(wanted):
        return 0.0  # too small to be anything else
    for digits in range(1, 10):
        shortest = float(f"{number:.{digits}g}")
        if struct.pack("f", shortest) == wanted:
            return shortest
    return number

"""A configuration with kube-scheduler's defaults (pkg/scheduler/apis/config/v1/defaults.go).

The result is what `kube-scheduler --config FILE --write-config-to OUT` writes: top-level defaults,
plugin lists merged with the default ones, arguments of all enabled plugins, and extenders. The
comparison with it proves the product's decoding, merged plugin lists and default arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kube_scheduler_operator.base.go_values import duration_text, nanoseconds
from kube_scheduler_operator.config.language.decode import decoded, zero
from kube_scheduler_operator.config.language.plugins.default_args import defaulted_args
from kube_scheduler_operator.config.language.plugins.effective_plugins import (
    default_set,
    merge_with_defaults,
    read_set,
)
from kube_scheduler_operator.config.language.plugins.target_scheduler import Target
from kube_scheduler_operator.config.language.schema import (
    API_VERSION,
    CONFIGURATION,
    DEFAULT_SCHEDULER,
    DURATION,
    KIND,
    POINTS,
    POINTS_SINCE,
    PROFILE,
    TIMINGS,
    Map,
    Struct,
    Type,
    args_struct,
)
from kube_scheduler_operator.config.language.schema import List as ListType
from kube_scheduler_operator.config.language.validation.profiles import with_decoded_args

_FIT: Final = "NodeResourcesFit"
_PLACEMENTS: Final = "TopologyAwareWorkloadScheduling"
_EXTENDER_TIMEOUT: Final = "5s"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def defaulted_config(config: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """Add all defaults to a valid configuration, as kube-scheduler writes it.

    Durations are written as Go prints them, and `qps` as a float32. A feature gate whose state is
    unknown counts as disabled.
    """
    decoded = decoded_config(config, target.minor)
    profiles = decoded.get("profiles") or [{}]
    ignored = [
        resource["name"]
        for extender in decoded.get("extenders", ())
        for resource in extender.get("managedResources", ())
        if resource.get("ignoredByScheduler")
    ]
    profiling = decoded.get("enableProfiling", True)
    client = decoded.get("clientConnection", {})
    placements = {"percentageOfPlacementsToScore": 0}
    whole = {
        "parallelism": 16,
        "percentageOfNodesToScore": 0,
        **(placements if target.gates.enabled(_PLACEMENTS) else {}),
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        # Contention profiling defaults to the value of profiling.
        "enableContentionProfiling": profiling,
        **decoded,
        "apiVersion": API_VERSION,
        "kind": KIND,
        "enableProfiling": profiling,
        "leaderElection": _leader_election(decoded.get("leaderElection", {})),
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
            for extender in decoded.get("extenders", ())
        ],
    }
    written: dict[str, Any] = encode(whole, CONFIGURATION, target.minor)
    return written


def decoded_config(config: Mapping[str, Any], minor: int) -> dict[str, Any]:
    """Copy a configuration with valid types as kube-scheduler 1.`minor` decodes it.

    The copy, including the arguments of in-tree plugins, has no nulls or unknown fields.
    """
    copied: dict[str, Any] = decoded(config, CONFIGURATION, minor)
    if "profiles" in copied:
        copied["profiles"] = [
            with_decoded_args(decoded(profile or {}, PROFILE, minor), minor)
            for profile in config["profiles"]
        ]
    return copied


def encode(value: Any, kind: Type, minor: int, name: str = "") -> Any:
    """Encode a decoded value as Go: empty fields only where their struct has no omitempty.

    `name` is the field or the plugin that has the value; empty for the configuration.
    """
    if isinstance(kind, Struct):
        always, optional = _ALWAYS.get(name, ()), _OPTIONAL.get(name, ())
        fields = {}
        for key in kind.known(minor):
            item = value.get(key)
            field = kind.fields[key]
            if item is None:
                if key not in optional and isinstance(field, Struct):
                    fields[key] = encode({}, field, minor, key)
                elif key in always:
                    empty = key in optional or isinstance(field, ListType)
                    fields[key] = None if empty else encode(zero(field), field, minor, key)
                continue
            filled = item not in ("", 0, False) and item != []
            whole = isinstance(field, Struct) or field == "any"
            if filled or whole or key in always or key in optional:
                fields[key] = encode(item, field, minor, key)
        return fields
    if isinstance(kind, ListType):
        return [encode(item, kind.item, minor, name) for item in value]
    if isinstance(kind, Map):
        return {key: encode(item, kind.item, minor, name) for key, item in value.items()}
    return duration_text(nanoseconds(value)) if kind == DURATION else value


_PLUGIN: Final = ("name",)
_REQUIREMENT: Final = ("key", "operator")
_ALWAYS: Final[Mapping[str, Sequence[str]]] = {
    "": ("leaderElection", "clientConnection"),
    "leaderElection": (*TIMINGS, "resourceLock", "resourceName", "resourceNamespace"),
    "clientConnection": ("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"),
    "enabled": _PLUGIN,
    "disabled": _PLUGIN,
    "pluginConfig": _PLUGIN,
    "extenders": ("urlPrefix", "httpTimeout"),
    "managedResources": ("name",),
    "matchExpressions": _REQUIREMENT,
    "matchFields": _REQUIREMENT,
    "shape": ("utilization", "score"),
    "resources": ("name",),
    "defaultConstraints": ("maxSkew", "topologyKey", "whenUnsatisfiable"),
    "DynamicResources": ("filterTimeout",),
    "InterPodAffinity": ("ignorePreferredTermsOfExistingPods",),
    _REQUIRED: ("nodeSelectorTerms",),
    "preferredDuringSchedulingIgnoredDuringExecution": ("weight", "preference"),
}
"""Struct -> its fields that are written even if unset (no `omitempty` in Go)."""
_OPTIONAL: Final[Mapping[str, Sequence[str]]] = {
    "": (
        "parallelism", "enableProfiling", "enableContentionProfiling", "percentageOfNodesToScore",
        "percentageOfPlacementsToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds",
    ),
    "leaderElection": ("leaderElect",),
    "profiles": (
        "schedulerName", "percentageOfNodesToScore", "percentageOfPlacementsToScore", "plugins",
    ),
    "enabled": ("weight",),
    "disabled": ("weight",),
    "extenders": ("tlsConfig",),
    "defaultConstraints": (
        "labelSelector", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy",
    ),
    "DefaultPreemption": ("minCandidateNodesPercentage", "minCandidateNodesAbsolute"),
    "DynamicResources": ("filterTimeout", "bindingTimeout"),
    "InterPodAffinity": ("hardPodAffinityWeight",),
    "NodeAffinity": ("addedAffinity",),
    "addedAffinity": (_REQUIRED,),
    "NodeResourcesFit": ("scoringStrategy",),
    "scoringStrategy": ("requestedToCapacityRatio",),
    "VolumeBinding": ("bindTimeoutSeconds",),
}  # fmt: skip
"""Struct -> its fields that distinguish unset from zero, which is written (pointers in Go)."""


def _leader_election(election: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "leaderElect": election.get("leaderElect", True),
        **{name: _duration(election.get(name), default) for name, default in TIMINGS.items()},
        "resourceLock": election.get("resourceLock") or "leases",
        "resourceName": election.get("resourceName") or "kube-scheduler",
        "resourceNamespace": election.get("resourceNamespace") or "kube-system",
    }


def _duration(text: str | None, default: str) -> str:
    """Return the default instead of an unset duration or zero."""
    return text if text and nanoseconds(text) else default


def _profile(
    profile: Mapping[str, Any], target: Target, ignored: Sequence[str], *, alone: bool
) -> dict[str, Any]:
    plugins, named = _plugins(profile.get("plugins", {}), target)
    args_by_plugin = {
        entry.get("name", ""): entry.get("args") for entry in profile.get("pluginConfig", ())
    }
    entries = []
    for name in sorted(named):
        kind = args_struct(name, target.minor)
        args = args_by_plugin.get(name)
        if kind is not None:
            args = defaulted_args(name, args or {}, target.gates)
            if name == _FIT and ignored:
                args["ignoredResources"] = list(ignored)  # replaces those of the profile
            typed = {"apiVersion": API_VERSION, "kind": f"{name}Args"}
            args = encode({**args, **typed}, kind, target.minor, name)
        if args is not None:
            entries.append({"name": name, "args": args})
    default = {"schedulerName": DEFAULT_SCHEDULER} if alone else {}
    return {**default, **profile, "plugins": plugins, "pluginConfig": entries}


def _plugins(lists: Mapping[str, Any], target: Target) -> tuple[dict[str, Any], set[str]]:
    """Return (plugin lists merged with the default ones, names of all plugins in them)."""
    merged: dict[str, Any] = {}
    named: set[str] = set()
    for point in (*POINTS, "multiPoint"):
        if POINTS_SINCE.get(point, 0) > target.minor:
            continue
        here = lists.get(point, {})
        default = default_set(target.gates, point)
        disabled = [entry.get("name", "") for entry in here.get("disabled", ())]
        disabled += sorted(default.disabled)
        plugins = merge_with_defaults(default, read_set(here)).enabled
        merged[point] = {
            "enabled": [{"name": plugin.name, "weight": plugin.weight} for plugin in plugins],
            "disabled": [{"name": name, "weight": 0} for name in disabled],
        }
        named.update(plugin.name for plugin in plugins)
    return merged, named


def _float32(number: float) -> float:
    """Return the shortest decimal with the same float32 value, as Go writes it."""
    packed = struct.pack("f", number)
    if not any(packed):
        return 0.0  # below the smallest float32
    for digits in range(1, 10):
        shortest = float(f"{number:.{digits}g}")
        if struct.pack("f", shortest) == packed:
            return shortest
    return number

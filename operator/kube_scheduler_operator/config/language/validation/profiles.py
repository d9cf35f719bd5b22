"""Rules for profiles: names, plugin lists, plugin arguments, the shared queue.

Each profile is first validated by itself. Only names and the shared queue require all profiles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from ....base.bounded_cache import cached_by_content
from ....base.decoding import UNKNOWN_FIELD
from ....base.findings import Path, Problem, did_you_mean, listing
from ....base.objects import entries, mapping
from ..decode import INVALID, decode_problems, decoded, read
from ..plugins.effective_plugins import (
    MULTI_POINT,
    WILDCARD,
    EffectivePlugins,
    configured_plugins,
    effective_plugins,
    listed_plugins,
    read_set,
)
from ..plugins.in_tree_plugins import (
    INVALID_PLUGINS,
    INVALID_PLUGINS_SINCE,
    OLD_PLUGINS,
    PLUGINS,
    newer_than_recorded,
    on_record,
    plugins,
)
from ..plugins.known_schedulers import owner_fix
from ..plugins.target_scheduler import Target
from ..schema import API_VERSION, DEFAULT_SCHEDULER, GROUP, PROFILE, args_struct
from .known_plugins import UNKNOWN_PLUGIN, WRONG_POINT, of_known_scheduler, validate_known_plugin
from .plugin_args import REASON as INVALID_ARGS
from .plugin_args import validate_args

DUPLICATE: Final = "Duplicate"
INVALID_PROFILE: Final = "InvalidProfile"

CACHE_SIZE: Final = 1024
"""Cached results per function: a cluster can have hundreds of profiles, and an edit changes one."""

FIT: Final = "NodeResourcesFit"
_LONGEST_SLIP: Final = 3  # characters that are too many in a misspelt name
_QUEUE_SORT: Final = "queueSort"
_DEFAULT_SORTER: Final = "PrioritySort"
_NEVER_MATCHING: Final = f"{FIT}Args"
"""kube-scheduler's validatePluginConfig has this key instead of the plugin's name, and compares the
type of the arguments with one that they never have."""


_PLACEMENTS: Final = "percentageOfPlacementsToScore"
_PLACEMENTS_GATE: Final = "TopologyAwareWorkloadScheduling"


def validate_percentages(owner: Mapping[str, Any], target: Target) -> Iterator[Problem]:
    """Check the shares of nodes and placements to score, at the top level or in a profile."""
    for name in ("percentageOfNodesToScore", _PLACEMENTS):
        value = owner.get(name, 0)
        if name == _PLACEMENTS and name in owner and not target.gates.enabled(_PLACEMENTS_GATE):
            message = f"it needs the feature gate {_PLACEMENTS_GATE}; enable that or remove it"
            yield Problem(INVALID, (name,), message)
        elif not 0 <= value <= 100:
            yield Problem(INVALID, (name,), f"{value} is out of range; use 0 to 100")


@dataclass(frozen=True, slots=True)
class QueueSort:
    """The queueSort settings of a profile, which must be equal in all profiles of a process."""

    enabled: tuple[tuple[str, int], ...]  # names and weights, as listed
    disabled: tuple[str, ...]  # names, as listed
    sorter: str | None = None  # the effective plugin, if any
    arguments: str = ""  # of the plugin, as JSON: 1 and true differ, unlike in Python


@dataclass(frozen=True, slots=True)
class ValidatedProfile:
    """Problems and data of one profile; paths are relative to it."""

    types: tuple[Problem, ...]  # unknown fields and type errors
    arguments: tuple[Problem, ...]  # unknown fields and type errors in plugin arguments
    rules: tuple[Problem, ...] = ()  # violated rules; not evaluated after a type error
    name: str | None = None  # its schedulerName, if any
    queue: QueueSort | None = None  # None after a type error

    @property
    def problems(self) -> tuple[Problem, ...]:
        return (*self.types, *self.arguments, *self.rules)


# A profile is validated alone, with its neighbours, and in its scheduler's configuration.
@cached_by_content(CACHE_SIZE)
def validate_profile(profile: Any, target: Target, *, ignores: bool = False) -> ValidatedProfile:
    """Decode and validate one profile of any type by itself.

    `ignores`: whether extenders determine what NodeResourcesFit ignores.
    """
    minor, strict = target.minor, on_record(target.gates.version)
    copied, types = read(profile, PROFILE, (), minor, strict=strict)
    arguments: tuple[Problem, ...] = ()
    if isinstance(profile, Mapping):
        arguments = tuple(_decode_args(profile, target, strict=strict))
    if any(problem.reason != UNKNOWN_FIELD for problem in (*types, *arguments)):
        return ValidatedProfile(tuple(types), arguments)
    profile = with_decoded_args(copied, minor)
    effective = effective_plugins(profile, target.gates)
    rules = tuple(_rules(profile, effective, target, ignores=ignores))
    queue = _queue(profile, effective)
    return ValidatedProfile(tuple(types), arguments, rules, profile.get("schedulerName"), queue)


def with_decoded_args(profile: dict[str, Any], minor: int) -> dict[str, Any]:
    """Decode the arguments in a decoded profile as kube-scheduler 1.`minor` does."""
    for entry in profile.get("pluginConfig", ()):
        struct = args_struct(entry.get("name", ""), minor)
        if struct is not None and "args" in entry:
            entry["args"] = decoded(entry["args"], struct, minor)
    return profile


def _decode_args(profile: Mapping[str, Any], target: Target, *, strict: bool) -> Iterator[Problem]:
    for path, entry in configured_plugins(profile):
        name, args = entry.get("name"), entry.get("args")
        if not isinstance(name, str):
            continue
        struct = target.args_struct(name)
        if struct is None or args is None:
            continue
        where = (*path, "args")
        exact = strict or args_struct(name, target.minor) is None
        for problem in decode_problems(args, struct, where, target.minor, strict=exact):
            yield of_known_scheduler(problem, name, target)
        # kube-scheduler fills in a missing group, version or kind.
        known = {
            "apiVersion": (None, "", "/", f"{GROUP}/", API_VERSION),
            "kind": (None, "", f"{name}Args"),
        }
        for key, values in known.items():
            if isinstance(args, Mapping) and args.get(key) not in values:
                yield Problem(
                    INVALID, (*where, key), f'must be "{values[-1]}"; correct it or remove it'
                )


def ignores_resources(extenders: Any) -> bool:
    """Return whether extenders determine what NodeResourcesFit ignores."""
    return any(
        mapping(resource).get("ignoredByScheduler")
        for extender in entries(extenders)
        for resource in entries(mapping(extender).get("managedResources"))
    )


def validate_profiles(profiles: Sequence[ValidatedProfile]) -> Iterator[Problem]:
    """Yield problems of all profiles of a configuration with valid types."""
    seen: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path: Path = ("profiles", index)
        name = profile.name
        if name is None and len(profiles) == 1:
            name = DEFAULT_SCHEDULER
        if not name:
            message = "is required; give every profile a name of its own"
            yield Problem(INVALID_PROFILE, (*path, "schedulerName"), message)
        elif name in seen:
            message = f'"{name}" is also the name of profiles[{seen[name]}]; rename one'
            yield Problem(DUPLICATE, (*path, "schedulerName"), message)
        seen.setdefault(name or "", index)
        yield from (problem.below(path) for problem in profile.rules)
        if profile.queue != profiles[0].queue:
            # kube-scheduler compares the lists themselves, not their effect.
            yield Problem(
                INVALID_PROFILE,
                (*path, "plugins", "queueSort"),
                "all profiles share one queue; use the same queueSort plugin and arguments in all",
            )


def _rules(
    profile: Mapping[str, Any], effective: EffectivePlugins, target: Target, *, ignores: bool
) -> Iterator[Problem]:
    yield from validate_percentages(profile, target)
    yield from _plugin_lists(profile, target)
    yield from _framework(profile, effective, target)
    yield from _plugin_config(profile, effective, target, ignores=ignores)
    if ignores and FIT not in (*effective.named, *_configured(profile)):
        message = "extenders with ignoredByScheduler resources require NodeResourcesFit; enable it"
        yield Problem(INVALID_PROFILE, ("plugins",), message)


def _plugin_lists(profile: Mapping[str, Any], target: Target) -> Iterator[Problem]:
    known = plugins(target.gates.version)
    for point, path, entry in listed_plugins(profile, "enabled"):
        name, where, is_multi = entry.get("name", ""), (*path, "name"), point == "multiPoint"
        plugin = known.get(name)
        if name in INVALID_PLUGINS and target.minor == INVALID_PLUGINS_SINCE and not is_multi:
            # 1.31 rejects the name here, and 1.32 removed the plugins.
            yield Problem(UNKNOWN_PLUGIN, where, _unknown_plugin(name, target))
        elif plugin is None:
            if target.plugins_on_record:
                yield Problem(UNKNOWN_PLUGIN, where, _unknown_plugin(name, target))
            elif target.known is not None:
                yield from validate_known_plugin(name, point, where, target.known)
        elif (
            not is_multi and target.plugins_on_record and not plugin.implements(point, target.minor)
        ):
            points = listing(plugin.points_at(target.minor))
            message = f'plugin "{name}" does not implement {point}; list it at {points}'
            yield Problem(WRONG_POINT, where, message)


def _unknown_plugin(name: str, target: Target) -> str:
    """Explain why the target has no such plugin, with the fix."""
    minor = target.minor
    if not name:
        return "this entry has no name; write that of a plugin, or remove the entry"
    other = PLUGINS.get(name)
    if name in INVALID_PLUGINS and minor == INVALID_PLUGINS_SINCE:
        return f'kube-scheduler 1.{minor} rejects plugin "{name}" here; remove it'
    if other is not None and other.until is not None and other.until < minor:
        return f'plugin "{name}" was removed in Kubernetes 1.{other.until + 1}; remove it'
    if other is not None and other.since > minor:
        since = f"added in Kubernetes 1.{other.since}, and this is 1.{minor}"
        return f'plugin "{name}" was {since}; remove it'
    if name in OLD_PLUGINS:
        return f'kube-scheduler 1.{minor} has no plugin "{name}"; {OLD_PLUGINS[name]}'
    if fix := owner_fix(name):
        return f'kube-scheduler 1.{minor} has no plugin "{name}"; {fix}'
    # LeafNodeVolumeBinding is not a misspelt VolumeBinding.
    similar = [known for known in plugins(target.gates.version) if not _extends(name, known)]
    hint = did_you_mean(name, similar)
    return f'kube-scheduler 1.{minor} has no plugin "{name}"{hint or "; remove it"}'


def _extends(name: str, known: str) -> bool:
    """Report whether a name has a word more than that of a known plugin."""
    return known in name and len(name) - len(known) > _LONGEST_SLIP


def _framework(
    profile: Mapping[str, Any], effective: EffectivePlugins, target: Target
) -> Iterator[Problem]:
    for point, name in dict.fromkeys(effective.duplicates):
        yield Problem(
            DUPLICATE, ("plugins", point), f'plugin "{name}" is enabled twice; remove one'
        )
    version = target.gates.version
    if not (on_record(version) or newer_than_recorded(version)):
        return
    sorters = _queue_sorters(profile, effective, target)
    if len(sorters) > 1:
        message = f"{' and '.join(sorters)} are enabled, and a queue has one queueSort plugin"
        fix = "add PrioritySort to disabled" if _DEFAULT_SORTER in sorters else "remove others"
        yield Problem(INVALID_PROFILE, ("plugins", _QUEUE_SORT), f"{message}; {fix}")
    if not sorters and _are_known(effective.unknown, target):
        message = "no queueSort plugin is enabled; enable PrioritySort"
        yield Problem(INVALID_PROFILE, ("plugins", _QUEUE_SORT), message)
    if effective.unknown:
        return  # their extension points are unknown
    for point, weights in effective.weights.items():
        if any(total < 0 for total in list(accumulate(weights))[:-1]):
            # kube-scheduler's overflow check of the sum fails then.
            message = "a negative weight makes the sum of the weights negative; use 1 or more"
            yield Problem(INVALID_PROFILE, ("plugins", point), message)
    if not effective.points["bind"]:
        message = "no bind plugin is enabled; enable DefaultBinder"
        yield Problem(INVALID_PROFILE, ("plugins", "bind"), message)


def _are_known(names: Sequence[str], target: Target) -> bool:
    """Report whether the extension points of all plugins are on record."""
    own = target.known
    return not names or (own is not None and not own.newer and own.plugins.keys() >= set(names))


def _queue_sorters(
    profile: Mapping[str, Any], effective: EffectivePlugins, target: Target
) -> list[str]:
    """Return the queueSort plugins that are known: an unknown one at multiPoint may be another."""
    sorters = [entry.name for entry in effective.points[_QUEUE_SORT]]
    own = target.known.plugins if target.known is not None else {}
    lists = profile.get("plugins") or {}
    here, multi = read_set(lists.get(_QUEUE_SORT)), read_set(lists.get(MULTI_POINT))
    excluded = {*here.disabled, *sorters}
    if WILDCARD in here.disabled:
        return sorters
    more = dict.fromkeys(entry.name for entry in multi.enabled if entry.name not in excluded)
    return sorters + [name for name in more if name in own and _QUEUE_SORT in own[name].points]


def _plugin_config(
    profile: Mapping[str, Any], effective: EffectivePlugins, target: Target, *, ignores: bool
) -> Iterator[Problem]:
    """Yield problems of pluginConfig; `ignores` is as in `validate_profile`."""
    seen: set[str] = set()
    for where, entry in configured_plugins(profile):
        name = entry.get("name", "")
        if name in seen:
            yield Problem(
                DUPLICATE, (*where, "name"), f'"{name}" is listed twice; merge both entries'
            )
        seen.add(name)
        if name in INVALID_PLUGINS and target.minor >= INVALID_PLUGINS_SINCE:
            yield Problem(UNKNOWN_PLUGIN, (*where, "name"), _unknown_plugin(name, target))
        if name == _NEVER_MATCHING:
            message = f'kube-scheduler accepts no arguments of this name; did you mean "{FIT}"?'
            yield Problem(INVALID_ARGS, (*where, "name"), message)
        args = entry.get("args") or {}
        if name == FIT:
            # kube-scheduler validates these arguments only when it builds the plugin, after it
            # replaced the ignored resources with those of the extenders, if any.
            if name not in effective.named:
                continue
            if ignores:
                args = {key: value for key, value in args.items() if key != "ignoredResources"}
        if args_struct(name, target.minor):
            yield from validate_args(name, args, (*where, "args"), target.gates)


def _queue(profile: Mapping[str, Any], effective: EffectivePlugins) -> QueueSort:
    lists = (profile.get("plugins") or {}).get("queueSort") or {}
    enabled = tuple(
        (item.get("name", ""), item.get("weight", 0)) for item in lists.get("enabled", ())
    )
    # kube-scheduler drops the weights of disabled plugins before it compares.
    disabled = tuple(item.get("name", "") for item in lists.get("disabled", ()))
    sorters = effective.points["queueSort"]
    if not sorters:
        return QueueSort(enabled, disabled)
    arguments = json.dumps(_configured(profile).get(sorters[0].name), sort_keys=True)
    return QueueSort(enabled, disabled, sorters[0].name, arguments)


def _configured(profile: Mapping[str, Any]) -> dict[str, Any]:
    return {entry.get("name", ""): entry.get("args") for entry in profile.get("pluginConfig", ())}

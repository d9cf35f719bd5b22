"""What kube-scheduler demands of profiles: names, plugin lists, arguments, one queue for all.

The configuration is one that decode.py found right and has decoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from .catalogue import NEVER_IN_V1, NEVER_IN_V1_SINCE, PLUGINS, on_record, plugins
from .decode import INVALID
from .effective import Effective, effective_plugins
from .findings import Path, Problem, did_you_mean
from .plugin_args import check_args
from .schema import args_struct
from .target import Target

UNKNOWN_PLUGIN: Final = "UnknownPlugin"
WRONG_POINT: Final = "WrongExtensionPoint"
DUPLICATE: Final = "Duplicate"
INVALID_PROFILE: Final = "InvalidProfile"

FIT: Final = "NodeResourcesFit"


def check_percentage(owner: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """The rule for a share of nodes, at the top and in a profile."""
    value = owner.get("percentageOfNodesToScore", 0)
    if not 0 <= value <= 100:
        yield Problem(
            INVALID, (*path, "percentageOfNodesToScore"), f"{value} is out of range; use 0 to 100"
        )


def check_profiles(config: Mapping[str, Any], target: Target) -> Iterator[Problem]:
    """The rules for all profiles of a decoded configuration."""
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
        yield from check_percentage(profile, path)
        yield from _plugin_lists(profile, path, target)
        effective = effective_plugins(profile, target.gates)
        yield from _framework(effective, path, target)
        yield from _plugin_config(profile, path, effective, target, drops=drops_resources)
        if drops_resources and FIT not in (*effective.named, *_configured(profile)):
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
            if name in NEVER_IN_V1 and target.minor == NEVER_IN_V1_SINCE and point != "multiPoint":
                # The name is refused where it stands alone; the plugins went one version later.
                yield Problem(UNKNOWN_PLUGIN, where, _unknown_plugin(name, target))
            elif plugin is None:
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
    if name in NEVER_IN_V1 and minor == NEVER_IN_V1_SINCE:
        return f'kube-scheduler 1.{minor} refuses the name "{name}" here; remove it'
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
    for point, weights in effective.weights.items():
        if any(total < 0 for total in list(accumulate(weights))[:-1]):
            # It computes how much room is left for the next weight, which then overflows.
            yield Problem(
                INVALID_PROFILE,
                (*path, "plugins", point),
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
    profile: Mapping[str, Any], path: Path, effective: Effective, target: Target, *, drops: bool
) -> Iterator[Problem]:
    """The rules for pluginConfig; `drops` if extenders say what NodeResourcesFit ignores."""
    seen: set[str] = set()
    for index, entry in enumerate(profile.get("pluginConfig", ())):
        name, where = entry.get("name", ""), (*path, "pluginConfig", index)
        if name in seen:
            yield Problem(DUPLICATE, (*where, "name"), f'"{name}" is there twice; merge the two')
        seen.add(name)
        if name in NEVER_IN_V1 and target.minor >= NEVER_IN_V1_SINCE:
            yield Problem(UNKNOWN_PLUGIN, (*where, "name"), _unknown_plugin(name, target))
        args = entry.get("args") or {}
        if name == FIT:
            # kube-scheduler reads these arguments only when it builds the plugin, and by then it
            # has replaced the ignored resources with those of the extenders, if there are any.
            if name not in effective.named:
                continue
            if drops:
                args = {key: value for key, value in args.items() if key != "ignoredResources"}
        if args_struct(name, target.minor):
            yield from check_args(name, args, (*where, "args"), target.gates)


def _same_queue(
    first: Mapping[str, Any],
    other: Mapping[str, Any],
    first_effective: Effective,
    effective: Effective,
    path: Path,
) -> Iterator[Problem]:
    """There is one queue, so all profiles must sort it alike, and say so with the same lists."""

    def listed(profile: Mapping[str, Any]) -> list[Any]:
        lists = (profile.get("plugins") or {}).get("queueSort") or {}
        enabled = [
            (item.get("name", ""), item.get("weight", 0)) for item in lists.get("enabled", ())
        ]
        # Weights of disabled plugins are gone before anything is compared.
        return [enabled, [item.get("name", "") for item in lists.get("disabled", ())]]

    def sorter(profile: Mapping[str, Any], points: Effective) -> Any:
        entries = points.points["queueSort"]
        if not entries:
            return None
        # The text is compared, in which 1 and true are not the same as they are in Python.
        args = _configured(profile).get(entries[0].name)
        return entries[0].name, json.dumps(args, sort_keys=True)

    if listed(first) != listed(other) or sorter(first, first_effective) != sorter(other, effective):
        yield Problem(
            INVALID_PROFILE,
            (*path, "plugins", "queueSort"),
            "all profiles share one queue, so queueSort and its arguments must be the same in all",
        )


def _configured(profile: Mapping[str, Any]) -> dict[str, Any]:
    return {entry.get("name", ""): entry.get("args") for entry in profile.get("pluginConfig", ())}

"""What kube-scheduler demands of profiles: names, plugin lists, arguments, one queue for all.

A profile is read by itself first, and that is kept by its content: where there are hundreds, an
edit is of one. What then is left to look at are their names and the queue that they share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

from ..base.findings import Path, Problem, did_you_mean
from ..base.objects import mapping
from .catalogue import NEVER_IN_V1, NEVER_IN_V1_SINCE, PLUGINS, on_record, plugins
from .check_plugin_args import check_args
from .decode import INVALID, UNKNOWN_FIELD, decode, decoded
from .effective_plugins import Effective, effective_plugins
from .memo import REMEMBERED, Part, within
from .schema import API_VERSION, GROUP, PROFILE, args_struct
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


@dataclass(frozen=True, slots=True)
class Queue:
    """How a profile sorts the queue, which must be the same in all profiles of a process.

    Attributes:
        enabled: names and weights, as listed.
        disabled: names, as listed.
        sorter: the plugin that comes of it; None: none does.
        arguments: its arguments as text, in which 1 and true are not the same as in Python.
    """

    enabled: tuple[tuple[str, int], ...]
    disabled: tuple[str, ...]
    sorter: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ReadProfile:
    """What can be said of a profile without the others; paths begin in it.

    Attributes:
        types: fields that are unknown or of the wrong type.
        arguments: the same in the arguments of plugins.
        rules: what else is wrong; nothing where types are.
        name: its schedulerName; None if there is none.
        queue: how it sorts the queue; None where types are wrong.
    """

    types: tuple[Problem, ...]
    arguments: tuple[Problem, ...]
    rules: tuple[Problem, ...] = ()
    name: str | None = None
    queue: Queue | None = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong."""
        return (*self.types, *self.arguments, *self.rules)


def read_profile(profile: Any, target: Target, *, drops: bool = False) -> ReadProfile:
    """Decode and check one profile by itself; worked out once for each content.

    Args:
        profile: as JSON has it, whatever it is.
        target: the scheduler that will read it.
        drops: whether extenders say what NodeResourcesFit ignores.
    """
    part = Part.of(profile, target)
    return _kept(part, drops=drops) if part is not None else _read(profile, target, drops=drops)


# A profile is asked about when it is judged, beside others, and again with all of its scheduler's.
@lru_cache(maxsize=REMEMBERED)
def _kept(part: Part, *, drops: bool) -> ReadProfile:
    return _read(part.value, part.target, drops=drops)


def _read(profile: Any, target: Target, *, drops: bool) -> ReadProfile:
    minor, strict = target.minor, on_record(target.gates.version)
    types = tuple(decode(profile, PROFILE, (), minor, strict=strict))
    arguments: tuple[Problem, ...] = ()
    if isinstance(profile, Mapping):
        arguments = tuple(_decode_args(profile, target, strict=strict))
    if any(problem.reason != UNKNOWN_FIELD for problem in (*types, *arguments)):
        return ReadProfile(types, arguments)
    profile = decoded_profile(profile, minor)
    effective = effective_plugins(profile, target.gates)
    rules = tuple(_rules(profile, effective, target, drops=drops))
    queue = _queue(profile, effective)
    return ReadProfile(types, arguments, rules, profile.get("schedulerName"), queue)


def decoded_profile(profile: Mapping[str, Any], minor: int) -> dict[str, Any]:
    """A copy of a profile whose types are right, as kube-scheduler 1.`minor` holds it."""
    copied: dict[str, Any] = decoded(profile, PROFILE, minor)
    for entry in copied.get("pluginConfig", ()):
        struct = args_struct(entry.get("name", ""), minor)
        if struct is not None and "args" in entry:
            entry["args"] = decoded(entry["args"], struct, minor)
    return copied


def _decode_args(profile: Mapping[str, Any], target: Target, *, strict: bool) -> Iterator[Problem]:
    for index, entry in enumerate(map(mapping, _entries(profile.get("pluginConfig")))):
        name, args = entry.get("name"), entry.get("args")
        struct = args_struct(name, target.minor) if isinstance(name, str) else None
        if struct is None or args is None:
            continue
        where = ("pluginConfig", index, "args")
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


def drops_resources(extenders: Any) -> bool:
    """Whether extenders say what NodeResourcesFit ignores."""
    return any(
        mapping(resource).get("ignoredByScheduler")
        for extender in _entries(extenders)
        for resource in _entries(mapping(extender).get("managedResources"))
    )


def _entries(items: Any) -> list[Any]:
    return items if isinstance(items, list) else []


def check_profiles(profiles: Sequence[ReadProfile]) -> Iterator[Problem]:
    """The rules for all profiles of a configuration, all of whose types are right."""
    seen: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path: Path = ("profiles", index)
        name = profile.name
        if name is None and len(profiles) == 1:
            name = "default-scheduler"
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
        seen.setdefault(name or "", index)
        yield from within(profile.rules, path)
        if profile.queue != profiles[0].queue:
            # All must sort it alike, and say so with the same lists.
            yield Problem(
                INVALID_PROFILE,
                (*path, "plugins", "queueSort"),
                "all profiles share one queue, so queueSort and its arguments must be the same in "
                "all",
            )


def _rules(
    profile: Mapping[str, Any], effective: Effective, target: Target, *, drops: bool
) -> Iterator[Problem]:
    yield from check_percentage(profile, ())
    yield from _plugin_lists(profile, target)
    yield from _framework(effective, target)
    yield from _plugin_config(profile, effective, target, drops=drops)
    if drops and FIT not in (*effective.named, *_configured(profile)):
        yield Problem(
            INVALID_PROFILE,
            ("plugins",),
            "ignoredByScheduler resources of extenders need NodeResourcesFit; enable it",
        )


def _plugin_lists(profile: Mapping[str, Any], target: Target) -> Iterator[Problem]:
    known = plugins(target.gates.version)
    for point, lists in (profile.get("plugins") or {}).items():
        for index, entry in enumerate((lists or {}).get("enabled") or ()):
            name = entry.get("name", "")
            where = ("plugins", point, "enabled", index, "name")
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


def _framework(effective: Effective, target: Target) -> Iterator[Problem]:
    for point, name in dict.fromkeys(effective.twice):
        yield Problem(
            DUPLICATE, ("plugins", point), f'plugin "{name}" is enabled twice; remove one'
        )
    if effective.unknown or not on_record(target.gates.version):
        return  # what they implement is not known, so nothing can be counted
    for point, weights in effective.weights.items():
        if any(total < 0 for total in list(accumulate(weights))[:-1]):
            # It computes how much room is left for the next weight, which then overflows.
            yield Problem(
                INVALID_PROFILE,
                ("plugins", point),
                "a negative weight makes the sum of the weights negative; use 1 or more",
            )
    sorters = [entry.name for entry in effective.points["queueSort"]]
    if len(sorters) != 1:
        yield Problem(
            INVALID_PROFILE,
            ("plugins", "queueSort"),
            f"{len(sorters)} plugins sort the queue and one must; enable PrioritySort alone",
        )
    if not effective.points["bind"]:
        yield Problem(
            INVALID_PROFILE,
            ("plugins", "bind"),
            "no bind plugin is left; enable DefaultBinder",
        )


def _plugin_config(
    profile: Mapping[str, Any], effective: Effective, target: Target, *, drops: bool
) -> Iterator[Problem]:
    """The rules for pluginConfig; `drops` if extenders say what NodeResourcesFit ignores."""
    seen: set[str] = set()
    for index, entry in enumerate(profile.get("pluginConfig", ())):
        name, where = entry.get("name", ""), ("pluginConfig", index)
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


def _queue(profile: Mapping[str, Any], effective: Effective) -> Queue:
    lists = (profile.get("plugins") or {}).get("queueSort") or {}
    enabled = tuple(
        (item.get("name", ""), item.get("weight", 0)) for item in lists.get("enabled", ())
    )
    # Weights of disabled plugins are gone before anything is compared.
    disabled = tuple(item.get("name", "") for item in lists.get("disabled", ()))
    sorters = effective.points["queueSort"]
    if not sorters:
        return Queue(enabled, disabled)
    arguments = json.dumps(_configured(profile).get(sorters[0].name), sort_keys=True)
    return Queue(enabled, disabled, sorters[0].name, arguments)


def _configured(profile: Mapping[str, Any]) -> dict[str, Any]:
    return {entry.get("name", ""): entry.get("args") for entry in profile.get("pluginConfig", ())}

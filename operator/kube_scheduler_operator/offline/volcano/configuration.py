"""Checks a configuration of Volcano's scheduler as its sources read it.

Volcano decodes the file with gopkg.in/yaml.v2 without strictness (pkg/scheduler/util.go,
UnmarshalSchedulerConf): unknown fields are ignored, a value of another type and an unknown action
are errors. After an error it continues with its previous configuration, at its start with the one
that is built in; with --disable-default-scheduler-config it exits. An unknown plugin is logged in
each session and left out (framework/framework.go, OpenSession).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ...base.findings import WARNING, Path, Problem, did_you_mean, listing
from ...base.objects import mapping
from ..checks import NEVER_READ, OTHER_SCHEDULER, Checked, CheckOptions, Item
from ..reader_target import other_scheduler, volcano_of
from .arguments import check_arguments
from .catalogue import VolcanoVersion, later_with
from .recognition import DUPLICATE
from .structure import REFUSED, invalid_types, structs, unknown_fields
from .values import entries, name_of, scalar_text

UNKNOWN_ACTION: Final = "VolcanoUnknownAction"
UNKNOWN_PLUGIN: Final = "VolcanoUnknownPlugin"
CONFLICT: Final = "VolcanoConflict"
INCOMPLETE: Final = "VolcanoIncomplete"

_METRICS: Final = ("elasticsearch", "prometheus", "prometheus_adaptor")
"""Sources of load: pkg/scheduler/metrics/source/metrics_client.go of v1.9.1 to v1.15.1."""


def check_volcano(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check configurations of Volcano's scheduler, each for the version that reads it."""
    checked = Checked()
    read: set[tuple[str, int]] = set()
    for item in items:
        text = (item.file, id(item.place))
        if text in read and not item.document.is_listed:
            message = "Volcano reads only the first document of its file and ignores this one"
            fix = "move it to its own file, or remove it"
            checked.problems.append((item, Problem(NEVER_READ, (), message, fix, WARNING)))
            continue
        read.add(text)
        other = other_scheduler(item, options)
        if other:
            problem = Problem(
                OTHER_SCHEDULER,
                (),
                f"{other} does not read this configuration, which is in Volcano's format",
                "write a KubeSchedulerConfiguration, or let Volcano's vc-scheduler read the file",
            )
            checked.problems.append((item, problem))
            continue
        version = volcano_of(item, options)
        checked.problems += [(item, each) for each in problems_of(item.document.root.data, version)]
    return checked


def problems_of(config: Mapping[str, Any], version: VolcanoVersion) -> list[Problem]:
    """What is wrong with a configuration, in the order in which Volcano reads it."""
    wrong = list(invalid_types(config, version))
    found = [*wrong, *unknown_fields(config, version)]
    if wrong:
        return found
    actions = _actions(config)
    found += _unknown_actions(actions, version)
    plugins = list(_plugins(config))
    for path, plugin in plugins:
        found += _plugin(path, plugin, version)
    found += _together(config, plugins)
    found += _configurations(config, version)
    found += _incomplete(config, actions, plugins)
    return found


def _actions(config: Mapping[str, Any]) -> list[str]:
    value = config.get("actions")
    return [each.strip() for each in ("" if value is None else scalar_text(value)).split(",")]


def _unknown_actions(actions: Sequence[str], version: VolcanoVersion) -> Iterator[Problem]:
    for index, name in enumerate(actions):
        if name in version.actions:
            if name in actions[:index]:
                message = f'the action "{name}" runs twice in each session'
                yield Problem(DUPLICATE, ("actions",), message, "name it once", WARNING)
            continue
        if not name:
            what = "an empty name" if len(actions) > 1 else "no action"
            yield Problem(
                UNKNOWN_ACTION,
                ("actions",),
                f"has {what}: {REFUSED}",
                "remove the comma" if len(actions) > 1 else 'write "enqueue, allocate, backfill"',
            )
            continue
        hint = did_you_mean(name, version.actions).removeprefix("; ")
        newer = later_with(version, partial(_has_action, name))
        yield Problem(
            UNKNOWN_ACTION,
            ("actions",),
            f'Volcano {version.version} has no action "{name}": {REFUSED}',
            f"use Volcano {newer} or newer" if newer else hint or f"use {listing(version.actions)}",
        )


def _has_action(name: str, version: VolcanoVersion) -> bool:
    return name in version.actions


def _plugins(config: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for struct, path, value in structs(config):
        if struct == "plugin":
            yield path, mapping(value)


def _plugin(path: Path, plugin: Mapping[str, Any], version: VolcanoVersion) -> Iterator[Problem]:
    name = name_of(plugin)
    if name not in version.plugins:
        hint = did_you_mean(name, version.plugins).removeprefix("; ")
        newer = later_with(version, lambda each: name in each.plugins)
        yield Problem(
            UNKNOWN_PLUGIN,
            (*path, "name"),
            f'Volcano {version.version} has no plugin "{name}" and runs without it'
            if name
            else "names no plugin, so Volcano ignores the entry",
            f"use Volcano {newer} or newer"
            if newer
            else hint or "remove it, or load it with --plugins-dir",
            WARNING,
        )
        return
    given = mapping(plugin.get("arguments"))
    yield from check_arguments((*path, "arguments"), given, ("plugin", name), version)


def _together(
    config: Mapping[str, Any], plugins: Sequence[tuple[Path, Mapping[str, Any]]]
) -> Iterator[Problem]:
    """Plugins that do not work beside others, and those that are listed twice."""
    first: dict[str, Path] = {}
    for path, plugin in plugins:
        name = name_of(plugin)
        if name in first and name:
            yield Problem(
                DUPLICATE,
                (*path, "name"),
                f"plugin {name} is already in tier {first[name][1]}; Volcano uses the arguments of "
                "this entry in both tiers",
                "remove one of them",
                WARNING,
            )
        first.setdefault(name, path)
    for index, tier in enumerate(entries(config.get("tiers"))):
        names = {name_of(mapping(each)) for each in entries(mapping(tier).get("plugins"))}
        for at, plugin in enumerate(entries(mapping(tier).get("plugins"))):
            hierarchical = mapping(plugin).get("enableHierarchy") is True
            if name_of(mapping(plugin)) == "drf" and hierarchical and "proportion" in names:
                yield Problem(
                    CONFLICT,
                    ("tiers", index, "plugins", at, "enableHierarchy"),
                    f"drf with enableHierarchy and proportion are in one tier: {REFUSED}",
                    "remove proportion, or set enableHierarchy to false",
                )
    if (
        "capacity" in first and "proportion" in first
    ):  # docs/user-guide/how_to_use_capacity_plugin.md
        yield Problem(
            CONFLICT,
            (*first["proportion"], "name"),
            "capacity and proportion both decide what a queue may use, and conflict",
            "remove one of them",
            WARNING,
        )


def _configurations(config: Mapping[str, Any], version: VolcanoVersion) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, entry in enumerate(entries(config.get("configurations"))):
        path: Path = ("configurations", index)
        name = name_of(mapping(entry))
        if name not in version.actions:
            hint = did_you_mean(name, version.actions).removeprefix("; ")
            fix = "write the arguments of a plugin in its entry of tiers"
            message = f'no action is named "{name}", so Volcano ignores this entry'
            yield Problem(INCOMPLETE, (*path, "name"), message, hint or fix, WARNING)
            continue
        if name in seen:
            message = f"action {name} is configured twice, and Volcano uses the first entry only"
            yield Problem(DUPLICATE, (*path, "name"), message, "join the entries", WARNING)
        seen.add(name)
        given = mapping(mapping(entry).get("arguments"))
        yield from check_arguments((*path, "arguments"), given, ("action", name), version)


def _incomplete(
    config: Mapping[str, Any],
    actions: Sequence[str],
    plugins: Sequence[tuple[Path, Mapping[str, Any]]],
) -> Iterator[Problem]:
    """What is accepted and does nothing, or leaves out what every cluster needs."""
    names = {name_of(plugin): path for path, plugin in plugins}
    if actions != [""] and "allocate" not in actions:
        yield Problem(
            INCOMPLETE,
            ("actions",),
            "without allocate, Volcano places no Pod that requests resources",
            "add allocate",
            WARNING,
        )
    if "predicates" not in names:
        yield Problem(
            INCOMPLETE,
            ("tiers",),
            "without the plugin predicates, Volcano ignores taints, node affinity, ports and "
            "volumes of Pods",
            "add `- name: predicates` to a tier",
            WARNING,
        )
    source = mapping(config.get("metrics")).get("type")
    if source is not None and scalar_text(source) not in _METRICS:
        hint = did_you_mean(scalar_text(source), _METRICS).removeprefix("; ")
        message = f'Volcano has no source of load "{source}", and collects none'
        fix = hint or f"use {listing(_METRICS)}"
        yield Problem(INCOMPLETE, ("metrics", "type"), message, fix, WARNING)
    if "usage" in names and source is None:
        yield Problem(
            INCOMPLETE,
            (*names["usage"], "name"),
            "the plugin usage does nothing: without metrics.type, Volcano collects no load",
            f"set metrics.type to {listing(_METRICS)}",
            WARNING,
        )

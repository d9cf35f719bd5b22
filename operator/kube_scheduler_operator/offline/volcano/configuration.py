"""Checks a configuration of Volcano's scheduler as its sources read it.

Volcano decodes the file with gopkg.in/yaml.v2 without strictness (pkg/scheduler/util.go,
UnmarshalSchedulerConf): unknown fields are ignored, a value of another type and an unknown action
are errors. After an error it continues with its previous configuration, at its start with the one
that is built in; with --disable-default-scheduler-config it exits. An unknown plugin is logged in
each session and left out (framework/framework.go, OpenSession).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ...base.findings import WARNING, Path, Problem, did_you_mean, listing
from ...base.objects import mapping
from ..checks import NEVER_READ, OTHER_SCHEDULER, Checked, CheckOptions, Item
from ..reader_target import other_scheduler, volcano_of
from .catalogue import VolcanoArgument, VolcanoVersion, recorded
from .recognition import DUPLICATE

UNKNOWN_ACTION: Final = "VolcanoUnknownAction"
UNKNOWN_PLUGIN: Final = "VolcanoUnknownPlugin"
UNKNOWN_FIELD: Final = "VolcanoUnknownField"
UNKNOWN_ARGUMENT: Final = "VolcanoUnknownArgument"
INVALID_TYPE: Final = "VolcanoInvalidType"
ARGUMENT_TYPE: Final = "VolcanoArgumentType"
CONFLICT: Final = "VolcanoConflict"
INCOMPLETE: Final = "VolcanoIncomplete"

_REFUSED: Final = "Volcano refuses the file and keeps its previous or built-in configuration"
_METRICS: Final = ("elasticsearch", "prometheus", "prometheus_adaptor")
"""Sources of load: pkg/scheduler/metrics/source/metrics_client.go of v1.9.1 to v1.15.1."""
_BOOLEANS: Final = frozenset(
    {"1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"}
)
"""Texts that Go's strconv.ParseBool takes."""
_COMMON_ENDS: Final = ("weight", "cpu", "memory", "resources", "*")
"""Ends of arguments that several plugins have."""
_NAMES: Final = {
    "string": "a string",
    "bool": "true or false",
    "list": "a list",
    "map": "a map",
    "strings": "a map of strings",
    "int": "an integer",
    "float": "a number",
    "number": "a number",
}


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
    wrong = list(_types(config, version))
    found = [*wrong, *_fields(config, version)]
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


# --- types and fields -------------------------------------------------------------------------


def _structs(config: Mapping[str, Any]) -> Iterator[tuple[str, Path, Any]]:
    """(its name in the record, path, value) of everything that Volcano decodes into a struct."""
    yield "file", (), config
    for index, tier in enumerate(_list(config.get("tiers"))):
        yield "tier", ("tiers", index), tier
        for at, plugin in enumerate(_list(mapping(tier).get("plugins"))):
            yield "plugin", ("tiers", index, "plugins", at), plugin
    for index, action in enumerate(_list(config.get("configurations"))):
        yield "action", ("configurations", index), action


def _types(config: Mapping[str, Any], version: VolcanoVersion) -> Iterator[Problem]:
    for struct, path, value in _structs(config):
        if value is None:
            continue
        if not isinstance(value, Mapping):
            fix = f"write `name: {value}`" if isinstance(value, str) else "write its fields"
            yield _type(path, "a map", fix)
            continue
        for key, kind in version.fields[struct].items():
            each = value.get(key)
            if not _decodes(kind, each):
                yield _type((*path, key), _NAMES[kind], _type_fix(kind, each))
            elif kind == "strings":
                for name, one in mapping(each).items():
                    if isinstance(one, Mapping | list):
                        yield _type((*path, key, name), "a string", "write one value")


def _type(path: Path, what: str, fix: str) -> Problem:
    return Problem(INVALID_TYPE, path, f"must be {what}: {_REFUSED}", fix)


def _type_fix(kind: str, value: Any) -> str:
    if kind == "string" and isinstance(value, list):
        return f'write the names in one string: "{", ".join(map(str, value))}"'
    if kind == "bool" and isinstance(value, str) and value in _BOOLEANS:
        return "remove the quotes"
    if kind == "list" and isinstance(value, Mapping):
        return "begin each entry with `- `"
    return f"write {_NAMES[kind]}"


def _decodes(kind: str, value: Any) -> bool:
    """Whether yaml.v2 decodes a value into a field; a scalar of any type is a string."""
    if value is None:
        return True
    if kind == "string":
        return not isinstance(value, Mapping | list)
    if kind == "bool":
        return isinstance(value, bool)
    return isinstance(value, list) if kind == "list" else isinstance(value, Mapping)


def _fields(config: Mapping[str, Any], version: VolcanoVersion) -> Iterator[Problem]:
    for struct, path, value in _structs(config):
        for key in mapping(value):
            if key not in version.fields[struct]:
                yield Problem(
                    UNKNOWN_FIELD,
                    (*path, str(key)),
                    f'Volcano {version.version} has no field "{key}" here and ignores it',
                    _field_fix(str(key), struct, version),
                    WARNING,
                )


def _field_fix(key: str, struct: str, version: VolcanoVersion) -> str:
    hint = did_you_mean(key, version.fields[struct]).removeprefix("; ")
    if hint:
        return hint
    places = {"file": "at the top", "tier": "in an entry of tiers", "plugin": "in the plugin's "
              "entry", "action": "in an entry of configurations"}  # fmt: skip
    for other, place in places.items():
        if key in version.fields[other]:
            return f"move it: it belongs {place}"
    newer = _later(version, lambda each: key in each.fields[struct])
    return f"use Volcano {newer} or newer" if newer else "remove it"


# --- actions ----------------------------------------------------------------------------------


def _actions(config: Mapping[str, Any]) -> list[str]:
    value = config.get("actions")
    return [each.strip() for each in ("" if value is None else _text(value)).split(",")]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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
                f"has {what}: {_REFUSED}",
                "remove the comma" if len(actions) > 1 else 'write "enqueue, allocate, backfill"',
            )
            continue
        hint = did_you_mean(name, version.actions).removeprefix("; ")
        newer = _later(version, partial(_has_action, name))
        yield Problem(
            UNKNOWN_ACTION,
            ("actions",),
            f'Volcano {version.version} has no action "{name}": {_REFUSED}',
            f"use Volcano {newer} or newer" if newer else hint or f"use {listing(version.actions)}",
        )


def _has_action(name: str, version: VolcanoVersion) -> bool:
    return name in version.actions


# --- plugins ----------------------------------------------------------------------------------


def _plugins(config: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for struct, path, value in _structs(config):
        if struct == "plugin":
            yield path, mapping(value)


def _plugin(path: Path, plugin: Mapping[str, Any], version: VolcanoVersion) -> Iterator[Problem]:
    name = _name(plugin)
    arguments = version.plugins.get(name)
    if arguments is None:
        hint = did_you_mean(name, version.plugins).removeprefix("; ")
        newer = _later(version, lambda each: name in each.plugins)
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
    yield from _arguments((*path, "arguments"), given, arguments, ("plugin", name), version)


def _name(entry: Mapping[str, Any]) -> str:
    name = entry.get("name")
    return "" if name is None else _text(name)


def _arguments(
    path: Path,
    given: Mapping[str, Any],
    known: Mapping[str, VolcanoArgument],
    of: tuple[str, str],
    version: VolcanoVersion,
) -> Iterator[Problem]:
    """Problems of the arguments of a plugin or an action: `of` is which, and its name."""
    owner = " ".join(of)
    for key, value in given.items():
        argument = _argument(str(key), known)
        where = (*path, str(key))
        if argument is None:
            yield Problem(
                UNKNOWN_ARGUMENT,
                where,
                f'{owner} of Volcano {version.version} has no argument "{key}" and ignores it',
                _argument_fix(str(key), of, version),
                WARNING,
            )
        elif value is not None and not _takes(argument.kind, value):
            what = f"must be {_NAMES[argument.kind]}"
            fix = "remove the quotes" if isinstance(value, str) else "write one"
            if argument.kind == "string":
                fix = "write it in quotes"
            if argument.exits:
                yield Problem(ARGUMENT_TYPE, where, f"{what}: {owner} ends vc-scheduler", fix)
            else:
                message = f"{what}: {owner} ignores it and uses its default"
                yield Problem(ARGUMENT_TYPE, where, message, fix, WARNING)


def _argument(key: str, known: Mapping[str, VolcanoArgument]) -> VolcanoArgument | None:
    if key in known:
        return known[key]
    prefixes = (name for name in known if name.endswith("*") and key.startswith(name[:-1]))
    return next((known[name] for name in prefixes), None)


def _argument_fix(key: str, of: tuple[str, str], version: VolcanoVersion) -> str:
    known = _known(of, version)
    at = recorded().index(version)
    older = [each for each in recorded()[:at] if key in _known(of, each)]
    if older:
        return f"remove it: Volcano {older[-1].version} is the last one on record that reads it"
    newer = _later(version, lambda each: key in _known(of, each))
    if newer:
        return f"use Volcano {newer} or newer"
    if key in version.fields["plugin"]:
        return "move it beside name: it is a field of the plugin's entry"
    for kind, owners in (("plugin", version.plugins), ("action", version.actions)):
        for name, arguments in owners.items():
            if key in arguments:
                return f"move it: it is an argument of {kind} {name}"
    last = key.rpartition(".")[2]
    for name, arguments in version.plugins.items():
        moved = next((each for each in arguments if each.rpartition(".")[2] == last), "")
        if moved and "." in key and last not in _COMMON_ENDS:
            return f"remove it; plugin {name} has {moved}"
    hint = did_you_mean(key, (name for name in known if not name.endswith("*")))
    if hint:
        return hint.removeprefix("; ")
    names = [name.replace("*", "NAME") for name in known]
    return f"use {listing(names)}" if names else "remove it: there are no arguments"


def _known(of: tuple[str, str], version: VolcanoVersion) -> Mapping[str, VolcanoArgument]:
    """The arguments of a plugin or an action in a version; none if it does not exist there."""
    kind, name = of
    return (version.plugins if kind == "plugin" else version.actions).get(name, {})


def _takes(kind: str, value: Any) -> bool:
    """Whether a plugin takes a value (framework/arguments.go)."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if kind == "int":
        return is_integer
    if kind in ("float", "number"):
        return is_integer or isinstance(value, float)
    if kind == "bool":
        return isinstance(value, bool) or (isinstance(value, str) and value in _BOOLEANS)
    if kind == "string":
        return isinstance(value, str)
    if kind == "list":
        return isinstance(value, list)
    return kind == "any" or isinstance(value, Mapping)


# --- the whole --------------------------------------------------------------------------------


def _together(
    config: Mapping[str, Any], plugins: Sequence[tuple[Path, Mapping[str, Any]]]
) -> Iterator[Problem]:
    """Plugins that do not work beside others, and those that are listed twice."""
    first: dict[str, Path] = {}
    for path, plugin in plugins:
        name = _name(plugin)
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
    for index, tier in enumerate(_list(config.get("tiers"))):
        names = {_name(mapping(each)) for each in _list(mapping(tier).get("plugins"))}
        for at, plugin in enumerate(_list(mapping(tier).get("plugins"))):
            hierarchical = mapping(plugin).get("enableHierarchy") is True
            if _name(mapping(plugin)) == "drf" and hierarchical and "proportion" in names:
                yield Problem(
                    CONFLICT,
                    ("tiers", index, "plugins", at, "enableHierarchy"),
                    f"drf with enableHierarchy and proportion are in one tier: {_REFUSED}",
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
    for index, entry in enumerate(_list(config.get("configurations"))):
        path: Path = ("configurations", index)
        name = _name(mapping(entry))
        known = version.actions.get(name)
        if known is None:
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
        yield from _arguments((*path, "arguments"), given, known, ("action", name), version)


def _incomplete(
    config: Mapping[str, Any],
    actions: Sequence[str],
    plugins: Sequence[tuple[Path, Mapping[str, Any]]],
) -> Iterator[Problem]:
    """What is accepted and does nothing, or leaves out what every cluster needs."""
    names = {_name(plugin): path for path, plugin in plugins}
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
    if source is not None and _text(source) not in _METRICS:
        hint = did_you_mean(_text(source), _METRICS).removeprefix("; ")
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


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _later(version: VolcanoVersion, has: Callable[[VolcanoVersion], bool]) -> str:
    """The first version on record after another one that has something; empty if none has."""
    known = recorded()
    later = known[known.index(version) + 1 :]
    return next((each.version for each in later if has(each)), "")

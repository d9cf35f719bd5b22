"""The arguments of Volcano's plugins and actions.

Most plugins read them with getters that log a value of another type and keep the default
(pkg/scheduler/framework/arguments.go); framework.Get, and a conversion without a check, end
vc-scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...base.findings import WARNING, Path, Problem, did_you_mean, listing
from .catalogue import VolcanoArgument, VolcanoVersion, later_with, recorded
from .values import BOOLEANS, TYPE_NAMES

UNKNOWN_ARGUMENT: Final = "VolcanoUnknownArgument"
ARGUMENT_TYPE: Final = "VolcanoArgumentType"

_NUMBER: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?")
_UNQUOTED: Final = {
    "int": re.compile(r"[-+]?[0-9]+"),
    "float": _NUMBER,
    "number": _NUMBER,
    "bool": re.compile(r"yes|no|on|off|y|n", re.IGNORECASE),
}
"""What is a value of a type without its quotes; "true" is one also in quotes."""
_COMMON_ENDS: Final = ("weight", "cpu", "memory", "resources", "*")
"""Ends of arguments that several plugins have."""


def check_arguments(
    path: Path,
    given: Mapping[str, Any],
    of: tuple[str, str],
    version: VolcanoVersion,
) -> Iterator[Problem]:
    """Problems of the arguments of a plugin or an action: `of` is which, and its name."""
    owner, known = " ".join(of), _known(of, version)
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
            what, fix = f"must be {TYPE_NAMES[argument.kind]}", _type_fix(argument.kind, value)
            if argument.exits:
                yield Problem(ARGUMENT_TYPE, where, f"{what}: {owner} ends vc-scheduler", fix)
            else:
                message = f"{what}: {owner} ignores it and uses its default"
                yield Problem(ARGUMENT_TYPE, where, message, fix, WARNING)


def _type_fix(kind: str, value: Any) -> str:
    if kind == "string" and not isinstance(value, Mapping | list):
        return "write it in quotes"
    if isinstance(value, str) and kind in _UNQUOTED and _UNQUOTED[kind].fullmatch(value):
        return "remove the quotes"
    return f"write {TYPE_NAMES[kind]}"


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
    newer = later_with(version, lambda each: key in _known(of, each))
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
        return isinstance(value, bool) or (isinstance(value, str) and value in BOOLEANS)
    if kind == "string":
        return isinstance(value, str)
    if kind == "list":
        return isinstance(value, list)
    return kind == "any" or isinstance(value, Mapping)

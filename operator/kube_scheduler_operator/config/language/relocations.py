"""Where an unknown field belongs in KubeSchedulerConfiguration v1.

People write fields of old API versions, flags as fields, and fields of a profile above it. For
these, "remove it" is the wrong advice: the fix names the place and shows the lines.

Sources: the conversions of k8s.io/kubernetes/pkg/scheduler/apis/config of v1alpha1 to v1beta3, and
the release notes of Kubernetes 1.19 to 1.26.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from ...base.findings import Path
from ...base.source.yaml_text import flow
from .flags import ELECTION_FIELDS, REMOVED_FLAGS, VOID_WITH_CONFIG, flag_names
from .schema import ARGS, CONFIGURATION, List, Struct, Type

Place = tuple[str, ...]
"""A field of the configuration; `[]` stands for an entry of a list."""

_LONGEST: Final = 100  # characters of a value that is shown

PLUGIN: Final = "PLUGIN"
"""Stands for the name of a plugin in a fix."""
_ENTRY: Final = "[]"

_MOVED: Final[Mapping[str, str]] = {
    "lockObjectName": "leaderElection.resourceName",
    "lockObjectNamespace": "leaderElection.resourceNamespace",
    "hardPodAffinitySymmetricWeight": "InterPodAffinity.hardPodAffinityWeight",
    "unreserve": "profiles.[].plugins.reserve",
    **{flag: f"leaderElection.{field}" for flag, field in ELECTION_FIELDS.items()},
    "lock-object-name": "leaderElection.resourceName",
    "lock-object-namespace": "leaderElection.resourceNamespace",
    "hard-pod-affinity-symmetric-weight": "InterPodAffinity.hardPodAffinityWeight",
    "scheduler-name": "profiles.[].schedulerName",
    "normalizeScore": "profiles.[].plugins.score",
    "kubeconfig": "clientConnection.kubeconfig",
    **VOID_WITH_CONFIG,
}
"""Old fields and flags -> the field that replaces them; a plugin's name stands for its args."""

_SERVING: Final = (
    "v1 serves health and metrics with HTTPS only: remove it, and use --bind-address and "
    "--secure-port"
)
_CONVERT: Final = "it belongs to an old API: kubectl scheduler convert -f FILE"
_REMOVED: Final[Mapping[str, str]] = {
    "healthzBindAddress": _SERVING,
    "metricsBindAddress": _SERVING,
    "algorithmSource": _CONVERT,
    "predicates": _CONVERT,
    "priorities": _CONVERT,
    "alwaysCheckAllPredicates": _CONVERT,
    "extenderConfigs": _CONVERT,
    "disablePreemption": "disable the plugin: profiles: [{plugins: {postFilter: {disabled: "
    "[{name: DefaultPreemption}]}}}]",
    "failureDomains": "remove it: topologyKey of a rule names the domain",
    "spec": "remove this level: its fields belong at the top level",
    "metadata": "remove it: a configuration is a file, which --config names, and no object of the "
    "API",
}
"""Old fields without a successor that has the same value -> the fix."""
_OF_EVERY_FILE: Final = ("apiVersion", "kind")
"""Fields that a configuration has where they belong: elsewhere they are too many."""
_FLAGS: Final = dict.fromkeys(("log-level", "loglevel", "verbosity"), "v")
"""Names that people use for flags -> the flag."""


def field_fix(key: str, value: Any, kind: Struct, path: Path, minor: int) -> str:
    """Suggest a fix for an unknown field that belongs elsewhere; empty if no place is known.

    `kind` and `path` are those of the object that contains the field.
    """
    here = _here(kind, path)
    if here is None or key in _OF_EVERY_FILE:
        return ""
    if renamed := _renamed(key, value, here) or _plugin_field(key, value, here):
        return renamed
    if entry := _entry_of_plugin(key, value, kind, here):
        return f"write {entry}"
    if level := _needless_level(key, value, kind, here, minor):
        return level
    if place := _related(_spelt(key, kind, minor), here, minor):
        return _moved(place, value, here)
    return "" if here else _as_flag(key, value, minor)


def _renamed(key: str, value: Any, here: Place) -> str:
    """Suggest a fix for a field whose name has or had another meaning; empty if it has none."""
    if key.startswith("-") and key[1:].isalnum():
        return f"write a space after the hyphen of a list: - {key[1:]}"
    if key in _REMOVED:
        return _REMOVED[key]
    flag = _kebab(key)
    target = _MOVED.get(key) or (_MOVED.get(flag) if not here else None)
    if target is not None:
        return _moved(_expanded(target), value, here)
    if not here and flag in REMOVED_FLAGS:
        return f"it is a flag that was removed: {REMOVED_FLAGS[flag]}"
    return ""


def _plugin_field(key: str, value: Any, here: Place) -> str:
    """Suggest a fix for a field of profiles and plugins at a wrong level; empty for others."""
    if key in ("enabled", "disabled") and here[:2] == _PROFILE:
        point = lines((*_PROFILE, "plugins", "multiPoint", key), value)
        return f"list it at an extension point: {point}"
    if key == "weight" and "pluginConfig" in here:
        plugin = here[here.index("args") + 1] if "args" in here else PLUGIN
        entry = lines((*_PROFILE, "plugins", "score", "enabled", _ENTRY, "weight"), value)
        entry = entry.replace("weight:", f"name: {plugin}, weight:")
        return f"move it to the list of plugins: {entry}"
    if key == "name" and here == _PROFILE:
        return _moved((*_PROFILE, "schedulerName"), value, here)
    return ""


def _as_flag(key: str, value: Any, minor: int) -> str:
    """Suggest the flag that sets the value; empty if no flag does."""
    flag = _kebab(key)
    flag = _FLAGS.get(flag, flag)
    if flag in flag_names(minor) and not isinstance(value, list):
        return f"it is a flag, set it on the command line: --{flag}={_flag_value(value)}"
    return ""


def _needless_level(key: str, value: Any, kind: Struct, here: Place, minor: int) -> str:
    """Suggest to move the fields of a value up one level; empty if they do not belong there."""
    if not isinstance(value, Mapping) or not value or not set(value) <= set(kind.known(minor)):
        return ""
    is_repeated = key in here[-1:] or (key == "args" and key in here)
    if not is_repeated and _related(key, here, minor) is not None:
        return ""
    where = f"in {_object_text(here)}" if here else "at the top level"
    return f"remove this level: its fields belong {where}"


def _object_text(place: Place) -> str:
    """Name an object of the configuration: `leaderElection`, `the entry of profiles`."""
    if place[-1] == _ENTRY:
        return f"the entry of {place[-2]}"
    return f"the args of {place[-1]}" if place[:-1] == _ARGS else place[-1]


def _entry_of_plugin(key: str, value: Any, kind: Struct, here: Place) -> str:
    """Write the entry of a list of plugins whose key is the plugin; empty for other keys."""
    if here[-1:] != (_ENTRY,) or "name" not in kind.fields or not key[:1].isupper():
        return ""
    if key.lower() in map(str.lower, kind.fields):
        return ""
    if "args" in kind.fields:
        args = value.get("args", value) if isinstance(value, Mapping) else None
        return f"{{name: {key}{f', args: {_flow(args)}' if args else ''}}}"
    weight = value.get("weight") if isinstance(value, Mapping) else value
    has_weight = isinstance(weight, int) and not isinstance(weight, bool)
    return f"{{name: {key}{f', weight: {weight}' if has_weight else ''}}}"


def _spelt(key: str, kind: Struct, minor: int) -> str:
    """Return a field of another object that only differs in case and hyphens, else `key`."""
    plain = _plain(key)
    if key in _places(minor) or any(_plain(name) == plain for name in kind.known(minor)):
        return key
    return next((name for name in _places(minor) if _plain(name) == plain), key)


def _plain(key: str) -> str:
    return re.sub(r"[-_]", "", key).lower()


def _here(kind: Struct, path: Path) -> Place | None:
    """Return the place of an object of the configuration; None for other documents.

    The path may be relative to a profile, so the type decides; the end of the path distinguishes
    places of the same type.
    """
    places = [place for struct, place in _structs() if struct is kind]
    names = [part for part in path if isinstance(part, str)]
    places.sort(key=lambda place: names[-1:] != [part for part in place if part != _ENTRY][-1:])
    return places[0] if places else None


_PROFILE: Final = ("profiles", _ENTRY)
_ARGS: Final = (*_PROFILE, "pluginConfig", _ENTRY, "args")


@cache
def _structs() -> tuple[tuple[Struct, Place], ...]:
    """List all objects of the configuration with their places."""
    roots: list[tuple[Type, Place]] = [(CONFIGURATION, ())]
    roots += [(struct, (*_ARGS, plugin)) for plugin, struct in ARGS.items()]
    structs: list[tuple[Struct, Place]] = []
    while roots:
        kind, place = roots.pop()
        if isinstance(kind, Struct):
            structs.append((kind, place))
            roots += [(item, (*place, key)) for key, item in kind.fields.items()]
        elif isinstance(kind, List):
            roots.append((kind.item, (*place, _ENTRY)))
    return tuple(structs)


def _related(key: str, here: Place, minor: int) -> Place | None:
    """Return the nearest place of a field with this name, in an object around or within `here`.

    Otherwise the only place of that name.
    """
    places = [place for place in _places(minor).get(key, ()) if place[:-1] != here]
    if "args" not in here:  # deeper fields of arguments have common names: key, type
        places = [place for place in places if len(place) <= len(_ARGS) + 2]
    near = [place for place in places if _nested(here, place[:-1])]
    near.sort(key=lambda place: abs(len(place) - 1 - len(here)))
    if near and (len(near) == 1 or len(near[0]) != len(near[1])):
        return near[0]
    return places[0] if len(places) == 1 else None


def _nested(first: Place, second: Place) -> bool:
    depth = min(len(first), len(second))
    return first[:depth] == second[:depth]


@cache
def _places(minor: int) -> Mapping[str, tuple[Place, ...]]:
    """Map each field name in 1.`minor` to all its places."""
    places_by_key: dict[str, list[Place]] = {}
    for struct, place in _structs():
        for key in struct.known(minor):
            if place[-2:-1] != ("args",) or key not in ("apiVersion", "kind"):
                places_by_key.setdefault(key, []).append((*place, key))
    return {key: tuple(dict.fromkeys(places)) for key, places in places_by_key.items()}


def _expanded(target: str) -> Place:
    first, _, rest = target.partition(".")
    if first in ARGS:
        return (*_ARGS, first, *rest.split("."))
    return tuple(target.split("."))


def _moved(place: Place, value: Any, here: Place) -> str:
    if value is None:
        return f"remove it, or set {_place_text(place)}"
    if place[:-1] == here:
        return f"rename it to {place[-1]}: {lines(place, value)}"
    where = _place_text(place) if len(place) > 1 else "the top level"
    return f"move it to {where}: {lines(place, value)}"


def _place_text(place: Place) -> str:
    """Format a place: `profiles[].plugins`, or `scoringStrategy in the args of …`."""
    if "args" in place and place[-1] != "args":
        at = place.index("args") + 1
        return f"{_joined(place[at + 1 :])} in the args of {place[at]}"
    return _joined(place)


def _joined(place: Place) -> str:
    return ".".join(place).replace(f".{_ENTRY}", _ENTRY)


def lines(place: Place, value: Any) -> str:
    """Write the field at a place as YAML in one line: `leaderElection: {leaderElect: true}`."""
    if "args" in place:
        at = place.index("args")
        plugin = place[at + 1] if at + 1 < len(place) else PLUGIN
        args = _within(place[at + 2 :], _flow(value))
        entry = f"[{{name: {plugin}, args: {args if plugin == PLUGIN else f'{{{args}}}'}}}]"
        return _within(place[: at - 1], entry)
    return _within(place, _flow(value))


def _within(place: Place, text: str) -> str:
    """Nest a value in its objects; the outermost one has no braces."""
    for position, part in reversed(list(enumerate(place))):
        if part == _ENTRY:
            text = f"[{text}]"
        else:
            text = f"{part}: {text}"
            if position:
                text = f"{{{text}}}"
    return text


def _flow(value: Any) -> str:
    text = flow(value)
    if len(text) <= _LONGEST:
        return text
    return "{…}" if isinstance(value, Mapping) else "[…]" if isinstance(value, list) else "…"


def _kebab(key: str) -> str:
    """Return the flag for a field: leaderElect, leader_elect, --leader-elect."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", key.lstrip("-"))
    return words.replace("_", "-").lower()


def _flag_value(value: Any) -> str:
    if isinstance(value, Mapping):  # feature gates
        return ",".join(f"{name}={_flow(item)}" for name, item in value.items())
    return value if isinstance(value, str) else _flow(value)

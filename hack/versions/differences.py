"""What the project has on record of kube-scheduler, compared with a release of it.

Each difference is a sentence that names the table to edit.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.configurations.completed import defaulted_config

from cluster import binaries, paths, releases
from cluster.configuration_reader import ConfigurationReader, configuration_reader
from kube_scheduler_operator.config.language import schema
from kube_scheduler_operator.config.language.feature_gates import Gates, known_gates
from kube_scheduler_operator.config.language.flags import flag_names
from kube_scheduler_operator.config.language.plugins import in_tree_plugins
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from versions.configurations import configuration_differences
from versions.sources import source, staging

_TABLES = "operator/kube_scheduler_operator/config/language"
_SCHEDULER = "k8s.io/kube-scheduler"
_EMPTY = f"apiVersion: {schema.API_VERSION}\nkind: {schema.KIND}\n"
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'`json:"(\w+)')
_NAME = re.compile(r'^\s+\w+\s+= "(\w+)"', re.MULTILINE)
_GATE = re.compile(r"Enabled\(features\.(\w+)\)")
_FLAG = re.compile(r"^\s+(?:-\w, )?--([\w-]+)", re.MULTILINE)
_QUOTED = re.compile(r'"([A-Z]\w+)"')
_COMMON_FLAGS = frozenset({"help", "version"})


def structs(folder: Path) -> dict[str, set[str]]:
    """The JSON names of the fields of the configuration's Go types."""
    text = "".join(path.read_text() for path in sorted(folder.glob("config/v1/types*.go")))
    return {name: set(_FIELD.findall(body)) for name, body in _STRUCT.findall(text)}


def known_fields(kind: Any, minor: int) -> set[str]:
    """Every field name of a type and of the types in it."""
    if isinstance(kind, schema.Struct):
        inner = (known_fields(kind.fields[name], minor) for name in kind.known(minor))
        return set(kind.known(minor)).union(*inner)
    if isinstance(kind, schema.List | schema.Map):
        return known_fields(kind.item, minor)
    return set()


def field_differences(version: str, before: str, minor: int) -> Iterator[str]:
    """Fields that the release has and the tables of 1.`minor` lack, and the other way round."""
    old, new = (structs(source(_SCHEDULER, staging(each))) for each in (before, version))
    kinds = (schema.CONFIGURATION, *schema.ARGS.values())
    ours = set().union(*(known_fields(kind, minor) for kind in kinds))
    for struct in sorted(old.keys() | new.keys()):
        for field in sorted(new.get(struct, set()) - old.get(struct, set()) - ours):
            yield f"{struct}.{field} was added: {_TABLES}/schema.py, with `since`"
        for field in sorted((old.get(struct, set()) - new.get(struct, set())) & ours):
            yield f"{struct}.{field} was removed: {_TABLES}/schema.py"


def plugin_names(kubernetes: Path) -> set[str]:
    """The names of all plugins of a release."""
    text = (kubernetes / "pkg/scheduler/framework/plugins/names/names.go").read_text()
    return set(_NAME.findall(text))


def profile(plugins: Mapping[str, Any]) -> bytes:
    """A configuration with one profile with these plugins."""
    return (_EMPTY + yaml.safe_dump({"profiles": [{"plugins": plugins}]})).encode()


def points_of(reader: ConfigurationReader, name: str, points: tuple[str, ...]) -> set[str] | None:
    """The extension points at which a plugin can be listed; None: the plugin does not exist."""
    found = set()
    for point in points:
        others = {"disabled": [{"name": "*"}]} if point in ("queueSort", "bind") else {}
        _, error = reader.read(profile({point: {"enabled": [{"name": name}], **others}}))
        if "does not exist" in error:
            return None
        if "does not extend" not in error and "strict decoding error" not in error:
            found.add(point)
    return found


def plugin_differences(
    reader: ConfigurationReader, kubernetes: Path, points: set[str], minor: int
) -> Iterator[str]:
    """Plugins and extension points that differ from the table of 1.`minor`."""
    table = in_tree_plugins.listable_plugins(Version(1, minor))
    where = f"{_TABLES}/plugins/in_tree_plugins.py"
    for name in sorted(plugin_names(kubernetes) | table.keys()):
        theirs = points_of(reader, name, tuple(sorted(points)))
        ours = set(table[name].points_at(minor)) if name in table else None
        if theirs is None and ours is not None:
            yield f"plugin {name} was removed: {where}, with `until`"
        elif theirs is not None and ours is None:
            yield f"plugin {name} was added, at {', '.join(sorted(theirs))}: {where}, with `since`"
        elif theirs is not None and ours is not None:
            for point in sorted(theirs - ours):
                yield f"plugin {name} implements {point}: {where}, with `points_since`"
            for point in sorted(ours - theirs):
                yield f"plugin {name} no longer implements {point}: {where}, with `points_until`"


def default_differences(reader: ConfigurationReader, minor: int) -> Iterator[str]:
    """Values of the completed empty configuration that differ from those of 1.`minor`."""
    text, error = reader.read(_EMPTY.encode())
    if error:
        yield f"an empty configuration is rejected: {error}"
        return
    config = yaml.safe_load(_EMPTY)
    target = Target(Gates(Version(1, minor)))
    ours = json.loads(json.dumps(defaulted_config(config, target)))
    where = f"{_TABLES}/json_schema.py, plugins/default_args.py or plugins/in_tree_plugins.py"
    for path, theirs, own in different(yaml.safe_load(text), ours):
        yield f"default of {path}: {theirs!r}, on record {own!r}: {where}"


def different(theirs: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(path, value, value on record) of the deepest values that differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            yield from different(theirs.get(key), ours.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from different(one, other, f"{path}[{index}]")
    elif theirs != ours:
        yield path, theirs, ours


def gate_differences(minor: int, kubernetes: Path) -> Iterator[str]:
    """Feature gates that decide on default plugins and are not in the table."""
    text = (kubernetes / "pkg/scheduler/apis/config/v1/default_plugins.go").read_text()
    plugins = in_tree_plugins.plugins(Version(1, minor))
    ours = {in_tree_plugins.plugin_gate(name, minor) for name in plugins}
    for gate in sorted(set(_GATE.findall(text)) - ours):
        yield f"gate {gate} decides on default plugins: {_TABLES}/plugins/in_tree_plugins.py"


def flag_differences(version: str, minor: int) -> Iterator[str]:
    """Flags that differ from the table of 1.`minor`."""
    program = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    text = subprocess.check_output([program, "--help"], text=True)
    theirs = set(_FLAG.findall(text)) - _COMMON_FLAGS
    ours = set(flag_names(minor)) - _COMMON_FLAGS
    for name in sorted(theirs - ours):
        yield f"flag --{name} was added: {_TABLES}/flags.py"
    for name in sorted(ours - theirs):
        yield f"flag --{name} was removed: {_TABLES}/flags.py, REMOVED_FLAGS"


def state_differences(minor: int, known: int) -> Iterator[str]:
    """Feature gates that decide on what is valid and whose default or lock changed."""
    text = "".join(path.read_text() for path in sorted((paths.REPOSITORY / _TABLES).rglob("*.py")))
    now, before = (known_gates(each) or {} for each in (minor, known))
    for name in sorted(set(_QUOTED.findall(text)) & (now.keys() | before.keys())):
        states = [
            _state(Gates(Version(1, each)), gates, name)
            for each, gates in ((known, before), (minor, now))
        ]
        if states[0] != states[1]:
            yield f"gate {name} was {states[0]} and is {states[1]}: {_TABLES}, and tests of it"


def _state(gates: Gates, known: Mapping[str, bool | None], name: str) -> str:
    if name not in known:
        return "absent"
    default = "on" if gates.enabled(name) else "off"
    return default if known[name] is None else f"locked {default}"


def differences(
    version: str, kubernetes: Path, before: str, *, with_program: bool, known: int | None = None
) -> Iterator[str]:
    """Everything in the record of a release that a person has to decide.

    Args:
        version: the release.
        kubernetes: its sources.
        before: a release of an older minor version that is on record.
        with_program: whether to compare the flags of its kube-scheduler, which takes minutes to
            build.
        known: the minor version whose tables are compared: that of the release or, while the tables
            lack it, the newest one. With an older one, these are the changes since then.
    """
    minor = known or min(releases.minor(version), in_tree_plugins.NEWEST.minor)
    yield from field_differences(version, before, minor)
    points = structs(source(_SCHEDULER, staging(version)))["Plugins"] - {"multiPoint"}
    with configuration_reader(version) as reader:
        yield from plugin_differences(reader, kubernetes, points, minor)
        yield from default_differences(reader, minor)
        yield from configuration_differences(reader, minor)
    yield from gate_differences(minor, kubernetes)
    yield from state_differences(releases.minor(version), minor)
    if with_program:
        yield from flag_differences(version, minor)


def changes(version: str, before: str, *, with_program: bool) -> Iterator[str]:
    """What a release changed since another one on record, as it was found when it was new."""
    kubernetes, known = source("k8s.io/kubernetes", version), releases.minor(before)
    yield from differences(version, kubernetes, before, with_program=with_program, known=known)

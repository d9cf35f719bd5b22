"""Checks of the command lines of kube-schedulers that files start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ...base.findings import ERROR, WARNING, Path, Problem, did_you_mean, listing
from ..language.feature_gates import FLAG, Gates, parse_gates
from ..language.flags import validate_flags, void_flags
from ..language.schema import KIND
from ..language.validation.configuration import Target
from ..language.warnings.configuration import config_warnings
from .checks import (
    CheckOptions,
    Item,
    election_of,
    has_unknown_election,
    known_scheduler,
    stock_of,
)
from .documents.linking import Readers, mount_of
from .forms.form import KUBE_SCHEDULER, CommandLine

NO_CONFIG_FLAG: Final = "NoConfigFlag"
FILE_NOT_MOUNTED: Final = "FileNotMounted"
OTHER_NAMESPACE: Final = "OtherNamespace"
MISSING_KEY: Final = "MissingKey"


def check_command(
    item: Item, command: CommandLine, readers: Readers, options: CheckOptions
) -> Iterator[Problem]:
    """Report problems of kube-scheduler's command line; paths are those of the document."""
    if command.program != KUBE_SCHEDULER:
        return
    version = command.version or (item.place.version if item.place else None)
    gates = replace(options.gates, version=version) if version else options.gates
    stock = options.stock and stock_of(command)
    known = known_scheduler(command)
    own = known.own_flags if known else frozenset()
    flags = {name: values for name, values in command.flags.items() if name not in own}
    unknown = command.unknown - own
    for problem in validate_flags(flags, gates.version, stock=stock, unknown=unknown):
        yield _at_its_flag(problem, command)
    if command.config:
        for problem in void_flags((*flags, *sorted(unknown)), "in the file that --config names"):
            field = problem.fix.rpartition("names.")[2]
            fix = f"set {field} in the file that --config names"
            yield _at_its_flag(replace(problem, fix=fix), command)
    yield from _check_files(item, command, readers, stock=stock)
    if not command.config and stock:
        unread = list(_unread_mount(command, readers))
        yield from unread or _without_a_file(command, gates)


def _check_files(
    item: Item, command: CommandLine, readers: Readers, *, stock: bool
) -> Iterator[Problem]:
    """Check that the container has the file that --config, or the program's own flag, names."""
    argument = command.last(command.config_flag)
    if argument is None or not argument.value or not argument.is_known:
        return
    if command.mounts is None:
        return
    mount = mount_of(command, argument.value)
    if mount is None:
        where = "the Pod" if command.account or command.image else f"{command.program}'s Pod"
        message = f"no volume of {where} has {argument.value}, which --{command.config_flag} names"
        effect = ": kube-scheduler does not start" if stock else "; the image may have it"
        yield Problem(
            FILE_NOT_MOUNTED,
            argument.path,
            f"{message}{effect}",
            command.mount_fix.replace("FILE", argument.value),
            ERROR if stock else WARNING,
        )
        return
    if mount.kind:
        keys = readers.keys_of(mount, command.namespace)
        others = readers.namespaces_of(mount) if keys is None else []
        if others:
            yield Problem(
                OTHER_NAMESPACE,
                mount.at or argument.path,
                f"{mount.kind} {mount.name} of these files is in namespace {listing(others)}, the "
                f"Pod in {command.namespace}: without one there, the Pod does not start",
                f"set metadata.namespace of the {mount.kind} to {command.namespace}",
                WARNING,
            )
        key = mount.key_of(argument.value)
        if keys is not None and key not in keys:
            has = f"; it has {listing(keys)}" if mount.kind == "ConfigMap" and keys else ""
            similar = did_you_mean(key, keys).removeprefix("; ") if key else ""
            yield Problem(
                MISSING_KEY,
                argument.path,
                f"{mount.kind} {mount.name} has no key "
                f'"{key or argument.value.rpartition("/")[2]}", so {argument.value} does not '
                f"exist{has}",
                similar or "name one of its keys, or list it in items of the volume",
            )
        return
    node = item.place.node_mounts if item.place else None
    file = mount.node_file(argument.value)
    if node is None or not mount.name:
        return
    if any(source.path and source.holds(file) for source in node):
        return
    yield Problem(
        FILE_NOT_MOUNTED,
        mount.at or argument.path,
        f"the node has no file {file}: no extraMounts of a control-plane node puts it there",
        f"add to that node: extraMounts: [{{hostPath: ./kube-scheduler.yaml, containerPath: "
        f"{file}}}]",
    )


def _at_its_flag(problem: Problem, command: CommandLine) -> Problem:
    """Replace the name of a flag by its path in the document."""
    return replace(problem, path=_place_of(str(problem.path[0]) if problem.path else "", command))


def _place_of(flag: str, command: CommandLine) -> Path:
    """Return the path of a flag in the document, or where it would be added."""
    occurrence = command.last(flag)
    return occurrence.path if occurrence else command.at


def _unread_mount(command: CommandLine, readers: Readers) -> Iterator[Problem]:
    """Report a mounted configuration that no flag names."""
    for mount in () if command.config else command.mounts or ():
        keys = readers.keys_of(mount, command.namespace) if mount.kind == "ConfigMap" else None
        if keys and _has_configuration(mount.name, readers):
            flag = command.config_flag
            path = f"{mount.path or '/etc/kubernetes/scheduler'}/{keys[0]}"
            yield Problem(
                NO_CONFIG_FLAG,
                command.at,
                f"{command.program} does not read the configuration in ConfigMap {mount.name}: "
                f"no flag --{flag} names it",
                f"add --{flag}={path}" + ("" if mount.path else " and mount the volume there"),
                WARNING,
            )
            return


def _without_a_file(command: CommandLine, gates: Gates) -> Iterator[Problem]:
    """Yield warnings about what kube-scheduler does without a configuration."""
    if not command.account:
        return
    explicit = {}
    with suppress(ValueError):
        explicit = parse_gates(command.flags.get(FLAG, ()))
    target = Target(replace(gates, explicit={**gates.explicit, **explicit}))
    if has_unknown_election(command):
        return
    election = election_of({}, command)
    if election.get("leaderElect") is False:
        for problem in config_warnings({}, target, election):
            yield replace(problem, path=_place_of("leader-elect", command))


def _has_configuration(name: str, readers: Readers) -> bool:
    return any(
        item.place is not None
        and item.place.text is not None
        and item.place.text.name == name
        and item.kind == KIND
        for item in readers.items
    )

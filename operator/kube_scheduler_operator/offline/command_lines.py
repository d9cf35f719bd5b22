"""Checks of the command lines of kube-schedulers that files start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ..base.findings import WARNING, Path, Problem
from ..schedulerconfig.feature_gates import FLAG, Gates, parse_gates
from ..schedulerconfig.flags import validate_flags, void_flags
from ..schedulerconfig.schema import KIND
from ..schedulerconfig.validation import Target
from ..schedulerconfig.warnings import config_warnings
from .checks import CheckOptions, Item
from .forms.form import KUBE_SCHEDULER, CommandLine
from .leader_election import election_of, has_unknown_election
from .linking import Readers
from .mounted_files import check_files
from .reader_target import known_scheduler, stock_of

NO_CONFIG_FLAG: Final = "NoConfigFlag"


def check_command(
    item: Item, command: CommandLine, readers: Readers, options: CheckOptions
) -> Iterator[Problem]:
    """Problems of a command line of kube-scheduler; paths are those of the document."""
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
            yield _at_its_flag(replace(problem, fix=_void_fix(problem)), command)
    yield from check_files(item, command, readers, stock=stock)
    if not command.config and stock:
        unread = list(_unread_mount(command, readers))
        yield from unread or _without_a_file(command, gates)


def _void_fix(problem: Problem) -> str:
    field = problem.fix.rpartition("names.")[2]
    return f"set {field} in the file that --config names"


def _at_its_flag(problem: Problem, command: CommandLine) -> Problem:
    """A problem whose path is the name of a flag, with the path of that flag in the document."""
    return replace(problem, path=_place_of(str(problem.path[0]) if problem.path else "", command))


def _place_of(flag: str, command: CommandLine) -> Path:
    """Where a flag is in the document, or where it would be added."""
    found = command.last(flag)
    return found.path if found else command.at


def _unread_mount(command: CommandLine, readers: Readers) -> Iterator[Problem]:
    """A mounted configuration that no flag names."""
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
    """What kube-scheduler does without a configuration."""
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
    """Whether a ConfigMap has a configuration."""
    return any(
        item.place is not None
        and item.place.text is not None
        and item.place.text.name == name
        and item.kind == KIND
        for item in readers.items
    )

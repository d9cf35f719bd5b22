"""Checks of the command lines of kube-schedulers that files start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ...base.findings import ERROR, WARNING, Path, Problem, Severity, did_you_mean, listing
from ...base.objects import mapping
from ..language.feature_gates import Gates
from ..language.flags import validate_flags, void_flags
from ..language.schema import KIND
from ..language.validation.configuration import Target
from ..language.warnings.configuration import config_warnings
from .checks import (
    CheckOptions,
    Item,
    election_of,
    gates_of,
    has_unknown_election,
    known_scheduler,
    stock_of,
)
from .documents.linking import Readers, mount_of
from .forms.document_fields import at, objects, text
from .forms.form import KUBE_SCHEDULER, CommandLine, Mount

NO_CONFIG_FLAG: Final = "NoConfigFlag"
FILE_NOT_MOUNTED: Final = "FileNotMounted"
OTHER_NAMESPACE: Final = "OtherNamespace"
MISSING_KEY: Final = "MissingKey"
_OF_IMAGES: Final = ("/etc/ssl/", "/usr/", "/run/secrets/", "/var/run/secrets/")
"""Directories of an image's own CAs, and where the kubelet puts the token of a ServiceAccount."""


def check_command(
    item: Item, command: CommandLine, readers: Readers, options: CheckOptions
) -> Iterator[Problem]:
    """Report problems of kube-scheduler's command line; paths are those of the document."""
    if command.program != KUBE_SCHEDULER:
        return
    gates = gates_of(options.gates, options.version_of(command.version), command)
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
    if argument is None or not (argument.value and argument.is_known) or command.mounts is None:
        return
    file, mount = argument.value, mount_of(command, argument.value)
    if mount is None:
        message = f"no volume of {_pod_of(command)} has {file}, which --{command.config_flag} names"
        effect = ": kube-scheduler does not start" if stock else "; the image may have it"
        fix = command.mount_fix.replace("FILE", file)
        severity: Severity = ERROR if stock else WARNING
        yield Problem(FILE_NOT_MOUNTED, argument.path, f"{message}{effect}", fix, severity)
        return
    if mount.kind:
        yield from _check_keys(command, file, mount, readers, argument.path)
        return
    node, file = item.place.node_mounts if item.place else None, mount.node_file(file)
    if node is None or not mount.name:
        return
    if not any(source.path and source.holds(file) for source in node):
        message = (
            f"the node has no file {file}: no extraMounts of a control-plane node puts it there"
        )
        mounts = f"[{{hostPath: ./kube-scheduler.yaml, containerPath: {file}}}]"
        fix = f"add to that node: extraMounts: {mounts}"
        yield Problem(FILE_NOT_MOUNTED, mount.at or argument.path, message, fix)


def check_named_files(config: Mapping[str, Any], command: CommandLine) -> Iterator[Problem]:
    """Check that the container has the files that a valid configuration names."""
    if command.mounts is None:
        return
    stock = stock_of(command)
    for path, file in _named_files(config):
        if file.startswith("/") and not file.startswith(_OF_IMAGES) and not mount_of(command, file):
            effect = "kube-scheduler does not start" if stock else "the image may have it"
            message = f"no volume of {_pod_of(command)} has {file}: {effect}"
            fix = command.mount_fix.replace("FILE", file)
            yield Problem(FILE_NOT_MOUNTED, path, message, fix, ERROR if stock else WARNING)


def _named_files(config: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield what kube-scheduler reads when it starts: kubeconfig, CAs, certificates and keys."""
    yield ("clientConnection", "kubeconfig"), text(at(config, "clientConnection", "kubeconfig"))
    for index, extender in objects(config.get("extenders")):
        tls = mapping(extender.get("tlsConfig"))
        for key in ("ca", "cert", "key"):
            if not tls.get(f"{key}Data"):  # which counts before the file
                yield ("extenders", index, "tlsConfig", f"{key}File"), text(tls.get(f"{key}File"))


def _pod_of(command: CommandLine) -> str:
    return "the Pod" if command.account or command.image else f"{command.program}'s Pod"


def _check_keys(
    command: CommandLine, file: str, mount: Mount, readers: Readers, path: Path
) -> Iterator[Problem]:
    """Check that the ConfigMap or Secret of a mount has the key of a file."""
    keys = readers.keys_of(mount, command.namespace)
    if keys is None:
        if namespaces := readers.namespaces_of(mount):
            message = (
                f"{mount.kind} {mount.name} of these files is in namespace {listing(namespaces)}, "
                f"the Pod in {command.namespace}: without one there, the Pod does not start"
            )
            fix = f"set metadata.namespace of the {mount.kind} to {command.namespace}"
            yield Problem(OTHER_NAMESPACE, mount.at or path, message, fix, WARNING)
        return
    key = mount.key_of(file)
    if key not in keys:
        has = f"; it has {listing(keys)}" if mount.kind == "ConfigMap" and keys else ""
        message = (
            f'{mount.kind} {mount.name} has no key "{key or file.rpartition("/")[2]}", so {file} '
            f"does not exist{has}"
        )
        similar = did_you_mean(key, keys).removeprefix("; ") if key else ""
        fix = similar or "name one of its keys, or list it in items of the volume"
        yield Problem(MISSING_KEY, path, message, fix)


def _at_its_flag(problem: Problem, command: CommandLine) -> Problem:
    """Replace the name of a flag by its path in the document."""
    return replace(problem, path=_place_of(str(problem.path[0]) if problem.path else "", command))


def _place_of(flag: str, command: CommandLine) -> Path:
    """Return the path of a flag in the document, or where it would be added."""
    occurrence = command.last(flag)
    return occurrence.path if occurrence else command.at


def _unread_mount(command: CommandLine, readers: Readers) -> Iterator[Problem]:
    """Report a mounted configuration that no flag names."""
    for mount in command.mounts or ():
        keys = readers.keys_of(mount, command.namespace) if mount.kind == "ConfigMap" else None
        if keys and _has_configuration(mount.name, readers):
            flag = command.config_flag
            message = (
                f"{command.program} does not read the configuration in ConfigMap {mount.name}: "
                f"no flag --{flag} names it"
            )
            fix = f"add --{flag}={mount.path or '/etc/kubernetes/scheduler'}/{keys[0]}"
            fix += "" if mount.path else " and mount the volume there"
            yield Problem(NO_CONFIG_FLAG, command.at, message, fix, WARNING)
            return


def _has_configuration(name: str, readers: Readers) -> bool:
    texts = (item.place.text for item in readers.items if item.place and item.kind == KIND)
    return any(text.name == name for text in texts if text is not None)


def _without_a_file(command: CommandLine, gates: Gates) -> Iterator[Problem]:
    """Yield warnings about what kube-scheduler does without a configuration."""
    if not command.account or has_unknown_election(command):
        return
    election = election_of({}, command)
    if election.get("leaderElect") is False:
        for problem in config_warnings({}, Target(gates), election):
            yield replace(problem, path=_place_of("leader-elect", command))

"""Checks of kube-schedulers that files start: flags, the file that --config names, rights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from ..base.findings import WARNING, Path, Problem, did_you_mean, listing
from ..base.objects import mapping
from ..schedulerconfig.feature_gates import FLAG, Gates, parse_gates
from ..schedulerconfig.flags import validate_flags, void_flags
from ..schedulerconfig.go_values import boolean
from ..schedulerconfig.schema import DEFAULT_SCHEDULER
from ..schedulerconfig.validation import Target
from ..schedulerconfig.warnings import config_warnings, lease_of, scheduler_names
from .checks import CheckOptions, Item
from .forms.form import CommandLine
from .forms.objects import at, group_kind, label_of, name_of, namespace_of, objects, text
from .linking import Readers, mount_of
from .reader_target import known_scheduler, stock_of

FILE_NOT_MOUNTED: Final = "FileNotMounted"
MISSING_KEY: Final = "MissingKey"
SEVERAL_ACTIVE: Final = "SeveralActive"
LEASE_FORBIDDEN: Final = "LeaseForbidden"
UNKNOWN_SCHEDULER_NAME: Final = "UnknownSchedulerName"
NO_CONFIG_FLAG: Final = "NoConfigFlag"

_ELECTION: Final[Mapping[str, str]] = {
    "leader-elect": "leaderElect",
    "leader-elect-lease-duration": "leaseDuration",
    "leader-elect-renew-deadline": "renewDeadline",
    "leader-elect-retry-period": "retryPeriod",
    "leader-elect-resource-lock": "resourceLock",
    "leader-elect-resource-name": "resourceName",
    "leader-elect-resource-namespace": "resourceNamespace",
}
"""Flag -> the field of leaderElection; a flag that is set counts (ApplyLeaderElectionTo)."""


def election_of(config: Mapping[str, Any], reader: CommandLine | None) -> dict[str, Any]:
    """LeaderElection of a configuration, with the flags of the kube-scheduler that reads it."""
    election = dict(mapping(config.get("leaderElection")))
    for name, field in _ELECTION.items():
        argument = reader.last(name) if reader else None
        if argument is None:
            continue
        election[field] = argument.value
        if name == "leader-elect":
            with suppress(ValueError):  # reported as a problem of the flag
                election[field] = boolean(argument.value)
    return election


def check_command(
    item: Item, command: CommandLine, readers: Readers, options: CheckOptions
) -> Iterator[Problem]:
    """Problems of a command line; paths are those of the document."""
    version = command.version or (item.place.version if item.place else None)
    gates = replace(options.gates, version=version) if version else options.gates
    stock = options.stock and stock_of(command)
    known = known_scheduler(command)
    own = known.own_flags if known else frozenset()
    flags = {name: values for name, values in command.flags.items() if name not in own}
    for problem in validate_flags(flags, gates.version, stock=stock):
        yield _at_its_flag(problem, command)
    if command.config and flags:
        for problem in void_flags(flags, "in the file that --config names"):
            yield _at_its_flag(replace(problem, fix=_void_fix(problem)), command)
    yield from _files(item, command, readers, stock=stock)
    if not command.config and stock:
        yield from _without_a_file(command, readers, gates)


def _void_fix(problem: Problem) -> str:
    field = problem.fix.rpartition("names.")[2]
    return f"set {field} in the file that --config names"


def _at_its_flag(problem: Problem, command: CommandLine) -> Problem:
    name = str(problem.path[0]) if problem.path else ""
    found = command.last(name)
    return replace(problem, path=found.path if found else command.at)


def _without_a_file(command: CommandLine, readers: Readers, gates: Gates) -> Iterator[Problem]:
    """A mounted configuration that no flag names, and what kube-scheduler does without one."""
    for mount in command.mounts or ():
        keys = readers.keys_of(mount, command.namespace) if mount.kind == "ConfigMap" else None
        if keys and _has_configuration(mount.name, readers):
            path = f"{mount.path or '/etc/kubernetes/scheduler'}/{keys[0]}"
            yield Problem(
                NO_CONFIG_FLAG,
                command.at,
                f"kube-scheduler does not read the configuration in ConfigMap {mount.name}: "
                "no flag --config names it",
                f"add --config={path}" + ("" if mount.path else " and mount the volume there"),
                WARNING,
            )
            return
    if not command.account:
        return
    explicit = {}
    with suppress(ValueError):
        explicit = parse_gates(command.flags.get(FLAG, ()))
    target = Target(replace(gates, explicit={**gates.explicit, **explicit}))
    election = election_of({}, command)
    if election.get("leaderElect") is False:
        for problem in config_warnings({}, target, election):
            argument = command.last("leader-elect")
            yield replace(problem, path=argument.path if argument else command.at)


def _has_configuration(name: str, readers: Readers) -> bool:
    return any(
        item.place is not None
        and item.place.text is not None
        and item.place.text.name == name
        and item.kind == "KubeSchedulerConfiguration"
        for item in readers.items
    )


def _files(item: Item, command: CommandLine, readers: Readers, *, stock: bool) -> Iterator[Problem]:
    """Whether the container has the file that --config names."""
    argument = command.last("config")
    if argument is None or not argument.value or "$(" in argument.value:
        return
    if command.mounts is None:
        return
    mount = mount_of(command, argument.value)
    if mount is None:
        where = "the Pod" if command.account or command.image else "kube-scheduler's Pod"
        message = f"no volume of {where} has {argument.value}, which --config names"
        if stock:
            yield Problem(
                FILE_NOT_MOUNTED,
                argument.path,
                f"{message}: kube-scheduler does not start",
                command.mount_fix.replace("FILE", argument.value),
            )
        else:
            message += "; the image may have it"
            yield Problem(
                FILE_NOT_MOUNTED,
                argument.path,
                message,
                command.mount_fix.replace("FILE", argument.value),
                WARNING,
            )
        return
    if mount.kind:
        keys = readers.keys_of(mount, command.namespace)
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
    if node is None or not mount.name or any(each.path and each.holds(file) for each in node):
        return
    yield Problem(
        FILE_NOT_MOUNTED,
        mount.at or argument.path,
        f"the node has no file {file}: no extraMounts of a control-plane node puts it there",
        f"add to that node: extraMounts: [{{hostPath: ./kube-scheduler.yaml, containerPath: "
        f"{file}}}]",
    )


# --- documents of one run ---------------------------------------------------------------------

_KNOWN_ROLES: Final[Mapping[str, frozenset[str]]] = {
    "system:kube-scheduler": frozenset({"kube-scheduler"}),
    "system:volume-scheduler": frozenset(),
    "system:auth-delegator": frozenset(),
    "extension-apiserver-authentication-reader": frozenset(),
}
"""Role of Kubernetes -> the Leases that it permits to update."""
_ANY: Final = "*"


def check_together(
    configured: Sequence[tuple[Item, Mapping[str, Any]]], items: Sequence[Item]
) -> Iterator[tuple[Item, Problem]]:
    """Warnings about documents that are right each by itself.

    Args:
        configured: valid configurations, each with its document.
        items: all documents.
    """
    for item, config in configured:
        reader = item.reader
        if reader is None or not reader.account:
            continue
        election = election_of(config, reader)
        lease = lease_of(election)
        if lease is None and reader.replicas > 1:
            yield (
                item,
                Problem(
                    SEVERAL_ACTIVE,
                    ("leaderElection", "leaderElect"),
                    f"{reader.label} has {reader.replicas} replicas without leader election: each "
                    "places the same pods",
                    "set leaderElect to true, or replicas to 1",
                    WARNING,
                ),
            )
        elif lease is not None:
            yield from ((item, each) for each in _lease_rights(lease, reader, items))
    served = {name for _, config in configured for name in scheduler_names(config)}
    if served:
        yield from _scheduler_names(served, items)


def _lease_rights(
    lease: tuple[str, str], reader: CommandLine, items: Sequence[Item]
) -> Iterator[Problem]:
    """Whether the roles that the files bind permit the Lease; unknown roles may permit it."""
    permitted: set[str] = set()
    bound = False
    roles = {
        (item.kind, name_of(item.value)): item.value
        for item in items
        if item.kind in ("ClusterRole", "Role")
    }
    for item in items:
        value = item.value
        if item.kind not in ("ClusterRoleBinding", "RoleBinding"):
            continue
        if not _is_subject(value, reader):
            continue
        bound = True
        kind, name = text(at(value, "roleRef", "kind")), text(at(value, "roleRef", "name"))
        if item.kind == "RoleBinding" and namespace_of(value) not in ("", lease[0]):
            continue
        if (kind, name) in roles:
            permitted |= _leases_of(roles[kind, name])
        elif name in _KNOWN_ROLES:
            permitted |= _KNOWN_ROLES[name]
        else:
            return
    if bound and _ANY not in permitted and lease[1] not in permitted:
        yield Problem(
            LEASE_FORBIDDEN,
            ("leaderElection", "resourceName"),
            f"no role of these files lets ServiceAccount {reader.account} update the Lease "
            f"{'/'.join(lease)}: the scheduler never becomes leader, and its pods stay Pending",
            f"bind a Role in {lease[0]} with get and update on leases of coordination.k8s.io, "
            f"resourceNames: [{lease[1]}]",
            WARNING,
        )


def _is_subject(binding: Mapping[str, Any], reader: CommandLine) -> bool:
    for _, each in objects(binding.get("subjects")):
        namespaces = (text(each.get("namespace")), reader.namespace)
        same = namespaces[0] == namespaces[1] or "" in namespaces
        if same and (each.get("kind"), each.get("name")) == ("ServiceAccount", reader.account):
            return True
    return False


def _leases_of(role: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    for _, rule in objects(role.get("rules")):
        groups, resources, verbs = (
            {str(one) for one in rule.get(key) or () if isinstance(rule.get(key), list)}
            for key in ("apiGroups", "resources", "verbs")
        )
        if not groups & {"coordination.k8s.io", "*"} or not resources & {"leases", "*"}:
            continue
        if not verbs & {"update", "*"}:
            continue
        named = rule.get("resourceNames")
        found |= {str(one) for one in named} if isinstance(named, list) and named else {_ANY}
    return found


def _scheduler_names(served: set[str], items: Sequence[Item]) -> Iterator[tuple[Item, Problem]]:
    """Pods whose schedulerName is nearly one of these files."""
    for item in items:
        for path in (("spec",), ("spec", "template", "spec"), _CRON):
            name = text(at(item.value, *path, "schedulerName"))
            if not name or name in served or name == DEFAULT_SCHEDULER:
                continue
            hint = did_you_mean(name, served).removeprefix("; ")
            if hint and group_kind(item.value)[1] != "SchedulerProfile":
                where: Path = (*path, "schedulerName")
                message = (
                    f'no profile of these files has the schedulerName "{name}": the Pods of '
                    f"{label_of(item.value)} stay Pending, without an event"
                )
                yield item, Problem(UNKNOWN_SCHEDULER_NAME, where, message, hint, WARNING)


_CRON: Final = ("spec", "jobTemplate", "spec", "template", "spec")

"""Documents of one run that do not fit together: schedulers, their workloads, roles and Pods."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from ...base.findings import WARNING, Path, Problem, did_you_mean
from ...base.objects import entries
from ..language.schema import DEFAULT_SCHEDULER
from ..language.warnings.configuration import (
    ConfiguredScheduler,
    lease_of,
    scheduler_names,
    warnings_between,
)
from .checks import CheckOptions, Item, election_of, has_unknown_election
from .configurations import is_run_by_provider
from .forms.document_fields import at, group_kind, label_of, name_of, namespace_of, objects, text
from .forms.form import CommandLine

SEVERAL_ACTIVE: Final = "SeveralActive"
LEASE_FORBIDDEN: Final = "LeaseForbidden"
UNKNOWN_SCHEDULER_NAME: Final = "UnknownSchedulerName"
_MOST_COMPARED: Final = 8
"""Schedulers of one directory that may belong to one cluster; more are a collection of examples."""


def check_schedulers(
    processes: Sequence[tuple[Item, ConfiguredScheduler]],
    found: Collection[str],
    options: CheckOptions,
) -> Iterator[tuple[Item, Problem]]:
    """Yield warnings about schedulers that would run in one cluster.

    These are the schedulers of the named files, and those of each directory.
    """
    groups: dict[str | None, list[tuple[Item, ConfiguredScheduler]]] = {}
    for item, process in processes:
        directory = item.file.rpartition("/")[0] if item.file in found else None
        groups.setdefault(directory, []).append((item, process))
    for directory, group in groups.items():
        if directory is not None and len(group) > _MOST_COMPARED:
            continue
        own = [pair for pair in group if not is_run_by_provider(pair[0], options)]
        # A cluster has one scheduler of its provider, so several belong to several clusters.
        compared = group if len(group) - len(own) < 2 else own
        by_process = {id(process): item for item, process in compared}
        for process, problem in warnings_between([process for _, process in compared]):
            yield by_process[id(process)], problem


# --- leader election -----------------------------------------------------------------------------

_KNOWN_ROLES: Final[Mapping[str, frozenset[str]]] = {
    "system:kube-scheduler": frozenset({"kube-scheduler"}),
    "system:volume-scheduler": frozenset(),
    "system:auth-delegator": frozenset(),
    "extension-apiserver-authentication-reader": frozenset(),
}
"""Role of Kubernetes -> the Leases that it permits to update."""
_ANY: Final = "*"


def check_elections(
    configured: Sequence[tuple[Item, Mapping[str, Any]]], items: Sequence[Item]
) -> Iterator[tuple[Item, Problem]]:
    """Yield warnings about schedulers whose workload and roles do not fit their leader election."""
    for item, config in configured:
        reader = item.reader
        if reader is None or not reader.account or has_unknown_election(reader):
            continue
        lease = lease_of(election_of(config, reader))
        if lease is None and reader.replicas > 1:
            message = (
                f"{reader.label} has {reader.replicas} replicas without leader election: each "
                "places the same pods"
            )
            fix = "set leaderElect to true, or replicas to 1"
            where = ("leaderElection", "leaderElect")
            yield item, Problem(SEVERAL_ACTIVE, where, message, fix, WARNING)
        elif lease is not None:
            yield from ((item, problem) for problem in _lease_rights(lease, reader, items))


def _lease_rights(
    lease: tuple[str, str], reader: CommandLine, items: Sequence[Item]
) -> Iterator[Problem]:
    """Check that the roles that the files bind permit the Lease; unknown roles may permit it."""
    permitted: set[str] = set()
    bound = False
    roles = {
        (item.kind, name_of(item.value)): item.value
        for item in items
        if item.kind in ("ClusterRole", "Role")
    }
    for item in items:
        value = item.value
        is_binding = item.kind in ("ClusterRoleBinding", "RoleBinding")
        if not (is_binding and _is_subject(value, reader)):
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
        message = (
            f"no role of these files lets ServiceAccount {reader.account} update the Lease "
            f"{'/'.join(lease)}: the scheduler never becomes leader, and its pods stay Pending"
        )
        fix = (
            f"bind a Role in {lease[0]} with get and update on leases of coordination.k8s.io, "
            f"resourceNames: [{lease[1]}]"
        )
        path = ("leaderElection", "resourceName")
        yield Problem(LEASE_FORBIDDEN, path, message, fix, WARNING)


def _is_subject(binding: Mapping[str, Any], reader: CommandLine) -> bool:
    for _, subject in objects(binding.get("subjects")):
        namespaces = (text(subject.get("namespace")), reader.namespace)
        same = namespaces[0] == namespaces[1] or "" in namespaces
        account = ("ServiceAccount", reader.account)
        if same and (subject.get("kind"), subject.get("name")) == account:
            return True
    return False


def _leases_of(role: Mapping[str, Any]) -> set[str]:
    leases: set[str] = set()
    for _, rule in objects(role.get("rules")):
        groups, resources, verbs = (
            set(map(str, entries(rule.get(key)))) for key in ("apiGroups", "resources", "verbs")
        )
        if not groups & {"coordination.k8s.io", "*"} or not resources & {"leases", "*"}:
            continue
        if not verbs & {"update", "*"}:
            continue
        leases |= set(map(str, entries(rule.get("resourceNames")))) or {_ANY}
    return leases


# --- schedulerNames of Pods ----------------------------------------------------------------------

_PODS: Final[tuple[Path, ...]] = (
    ("spec",),
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
)
"""Where objects have the spec of a Pod."""


def check_scheduler_names(
    configs: Sequence[Mapping[str, Any]], items: Sequence[Item]
) -> Iterator[tuple[Item, Problem]]:
    """Warn about Pods whose schedulerName is similar to one that valid configurations serve."""
    served = {name for config in configs for name in scheduler_names(config)}
    for item in items if served else ():
        for path in _PODS:
            name = text(at(item.value, *path, "schedulerName"))
            if not name or name in served or name == DEFAULT_SCHEDULER:
                continue
            hint = did_you_mean(name, served).removeprefix("; ")
            if hint and group_kind(item.value)[1] != "SchedulerProfile":
                message = (
                    f'no profile of these files has the schedulerName "{name}": the Pods of '
                    f"{label_of(item.value)} stay Pending, without an event"
                )
                where = (*path, "schedulerName")
                yield item, Problem(UNKNOWN_SCHEDULER_NAME, where, message, hint, WARNING)

"""Documents that do not fit together: schedulers, their workloads, roles and Pods of one run.

Likewise the documents of one file that kube-scheduler does not read because of others in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from ...base.findings import WARNING, Path, Problem, did_you_mean, listing
from ...base.objects import entries
from ...base.source.reader import Document
from ..language.schema import DEFAULT_SCHEDULER, KIND
from ..language.warnings.configuration import (
    ConfiguredScheduler,
    lease_of,
    scheduler_names,
    warnings_between,
)
from .checks import NEVER_READ, CheckOptions, Item, election_of, has_unknown_election
from .configurations import is_run_by_provider
from .documents.find_documents import FIRST_ONLY, Source, is_read
from .forms.document_fields import at, group_kind, label_of, name_of, namespace_of, objects, text
from .forms.form import CommandLine
from .forms.kubeadm import GROUP as KUBEADM_GROUP
from .known_kinds import is_for_kube_scheduler
from .rights import is_subject

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
            switch = (
                "remove --leader-elect=false, which replaces the value in the file"
                if reader.last("leader-elect") is not None
                else "set leaderElect to true"
            )
            fix = f"{switch}, or set replicas to 1"
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
        if not (is_binding and is_subject(value, reader)):
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
    configured: Sequence[tuple[Item, Mapping[str, Any]]], items: Sequence[Item]
) -> Iterator[tuple[Item, Problem]]:
    """Warn about Pods whose schedulerName is nearly one that valid configurations serve.

    Or the name of the workload that reads one, which is not a schedulerName.
    """
    served = {name for _, config in configured for name in scheduler_names(config)}
    workloads = {
        item.reader.label.rpartition(" ")[2]: (item.reader.label, listing(scheduler_names(config)))
        for item, config in configured
        if item.reader is not None and item.reader.account
    }
    for item in items if served else ():
        for path in _PODS:
            name = text(at(item.value, *path, "schedulerName"))
            if not name or name in served or name == DEFAULT_SCHEDULER:
                continue
            hint = did_you_mean(name, served).removeprefix("; ")
            if name in workloads:
                workload, names = workloads[name]
                hint = f"{workload} has this name, but its profile has another: write {names}"
            if hint and group_kind(item.value)[1] != "SchedulerProfile":
                owner = label_of(item.value)
                waiting = f"{owner} stays" if item.kind == "Pod" else f"the Pods of {owner} stay"
                message = (
                    f'no profile of these files has the schedulerName "{name}": {waiting} '
                    "Pending, without an event"
                )
                where = (*path, "schedulerName")
                yield item, Problem(UNKNOWN_SCHEDULER_NAME, where, message, hint, WARNING)


# --- documents of one file -----------------------------------------------------------------------


def unread_documents(source: Source) -> Iterator[tuple[Item, Problem]]:
    """Yield the documents of a file that kube-scheduler does not read or find, and why.

    kops reads a configuration that follows its Cluster, and kubeadm ignores one in its file.
    """
    items, first, place = source.items, source.first, source.place
    groups = {item.group for item in items}
    if first is None or not items or "kops.k8s.io" in groups or (place and place.is_part):
        return
    text = place.text if place else None
    if KUBEADM_GROUP in groups or (text is not None and text.for_kubeadm):
        yield from ((item, _ignored_by_kubeadm()) for item in items if item.kind == KIND)
    elif is_read(items[0]):
        yield from ((item, _never_read(item)) for item in items[1:] if is_for_kube_scheduler(item))
    else:
        yield from _hidden_configurations(source, first)


def _never_read(item: Item) -> Problem:
    """Return the warning for a document that follows a configuration."""
    message = f"{FIRST_ONLY} and ignores this one"
    fix = "move it to its own file"
    if item.kind == KIND:
        fix += ", or move its profiles to the first document"
    return Problem(NEVER_READ, (), message, fix, WARNING)


def _hidden_configurations(source: Source, first: Document) -> Iterator[tuple[Item, Problem]]:
    """Report the configurations of a file whose first document is none."""
    fix = "move the configuration to a file of its own"
    if first.index:
        what, fix = "empty", "remove everything above the --- that precedes this configuration"
    elif not isinstance(first.root.data, Mapping):
        what = f"not an object (line {_line(source, first)})"
    else:
        kind = first.root.data.get("kind")
        what = f"a {kind}" if kind else "an object without kind"
        what += f" (line {_line(source, first)})"
    for item in source.items:
        if item.kind != KIND:
            continue
        if item.document.is_listed:
            message = "kube-scheduler reads no List and exits with an error"
        else:
            message = (
                f"{FIRST_ONLY}, which is {what}, and exits with an error; this one is document "
                f"{item.document.index + 1}"
            )
        yield item, Problem(NEVER_READ, (), message, fix)


def _line(source: Source, document: Document) -> int:
    """Return the line in the file that users see."""
    position = document.root.position
    return (source.place.in_file(position) if source.place else position).line


def _ignored_by_kubeadm() -> Problem:
    message = (
        "kubeadm ignores a KubeSchedulerConfiguration in its file, and kube-scheduler runs "
        "without it"
    )
    fix = (
        "write it to a file of each control-plane node, and let scheduler.extraArgs name it with "
        "config and extraVolumes mount it; `kubectl scheduler compose --for kubeadm` writes both"
    )
    return Problem(NEVER_READ, (), message, fix, WARNING)

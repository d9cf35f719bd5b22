"""Leader election of kube-schedulers that files start: its settings, and the rights for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ...base.findings import WARNING, Problem
from ...base.go_values import boolean
from ...base.objects import entries, mapping
from ..language.flags import ELECTION_FIELDS
from ..language.warnings.configuration import lease_of
from .checks import Item
from .forms.document_fields import at, name_of, namespace_of, objects, text
from .forms.form import CommandLine

SEVERAL_ACTIVE: Final = "SeveralActive"
LEASE_FORBIDDEN: Final = "LeaseForbidden"


def election_of(config: Mapping[str, Any], reader: CommandLine | None) -> dict[str, Any]:
    """Merge a configuration's leaderElection with the flags of the kube-scheduler that reads it."""
    election = dict(mapping(config.get("leaderElection")))
    for name, field in ELECTION_FIELDS.items():
        argument = reader.last(name) if reader else None
        if argument is None:
            continue
        election[field] = argument.value
        if name == "leader-elect":
            with suppress(ValueError):  # reported as a problem of the flag
                election[field] = boolean(argument.value)
    return election


def has_unknown_election(reader: CommandLine | None) -> bool:
    """Report whether only the cluster knows the value of a flag of leader election."""
    return reader is not None and not reader.unknown.isdisjoint(ELECTION_FIELDS)


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
    """Yield warnings about schedulers whose workload and roles do not fit their leader election.

    Args:
        configured: valid configurations, each with its document.
        items: all documents of the run.
    """
    for item, config in configured:
        reader = item.reader
        if reader is None or not reader.account or has_unknown_election(reader):
            continue
        lease = lease_of(election_of(config, reader))
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

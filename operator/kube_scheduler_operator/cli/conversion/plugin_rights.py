"""`convert --to second`: the rights that custom plugins need beyond those of kube-scheduler.

The account of a SecondaryScheduler has the ClusterRoles system:kube-scheduler and
system:volume-scheduler. Plugins of other projects read kinds of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...base.objects import entries, mapping
from ...config.lint.forms.document_fields import at, name_of, namespace_of, text
from ...config.lint.forms.form import CommandLine
from ...config.migrate.changes import ConversionLog
from ...kube.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES

_RBAC: Final = CLUSTER_ROLES.api_version.partition("/")[0]
_OF_KUBE_SCHEDULER: Final = ("system:kube-scheduler", "system:volume-scheduler")
_NAMED: Final = 10
_BUILT_IN: Final = frozenset(
    {
        "", "apps", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch",
        "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions",
        "networking.k8s.io", "node.k8s.io", "policy", "resource.k8s.io", "scheduling.k8s.io",
        "storage.k8s.io",
    }
)  # fmt: skip
"""Groups of Kubernetes' own kinds, which a rule may name beside others."""


def plugin_rights(
    command: CommandLine,
    documents: Sequence[Any],
    second: Mapping[str, Any],
    log: ConversionLog,
) -> list[dict[str, Any]]:
    """Create a ClusterRole and its binding for the kinds of custom plugins; none without such.

    `command` is of the old scheduler, and `second` is the SecondaryScheduler that replaces it.
    """
    rules: list[dict[str, Any]] = []
    for role in _roles(command, documents, log):
        kept = [*_of_plugins(role, log)]
        if kept:
            kinds = [*dict.fromkeys(kind for rule in kept for kind in _kinds(rule))]
            more = f" and {len(kinds) - _NAMED} more" if len(kinds) > _NAMED else ""
            log.same(
                (),
                f"of ClusterRole {name_of(role)}, its rules for {', '.join(kinds[:_NAMED])}{more} "
                "are kept",
                "the operator grants the rights of kube-scheduler only, and deletes no ClusterRole",
            )
        rules += kept
    if not rules:
        return []
    metadata = {"name": f"{name_of(second)}-plugins"}
    subject = {
        "kind": "ServiceAccount",
        "name": name_of(second),
        "namespace": text(at(second, "spec", "namespace")),
    }
    role_ref = {"apiGroup": _RBAC, "kind": CLUSTER_ROLES.kind, "name": metadata["name"]}
    return [
        {
            "apiVersion": CLUSTER_ROLES.api_version,
            "kind": CLUSTER_ROLES.kind,
            "metadata": dict(metadata),
            "rules": rules,
        },
        {
            "apiVersion": CLUSTER_ROLE_BINDINGS.api_version,
            "kind": CLUSTER_ROLE_BINDINGS.kind,
            "metadata": dict(metadata),
            "roleRef": role_ref,
            "subjects": [subject],
        },
    ]


def _roles(
    command: CommandLine, documents: Sequence[Any], log: ConversionLog
) -> Iterator[Mapping[str, Any]]:
    """Yield the ClusterRoles of the old scheduler's account, without kube-scheduler's own."""
    known = {
        name_of(document): document
        for document in map(mapping, documents)
        if document.get("kind") == CLUSTER_ROLES.kind
    }
    for document in map(mapping, documents):
        name = text(at(document, "roleRef", "name"))
        is_bound = document.get("kind") == CLUSTER_ROLE_BINDINGS.kind and any(
            _is_account(mapping(subject), command) for subject in entries(document.get("subjects"))
        )
        if not is_bound or name in _OF_KUBE_SCHEDULER:
            continue
        if name in known:
            yield known[name]
        else:
            why = "if its plugins need it, bind it to the account of the SecondaryScheduler"
            log.lost((), f"ClusterRole {name} of {command.label} is not among the files", why)


def _is_account(subject: Mapping[str, Any], command: CommandLine) -> bool:
    of = (subject.get("kind"), subject.get("name"), namespace_of({"metadata": subject}))
    return of == ("ServiceAccount", command.account, command.namespace)


def _of_plugins(role: Mapping[str, Any], log: ConversionLog) -> Iterator[dict[str, Any]]:
    for index, rule in enumerate(map(mapping, entries(role.get("rules")))):
        groups = [*map(str, entries(rule.get("apiGroups")))]
        if "*" in groups:
            what = f"rules[{index}] of ClusterRole {name_of(role)} removed"
            log.lost((), what, "it is for every API group; grant what the plugins need")
        elif other := [group for group in groups if group not in _BUILT_IN]:
            yield {**rule, "apiGroups": other}


def _kinds(rule: Mapping[str, Any]) -> Iterator[str]:
    for group in entries(rule.get("apiGroups")):
        for resource in entries(rule.get("resources")):
            if "/" not in str(resource):
                yield f"{resource}.{group}"

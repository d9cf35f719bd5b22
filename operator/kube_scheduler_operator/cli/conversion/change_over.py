"""`convert --to second`: how to change over from the old scheduler, as on the migration pages.

The old scheduler stops before the new one starts, and is deleted once the new one is seen to work:
until then, the way back is one command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ...base.objects import entries, mapping
from ...config.lint.forms.document_fields import name_of
from ...config.lint.forms.form import CommandLine
from ...kube.resource import CLUSTER_ROLE_BINDINGS, SECONDARY_SCHEDULERS

SCALED: Final = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
_BOUND: Final = ("as-kube-scheduler", "as-volume-scheduler")
"""Ends of the names of the ClusterRoleBindings that the operator creates."""


def change_over(
    readers: Iterable[tuple[Any, CommandLine]],
    documents: Sequence[Any],
    results: Iterable[Mapping[str, Any]],
) -> Iterator[str]:
    """Yield what to do with the schedulers whose schedulerNames a SecondaryScheduler gets.

    `readers` are the converted documents, each with the scheduler that reads it.
    """
    second = [obj for obj in results if obj["kind"] == SECONDARY_SCHEDULERS.kind]
    served = {profile["schedulerName"] for obj in second for profile in obj["spec"]["profiles"]}
    old = {
        command.label: command
        for document, command in readers
        for profile in entries(mapping(document).get("profiles"))
        if mapping(profile).get("schedulerName") in served
    }
    for label, command in sorted(old.items()):
        yield (
            f"{_stop(command)} before you apply the result, because both would schedule the same "
            f"Pods; delete {label} only once the SecondaryScheduler is Available and Pods are "
            "placed as you expect"
        )
    taken = {f"{name_of(obj)}-{end}" for obj in second for end in _BOUND}
    for document in map(mapping, documents):
        name = name_of(document)
        if old and document.get("kind") == CLUSTER_ROLE_BINDINGS.kind and name in taken:
            yield (
                f"delete ClusterRoleBinding {name} before you apply the result (kubectl delete "
                f"clusterrolebinding {name}), because the operator creates one of that name"
            )


def _stop(command: CommandLine) -> str:
    kind, _, name = command.label.partition(" ")
    if kind not in SCALED:
        return f"stop {command.label}, and keep its manifest for the way back,"
    namespace = f"-n {command.namespace} " if command.namespace else ""
    how = f"kubectl {namespace}scale {kind.lower()} {name} --replicas=0"
    return f"scale {command.label} to 0 replicas ({how})"

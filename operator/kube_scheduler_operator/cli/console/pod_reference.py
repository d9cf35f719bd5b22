"""How a user names a pod: by itself, or by the workload that it belongs to."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...kube.resource import DAEMON_SETS, DEPLOYMENTS, JOBS, PODS, ObjectRef, Resource
from ...simulate.kinds import CONTROLLERS, POD_GROUPS, REPLICA_SETS, STATEFUL_SETS
from .errors import UsageError

_WORKLOADS: Final[Mapping[str, Resource]] = {
    word: resource
    for resource, *words in (
        (DEPLOYMENTS, "deployment", "deployments", "deploy"),
        (REPLICA_SETS, "replicaset", "replicasets", "rs"),
        (STATEFUL_SETS, "statefulset", "statefulsets", "sts"),
        (DAEMON_SETS, "daemonset", "daemonsets", "ds"),
        (JOBS, "job", "jobs"),
        (CONTROLLERS, "replicationcontroller", "replicationcontrollers", "rc"),
        (POD_GROUPS, "podgroup", "podgroups"),
    )
    for word in words
}
"""Kinds by the words that kubectl accepts for them."""
KIND_WORDS: Final = tuple(
    dict.fromkeys(kind.kind.lower() for kind in _WORKLOADS.values() if kind is not POD_GROUPS)
)
"""One word for each of them but PodGroups, which few clusters have."""
_PODS: Final = ("pod", "pods", "po")
_GROUPS: Final = ("workload", "workloads", "compositepodgroup", "compositepodgroups")
"""Kinds with groups of Pods that no question is about; none is a namespace in practice."""


@dataclass(frozen=True, slots=True)
class PodReference:
    """A pod, or a workload that stands for one of its pods."""

    namespace: str  # of the pod, or of the workload
    name: str
    workload: Resource | None = None  # the kind of the workload; None: it is a pod

    @property
    def names_group(self) -> bool:
        """Whether it is a PodGroup, of which all pods matter."""
        return self.workload is POD_GROUPS

    @property
    def ref(self) -> ObjectRef:
        return (self.workload or PODS).named(self.name, self.namespace)

    @property
    def title(self) -> str:
        return f"{self.workload.kind if self.workload else 'pod'} {self.namespace}/{self.name}"


def add_pod_flags(parser: argparse.ArgumentParser) -> None:
    """Add `POD` and `-n`; `pod_reference` reads them."""
    parser.add_argument(
        "pod",
        metavar="POD",
        help="name of the pod, or NAMESPACE/NAME, or KIND/NAME of a workload, such as deploy/web: "
        "its oldest pod that waits, or else the oldest that runs; or podgroup/NAME: all its pods",
    )
    parser.add_argument("-n", "--namespace", help="namespace of the pod (default: default)")


def workload_kind(word: str) -> Resource | None:
    """Return the kind of workloads that a word names; None if it names none."""
    return _WORKLOADS.get(word.lower())


def pod_reference(args: argparse.Namespace) -> PodReference:
    """Read POD and `-n`; a namespace in POD takes precedence.

    Raises:
        UsageError: it names neither a pod nor a kind that has pods.
    """
    first, _, name = args.pod.rpartition("/")
    namespace = args.namespace or "default"
    if first.lower() in _PODS:
        return PodReference(namespace, name)
    if workload := workload_kind(first):
        return PodReference(namespace, name, workload)
    if first.lower() in _GROUPS:
        raise UsageError(
            f'"{args.pod}": a group of Pods is named podgroup/NAME, also one of a Workload'
        )
    if "/" in first:
        kind, _, space = first.partition("/")
        known = kind.lower() in _PODS or workload_kind(kind) is not None
        if known and "/" not in space:
            raise UsageError(f'"{args.pod}" names a namespace: write {kind}/{name} -n {space}')
        raise UsageError(
            f'"{args.pod}" is not POD, NAMESPACE/POD or KIND/NAME; KIND is one of pod, '
            f"{', '.join(KIND_WORDS)} and podgroup"
        )
    return PodReference(first or namespace, name)

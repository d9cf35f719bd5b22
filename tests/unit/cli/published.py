"""Lets the commands see the cluster of the operator's tests: one cluster for both."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from kube_scheduler_operator.base.times import rfc3339_micro, timestamp
from kube_scheduler_operator.kube.resource import DEPLOYMENTS, LEASES, PODS
from kube_scheduler_operator.simulate.kinds import REPLICA_SETS

from ...builders import Object
from ...imitation.apiserver import clone
from ...imitation.cluster import InstantCluster
from .conftest import WHOLE_TEST, Cluster

RENEWED: Final = timedelta(seconds=15)
"""The age of a Lease that its holder renews."""


def publish(operators: InstantCluster, commands: Cluster) -> None:
    """Replace the objects of the API that the commands talk to.

    Leases keep the age that they have for the operator, whose clock is another one; those that are
    renewed are so during the whole test. The imitated controller of Deployments makes Pods without
    ReplicaSets, which are added.
    """
    commands.api.objects.clear()
    for ref, stored in list(operators.server.objects.items()):
        obj = clone(stored)
        commands.api.served.add(ref.resource)
        if ref.resource == LEASES:
            _set_age(obj, operators.now)
        if ref.resource == PODS:
            _own_by_replica_set(obj, commands)
        commands.put(ref.resource, obj)


def _set_age(lease: Object, now: datetime) -> None:
    renewed = timestamp(lease["spec"].get("renewTime"))
    if renewed is not None:
        age = now - renewed
        if age < RENEWED:
            age = timedelta(seconds=-WHOLE_TEST)
        lease["spec"]["renewTime"] = rfc3339_micro(datetime.now(UTC) - age)


def _own_by_replica_set(pod: Object, commands: Cluster) -> None:
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner["kind"] == DEPLOYMENTS.kind:
            uid, namespace = f"replicas-of-{owner['uid']}", pod["metadata"]["namespace"]
            made = {
                "metadata": {
                    "name": owner["name"],
                    "namespace": namespace,
                    "uid": uid,
                    "labels": pod["metadata"].get("labels", {}),
                    "ownerReferences": [{**owner, "controller": True}],
                },
                "spec": {},
            }
            commands.api.served.add(REPLICA_SETS)
            commands.put(REPLICA_SETS, made)
            owner.update(kind=REPLICA_SETS.kind, uid=uid, controller=True)

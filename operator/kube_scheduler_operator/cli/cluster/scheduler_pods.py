"""The Pods of a SecondaryScheduler, by their owners.

A label proves nothing. Owners exclude the Pods of other namespaces, and those that other programs
made in this one. Who may create Pods in the namespace of a SecondaryScheduler is trusted as that
scheduler, because such a Pod may have its account.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...base import names
from ...base.objects import Object as AnyObject
from ...base.objects import is_controlled_by
from ...kube.api import Api, Object
from ...kube.resource import DEPLOYMENTS, PODS, ObjectRef
from ...simulate.kinds import REPLICA_SETS
from .operator_objects import find_object


async def list_scheduler_pods(api: Api, scheduler: AnyObject) -> list[Object]:
    """Return the Pods that the SecondaryScheduler's Deployment made.

    Raises:
        KubeError: they cannot be read.
    """
    name, namespace = str(scheduler["metadata"]["name"]), str(scheduler["spec"]["namespace"])
    deployment = await find_object(api, ObjectRef(DEPLOYMENTS, namespace, name))
    if deployment is None or not is_controlled_by(deployment, _uid(scheduler)):
        return []
    selector = f"{names.SECONDARY_LABEL}={name}"
    replica_sets = await api.list(REPLICA_SETS, namespace, label_selector=selector)
    pods = await api.list(PODS, namespace, label_selector=selector)
    own = {_uid(obj) for obj in _controlled(replica_sets.items, {_uid(deployment)})}
    return _controlled(pods.items, own)


def _controlled(objects: Iterable[Object], uids: set[str]) -> list[Object]:
    return [obj for obj in objects if any(is_controlled_by(obj, uid) for uid in uids)]


def _uid(obj: AnyObject) -> str:
    return str(obj["metadata"].get("uid") or "")

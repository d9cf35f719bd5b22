"""Replaces an operator that an earlier release installed under other names.

Two Deployments with a Lease each would be two leaders. Once the operator holds its own Lease, it
deletes the former Deployment, waits for the former Lease as any candidate does, and claims it
without an end: a former operator that is started again stays a standby.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from ...base import names
from ...base.klog import kv
from ...base.objects import label
from ...base.platform import Platform
from ...kube.api import Api
from ...kube.errors import Conflict, KubeError, NotFound
from ...kube.events import EventRecorder
from ...kube.lease import ElectionLease, LeaderElector, Timings
from ...kube.resource import DEPLOYMENTS, ObjectRef

log = logging.getLogger(__name__)

WITHOUT_END: Final = 2**31 - 1
"""`leaseDurationSeconds` of the former Lease: the largest value of the field, 68 years."""

_RETRY_SECONDS: Final = 2.0


async def replace_former_operator(api: Api, platform: Platform, recorder: EventRecorder) -> None:
    """Return once no operator with the former names leads or can lead; API errors are retried.

    The caller must hold the Lease with the current name. Does nothing on a platform whose names
    never changed.
    """
    former = platform.former_operator
    if former is None:
        return
    namespace = platform.operator_namespace
    deployment = ObjectRef(DEPLOYMENTS, namespace, former.deployment)
    while True:
        if await _delete(api, deployment, recorder):
            break
        await asyncio.sleep(_RETRY_SECONDS)
    # Its Pods release the Lease when they end; the Lease of a Pod whose node is gone expires.
    claim = LeaderElector(
        api,
        ElectionLease(namespace, former.lease, names.OWN_LABELS),
        platform.operator.deployment,
        timings=Timings(lease_duration=WITHOUT_END),
    )
    await claim.acquire()


async def _delete(api: Api, ref: ObjectRef, recorder: EventRecorder) -> bool:
    """Delete the Deployment of an earlier release; return whether no other attempt is needed."""
    try:
        deployment = await api.get(ref)
        if label(deployment, names.PART_OF_LABEL) != names.PROGRAM:
            log.warning("Kept a Deployment that is not the operator's", extra=kv(object=str(ref)))
            return True
        await api.delete(ref, uid=deployment["metadata"]["uid"])
    except NotFound:
        return True
    except Conflict:
        return False
    except KubeError as error:
        log.warning("Cannot delete the operator of an earlier release, will retry: %s", error)
        return False
    message = f"Deleted {ref} of an earlier release: this Deployment replaces it"
    recorder.event("Normal", "FormerOperatorDeleted", message)
    log.info("Deleted the operator of an earlier release", extra=kv(object=str(ref)))
    return True

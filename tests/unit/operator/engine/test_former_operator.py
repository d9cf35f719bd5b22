"""Of an operator with today's names and one with former names, only one can ever lead."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.kube.api import Body
from kube_scheduler_operator.kube.errors import (
    AlreadyExists,
    ApiRequest,
    Conflict,
    Forbidden,
    NotFound,
    Unavailable,
)
from kube_scheduler_operator.kube.lease import ElectionLease, LeaderElector, Timings
from kube_scheduler_operator.kube.resource import DEPLOYMENTS, ObjectRef, Resource
from kube_scheduler_operator.operator.engine.former_operator import (
    WITHOUT_END,
    replace_former_operator,
)

FORMER = ObjectRef(DEPLOYMENTS, OPENSHIFT.operator_namespace, "kube-scheduler-operator")
LEASE = "kube-scheduler-operator-lock"
REQUEST = ApiRequest("x", "/x")


class Cluster:
    """Objects in memory; the Pods of a deleted Deployment end after `ending` seconds."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.errors: list[Exception] = []
        self.deleted: list[tuple[str, str | None]] = []
        self.version = 0

    def put(self, ref: ObjectRef, obj: Body) -> dict[str, Any]:
        self.version += 1
        stored = copy.deepcopy(dict(obj))
        stored["metadata"]["resourceVersion"] = str(self.version)
        self.objects[str(ref)] = stored
        return copy.deepcopy(stored)

    async def get(self, ref: ObjectRef) -> dict[str, Any]:
        if self.errors:
            raise self.errors.pop(0)
        if str(ref) not in self.objects:
            raise NotFound(REQUEST, status=404)
        return copy.deepcopy(self.objects[str(ref)])

    async def create(self, resource: Resource, obj: Body, **_: Any) -> dict[str, Any]:
        if str(resource.ref(obj)) in self.objects:
            raise AlreadyExists(REQUEST, status=409)
        return self.put(resource.ref(obj), obj)

    async def replace(self, resource: Resource, obj: Body, **_: Any) -> dict[str, Any]:
        found = await self.get(resource.ref(obj))
        if found["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            raise Conflict(REQUEST, status=409)
        return self.put(resource.ref(obj), obj)

    async def delete(self, ref: ObjectRef, *, uid: str | None = None, **_: Any) -> None:
        if self.errors:
            raise self.errors.pop(0)
        if str(ref) not in self.objects:
            raise NotFound(REQUEST, status=404)
        del self.objects[str(ref)]
        self.deleted.append((str(ref), uid))

    def deploy(self, part_of: str = "kube-scheduler-operator") -> None:
        labels = {"app.kubernetes.io/part-of": part_of}
        metadata = {
            "name": FORMER.name,
            "namespace": FORMER.namespace,
            "uid": "u",
            "labels": labels,
        }
        self.put(FORMER, {"metadata": metadata})

    @property
    def lease(self) -> dict[str, Any]:
        (spec,) = (obj["spec"] for obj in self.objects.values() if "spec" in obj)
        return dict(spec)


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def event(self, _kind: str, reason: str, message: str) -> None:
        self.events.append((reason, message))


def replace(cluster: Cluster) -> tuple[asyncio.Task[None], Recorder]:
    recorder: Any = Recorder()
    api: Any = cluster
    work = replace_former_operator(api, OPENSHIFT, recorder)
    return asyncio.create_task(work), recorder


def former(cluster: Cluster) -> LeaderElector:
    """An operator of an earlier release."""
    api: Any = cluster
    return LeaderElector(api, ElectionLease(OPENSHIFT.operator_namespace, LEASE), "former-pod")


def test_its_deployment_is_deleted_and_its_lease_claimed(virtual_time: asyncio.Runner) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.deploy()
        work, recorder = replace(cluster)
        await work
        assert cluster.deleted == [(str(FORMER), "u")]
        assert cluster.lease["holderIdentity"] == "openshift-kube-scheduler-operator"
        assert cluster.lease["leaseDurationSeconds"] == WITHOUT_END == 2**31 - 1
        ((reason, message),) = recorder.events
        assert reason == "FormerOperatorDeleted"
        assert str(FORMER) in message
        again, recorder = replace(cluster)
        await again
        assert (len(cluster.deleted), recorder.events) == (1, [])

    virtual_time.run(scenario())


@pytest.mark.parametrize("orderly", [True, False])
def test_it_is_waited_for_until_it_no_longer_leads(
    virtual_time: asyncio.Runner, orderly: bool
) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.deploy()
        old = former(cluster)
        await old.acquire()
        holding = asyncio.create_task(old.hold())
        work, _ = replace(cluster)
        await asyncio.sleep(60)
        assert cluster.deleted
        assert not work.done(), "its process has not ended"
        holding.cancel()
        if orderly:
            await old.release()
        began = asyncio.get_running_loop().time()
        await work
        assert not old.is_leader
        timings = Timings()
        attempt = timings.retry_period * (1 + timings.jitter)  # the longest wait between attempts
        # After a release, the next attempt succeeds. Otherwise one attempt observes the last
        # renewal, lease_duration begins, and the first attempt after it succeeds.
        limit = attempt if orderly else attempt + timings.lease_duration + attempt
        assert asyncio.get_running_loop().time() - began <= limit

    virtual_time.run(scenario())


def test_one_that_is_started_again_never_leads(virtual_time: asyncio.Runner) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        work, _ = replace(cluster)
        await work
        waiting = asyncio.create_task(former(cluster).acquire())
        await asyncio.sleep(86400)
        assert not waiting.done()
        waiting.cancel()

    virtual_time.run(scenario())


def test_errors_of_the_api_are_retried(virtual_time: asyncio.Runner) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.deploy()
        cluster.errors = [
            Unavailable(REQUEST, status=503),
            Forbidden(REQUEST, status=403),
            Conflict(REQUEST, status=409),
        ]
        await replace(cluster)[0]
        assert cluster.deleted == [(str(FORMER), "u")]

    virtual_time.run(scenario())


def test_a_deployment_of_another_owner_stays(virtual_time: asyncio.Runner) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.deploy("something-else")
        await replace(cluster)[0]
        assert cluster.deleted == []

    virtual_time.run(scenario())


def test_nothing_is_done_where_the_names_never_changed(virtual_time: asyncio.Runner) -> None:
    async def scenario() -> None:
        api: Any = None
        recorder: Any = None
        await replace_former_operator(api, KUBEADM, recorder)

    virtual_time.run(scenario())

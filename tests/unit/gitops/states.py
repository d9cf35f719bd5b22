"""Objects of every kind in every state, as the operator reports them in imitated clusters.

The fixtures of Argo CD's health checks are written from them: what a tool shows is tried with what
the operator writes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from typing import Any, Final

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.objects import label
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
    PODS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SECONDARY_SCHEDULERS,
    ObjectRef,
    Resource,
)
from kube_scheduler_operator.operator.model.plan import PlacementQuestion
from kube_scheduler_operator.operator.model.snapshot import PlacementAnswer, Snapshot

from ...expect import condition_of
from ...simulation.scheduler import REFUSAL, Behavior
from ...simulation.world import World
from ..fake_cluster import FakeCluster
from ..operator.loadpolicy.world import World as LoadWorld
from ..operator.secondary.world import World as SecondaryWorld
from ..operator.secondary.world import crashing, refusing

Object = dict[str, Any]
States = dict[str, Object]

OWN: Final = (
    SCHEDULER_PROFILES,
    SCHEDULER_EXTENDERS,
    SECONDARY_SCHEDULERS,
    LOAD_POLICIES,
    OPERATOR_SETTINGS,
)
"""The kinds of our group."""
KINDS: Final = (*OWN, KUBE_SCHEDULERS)

GOOD: Final = {"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 9}]}}}
BETTER: Final = {"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 8}]}}}
BAD: Final = {"plugins": {"score": {"enabled": [{"name": "ImageLocalty"}]}}}
URL: Final = {"url": "http://10.0.0.1/x", "verbs": {"filter": "filter"}}


def _agent(utilization: int) -> Object:
    arguments = {"utilization": utilization}
    return {"policies": [{"name": "safe-overload", "arguments": arguments}]}


AGENT: Final = {"agent": _agent(80)}
REFUSED, FAILING = 41, 42
SCRIPT: Final = {REFUSED: Behavior(refused=REFUSAL), FAILING: Behavior(ready_after=None)}
LOST: Final = "12 running pods could no longer be placed: node(s) had untolerated taint(s)"
TIME: Final = "2026-01-01T00:00:00Z"


@cache
def states(resource: Resource) -> States:
    """The objects of a kind, by the name of their state."""
    made = dict(_MAKERS[resource]())
    first = next(iter(made.values()))
    if resource in OWN:
        unseen = {"observedGeneration": -1}
        made["unseen"] = {**first, "status": unseen}
    leaving = copy.deepcopy(first)
    leaving["metadata"] |= {"deletionTimestamp": TIME, "finalizers": ["example.com/backup"]}
    made["being-deleted"] = leaving
    return {name: _reduced(resource, obj) for name, obj in made.items()}


def _reduced(resource: Resource, obj: Object) -> Object:
    """The parts of an object by which tools judge it; times do not count."""
    metadata = {
        key: obj["metadata"][key]
        for key in ("name", "generation", "annotations", "deletionTimestamp", "finalizers")
        if obj["metadata"].get(key)
    }
    status = copy.deepcopy(
        {k: v for k, v in obj["status"].items() if k in ("observedGeneration", "conditions")}
    )
    for condition in status.get("conditions", ()):
        condition["lastTransitionTime"] = TIME
    spec = {k: v for k, v in obj["spec"].items() if k != "observedConfig"}
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**head, "metadata": metadata, "spec": spec, "status": status}


# --- the control plane's scheduler ---------------------------------------------------------------


def _world(nodes: int = 3) -> World:
    world = World(nodes=nodes, script=SCRIPT)
    world.settle(90)
    return world


def _find(world: World, resource: Resource, name: str) -> Object:
    return copy.deepcopy(dict(world.server.get(ObjectRef(resource, None, name))))


def _put_settings(world: World, **spec: Any) -> None:
    world.server.put("user", OPERATOR_SETTINGS, names.CLUSTER, spec)


def _until(world: World, get: Callable[[], Object], reason: str, type_: str = names.READY) -> None:
    world.run_until(lambda: condition_of(get(), type_)[1] == reason, 400, reason)


def _settle(world: World) -> None:
    world.run(2.0)
    world.settle(300)


def _answer(question: PlacementQuestion, *, error: str = "") -> PlacementAnswer:
    return PlacementAnswer(question.identity, not error, "" if error else LOST, error=error)


def _profiles() -> Iterator[tuple[str, Object]]:
    world = _world()
    get = partial(_find, world, SCHEDULER_PROFILES, "team")
    world.offer("team", **GOOD)
    _settle(world)
    yield "ready", get()
    world.offer("team", **BETTER)
    _until(world, get, "RollingOut")
    yield "rolling-out", get()
    _settle(world)
    world.operator.kill()
    world.offer("team", **GOOD)
    yield "edited", get()
    world.operator.start()
    _settle(world)
    world.offer("team", **BAD)
    _until(world, get, "LastAcceptedInUse")
    yield "refused-last-accepted-in-use", get()
    world.offer("other", **BAD)
    world.run(5.0)
    yield "refused-not-in-use", _find(world, SCHEDULER_PROFILES, "other")
    world.offer("team", **BETTER)
    world.tune(REFUSED)
    _until(world, get, "RevisionRefused")
    yield "in-a-refused-revision", get()
    world.tune(FAILING)
    _until(world, get, "RevisionFailed")
    yield "in-a-failed-revision", get()
    world.tune(None)
    _settle(world)
    world.spec(managementState="Unmanaged")
    _until(world, get, "Unmanaged")
    yield "unmanaged", get()
    world.spec(managementState="Removed")
    _until(world, get, "Removed")
    yield "removed", get()
    yield from _other_profiles()


def _other_profiles() -> Iterator[tuple[str, Object]]:
    world = _gated()
    get = partial(_find, world, SCHEDULER_PROFILES, "team")
    world.operator.simulate = lambda _: None
    world.offer("team", **BETTER)
    _until(world, get, "Simulating")
    yield "simulating", get()
    world.operator.simulate = _answer
    world.tune(10)
    _until(world, get, "Held")
    yield "held", get()

    cluster = FakeCluster()
    cluster.secondary("batch")
    cluster.profile("team", "batch")
    cluster.settle()
    yield "scheduler-not-available", copy.deepcopy(cluster.get(SCHEDULER_PROFILES, "team"))
    cluster = FakeCluster()
    cluster.profile("team", percentageOfNodesToScore=10)
    cluster.settle()
    words = "profiles[1].percentageOfNodesToScore: Invalid value: 10: the words of kube-scheduler"
    marks = {names.OUTCOME_ANNOTATION: "refused", names.OUTCOME_MESSAGE_ANNOTATION: words}
    namespace = cluster.platform.target_namespace
    cluster.change(CONFIG_MAPS, "revision-status-1", namespace, annotations=marks)
    cluster.settle()
    yield "refused-by-kube-scheduler", copy.deepcopy(cluster.get(SCHEDULER_PROFILES, "team"))


def _gated() -> World:
    world = _world(1)
    world.offer("team", **GOOD)
    _settle(world)
    _put_settings(world, placementCheck={"mode": "Gate"})
    world.run(3.0)
    world.settle(30)
    return world


def _settings() -> Iterator[tuple[str, Object]]:
    world = _world()
    get = partial(_find, world, OPERATOR_SETTINGS, names.CLUSTER)
    _put_settings(world, pods={"priorityClassName": "system-node-critical"})
    _settle(world)
    yield "ready", get()
    _put_settings(world, pods={"resources": {"requests": {"cpu": "200m"}}})
    _until(world, get, "RollingOut")
    yield "rolling-out", get()
    _settle(world)
    _put_settings(world, pods={"resources": {"requests": {"cpu": "many"}}})
    _until(world, get, "LastAcceptedInUse")
    yield "refused-last-accepted-in-use", get()
    _put_settings(world, pods={"resources": {"requests": {"cpu": "200m"}}})
    _until(world, get, "AsExpected")
    world.spec(managementState="Unmanaged")
    _until(world, get, "Unmanaged")
    yield "unmanaged", get()
    world.spec(managementState="Removed")
    _until(world, get, "Removed")
    yield "removed", get()
    world = _world(1)
    get = partial(_find, world, OPERATOR_SETTINGS, names.CLUSTER)
    _put_settings(world, pods={"resources": {"requests": {"cpu": "many"}}})
    _until(world, get, "NotInUse")
    yield "refused-not-in-use", get()


def _kubescheduler() -> Iterator[tuple[str, Object]]:
    world = World(nodes=3, script=SCRIPT, start=False)
    get = partial(_find, world, KUBE_SCHEDULERS, names.CLUSTER)
    world.operator.start()
    world.settle(90)
    yield "healthy", get()
    world.profile("HighNodeUtilization")
    _until(world, get, "RollingOut", names.NODE_INSTALLER_PROGRESSING)
    yield "rolling-out", get()
    _settle(world)
    world.tune(REFUSED)
    _until(world, get, "ConfigurationRefused", names.PREFLIGHT_DEGRADED)
    yield "refused", get()
    world.tune(FAILING)
    _until(world, get, "RevisionFailed", names.NODE_INSTALLER_DEGRADED)
    yield "failed", get()
    world.tune(None)
    _settle(world)
    world.operator.kill()
    world.tune(10)
    yield "edited", get()
    world.operator.start()
    _settle(world)
    world.spec(managementState="Unmanaged")
    world.run(5.0)
    yield "unmanaged", get()
    world = _gated()
    get = partial(_find, world, KUBE_SCHEDULERS, names.CLUSTER)
    world.operator.simulate = _answer
    world.tune(10)
    _until(world, get, "Held", names.PLACEMENT_CHECK_PROGRESSING)
    yield "held", get()


# --- the other schedulers ------------------------------------------------------------------------


class _Renewing(FakeCluster):
    """A Pod of every SecondaryScheduler leads."""

    def snapshot(self) -> Snapshot:
        made = super().snapshot()
        leases, seen = {}, {}
        for pod in self.list(PODS):
            name, namespace = label(pod, names.SECONDARY_LABEL), pod["metadata"]["namespace"]
            holder = {"holderIdentity": f"{pod['metadata']['name']}_x", "leaseDurationSeconds": 15}
            leases[namespace, name] = {"metadata": {"name": name}, "spec": holder}
            seen[namespace, name] = made.now
        return replace(made, secondaries=replace(made.secondaries, leases=leases, leases_seen=seen))


def _secondaries() -> Iterator[tuple[str, Object]]:
    world = SecondaryWorld()
    get = partial(world.get, SECONDARY_SCHEDULERS)
    world.installed()
    yield "ready", copy.deepcopy(get())
    world.put(logLevel="Debug")
    world.run()
    yield "rolling-out", copy.deepcopy(get())
    bad = world.running()
    world.pod(bad, 1, **refusing("the words of kube-scheduler"))
    world.run()
    yield "refused-by-kube-scheduler", copy.deepcopy(get())
    world.put(profiles=[{"schedulerName": "my-scheduler", **BAD}])
    world.run()
    yield "refused", copy.deepcopy(get())
    world = SecondaryWorld()
    get = partial(world.get, SECONDARY_SCHEDULERS)
    world.put()
    world.run()
    yield "starting", copy.deepcopy(get())
    world.cluster.clock.run(600.0)
    end = world.cluster.now - timedelta(seconds=5)
    world.pod(world.running(), **crashing("panic", 5, end))
    world.run()
    yield "failing", copy.deepcopy(get())
    world.put(namespace="not-allowed")
    world.run()
    yield "namespace-not-allowed", copy.deepcopy(get())
    cluster = _gated_secondary()
    cluster.secondary("batch", config={"percentageOfNodesToScore": 7})
    cluster.settle()
    yield "simulating", copy.deepcopy(cluster.get(SECONDARY_SCHEDULERS, "batch"))
    cluster.simulate = _answer
    cluster.settle()
    yield "held", copy.deepcopy(cluster.get(SECONDARY_SCHEDULERS, "batch"))


def _gated_secondary() -> FakeCluster:
    cluster = _Renewing()
    cluster.put(OPERATOR_SETTINGS, names.CLUSTER, placementCheck={"mode": "Gate"})
    cluster.secondary("batch", config={"percentageOfNodesToScore": 50})
    cluster.settle()
    return cluster


def _extenders() -> Iterator[tuple[str, Object]]:
    cluster = _Renewing()
    cluster.secondary("batch")
    cluster.extender("safe", scheduler="batch", **AGENT)
    cluster.extender("other", scheduler="batch", **URL)
    cluster.settle()
    get = partial(cluster.get, SCHEDULER_EXTENDERS)
    yield "ready", copy.deepcopy(get("safe"))
    yield "ready-url", copy.deepcopy(get("other"))
    cluster.extender("other", scheduler="batch", **{**URL, "verbs": {}})
    cluster.settle()
    yield "refused-last-accepted-in-use", copy.deepcopy(get("other"))
    cluster.extender("new", scheduler="batch", **{**URL, "verbs": {}})
    cluster.settle()
    yield "refused-not-in-use", copy.deepcopy(get("new"))
    cluster.agents_ready = False
    cluster.extender("agent", **AGENT)
    cluster.settle()
    yield "agents-starting", copy.deepcopy(get("agent"))
    cluster.keep(PODS, _failing_agent(cluster, "agent"))
    cluster.settle()
    yield "agents-failing", copy.deepcopy(get("agent"))
    cluster.put(KUBE_SCHEDULERS, names.CLUSTER, managementState="Unmanaged")
    cluster.settle()
    yield "unmanaged", copy.deepcopy(get("agent"))
    yield from _waiting(SCHEDULER_EXTENDERS, "safe", agent=_agent(1))


def _waiting(resource: Resource, name: str, **spec: Any) -> Iterator[tuple[str, Object]]:
    """An edit of what a called agent decides by, which waits for the check of placements."""
    cluster = FakeCluster()
    cluster.settle()
    cluster.extender("safe", **AGENT)
    cluster.put(LOAD_POLICIES, "default")
    cluster.settle()
    cluster.put(OPERATOR_SETTINGS, names.CLUSTER, placementCheck={"mode": "Gate"})
    cluster.settle()
    cluster.put(resource, name, **spec)
    cluster.settle()
    yield "simulating", copy.deepcopy(cluster.get(resource, name))
    cluster.simulate = _answer
    cluster.settle()
    yield "held", copy.deepcopy(cluster.get(resource, name))


def _failing_agent(cluster: FakeCluster, name: str) -> Object:
    metadata = {
        "name": f"extender-{name}-x",
        "namespace": cluster.platform.target_namespace,
        "labels": {"app": names.EXTENDER, names.EXTENDER_LABEL: name},
        "creationTimestamp": TIME,
    }
    status = crashing("port 5401 is taken", 5, cluster.now, f"extender-{name}")
    return {"metadata": metadata, "spec": {"containers": []}, "status": status}


def _load_policies() -> Iterator[tuple[str, Object]]:
    world = LoadWorld()

    def get(name: str = "default") -> Object:
        return copy.deepcopy(dict(world.one(LOAD_POLICIES, name)))

    world.put()
    world.run()
    starting = get()
    world.come_up()
    world.cycle()
    world.run()
    yield "ready", get()
    yield "starting", starting
    world.cycle(known=2, stale=["node-c"], staleCount=1)
    world.run()
    yield "ready-without-one-node", get()
    world.cycle()
    world.put(write=["crane"])
    world.run()
    yield "rolling-out", get()
    world.put("younger")
    world.run()
    yield "another-policy", get("younger")
    world.put(filter={"limits": [{"metric": "no"}]})
    world.run()
    yield "refused-last-accepted-in-use", get()
    world.put(write=["crane"])
    world.cluster.clock.run(4000.0)
    world.run()
    yield "no-cycle", get()
    other = LoadWorld()
    other.put(filter={"limits": [{"metric": "no"}]})
    other.run()
    yield "refused-not-in-use", copy.deepcopy(dict(other.one(LOAD_POLICIES, "default")))
    yield from _waiting(LOAD_POLICIES, "default", write=["crane"])


_MAKERS: Final[dict[Resource, Callable[[], Iterator[tuple[str, Object]]]]] = {
    SCHEDULER_PROFILES: _profiles,
    SCHEDULER_EXTENDERS: _extenders,
    SECONDARY_SCHEDULERS: _secondaries,
    LOAD_POLICIES: _load_policies,
    OPERATOR_SETTINGS: _settings,
    KUBE_SCHEDULERS: _kubescheduler,
}

"""Generated worlds with what other programs than kube-scheduler decide about a pod.

Devices and their taints, resizes of pods, and admission: LimitRanges, ResourceQuotas,
RuntimeClasses and a default PriorityClass.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kube_scheduler_operator.base.times import rfc3339

from .simulated_worlds import GPU, NAMESPACES, PRIORITIES, GeneratedWorld, draw_pod, generate
from .world_devices import Devices, devices, hold, pool_of, want

Object = dict[str, Any]
_STARTED: Final = datetime(2026, 1, 1, tzinfo=UTC)
_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
_RUNTIMES: Final = "/apis/node.k8s.io/v1/runtimeclasses"
_BUILT_IN: Final = "system-cluster-critical"


@dataclass(frozen=True, slots=True)
class Resize:
    """What is asked of the resize of a pod, and what its kubelet reports."""

    namespace: str
    pod: str
    requests: Object  # of its first container
    status: Object  # before the resize was requested


@dataclass
class FurnishedWorld(GeneratedWorld):
    """A generated world, and what is made in it after its pods run."""

    limited: str = ""  # the namespace with LimitRanges and ResourceQuotas
    bounds: list[tuple[str, Object]] = field(default_factory=list)  # of this namespace
    devices: Devices = field(default_factory=Devices)
    started: list[tuple[str, Object]] = field(default_factory=list)  # (path of a pod, its status)
    resizes: list[Resize] = field(default_factory=list)
    default_class: str = ""  # the default PriorityClass; empty: no class is the default


def furnish(seed: int) -> FurnishedWorld:
    """The world of this seed."""
    chance = random.Random(f"furnished world {seed}")
    prefix = f"w{seed}"
    world = FurnishedWorld(**vars(generate(seed)), limited=f"{prefix}-limited")
    for pod in (*world.running, *world.waiting):
        uses_objects = {"volumes", "resourceClaims"} & pod["spec"].keys()
        if not uses_objects and chance.random() < 0.5:
            pod["metadata"]["namespace"] = world.limited
    _classes(chance, world, prefix)
    _limits(chance, world, prefix)
    nodes = [node["metadata"]["name"] for node in world.nodes]
    world.devices = devices(chance, prefix, nodes)
    _hold(chance, world, prefix)
    world.objects += world.devices.objects
    for number, pod in enumerate(world.running):
        _start(chance, world, pod, number)
    for number in range(chance.randint(3, 5)):
        pod = draw_pod(chance, f"{prefix}-d{number}")
        pod["metadata"]["namespace"] = NAMESPACES[0]
        pod["spec"].pop("schedulingGates", None)
        want(chance, pod, world.devices)
        world.waiting.append(pod)
    return world


# --- admission ------------------------------------------------------------------------------------


def _classes(chance: random.Random, world: FurnishedWorld, prefix: str) -> None:
    """Draw a RuntimeClass, a default PriorityClass, and pods that have them."""
    runtime = f"{prefix}-runtime"
    made: Object = {"metadata": {"name": runtime}, "handler": "h"}
    if chance.random() < 0.7:
        made["overhead"] = {"podFixed": {"cpu": "250m", "memory": "350Mi"}}
    if chance.random() < 0.6:
        tolerations = [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]
        made["scheduling"] = {"nodeSelector": {"disk": "ssd"}, "tolerations": tolerations}
    world.objects.append((_RUNTIMES, made))
    if chance.random() < 0.3:
        world.default_class = f"{prefix}-default"
        policy = chance.choice(("Never", "PreemptLowerPriority"))
        default = {"metadata": {"name": world.default_class}, "globalDefault": True}
        value = {"value": chance.choice((5, 200)), "preemptionPolicy": policy}
        world.objects.append((_CLASSES, {**default, **value}))
    for pod in world.running:
        if chance.random() < 0.2:
            pod["spec"]["runtimeClassName"] = runtime
    for pod in world.waiting:
        _ask_admission(chance, pod["spec"], prefix)


def _ask_admission(chance: random.Random, spec: Object, prefix: str) -> None:
    """Draw what admission completes or refuses."""
    if chance.random() < 0.3:
        runtime = f"{prefix}-runtime"
        spec["runtimeClassName"] = runtime if chance.random() < 0.8 else f"{prefix}-none"
    if chance.random() < 0.05:
        spec["priorityClassName"] = chance.choice((_BUILT_IN, f"{prefix}-none"))
    if chance.random() < 0.05:
        spec["preemptionPolicy"] = "Never"
    if chance.random() < 0.2:
        resources = spec["containers"][0]["resources"]
        limits = {"cpu": chance.choice(("1", "4", "10")), "memory": "6Gi"}
        resources["limits"] = {**resources.get("limits", {}), **limits}
    if chance.random() < 0.1:
        spec["resources"] = {"limits": {"cpu": chance.choice(("2", "4")), "memory": "6Gi"}}


def _limits(chance: random.Random, world: FurnishedWorld, prefix: str) -> None:
    """Draw a LimitRange and quotas.

    Running pods have the defaults as well; they need not keep bounds. Of two LimitRanges, the API
    server applies any first.
    """
    ranges = f"/api/v1/namespaces/{world.limited}/limitranges"
    made = world.objects if chance.random() < 0.4 else world.bounds
    limit = chance.choice(
        (
            {"type": "Container", "max": {"cpu": "2"}},
            {"type": "Container", "min": {"cpu": "200m", "memory": "100Mi"}},
            {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "100m"}},
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "3"}},
            {"type": "Pod", "max": {"cpu": "3", "memory": "8Gi"}},
        )
    )
    if made is world.objects:
        limit = {"type": "Container", "defaultRequest": {"cpu": "200m"}}
        if chance.random() < 0.5:
            limit["default"] = {"memory": "6Gi", "cpu": "10"}
    if chance.random() < 0.8:
        made.append((ranges, _named(f"{prefix}-limits", {"limits": [limit]})))
    running = sum(pod["metadata"]["namespace"] == world.limited for pod in world.running)
    for number in range(chance.choice((0, 1, 1, 2))):
        quota = _named(f"{prefix}-quota{number}", _quota(chance, running))
        world.bounds.append((f"/api/v1/namespaces/{world.limited}/resourcequotas", quota))


def _named(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


def _quota(chance: random.Random, running: int) -> Object:
    """Draw spec of a quota, near what that many running pods use."""
    hard = {"pods": str(running + chance.randint(0, 5))}
    if chance.random() < 0.15:
        return {"hard": hard, "scopes": ["BestEffort"]}
    amounts = {
        "requests.cpu": str(2 * running + chance.randint(0, 6)),
        "requests.memory": f"{3 * running + chance.randint(0, 8)}Gi",
        "limits.cpu": "40",
        "count/pods": str(running + 6),
        f"requests.{GPU}": str(chance.randint(0, 3)),
    }
    hard |= {name: value for name, value in amounts.items() if chance.random() < 0.35}
    if chance.random() < 0.3:
        names = chance.sample(sorted(PRIORITIES), 2)
        scope = {"scopeName": "PriorityClass", "operator": "In", "values": names}
        return {"hard": hard, "scopeSelector": {"matchExpressions": [scope]}}
    if chance.random() < 0.2:
        return {"hard": hard, "scopes": ["NotBestEffort"]}
    return {"hard": hard}


# --- running pods ---------------------------------------------------------------------------------


def _hold(chance: random.Random, world: FurnishedWorld, prefix: str) -> None:
    """Give a device to a pod that runs on a node with some."""
    pools = {obj["metadata"]["name"] for _, obj in world.devices.objects}
    for pod in world.running:
        pool = pool_of(prefix, pod["spec"]["nodeName"])
        if pod["metadata"]["namespace"] == NAMESPACES[0] and pool in pools:
            if chance.random() < 0.7:
                hold(chance, world.devices, pod, f"{prefix}-held", pool=pool)
            return


def _start(chance: random.Random, world: FurnishedWorld, pod: Object, number: int) -> None:
    """Report a pod as its kubelet does; no two started at the same time."""
    metadata, container = pod["metadata"], pod["spec"]["containers"][0]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    started = _STARTED + timedelta(seconds=chance.randint(0, 9) * 100 + number)
    world.started.append((path, {"phase": "Running", "startTime": rfc3339(started)}))
    requests = container["resources"]["requests"]
    changed = {"cpu": chance.choice(("100m", "700m", "2")), "memory": chance.choice(("1Gi", "2Gi"))}
    wanted = {**requests, **{name: changed[name] for name in changed if name in requests}}
    if wanted == requests or chance.random() < 0.5:
        return
    known = (requests, wanted)
    allocated, actual = chance.choice(known), chance.choice(known)
    status: Object = {"containerStatuses": [{
        "name": container["name"], "image": container["image"], "imageID": "", "ready": True,
        "restartCount": 0, "allocatedResources": allocated, "resources": {"requests": actual},
    }]}  # fmt: skip
    if "resources" in pod["spec"]:  # read from 1.36 on
        status["allocatedResources"] = {"cpu": chance.choice(("2", "5"))}
        status["resources"] = {"requests": {"cpu": chance.choice(("2", "5"))}}
    state = chance.choice(
        (
            {"type": "PodResizePending", "reason": "Deferred"},
            {"type": "PodResizePending", "reason": "Infeasible"},
            {"type": "PodResizeInProgress"},
        )
    )
    status["conditions"] = [{**state, "status": "True"}]
    world.resizes.append(Resize(metadata["namespace"], metadata["name"], wanted, status))

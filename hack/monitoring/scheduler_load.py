"""Pods that give a real kube-scheduler something to count: bound, stuck, gated and preempting."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cluster import hollow, scheduling
from cluster.api import Api, Object
from cluster.model import Sandbox

from .exposition import Family, families, merged

NAMESPACE: Final = "loaded"
SECOND_PROFILE: Final = "packing"
PROFILES: Final = (
    {"schedulerName": scheduling.DEFAULT_SCHEDULER},
    {
        "schedulerName": SECOND_PROFILE,
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {"scoringStrategy": {"type": "MostAllocated"}},
            }
        ],
    },
)
NODES: Final = 4
WAVE: Final = 20
"""Pods of a profile in a wave: durations of plugins are measured for one Pod in ten."""

PATHS: Final = ("/metrics", "/metrics/resources")
OWN: Final = ("scheduler_", "kube_pod_resource_", "kubernetes_build_info")
"""Prefixes of what kube-scheduler itself serves, other than Go's runtime and its libraries."""

_HIGH, _LOW = f"{NAMESPACE}-high", f"{NAMESPACE}-low"


class Load:
    """Waves of Pods in a namespace of its own, on hollow nodes."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._number = 0

    def wave(self) -> None:
        """Create Pods of every kind, and delete the bound ones of the wave before."""
        self._number += 1
        if self._number > 1:
            old = f"labelSelector=wave={self._number - 1},filler!=yes"
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            self._api.request("DELETE", f"{scheduling.pods_of(NAMESPACE)}?{old}", body)
        scheduling.create_pods(self._api, NAMESPACE, self._pods())

    def _pods(self) -> Iterator[Object]:
        for profile in PROFILES:
            for number in range(WAVE):
                yield self._pod(
                    f"{profile['schedulerName']}-{number}", str(profile["schedulerName"])
                )
        yield self._pod("nowhere", more={"nodeSelector": {"no-node": "has-this"}})
        yield self._pod("too-large", SECOND_PROFILE, cpu="500")
        yield self._pod("gated", more={"schedulingGates": [{"name": "example.com/wait"}]})
        if self._number == 1:
            yield from self._fillers()
        else:
            yield self._pod("urgent", cpu="2500m", more={"priorityClassName": _HIGH})

    def _fillers(self) -> Iterator[Object]:
        """Pods that leave no room for `urgent` unless one of them goes."""
        for number in range(NODES):
            node = hollow.node(number)
            cores = int(node["status"]["capacity"]["cpu"])
            more = {"nodeName": node["metadata"]["name"], "priorityClassName": _LOW}
            pod = self._pod(f"filler-{number}", cpu=f"{cores * 1000 - 2000}m", more=more)
            pod["metadata"]["labels"]["filler"] = "yes"
            yield pod

    def _pod(
        self,
        name: str,
        scheduler: str = scheduling.DEFAULT_SCHEDULER,
        cpu: str = "1m",
        more: Object | None = None,
    ) -> Object:
        requests = {"cpu": cpu, "memory": "1Mi"}
        container = {"name": "c", "image": "none", "resources": {"requests": requests}}
        return {
            "metadata": {
                "name": f"{name}-{self._number}",
                "labels": {"wave": str(self._number)},
            },
            "spec": {
                "schedulerName": scheduler,
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "containers": [container],
                **(more or {}),
            },
        }


@contextmanager
def loaded(api: Api) -> Iterator[Load]:
    """Make nodes, classes and the namespace; all of them go in the end."""
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    scheduling.create_namespace(api, NAMESPACE)
    hollow.create(api, NODES)
    for name, value in ((_LOW, -10), (_HIGH, 1000)):
        api.create(classes, {"metadata": {"name": name}, "value": value})
    try:
        yield Load(api)
    finally:
        scheduling.delete_pods(api, NAMESPACE)
        hollow.remove(api)
        for name in (_LOW, _HIGH):
            api.request("DELETE", f"{classes}/{name}")


def served(sandbox: Sandbox, waves: int = 4, pause: float = 2.0) -> set[Family]:
    """Run a kube-scheduler under load, and return the families of its own metrics."""
    api, scheduler = Api(sandbox), scheduling.Scheduler(sandbox)
    scrapes = []
    with loaded(api) as load:
        try:
            scheduler.start(profiles=PROFILES)
            for _ in range(waves):
                load.wave()
                time.sleep(pause)  # durations are collected once a second
                scrapes += [families(scheduler.metrics(path)) for path in PATHS]
        finally:
            scheduler.stop()
    return {family for family in merged(scrapes) if family.name.startswith(OWN)}

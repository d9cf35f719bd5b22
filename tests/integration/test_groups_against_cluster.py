"""Groups of pods are simulated as the same kube-scheduler decides at a real API server.

Each generated world is created at the API server, read back, and simulated. The pods of each group
are then given to both: equal are the nodes that they get, and kube-scheduler's messages about those
that get none.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.simulate.configuration import default_configuration, simulated
from kube_scheduler_operator.simulate.decisions import NOT_TRIED, PodDecision, scheduled_condition
from kube_scheduler_operator.simulate.kinds import PODS
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.world import World

from ..seeds import SEED, SOAK, number
from .conftest import ApiServer
from .grouped_api_server import COMPOSITE, COMPOSITE_FORM, FORMS, gates, grouped_api_server
from .grouped_worlds import PROFILE, GeneratedGroup, generate_composites, generate_groups
from .played_nodes import until
from .simulated_worlds import NAMESPACES, PRIORITIES, GeneratedWorld
from .test_kinds_against_binary import VERSIONS
from .test_simulation_against_cluster import SECONDS, Client, Cluster, Spy

REPEATED: Final = 8
COUNT: Final = number("KSO_GROUPED_WORLDS", 10, soak=100)
FINAL: Final = 3.0
"""Seconds without a change after which kube-scheduler does not try a pod again."""
SOON: Final = 1.5
"""Seconds in which it would try pods, and in which it notices that pods are gone."""
Outcome = Counter[tuple[str, str, str]]
"""(node, reason, message) of the pods of a group."""


class GroupedCluster(Cluster):
    """A cluster without kube-controller-manager."""

    def _ready(self) -> bool:
        return True

    def place(self, group: GeneratedGroup) -> Outcome:
        """Create the pods of a group, and wait until nothing changes any more."""
        path = f"/api/v1/namespaces/{NAMESPACES[0]}/pods"
        for pod in group.pods:
            self._create(path, {"apiVersion": "v1", "kind": "Pod", **pod})
        if group.is_complete:
            until(lambda: all(map(_is_decided, self._pods(group))), f"{group.name} is not decided")
        else:
            time.sleep(SOON)
        since, before = time.monotonic(), self._pods(group)
        while time.monotonic() - since < (FINAL if group.is_complete else 0):
            time.sleep(0.1)
            pods = self._pods(group)
            if list(map(_result, pods)) != list(map(_result, before)):
                since, before = time.monotonic(), pods
        return Counter(map(_result, before))

    def names(self) -> set[str]:
        """All pods."""
        pods = self._api.request("GET", f"/api/v1/namespaces/{NAMESPACES[0]}/pods")["items"]
        return {pod["metadata"]["name"] for pod in pods}

    def remove(self, group: GeneratedGroup) -> None:
        for pod in group.pods:
            path = f"/api/v1/namespaces/{NAMESPACES[0]}/pods/{pod['metadata']['name']}"
            self._api.request("DELETE", path, {"gracePeriodSeconds": 0})
        time.sleep(SOON)

    def _pods(self, group: GeneratedGroup) -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/{NAMESPACES[0]}/pods?labelSelector=group%3D{group.name}"
        items: list[dict[str, Any]] = self._api.request("GET", path)["items"]
        return items


def _result(pod: Mapping[str, Any]) -> tuple[str, str, str]:
    node = pod["spec"].get("nodeName") or ""
    condition = scheduled_condition(pod)
    if node or condition.get("status") != "False":
        return node, "" if node else NOT_TRIED, ""
    return "", condition["reason"], condition.get("message", "")


def _is_decided(pod: Mapping[str, Any]) -> bool:
    return _result(pod)[1] != NOT_TRIED


PLAIN: Final = [one for one in VERSIONS if releases.minor(one) in FORMS]
WITH_COMPOSITES: Final = [one for one in PLAIN if releases.minor(one) >= 37]


@pytest.fixture(
    scope="module",
    params=[*((one, False) for one in PLAIN), *((one, True) for one in WITH_COMPOSITES)],
    ids=lambda param: f"{param[0]}{' with composites' if param[1] else ''}",
)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, bool, ApiServer]]:
    """The version of an API server, whether it serves CompositePodGroups, and the server."""
    version, composites = request.param
    folder = tmp_path_factory.mktemp("api-server")
    with grouped_api_server(version, folder, composites=composites) as api:
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACES[0]}})
        for name, value in PRIORITIES.items():
            policy = "Never" if name.endswith("never") else "PreemptLowerPriority"
            body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            api.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
        yield version, composites, api


@pytest.fixture(scope="module")
def kinds() -> Iterator[Counter[str]]:
    counted: Counter[str] = Counter()
    yield counted
    print(f"\n{counted.total()} groups, all equal: {dict(counted)}")


def seeds() -> list[int]:
    first = SEED * 10_000 if SOAK else 0
    return list(range(first, first + COUNT))


@pytest.mark.timeout(300, func_only=True)
@pytest.mark.parametrize("seed", seeds())
def test_groups_are_simulated_as_the_real_scheduler_decides(
    server: tuple[str, bool, ApiServer], kinds: Counter[str], tmp_path: Path, seed: int
) -> None:
    version, composites, api = server
    binary = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    generated = generate_composites(seed) if composites else generate_groups(seed)
    forms = {"podgroups": FORMS[releases.minor(version)], "compositepodgroups": COMPOSITE_FORM}
    objects = [
        (f"/apis/scheduling.k8s.io/{forms[plural]}/namespaces/{NAMESPACES[0]}/{plural}", obj)
        for group in generated.groups
        for plural, obj in group.objects()
    ]
    config = {**default_configuration(), "profiles": [PROFILE]}
    flags = [f"--feature-gates={gates(version, composites=composites)}"]
    client, spy = Client(api), Spy()
    created = GeneratedWorld(generated.nodes, objects, generated.running)
    real = GroupedCluster(client, created, spy)
    try:
        real.create()
        world = real.read()
        real.start(binary, simulated(config), tmp_path, flags)
        submitted = [[real.submit(pod) for pod in group.pods] for group in generated.groups]
        options = RunOptions(binary, config, flags, seconds=SECONDS)
        asyncio.run(_compare(world, options, real, generated.groups, submitted, kinds))
    finally:
        real.close()
        client.close()
        spy.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_before_1_37_no_kube_scheduler_knows_composites(version: str, tmp_path: Path) -> None:
    """It refuses the feature gate with which it would read them; later, only the configuration."""
    binary = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    flags = [f"--feature-gates={gates('v1.37.0', composites=True)}", f"--config={tmp_path}/none"]
    if releases.minor(version) < 37:
        flags[0] = f"--feature-gates={COMPOSITE}=true"
    ended = subprocess.run([binary, *flags], capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0
    refused = f"unrecognized feature gate: {COMPOSITE}" in ended.stderr
    assert refused is (version not in WITH_COMPOSITES)


async def _compare(
    world: World,
    options: RunOptions,
    real: GroupedCluster,
    groups: list[GeneratedGroup],
    submitted: list[list[dict[str, Any]]],
    kinds: Counter[str],
) -> None:
    async with Run(world, options) as run:
        for group, pods in zip(groups, submitted, strict=True):
            before = real.names()
            simulated_outcome = _outcome(await run.schedule(pods))
            actual = await asyncio.to_thread(real.place, group)
            # Victims of one priority are chosen by chance: their number is compared.
            gone = len(before - real.names())
            if (actual, gone) != (simulated_outcome, len(run.preempted)):
                # kube-scheduler places some groups in another way each time. Among Pods without
                # status.startTime, victims depend on the order in which it has learnt of them.
                again = [await _once_more(world, options, pods, at) for at in range(REPEATED)]
                assert (actual, gone) in again
                kinds["equal to a repetition"] += 1
            kinds[_kind(actual) + " below composites" * (len([*group.objects()]) > 1)] += 1
            if gone:
                kinds["with victims"] += 1
                return
            run.forget(pods)
            await asyncio.to_thread(real.remove, group)


async def _once_more(
    world: World, options: RunOptions, pods: list[dict[str, Any]], seed: int
) -> tuple[Outcome, int]:
    """What happens in another run, with the Pods in another order, and the number of victims."""
    ordered, other = list(world.objects[PODS].items()), world.copy()
    random.Random(seed).shuffle(ordered)
    other.objects[PODS].clear()
    other.objects[PODS].update(ordered)
    async with Run(other, options) as run:
        outcome = _outcome(await run.schedule(pods))
        return outcome, len(run.preempted)


def _outcome(decisions: Mapping[str, PodDecision]) -> Outcome:
    return Counter((each.node, each.reason, each.message) for each in decisions.values())


def _kind(outcome: Outcome) -> str:
    placed = sum(count for (node, *_), count in outcome.items() if node)
    if placed:
        return "placed" if placed == outcome.total() else "placed in part"
    return "not tried" if all(reason == NOT_TRIED for _, reason, _ in outcome) else "not placed"

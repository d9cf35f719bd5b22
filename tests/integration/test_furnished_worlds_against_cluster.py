"""The simulator admits and decides as a real API server and the same kube-scheduler do.

Each generated world has devices, their taints, resizes, quotas and admission. It is created at the
API server, read back, and simulated as files are: pods as a user writes them are admitted here and
there. Equal are which of them are refused, what they are completed to, the nodes that accept each
of them, kube-scheduler's message, the scores of every plugin for every node, the node, and the pods
that are preempted.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.base.quantities import amounts
from kube_scheduler_operator.simulate.admission import admit
from kube_scheduler_operator.simulate.configuration import (
    simulated,
    spying_extender,
)
from kube_scheduler_operator.simulate.decisions import PodDecision
from kube_scheduler_operator.simulate.kinds import KINDS, PODS, pod_name, strip
from kube_scheduler_operator.simulate.pod_amounts import pod_amounts
from kube_scheduler_operator.simulate.probes import ALL, probe
from kube_scheduler_operator.simulate.process import binary_version
from kube_scheduler_operator.simulate.quotas import Quotas
from kube_scheduler_operator.simulate.run import Run
from kube_scheduler_operator.simulate.run_options import RunOptions
from kube_scheduler_operator.simulate.workloads import read_workloads
from kube_scheduler_operator.simulate.world import World

from ..seeds import SEED, SOAK, number
from .conftest import ApiServer, RefusedError, another_api_server
from .furnished_worlds import FurnishedWorld, furnish
from .played_nodes import until
from .simulated_worlds import DRIVER, NAMESPACES
from .test_simulation_against_cluster import (
    NOT_SERVED,
    SETTLING,
    Client,
    Cluster,
    Spy,
    _as_probe,
    in_tree,
    prepared,
    probing,
)
from .world_devices import CLAIMS

Object = dict[str, Any]

COUNT: Final = number("KSO_FURNISHED_WORLDS", 60, soak=300)
FIELDS: Final = (
    "nodeSelector", "preemptionPolicy", "priority", "priorityClassName", "schedulerName",
)  # fmt: skip
"""Fields that are equal; of tolerations, the API server drops what others cover."""
_DEVICE: Final = re.compile(rf"{re.escape(DRIVER)}/\S+/d\d")
_CLAIM: Final = re.compile(r"(-d\d)-[a-z0-9]{5}(?=:)")
"""What the API server adds to the name of a claim that is made of a template."""


NEWEST: Final = releases.PINNED[max(releases.PINNED)]
VERSIONS: Final = list(
    dict.fromkeys((releases.choose(), *(releases.others() if SOAK else [NEWEST])))
)
"""Devices have taints, counters and rules by default in the newest version only."""


def seeds() -> list[int]:
    """The seeds of the worlds of each version."""
    first = SEED * 10_000 if SOAK else 0
    return list(range(first, first + -(-COUNT // len(VERSIONS))))


class FurnishedCluster(Cluster):
    """A furnished world at the API server."""

    def __init__(self, api: Client, world: FurnishedWorld, spy: Spy) -> None:
        super().__init__(api, world, spy)
        self._furnished = world
        self._counted: Object = {}

    def create(self) -> None:
        world = self._furnished
        self._create("/api/v1/namespaces", {"metadata": {"name": world.limited}})
        accounts = f"/api/v1/namespaces/{world.limited}/serviceaccounts"
        with suppress(RefusedError):  # where the controller has been quicker
            self._api.request("POST", accounts, {"metadata": {"name": "default"}})
        self._create_classes()
        super().create()
        for path, obj in world.devices.newer:
            self._create_if_known(path, obj)
        for path, status in world.started:
            self._api.request("PATCH", f"{path}/status", {"status": status})
        self._hold()
        self._resize()
        for path, obj in world.bounds:
            self._create(path, obj)
        until(self._are_bounds_known, "the quotas are not counted")
        self._counted = self._quotas()

    def _create_classes(self) -> None:
        """Create the PriorityClass before pods that have it, once that of another world is gone."""
        until(lambda: self._default() == "", "a default PriorityClass is left")
        for path, obj in self._world.objects:
            if path.endswith("/priorityclasses"):
                self._create(path, obj)
        self._world.objects = [
            (path, obj)
            for path, obj in self._world.objects
            if not path.endswith("/priorityclasses")
        ]
        expected = self._furnished.default_class
        until(lambda: self._default() == expected, "the default PriorityClass is not known")

    def _default(self) -> str:
        spec = {"containers": [{"name": "c", "image": "i"}]}
        pod = {"metadata": {"name": "asked", "namespace": NAMESPACES[0]}, "spec": spec}
        return str(self.submit(pod)["spec"].get("priorityClassName") or "")

    def _create_if_known(self, path: str, obj: Object) -> None:
        """Create an object; older versions do not have the kind, or drop what makes it valid."""
        try:
            self._create(path, obj)
        except RefusedError as error:
            if NOT_SERVED not in str(error) and "is invalid" not in str(error):
                raise

    def _hold(self) -> None:
        for hold in self._furnished.devices.holds:
            pod = self._api.request("GET", f"/api/v1/namespaces/{NAMESPACES[0]}/pods/{hold.pod}")
            user = {"resource": "pods", "name": hold.pod, "uid": pod["metadata"]["uid"]}
            status = {"allocation": hold.allocation, "reservedFor": [user]}
            self._api.request("PATCH", f"{CLAIMS}/{hold.claim}/status", {"status": status})

    def _resize(self) -> None:
        for resize in self._furnished.resizes:
            path = f"/api/v1/namespaces/{resize.namespace}/pods/{resize.pod}"
            self._api.request("PATCH", f"{path}/status", {"status": resize.status})
            pod = self._api.request("GET", path)
            pod["spec"]["containers"][0]["resources"]["requests"] = resize.requests
            with suppress(RefusedError):  # of the node's size, or of a LimitRange
                self._api.request("PUT", f"{path}/resize", pod)

    def _quotas(self) -> Object:
        """What is used of each quota."""
        path = f"/api/v1/namespaces/{self._furnished.limited}/resourcequotas"
        return {
            quota["metadata"]["name"]: quota["status"].get("used")
            for quota in self._api.request("GET", path)["items"]
        }

    def _are_bounds_known(self) -> bool:
        limited = self._furnished.limited
        running = sum(pod["metadata"]["namespace"] == limited for pod in self._world.running)
        scoped = {
            obj["metadata"]["name"]
            for _, obj in self._furnished.bounds
            if {"scopes", "scopeSelector"} & obj["spec"].keys()
        }
        return all(
            used and (name in scoped or used["pods"] == str(running))
            for name, used in self._quotas().items()
        )

    def refusal(self, pod: Object) -> str:
        """Why the API server refuses a pod; empty: it does not."""
        try:
            self.submit(pod)
        except RefusedError as error:
            return str(error)
        return ""

    def until_uncounted(self) -> None:
        """Wait until quotas count the running pods alone."""
        until(lambda: self._quotas() == self._counted, "quotas count pods that are gone")

    def running(self) -> set[str]:
        """The running pods of the world, as namespace/name."""
        return {pod_name(pod) for pod in self._world.running}

    def left(self) -> set[str]:
        """Those of them that still exist."""
        items = self._api.request("GET", "/api/v1/pods")["items"]
        return self.running() & {pod_name(pod) for pod in items}


@pytest.fixture(scope="module")
def counts() -> Iterator[Counter[str]]:
    counted: Counter[str] = Counter()
    yield counted
    print("\nequal:")
    for text, times in sorted(counted.items()):
        print(f"  {times:5} {text}")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[ApiServer, Path]]:
    """An API server of a version, and the kube-scheduler of this version."""
    version = request.param
    program = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    if version == releases.choose():
        api_server = request.getfixturevalue("api_server")
        request.getfixturevalue("nodes_of_ones_own")
        with prepared(api_server):
            yield api_server, program
    else:
        with another_api_server(version) as api_server, prepared(api_server):
            yield api_server, program


@pytest.mark.timeout(300, func_only=True)
@pytest.mark.presubmit_first
@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("cluster", VERSIONS, indirect=True)
def test_a_furnished_world_is_simulated_as_it_is_decided(
    cluster: tuple[ApiServer, Path], tmp_path: Path, counts: Counter[str], seed: int
) -> None:
    generated = furnish(seed)
    api_server, program = cluster
    options = probing(program, generated.profile)
    spy = Spy()
    client = Client(api_server)
    real = FurnishedCluster(client, generated, spy)
    try:
        real.create()
        world = real.read()
        world.version = str(binary_version(program))
        full = simulated(options.config, options.profiles, [spying_extender(spy.url)])
        real.start(program, full, tmp_path)
        for pod in generated.waiting:
            pod["spec"]["schedulerName"] = generated.profile["schedulerName"]
        pairs = _admitted(world, real, generated.waiting, counts)
        asyncio.run(_compare(world, options, real, pairs, counts))
    finally:
        real.close()
        client.close()
        spy.close()
    counts["worlds"] += 1
    counts["resizes"] += len(generated.resizes)


def _admitted(
    world: World, real: FurnishedCluster, pods: Iterable[Object], counts: Counter[str]
) -> list[tuple[Object, Object]]:
    """The pods that are admitted, as a user writes them and as they are completed here."""
    pairs = []
    for pod in pods:
        whole = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(pod)}
        (workload,), _ = read_workloads([whole], "world")
        admission = admit(workload.template, world)
        assert admission.unknown == []
        own = [*admission.refused, *Quotas(world).admit(workload.template, 1).reasons]
        refusal = real.refusal(pod)
        assert bool(refusal) == bool(own), (pod["metadata"]["name"], refusal, own)
        if refusal:
            counts["refused pods"] += 1
            continue
        (completed,) = workload.pods([pod["metadata"]["name"]])
        assert _completed(completed) == _completed(real.submit(pod)), pod["metadata"]["name"]
        pairs.append((pod, completed))
    return pairs


def _completed(pod: Mapping[str, Any]) -> Object:
    spec = strip(KINDS[PODS], pod)["spec"]
    found = {field: spec[field] for field in FIELDS if spec.get(field) not in (None, {}, [])}
    found["requests"] = pod_amounts(spec, "requests", overhead=True)
    for holder in (*spec["containers"], *spec.get("initContainers", ())):
        for kind in ("requests", "limits"):
            resources = holder.get("resources") or {}
            found[f"{holder['name']} {kind}"] = amounts(resources.get(kind) or {})
    return found


async def _compare(
    world: World,
    options: RunOptions,
    real: FurnishedCluster,
    pairs: list[tuple[Object, Object]],
    counts: Counter[str],
) -> None:
    """Compare the decisions about pods, given as a user writes them and as they are admitted."""
    async with Run(world, options) as run:
        await _compare_probes(world, run, real, pairs, counts)
        for pod, admitted in pairs:
            (expected,) = (await run.schedule([copy.deepcopy(admitted)])).values()
            decide = partial(real.decide, pod, scored=len(expected.totals))
            (actual,), left = await asyncio.to_thread(_decided_with_victims, real, decide, expected)
            name = pod["metadata"]["name"]
            assert in_tree(actual) == expected.scores, name
            assert actual.totals == expected.totals, name
            victims = real.running() - left
            assert victims == set(expected.preempted), name
            if victims:
                node = expected.node or expected.nominated
                assert (actual.node or actual.nominated) == node, name
                counts["preemptions"] += 1
                counts["preempted pods"] += len(victims)
                return  # the pods that were preempted are gone
            outcome = (bool(expected.node), expected.reason)
            assert (bool(actual.node), actual.reason) == outcome, f"{name}: {actual.message}"
            assert message_of(actual) == message_of(expected), name
            assert not expected.totals or actual.node in expected.best, name
            counts["placed pods" if expected.node else "waiting pods"] += 1
            changes = pod["spec"].get("volumes") or pod["spec"].get("resourceClaims")
            if expected.node and (changes or run.is_taken):
                return  # volumes and devices are taken now
            run.forget([admitted])
            await asyncio.sleep(SETTLING)
            await asyncio.to_thread(real.until_uncounted)


def message_of(decision: PodDecision) -> str:
    """The message; a selector that fails on several devices names any of them."""
    return _CLAIM.sub(r"\1", _DEVICE.sub("DEVICE", decision.message))


def _decided_with_victims(
    real: FurnishedCluster, decide: partial[list[PodDecision]], expected: PodDecision
) -> tuple[list[PodDecision], set[str]]:
    """The decision about a pod, and which running pods are left when it is decided."""
    left: list[set[str]] = []

    def look() -> None:
        gone = set(expected.preempted)
        with suppress(AssertionError):  # the comparison shows what is different
            until(lambda: not gone & real.left(), "")
        left.append(real.left())

    return decide(between=look), left[0]


async def _compare_probes(
    world: World,
    run: Run,
    real: FurnishedCluster,
    pairs: list[tuple[Object, Object]],
    counts: Counter[str],
) -> None:
    """Compare which nodes accept the pods; each counts for the quotas of the next."""
    quotas = Quotas(world)
    pairs = [pair for pair in pairs if quotas.admit(pair[1], 1).count]
    probes = []
    for at, (_, admitted) in enumerate(pairs):
        made = probe(admitted, at, ALL)
        made["metadata"]["name"] = f"{admitted['metadata']['name']}-probe"
        if "resourceClaims" in admitted["spec"]:  # a claim of its own is made of a template
            made["spec"]["resourceClaims"] = copy.deepcopy(admitted["spec"]["resourceClaims"])
        probes.append(made)
    found = await run.schedule(probes, settle=False)
    for actual in await asyncio.to_thread(real.decide, *(_as_probe(pod) for pod, _ in pairs)):
        expected = found[actual.pod]
        assert sorted(actual.candidates or ()) == sorted(expected.candidates or ()), actual
        assert message_of(actual) == message_of(expected), actual
        counts["probed pods"] += 1
    run.forget(probes)
    await asyncio.to_thread(real.until_uncounted)

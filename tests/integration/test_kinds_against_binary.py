"""What each kube-scheduler lists and watches is served from the world, in the form that it reads.

Each binary runs with all feature gates that do not exclude each other, over a world with one object
of every kind that it may read. A kind that it reads is one of the world or stated in NOT_SERVED.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final
from unittest.mock import Mock

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.config.language.feature_gates import known_gates
from kube_scheduler_operator.kube.resource import Resource
from kube_scheduler_operator.simulate.api_server import WorldServer
from kube_scheduler_operator.simulate.configuration import default_configuration, simulated
from kube_scheduler_operator.simulate.kinds import KINDS
from kube_scheduler_operator.simulate.process import KubeSchedulerProcess
from kube_scheduler_operator.simulate.store import WorldStore
from kube_scheduler_operator.simulate.world import World

from ..seeds import SOAK

NOT_SERVED: Final[Mapping[str, str]] = {}
"""apiVersion/plural of kinds that the simulation serves empty -> why they decide nothing."""

FORMS: Final[Mapping[int, frozenset[str]]] = {
    34: frozenset({"resource.k8s.io/v1alpha3/devicetaintrules"}),
    35: frozenset(
        {
            "resource.k8s.io/v1alpha3/devicetaintrules",
            "scheduling.k8s.io/v1alpha1/workloads",
        }
    ),
    36: frozenset(
        {
            "resource.k8s.io/v1beta2/devicetaintrules",
            "scheduling.k8s.io/v1alpha2/podgroups",
        }
    ),
    37: frozenset(
        {
            "resource.k8s.io/v1/devicetaintrules",
            "scheduling.k8s.io/v1alpha3/compositepodgroups",
            "scheduling.k8s.io/v1beta1/podgroups",
        }
    ),
}
"""Minor version -> the kinds whose form depends on it, as its binary requests them."""
OF_SOME: Final = ("compositepodgroups", "devicetaintrules", "podgroups", "workloads")

STABLE: Final = 2.0
"""Seconds without a new kind after which all are known; reflectors start within milliseconds."""
SECONDS: Final = 40.0
VERSIONS: Final = [
    version
    for version in releases.PINNED.values()
    if SOAK
    or version == releases.choose()
    or binaries.build_folder(version).joinpath("kube-scheduler").exists()
]
"""Those that are built here; the others are built in soak tests."""

pytestmark = [pytest.mark.core, pytest.mark.timeout(1800, func_only=True)]

Object = dict[str, Any]


def world() -> World:
    made = World()
    for kind in KINDS.values():
        if not kind.read_by_scheduler:
            continue
        resource = kind.resource
        metadata = {"name": f"a-{resource.plural}"}
        if resource.namespaced:
            metadata["namespace"] = "default"
        obj: Object = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": metadata,
            "spec": {"nodeName": "a-nodes"} if resource.kind == "Pod" else {},
        }
        assert made.add(obj), resource
    return made


def _path(resource: Resource) -> str:
    return f"{resource.api_version}/{resource.plural}"


async def _reads(version: str) -> tuple[set[Resource], list[str], str]:
    """Run a kube-scheduler; the kinds that it reads, errors of its log, unexpected requests."""
    server = WorldServer(WorldStore(world()), Mock(), time.time)
    binary = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    gates = known_gates(releases.minor(version)) or {}
    values = ",".join(
        f"{name}={str(locked is not False).lower()}" for name, locked in gates.items()
    )
    errors: list[str] = []

    def take(line: bytes) -> None:
        if b"failed to list" in line or b"failed to watch" in line or b"Failed to watch" in line:
            errors.append(line.decode(errors="replace"))

    process = KubeSchedulerProcess(binary, take)
    await server.start()
    try:
        config = simulated(default_configuration(), (), ())
        await process.start(config, server.url, [f"--feature-gates={values}"])
        await _until_stable(server, process)
        return server.read, errors, server.problem
    finally:
        await process.stop()
        await server.stop()


async def _until_stable(server: WorldServer, process: KubeSchedulerProcess) -> None:
    known, since, end = 0, time.monotonic(), time.monotonic() + SECONDS
    while not known or time.monotonic() - since < STABLE:
        assert not process.ended.is_set(), process.failure()
        assert time.monotonic() < end, process.failure()
        if len(server.read) != known:
            known, since = len(server.read), time.monotonic()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_kind_that_kube_scheduler_reads_is_served_from_the_world(version: str) -> None:
    read, errors, problem = asyncio.run(_reads(version))
    assert (errors, problem) == ([], "")
    served = {_path(served) for kind in KINDS.values() for served in kind.versions()}
    requested = {_path(resource) for resource in read}
    assert requested - served == NOT_SERVED.keys() & requested
    of_some = {path for path in requested if path.endswith(OF_SOME)}
    assert of_some == FORMS[releases.minor(version)]
    every = {
        _path(kind.resource)
        for kind in KINDS.values()
        if kind.read_by_scheduler and kind.resource.plural not in OF_SOME
    }
    assert requested - of_some == every, "KINDS states otherwise what kube-scheduler reads"
    print(f"{version}: {len(requested)} kinds, all served from the world")


def test_every_kind_of_the_world_is_read_by_a_version() -> None:
    forms = {path for paths in FORMS.values() for path in paths}
    for kind in KINDS.values():
        if kind.resource.plural in OF_SOME:
            assert forms & set(map(_path, kind.versions())), kind.resource

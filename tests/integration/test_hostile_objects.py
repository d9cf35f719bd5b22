"""Objects that a tenant may create on a real API server hide no other one from any reader.

They are as large as it accepts. Each reader reads the ordinary ones, and reduces or names the
others.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.credentials import find
from kube_scheduler_operator.kube.kopf import decoding
from kube_scheduler_operator.kube.kopf.imports import client_api
from kube_scheduler_operator.kube.oversized import LEFT_OUT as LEFT_OUT_KEY
from kube_scheduler_operator.kube.reflector import Callbacks, Decoding, Reflector, Selection
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    EVENTS_V1,
    PODS,
    SCHEDULER_PROFILES,
)
from kube_scheduler_operator.operator.diagnostics import (
    unknown_scheduler_names,
    unmanaged_schedulers,
)
from kube_scheduler_operator.scheduling.policies.pod_fields import POD
from kube_scheduler_operator.scheduling.policies.pods import (
    MOST_LABELS,
    MOST_RESOURCES,
    Pod,
    read_pod,
)
from kube_scheduler_operator.simulate.read_cluster import read_cluster

from ..hostile_objects import levels
from .conftest import ApiServer

pytestmark = pytest.mark.presubmit

NAMESPACE = "hostile"
UNKNOWN = "no-such-scheduler"
ORDINARY = [f"{letter}-{number}" for letter in "az" for number in range(3)]
ENTRIES = 200_000
TOO_MANY = "more than 100000 values"


def pod(name: str, env: int = 0, **metadata: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "nothing", "env": env * [{"name": "A"}]}
    spec = {
        "schedulerName": UNKNOWN,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def requesting(name: str, containers: int, resources: int) -> dict[str, Any]:
    """A Pod whose containers request and limit that many resources each."""
    amounts = {f"example.com/{number:05}": "1" for number in range(resources)}
    made = [
        {"name": f"c{number}", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
        for number in range(containers)
    ]
    return {**pod(name), "spec": {**pod(name)["spec"], "containers": made}}


HOSTILE = {
    "m-values": pod("m-values", ENTRIES),
    "m-labels": pod(
        "m-labels", labels={f"example.com/l{number:06}": "x" * 60 for number in range(13_000)}
    ),
    "m-annotation": pod("m-annotation", annotations={"example.com/a": "[{," * 85_000}),
    "m-name": {
        **pod("m-name"),
        "spec": {**pod("m-name")["spec"], "schedulerName": "\x01" * 500_000},
    },
    "m-resources": requesting("m-resources", containers=1, resources=10_000),
    "m-containers": requesting("m-containers", containers=1500, resources=1),
}
LEFT_OUT = {"m-values"}


@pytest.fixture(scope="module")
def objects(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[None]:
    """Pods in each list of Pods, which another file compares: the two take turns."""
    api_server.create_namespace(NAMESPACE)
    url = f"/api/v1/namespaces/{NAMESPACE}/pods"
    for name in ORDINARY:
        api_server.request("POST", url, pod(name))
    for obj in HOSTILE.values():
        api_server.request("POST", url, obj)
    yield
    for name in (*ORDINARY, *HOSTILE):
        api_server.request("DELETE", f"{url}/{name}?gracePeriodSeconds=0")


def touch(api_server: ApiServer, url: str) -> None:
    """Change an object."""
    obj = api_server.request("GET", url)
    obj["metadata"].setdefault("annotations", {})["example.com/changed"] = "yes"
    api_server.request("PUT", url, obj)


@contextlib.asynccontextmanager
async def connected(api_server: ApiServer) -> Any:
    async with ApiClient(find(str(api_server.kubeconfig)), field_manager="test") as api:
        yield api


def names(items: Any) -> set[str]:
    return {item["metadata"]["name"] for item in items}


@pytest.mark.usefixtures("objects")
async def test_a_list_names_what_it_leaves_out(api_server: ApiServer) -> None:
    async with connected(api_server) as api:
        found = await api.list(PODS, NAMESPACE)
    assert names(found.items) == {*ORDINARY, *HOSTILE} - LEFT_OUT
    assert {str(each) for each in found.left_out} == {
        f"Pod {NAMESPACE}/{name} has {TOO_MANY} and is left out" for name in LEFT_OUT
    }
    assert found.resource_version


@pytest.mark.usefixtures("objects")
async def test_a_poll_reads_every_pod(api_server: ApiServer) -> None:
    async with connected(api_server) as api:
        found = await api.select(
            PODS,
            unknown_scheduler_names.FIELDS,
            field_selector=unknown_scheduler_names.field_selector(("default-scheduler",)),
            at_most=500,
        )
    assert found.left_out == ()
    mine = [
        each
        for each in unknown_scheduler_names.not_attempted(found.items)
        if each.namespace == NAMESPACE
    ]
    assert {each.name for each in mine} == {*ORDINARY, *HOSTILE}
    assert all(each.created is not None and each.uid for each in mine)
    assert max(len(each.scheduler) for each in mine) == 254
    assert {each.scheduler for each in mine if each.name != "m-name"} == {UNKNOWN}


@pytest.mark.usefixtures("objects")
async def test_a_reflector_follows_the_others(
    api_server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    class Receiver:
        def __init__(self) -> None:
            self.known: set[str] = set()

        def set(self, obj: Any) -> None:
            self.known.add(obj["metadata"]["name"])

        def remove(self, obj: Any) -> None:
            self.known.discard(obj["metadata"]["name"])

    receiver = Receiver()
    url = f"/api/v1/namespaces/{NAMESPACE}/pods"
    async with connected(api_server) as api:
        reflector = Reflector(api, PODS, receiver, Selection(NAMESPACE))
        task = asyncio.create_task(reflector.run())
        try:
            await asyncio.wait_for(reflector.synced(), 30)
            assert receiver.known == {*ORDINARY, *HOSTILE} - LEFT_OUT
            await asyncio.to_thread(api_server.request, "POST", url, pod("n-values", ENTRIES))
            await asyncio.to_thread(api_server.request, "POST", url, pod("o-last"))
            async with asyncio.timeout(30):
                while "o-last" not in receiver.known:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert "n-values" not in receiver.known
            assert (reflector.state.failures, reflector.state.lists) == (0, 1)
        finally:
            task.cancel()
            for name in ("n-values", "o-last"):
                with contextlib.suppress(AssertionError):
                    await asyncio.to_thread(
                        api_server.request, "DELETE", f"{url}/{name}?gracePeriodSeconds=0"
                    )
    assert f"Pod {NAMESPACE}/n-values has {TOO_MANY} and is left out" in caplog.text


@pytest.mark.usefixtures("objects")
async def test_agents_keep_a_bounded_part_of_each_pod(api_server: ApiServer) -> None:
    """As they follow Pods: the list in JSON, changes in protobuf."""
    kept: dict[str, list[Pod]] = {}

    def take(obj: Any) -> None:
        kept.setdefault(obj["metadata"]["name"], []).append(read_pod(obj))

    url = f"/api/v1/namespaces/{NAMESPACE}/pods"
    changed = ("m-resources", "m-containers", "m-labels", "m-name")
    async with connected(api_server) as api:
        receiver = Callbacks(take, lambda _: None)
        reflector = Reflector(
            api, PODS, receiver, Selection(NAMESPACE), decoding=Decoding(fields=POD)
        )
        task = asyncio.create_task(reflector.run())
        try:
            await asyncio.wait_for(reflector.synced(), 60)
            for name in changed:
                await asyncio.to_thread(touch, api_server, f"{url}/{name}")
            async with asyncio.timeout(60):
                while not all(len(kept[name]) > 1 for name in changed):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        finally:
            task.cancel()
    for read in (each for name in changed for each in kept[name]):
        assert len(read.requests) <= MOST_RESOURCES
        assert len(read.demand.containers) <= 1
        assert len(read.labels) <= MOST_LABELS
        assert len(read.scheduler_name) <= 254


@pytest.mark.usefixtures("objects")
async def test_kopf_reads_the_others(
    api_server: ApiServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(api_server) as api:
        session = api._session

        async def request(method: str, url: str, headers: Any = None, **_: Any) -> Any:
            return await session.request(
                method, api_server.url + url, headers=headers, ssl=api_server.tls
            )

        monkeypatch.setattr(client_api, "request", request)
        found: set[str] = set()
        left_out: set[str] = set()
        more = ""
        while True:
            url = f"/api/v1/namespaces/{NAMESPACE}/pods?limit=500&continue={more}"
            page = await decoding._get(url)
            found |= names(item for item in page["items"] if LEFT_OUT_KEY not in item)
            left_out |= names(item for item in page["items"] if LEFT_OUT_KEY in item)
            more = page["metadata"]["continue"]
            if not more:
                break
    assert (found, left_out) == ({*ORDINARY, *HOSTILE} - LEFT_OUT, LEFT_OUT)
    assert f"pods {NAMESPACE}/m-values has {TOO_MANY} and is left out" in caplog.text


@pytest.mark.usefixtures("objects")
async def test_a_simulation_notes_what_it_does_not_have(api_server: ApiServer) -> None:
    async with connected(api_server) as api:
        world = await read_cluster(api)
    mine = {name for namespace, name in world.objects[PODS] if namespace == NAMESPACE}
    assert mine == {*ORDINARY, *HOSTILE} - LEFT_OUT
    assert f"Pod {NAMESPACE}/m-values is not in the simulation: it has {TOO_MANY}" in world.notes
    largest = max(len(entry.content) for entry in world.objects[PODS].values())
    assert largest < 5 * 2**20


async def test_an_event_with_a_megabyte_is_reduced(api_server: ApiServer) -> None:
    url = "/api/v1/namespaces/default/events"
    api_server.request(
        "POST",
        url,
        {
            "metadata": {"name": "hostile-event"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
            "reason": "Scheduled",
            "message": "x" * 1_000,
            "reportingComponent": "x" * 500_000,
            "reportingInstance": "y" * 500_000,
        },
    )
    try:
        async with connected(api_server) as api:
            found = await api.select(
                EVENTS_V1,
                unmanaged_schedulers.FIELDS,
                field_selector=unmanaged_schedulers.FIELD_SELECTOR,
                at_most=500,
            )
    finally:
        api_server.request("DELETE", f"{url}/hostile-event")
    assert max(len(json.dumps(item)) for item in found.items) < 1000
    assert len(unmanaged_schedulers.claims(found.items)) >= 1


async def test_a_custom_resource_is_left_out_or_cut(api_server: ApiServer) -> None:
    url = "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerprofiles"
    deep = json.loads('{"a":' + levels(60) + "}")
    specs: dict[str, Any] = {
        "hostile-a": {},
        "hostile-deep": {"pluginConfig": [{"name": "x", "args": deep}]},
        "hostile-values": {"pluginConfig": [{"name": "x", "args": {"a": 120_000 * [0]}}]},
        "hostile-z": {},
    }
    try:
        for name, spec in specs.items():
            api_server.request(
                "POST",
                url,
                {
                    "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
                    "kind": "SchedulerProfile",
                    "metadata": {"name": name},
                    "spec": spec,
                },
            )
        async with connected(api_server) as api:
            found = await api.list(SCHEDULER_PROFILES)
    finally:
        for name in specs:
            with contextlib.suppress(AssertionError):
                api_server.request("DELETE", f"{url}/{name}")
    assert names(found.items) >= {"hostile-a", "hostile-deep", "hostile-z"}
    assert [str(each) for each in found.left_out] == [
        f"SchedulerProfile hostile-values has {TOO_MANY} and is left out"
    ]


async def test_other_lists_are_as_before(api_server: ApiServer) -> None:
    async with connected(api_server) as api:
        found = await api.list(CONFIG_MAPS, "kube-system")
    assert found.left_out == ()

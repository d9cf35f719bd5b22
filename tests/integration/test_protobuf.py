"""Pods that a real API server sends as protobuf are read as those that it sends as JSON."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

import pytest

from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.credentials import find
from kube_scheduler_operator.kube.errors import ApiError, ApiRequest
from kube_scheduler_operator.kube.protobuf import ACCEPT
from kube_scheduler_operator.kube.reflector import Decoding, Reflector, ReflectorTuning, Selection
from kube_scheduler_operator.kube.resource import PODS
from kube_scheduler_operator.scheduling.policies.pod_fields import POD
from kube_scheduler_operator.scheduling.policies.pods import Pod, read_pod

from .conftest import ApiServer
from .played_nodes import change

pytestmark = pytest.mark.presubmit

NAMESPACE = "protobuf"
URL = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODE = "protobuf-nowhere"
RUNTIME = "protobuf-heavy"


def container(
    name: str, requests: Mapping[str, str], limits: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    resources = {"requests": requests, **({"limits": limits} if limits else {})}
    return {"name": name, "image": "nothing", "resources": resources, **more}


SMALL = container("c", {"cpu": "250m", "memory": "64Mi"})
OWNERS = [
    {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"},
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "b", "uid": "2", "controller": True},
]
SPECS: dict[str, dict[str, Any]] = {
    "small": {"containers": [SMALL]},
    "nothing": {"containers": [{"name": "c", "image": "nothing"}]},
    "several": {
        "containers": [
            container("c", {"cpu": "1.5", "memory": "1e9"}, {"cpu": "2", "memory": "2G"}),
            container("d", {"example.com/gpu": "2"}, {"example.com/gpu": "2"}),
        ]
    },
    "inits": {
        "containers": [SMALL],
        "initContainers": [
            container("sidecar", {"cpu": "100m"}, restartPolicy="Always"),
            container("big", {"cpu": "3", "ephemeral-storage": "1Gi"}),
        ],
    },
    "overhead": {"containers": [SMALL], "runtimeClassName": RUNTIME},
    "whole": {
        "containers": [SMALL],
        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}},
    },
    "elsewhere": {"containers": [SMALL], "schedulerName": "another"},
}
LABELS = {"app": "web", "empty": "", "kubernetes.io/what": "a" * 63}
ENDED = {"phase": "Succeeded"}
BOUND = {
    "phase": "Running",
    "startTime": "2026-11-01T10:00:00Z",
    "conditions": [
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-01T10:00:09Z"},
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-01T09:59:58Z"},
    ],
}


class Copy:
    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.all: list[Any] = []

    def set(self, obj: Any) -> None:
        self.objects[obj["metadata"]["name"]] = obj
        self.all.append(obj)

    def remove(self, obj: Any) -> None:
        self.objects.pop(obj["metadata"]["name"], None)

    def versions(self) -> dict[str, str]:
        return {name: obj["metadata"]["resourceVersion"] for name, obj in self.objects.items()}


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - there is nothing to wait for
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def following(client: ApiClient, **more: Any) -> AsyncIterator[tuple[Copy, Reflector]]:
    copy = Copy()
    reflector = Reflector(
        client, PODS, copy, Selection(NAMESPACE), tuning=ReflectorTuning(batch=0.0), **more
    )
    task = asyncio.create_task(reflector.run())
    await asyncio.wait_for(reflector.synced(), 30)
    try:
        yield copy, reflector
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def attributes(pod: Pod) -> dict[str, Any]:
    found = {name: getattr(pod, name) for name in Pod.__slots__ if name != "demand"}
    demand = {name: getattr(pod.demand, name) for name in pod.demand.__slots__}
    return {**found, **demand}


@pytest.fixture(scope="module")
def prepared(api_server: ApiServer) -> ApiServer:
    api_server.create_namespace(NAMESPACE)
    api_server.request(
        "POST",
        "/apis/node.k8s.io/v1/runtimeclasses",
        {
            "metadata": {"name": RUNTIME},
            "handler": "heavy",
            "overhead": {"podFixed": {"cpu": "70m", "memory": "130Mi"}},
        },
    )
    return api_server


@pytest.mark.presubmit
async def test_protobuf_and_json_yield_the_same_pods(prepared: ApiServer) -> None:
    async with (
        ApiClient(find(str(prepared.kubeconfig)), field_manager="test") as client,
        following(client) as (json, _),
        following(client, decoding=Decoding(fields=POD)) as (binary, reflector),
    ):
        for name, spec in SPECS.items():
            metadata: dict[str, Any] = {"name": name, "labels": LABELS if name == "small" else {}}
            if name == "several":
                metadata["ownerReferences"] = OWNERS
            made = {"metadata": metadata, "spec": {"nodeName": NODE, **spec}}
            await asyncio.to_thread(prepared.request, "POST", URL, made)
        for name, status in (("small", BOUND), ("inits", ENDED)):
            await asyncio.to_thread(
                change, prepared, f"{URL}/{name}", "/status",
                partial(lambda pod, status: pod["status"].update(status), status=status),
            )  # fmt: skip
        await until(  # both have seen the last change, and nothing else since
            lambda: (
                json.objects.get("inits", {}).get("status", {}).get("phase") == "Succeeded"
                and json.versions() == binary.versions()
            )
        )
        assert len(json.objects) == len(SPECS)

        assert all(set(obj) <= {"metadata", "spec", "status"} for obj in binary.all)
        assert reflector.state.failures == 0
        found = {name: read_pod(obj) for name, obj in binary.objects.items()}
        for name, obj in json.objects.items():
            assert attributes(found[name]) == attributes(read_pod(obj)), name
            assert found[name].demand.same(read_pod(obj).demand)
        # And that is not because both have found nothing.
        assert found["small"].labels == LABELS
        assert found["small"].bound == read_pod({"spec": {"nodeName": "x"}, "status": BOUND}).bound
        assert found["small"].phase == "Running"
        assert found["inits"].phase == "Succeeded"
        assert found["inits"].requests["cpu"] == 3100.0
        assert found["overhead"].requests["cpu"] == 320.0
        assert found["whole"].requests["cpu"] == 2000.0
        assert found["several"].owner_kind == "DaemonSet"
        assert found["several"].limits == {}
        assert found["elsewhere"].scheduler_name == "another"

        for name in SPECS:
            path = f"{URL}/{name}?gracePeriodSeconds=0"
            await asyncio.to_thread(prepared.request, "DELETE", path)
        await until(lambda: not json.objects and not binary.objects)


async def test_a_refusal_of_a_protobuf_request_is_understood(prepared: ApiServer) -> None:
    async with ApiClient(find(str(prepared.kubeconfig)), field_manager="test") as client:
        for path, message in (
            ("/api/v1/podz", "could not find the requested resource"),
            ("/api/v1/pods?resourceVersion=x", 'resourceVersion: Invalid value: "x"'),
        ):
            request = ApiRequest("watch", path, PODS)
            with pytest.raises(ApiError, match=message):
                async with client.stream(request, {"watch": "1"}, silence=5.0, accept=ACCEPT):
                    pytest.fail("it was not refused")

"""New pods are completed and refused as a real API server completes and refuses them.

Each case creates objects at the API server and sends a pod as a dry run. The same objects are a
world, in which the same pod gets the same fields, or the reasons with which the API server refuses
it: all of them, where that stops at the first one.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest

from kube_scheduler_operator.simulate.admission import admit
from kube_scheduler_operator.simulate.kinds import KINDS
from kube_scheduler_operator.simulate.quotas import Quotas
from kube_scheduler_operator.simulate.world import World

from .conftest import ApiServer, RefusedError
from .played_nodes import until

Object = dict[str, Any]
NAMESPACE: Final = "new-pods"
RESOURCES: Final = {resource.kind: resource for resource in KINDS}
FIELDS: Final = (
    "nodeSelector", "overhead", "preemptionPolicy", "priority", "priorityClassName",
    "schedulerName", "tolerations",
)  # fmt: skip
_FORBIDDEN: Final = re.compile(r'^.*pods "\w+" is forbidden: ')


def container(name: str = "c", ports: Any = (), **resources: Any) -> Object:
    made = {"name": name, "image": "i", "resources": resources}
    return {**made, "ports": list(ports)} if ports else made


def pod(*containers: Object, **spec: Any) -> Object:
    return {"containers": list(containers) or [container()], **spec}


def limit(type_: str = "Container", **fields: Any) -> Object:
    return {"kind": "LimitRange", "spec": {"limits": [{"type": type_, **fields}]}}


def quota(hard: dict[str, str], **spec: Any) -> Object:
    return {"kind": "ResourceQuota", "spec": {"hard": hard, **spec}}


def runtime(**fields: Any) -> Object:
    return {"kind": "RuntimeClass", "handler": "h", **fields}


def priority(value: int, **fields: Any) -> Object:
    return {"kind": "PriorityClass", "value": value, **fields}


CPU, LARGE = {"cpu": "1"}, {"cpu": "4"}
KATA = {"nodeSelector": {"example.com/kata": "true"},
        "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}]}  # fmt: skip
HIGH = {"priorityClassName": "new-pods-0"}
SCOPED = {"scopes": ["BestEffort"]}
OF_CLASS = {"scopeSelector": {"matchExpressions": [
    {"scopeName": "PriorityClass", "operator": "In", "values": ["new-pods-0"]}]}}  # fmt: skip

ACCEPTED: Final[dict[str, tuple[list[Object], Object]]] = {
    "nothing": ([], pod()),
    "limits are requests": ([], pod(container(limits=CPU))),
    "ports of the host": ([], pod(container(ports=[{"containerPort": 80}]), hostNetwork=True)),
    "own toleration": ([], pod(tolerations=[
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}])),
    "overhead": ([runtime(overhead={"podFixed": {"cpu": "250m", "memory": "350Mi"}})],
                 pod(runtimeClassName="new-pods-0")),
    "selector and tolerations": ([runtime(scheduling=KATA)],
                                 pod(runtimeClassName="new-pods-0", nodeSelector={"a": "b"})),
    "defaults": ([limit(default={"cpu": "2"}, defaultRequest={"memory": "1Gi"})], pod()),
    "defaults of bounds": ([limit(max={"cpu": "2"}, min={"memory": "1Mi"})], pod()),
    "own request": ([limit(default={"cpu": "2"})], pod(container(requests=CPU))),
    "init containers": ([limit(default={"cpu": "2"})],
                        pod(container(), initContainers=[container("i")])),
    "priority": ([priority(1000)], pod(**HIGH)),
    "no preemption": ([priority(1000, preemptionPolicy="Never")], pod(**HIGH)),
    "built in": ([], pod(priorityClassName="system-node-critical")),
    "enough quota": ([quota({"pods": "2", "requests.cpu": "1"})], pod(container(requests=CPU))),
    "quota of other pods": ([quota({"pods": "0"}, **SCOPED)], pod(container(requests=CPU))),
    "quota of another class": ([quota({"pods": "0"}, **OF_CLASS)], pod()),
    "quota of storage": ([quota({"requests.storage": "0"})], pod()),
    "limits of pods": ([limit("Pod", max=LARGE)],
                       pod(container(limits=CPU), container("d", limits=CPU))),
}  # fmt: skip
REFUSED: Final[dict[str, tuple[list[Object], Object]]] = {
    "no such RuntimeClass": ([runtime()], pod(runtimeClassName="none")),
    "other overhead": ([runtime(overhead={"podFixed": CPU})],
                       pod(runtimeClassName="new-pods-0", overhead=LARGE)),
    "overhead without a class": ([], pod(overhead=CPU)),
    "selectors that exclude each other": (
        [runtime(scheduling=KATA)],
        pod(runtimeClassName="new-pods-0", nodeSelector={"example.com/kata": "false"})),
    "no such PriorityClass": ([priority(1)], pod(priorityClassName="none")),
    "another priority": ([priority(1000)], pod(**HIGH, priority=7)),
    "another policy": ([priority(1000, preemptionPolicy="Never")],
                       pod(**HIGH, preemptionPolicy="PreemptLowerPriority")),
    "minimum": ([limit(min=CPU)], pod(container(requests={"cpu": "100m"}))),
    "maximum of the limit": ([limit(max=CPU)], pod(container(limits=LARGE))),
    "several bounds": ([limit(max={"cpu": "1", "memory": "1Gi"})],
                       pod(container(limits={"cpu": "4", "memory": "4Gi"}))),
    "no limit": ([limit("Pod", max=CPU)], pod()),
    "ratio": ([limit(maxLimitRequestRatio={"cpu": "2"})],
              pod(container(limits=LARGE, requests=CPU))),
    "no request for the ratio": ([limit(maxLimitRequestRatio={"cpu": "2"})], pod()),
    "pods": ([limit("Pod", max=CPU)], pod(container(limits=CPU), container("d", limits=CPU))),
    "sidecars": ([limit("Pod", max={"cpu": "2"})],
                 pod(container(limits=CPU), initContainers=[
                     {**container("s", limits=CPU), "restartPolicy": "Always"},
                     container("i", limits={"cpu": "1500m"})])),
    "quota": ([quota({"requests.cpu": "3"})], pod(container(requests=LARGE))),
    "quota of several resources": ([quota({"cpu": "3", "memory": "1Gi", "pods": "9"})],
                                   pod(container(requests={"cpu": "4", "memory": "2Gi"}))),
    "quota and overhead": ([runtime(overhead={"podFixed": CPU}), quota({"cpu": "4"})],
                           pod(container(requests=LARGE), runtimeClassName="new-pods-0")),
    "quota of extended resources": ([quota({"requests.example.com/gpu": "1"})],
                                    pod(container(limits={"example.com/gpu": "2"}))),
    "quota of a class": ([priority(9), quota({"pods": "0"}, **OF_CLASS)], pod(**HIGH)),
    "quota of best effort": ([quota({"pods": "0"}, **SCOPED)], pod()),
    "missing requests": ([quota({"limits.cpu": "3", "requests.memory": "1Gi"})],
                         pod(container(), container("d", limits=CPU))),
    "two quotas": ([quota({"limits.cpu": "3"}), quota({"requests.memory": "1Gi"})], pod()),
}  # fmt: skip


class Made:
    """The objects of a case, at the API server and in a world."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._paths: list[str] = []
        self.world = World()

    def create(self, objects: list[Object]) -> None:
        for number, obj in enumerate(objects):
            resource = RESOURCES[obj["kind"]]
            group = f"/apis/{resource.group}" if resource.group else "/api"
            where = f"/namespaces/{NAMESPACE}" if resource.namespaced else ""
            metadata = {"name": f"new-pods-{number}"}
            path = f"{group}/{resource.version}{where}/{resource.plural}"
            full = {**obj, "apiVersion": resource.api_version, "metadata": metadata}
            self._api.request("POST", path, full)
            self._paths.append(f"{path}/{metadata['name']}")
            if obj["kind"] == "ResourceQuota":
                until(partial(self._is_counted, self._paths[-1]), "a quota is not counted")
        for path, obj in zip(self._paths, objects, strict=True):
            stored = self._api.request("GET", path)
            self.world.add({**stored, "kind": obj["kind"]})

    def _is_counted(self, path: str) -> bool:
        return "used" in self._api.request("GET", path).get("status", {})

    def ask(self, spec: Object) -> tuple[Object, str]:
        """Return the pod as the API server makes it, or why it refuses it."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"
        body = {"metadata": {"name": "asked"}, "spec": spec}
        try:
            return self._api.request("POST", path, body)["spec"], ""
        except RefusedError as error:
            return {}, _FORBIDDEN.sub("", str(error))

    def predict(self, spec: Object) -> tuple[Object, list[str]]:
        made = {
            "metadata": {"name": "asked", "namespace": NAMESPACE},
            "spec": copy.deepcopy(spec),
        }
        admission = admit(made, self.world)
        assert admission.unknown == []
        quotas = Quotas(self.world).admit(made, 1)
        return made["spec"], [*admission.refused, *quotas.reasons]

    def delete(self) -> None:
        for path in self._paths:
            self._api.request("DELETE", path)
        for path in self._paths:
            until(partial(self._is_gone, path), "an object is not deleted")

    def _is_gone(self, path: str) -> bool:
        try:
            self._api.request("GET", path)
        except RefusedError:
            return True
        return False


@pytest.fixture(scope="module")
def namespace(api_server: ApiServer) -> None:
    api_server.create_namespace(NAMESPACE)


@pytest.fixture
def made(api_server: ApiServer, namespace: None) -> Iterator[Made]:
    objects = Made(api_server)
    yield objects
    objects.delete()


def scheduled(spec: Object) -> Object:
    """The fields of a pod that scheduling reads."""
    kept = {field: spec[field] for field in FIELDS if spec.get(field)}
    for field in ("containers", "initContainers"):
        kept[field] = [
            (
                {key: value for key, value in (one.get("resources") or {}).items() if value},
                [port.get("hostPort") for port in one.get("ports") or ()],
            )
            for one in spec.get(field) or ()
        ]
    return kept


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_pod_is_completed_as_by_the_api_server(made: Made, name: str) -> None:
    objects, spec = ACCEPTED[name]
    made.create(objects)
    actual, refused = made.ask(spec)
    predicted, reasons = made.predict(spec)
    assert (refused, reasons) == ("", [])
    assert scheduled(predicted) == scheduled(actual)


@pytest.mark.parametrize("name", REFUSED)
def test_a_pod_is_refused_with_the_reasons_of_the_api_server(made: Made, name: str) -> None:
    objects, spec = REFUSED[name]
    made.create(objects)
    _, refused = made.ask(spec)
    assert refused
    _, reasons = made.predict(spec)
    stated = re.split(r", (?=(?:minimum|maximum|\w+ max) )", refused.strip("[]"))
    assert stated
    assert {*stated} <= {*reasons}, (stated, reasons)
    if "quota: " not in refused:  # of quotas, the API server names the first one only
        assert {*stated} == {*reasons}


def test_all_quotas_and_missing_requests_are_named(made: Made) -> None:
    """The API server names one quota, and the next one after that is satisfied."""
    objects, spec = REFUSED["two quotas"]
    made.create(objects)
    _, reasons = made.predict(spec)
    assert sorted(reasons) == [
        "failed quota: new-pods-0: must specify limits.cpu for: c",
        "failed quota: new-pods-1: must specify requests.memory for: c",
    ]

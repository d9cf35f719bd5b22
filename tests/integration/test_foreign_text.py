"""Which fields a real API server stores with characters that act, and what is shown of them.

The tables decide what tests/unit treats as foreign text. A NUL is stored, too. A lone surrogate is
not: the API server stores U+FFFD in its place. Names, keys and values of labels and taints, and
most references to objects are validated.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import kubectl_plugin
from kube_scheduler_operator.base.limits import FOREIGN_NAME
from kube_scheduler_operator.kube.client import ApiClient
from kube_scheduler_operator.kube.credentials import find
from kube_scheduler_operator.operator.diagnostics import (
    unknown_scheduler_names,
    unmanaged_schedulers,
)
from kube_scheduler_operator.operator.engine.polling import Poller
from kube_scheduler_operator.operator.model.snapshot import BindingScheduler

from ..hostile import FORGED, HOSTILE, STORED, expect_harmless
from .conftest import ApiServer, RefusedError
from .test_why import Files, pod

pytestmark = pytest.mark.presubmit

NAMESPACE = "foreign-text"
SHORT = f"\x1b]0;\x07\x00\r\u202e\n{FORGED[0]}"
EVENTS_V1 = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
CORE_EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"

Object = dict[str, Any]

POD: Object = {
    "metadata": {"annotations": {}, "labels": {}},
    "spec": {
        "nodeSelector": {},
        "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": ""}]}],
        "schedulingGates": [{"name": "example.com/a"}],
        "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
    },
}
INVOLVED: Object = {"kind": "Pod", "name": "p", "namespace": NAMESPACE}
CORE_EVENT: Object = {
    "metadata": {},
    "involvedObject": INVOLVED,
    "source": {},
    "type": "Normal",
}
EVENT: Object = {
    "metadata": {},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "type": "Normal",
    "reason": "Scheduled",
    "action": "Binding",
    "reportingController": "example.com/a",
    "reportingInstance": "a-b",
    "regarding": INVOLVED,
}
NODE: Object = {"metadata": {}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
LEASE: Object = {"metadata": {}, "spec": {}}

Field = tuple[str, Object, tuple[Any, ...]]

STORED_FIELDS: dict[str, Field] = {
    "Pod spec.schedulerName": (PODS, POD, ("spec", "schedulerName")),
    "Pod metadata.annotations": (PODS, POD, ("metadata", "annotations", "a")),
    "Pod image": (PODS, POD, ("spec", "containers", 0, "image")),
    "Pod args": (PODS, POD, ("spec", "containers", 0, "args")),
    "Pod env value": (PODS, POD, ("spec", "containers", 0, "env", 0, "value")),
    "Pod topologyKey": (PODS, POD, ("spec", "topologySpreadConstraints", 0, "topologyKey")),
    "core/v1 Event reason": (CORE_EVENTS, CORE_EVENT, ("reason",)),
    "core/v1 Event message": (CORE_EVENTS, CORE_EVENT, ("message",)),
    "core/v1 Event source.component": (CORE_EVENTS, CORE_EVENT, ("source", "component")),
    "core/v1 Event source.host": (CORE_EVENTS, CORE_EVENT, ("source", "host")),
    "core/v1 Event involvedObject.name": (CORE_EVENTS, CORE_EVENT, ("involvedObject", "name")),
    "core/v1 Event reportingComponent": (CORE_EVENTS, CORE_EVENT, ("reportingComponent",)),
    "core/v1 Event reportingInstance": (CORE_EVENTS, CORE_EVENT, ("reportingInstance",)),
    "core/v1 Event action": (CORE_EVENTS, CORE_EVENT, ("action",)),
    "events.k8s.io/v1 Event note": (EVENTS_V1, EVENT, ("note",)),
    "events.k8s.io/v1 Event action": (EVENTS_V1, EVENT, ("action",)),
    "events.k8s.io/v1 Event reportingInstance": (EVENTS_V1, EVENT, ("reportingInstance",)),
    "events.k8s.io/v1 Event reason": (EVENTS_V1, EVENT, ("reason",)),
    "Lease spec.holderIdentity": (LEASES, LEASE, ("spec", "holderIdentity")),
}
REFUSED_FIELDS: dict[str, Field] = {
    "Pod metadata.name": (PODS, POD, ("metadata", "name")),
    "Pod metadata.labels": (PODS, POD, ("metadata", "labels", "a")),
    "Pod spec.nodeName": (PODS, POD, ("spec", "nodeName")),
    "Pod spec.priorityClassName": (PODS, POD, ("spec", "priorityClassName")),
    "Pod spec.nodeSelector": (PODS, POD, ("spec", "nodeSelector", "a")),
    "Pod env name": (PODS, POD, ("spec", "containers", 0, "env", 0, "name")),
    "Pod scheduling gate": (PODS, POD, ("spec", "schedulingGates", 0, "name")),
    "Pod toleration value": (PODS, POD, ("spec", "tolerations", 0, "value")),
    "Node taint key": ("/api/v1/nodes", NODE, ("spec", "taints", 0, "key")),
    "Node taint value": ("/api/v1/nodes", NODE, ("spec", "taints", 0, "value")),
    "events.k8s.io/v1 Event reportingController": (EVENTS_V1, EVENT, ("reportingController",)),
}
STATUS_FIELDS: dict[str, tuple[Any, ...]] = {
    "condition reason": ("conditions", 0, "reason"),
    "condition message": ("conditions", 0, "message"),
    "message": ("message",),
    "reason": ("reason",),
    "waiting reason": ("containerStatuses", 0, "state", "waiting", "reason"),
    "waiting message": ("containerStatuses", 0, "state", "waiting", "message"),
    "termination reason": ("containerStatuses", 0, "lastState", "terminated", "reason"),
    "termination message": ("containerStatuses", 0, "lastState", "terminated", "message"),
    "imageID": ("containerStatuses", 0, "imageID"),
}


def put(obj: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        obj = obj[key]
    obj[path[-1]] = value


def get(obj: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        obj = obj[key]
    return obj


def create(api_server: ApiServer, field: Field, name: str, text: str) -> Object:
    collection, obj, path = field
    made = copy.deepcopy(obj)
    made["metadata"]["name"] = name
    put(made, path, [text] if path[-1] == "args" else text)
    return api_server.request("POST", collection, made)


@pytest.fixture(scope="module")
def namespace(api_server: ApiServer) -> Iterator[str]:
    api_server.create_namespace(NAMESPACE)
    yield NAMESPACE
    api_server.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def text_for(field: Field) -> str:
    """The text for a field; some of events.k8s.io have at most 128 bytes."""
    return SHORT if field[0] == EVENTS_V1 and field[2] != ("note",) else STORED


@pytest.mark.parametrize("name", STORED_FIELDS)
def test_the_api_server_stores_it_as_it_is(
    name: str, api_server: ApiServer, namespace: str
) -> None:
    field = STORED_FIELDS[name]
    number = list(STORED_FIELDS).index(name)
    text = text_for(field)
    found = create(api_server, field, f"stored-{number}", text)
    assert get(found, field[2]) in (text, [text])


@pytest.mark.parametrize("text", ["\x1b", "\x07", "a\nb", "a\u202eb"])
@pytest.mark.parametrize("name", REFUSED_FIELDS)
def test_the_api_server_refuses_it(
    name: str, text: str, api_server: ApiServer, namespace: str
) -> None:
    field = REFUSED_FIELDS[name]
    with pytest.raises(RefusedError, match=r"Invalid value|no PriorityClass"):
        create(api_server, field, "refused", text)


@pytest.mark.parametrize("name", STATUS_FIELDS)
def test_the_status_of_a_pod_may_have_it(name: str, api_server: ApiServer, namespace: str) -> None:
    number = list(STATUS_FIELDS).index(name)
    made = api_server.request(
        "POST",
        PODS,
        {
            "metadata": {"name": f"status-{number}"},
            "spec": {"containers": [{"name": "c", "image": "i"}], "schedulerName": "none"},
        },
    )
    state: Object = {"waiting": {}}
    made["status"] = {
        "conditions": [{"type": "PodScheduled", "status": "False"}],
        "containerStatuses": [
            {
                "name": "c",
                "image": "i",
                "imageID": "",
                "ready": False,
                "restartCount": 1,
                "state": state,
                "lastState": {"terminated": {"exitCode": 1}},
            }
        ],
    }
    put(made["status"], STATUS_FIELDS[name], HOSTILE)  # its lone surrogate, too
    found = api_server.request("PUT", f"{PODS}/status-{number}/status", made)
    assert get(found["status"], STATUS_FIELDS[name]) == STORED


def _begin(text: str, size: int) -> str:
    """As much of a text as the operator reads."""
    return text.encode()[:size].decode(errors="ignore")


async def polled(api_server: ApiServer) -> Poller:
    """What the operator reads of the cluster's Pods and Events."""
    poller = Poller(60.0, lambda: None)
    poller.served = frozenset({"default-scheduler"})
    async with ApiClient(find(str(api_server.kubeconfig)), field_manager="test") as api:
        await poller.poll_pods(api)
        await poller.poll_bindings(api)
        while poller.claims.token:  # tests beside this one make many Events
            await poller.poll_bindings(api)
    return poller


async def test_the_operator_compares_the_raw_name_and_shows_a_harmless_one(
    api_server: ApiServer, namespace: str
) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulerName": STORED}
    api_server.request("POST", PODS, {"metadata": {"name": "lonely"}, "spec": spec})
    pods = (await polled(api_server)).pods.values
    assert _begin(STORED, FOREIGN_NAME + 1) in {pod.scheduler for pod in pods}
    later = datetime(2100, 1, 1, tzinfo=UTC)
    waiting = unknown_scheduler_names.without_scheduler(pods, (), later)
    assert not unknown_scheduler_names.without_scheduler(
        pods, {pod.scheduler for pod in pods}, later
    )
    expect_harmless(unknown_scheduler_names.condition(waiting).message)
    for each in waiting:
        expect_harmless(unknown_scheduler_names.event_message(each))


async def test_a_binding_of_a_stranger_is_named_without_a_forged_line(
    api_server: ApiServer, namespace: str
) -> None:
    event = {**CORE_EVENT, "metadata": {"name": "bound"}, "reason": "Scheduled"}
    event |= {"reportingComponent": f"a{STORED}", "reportingInstance": f"a{STORED}-{STORED}"}
    api_server.request("POST", CORE_EVENTS, event)
    poller = await polled(api_server)
    claims = poller.claims.values
    assert _begin(f"a{STORED}", 129) in {claim.scheduler for claim in claims}
    assert poller.bindings == (), "the events of one namespace prove nothing"
    condition = unmanaged_schedulers.condition(
        [BindingScheduler(claim.scheduler, claim.host, claim.at) for claim in claims]
    )
    assert condition.status == "True"
    expect_harmless(condition.message)


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
@pytest.mark.parametrize("command", [("pending",), ("why", "lonely"), ("why", "gated")])
def test_commands_that_simulate_such_pods(
    command: tuple[str, ...],
    form: str,
    kube_scheduler_binary: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = Files()
    files.add(pod("lonely", schedulerName=STORED))
    spread = {"maxSkew": 1, "topologyKey": STORED, "whenUnsatisfiable": "DoNotSchedule"}
    files.add(pod("gated", schedulingGates=[{"name": STORED}], topologySpreadConstraints=[spread]))
    files.add(pod("picky", nodeSelector={STORED: STORED}))
    files.write(tmp_path / "world.json")
    words = ["--from-files", str(tmp_path / "world.json"), "-o", form]
    code = kubectl_plugin([*command, *words, "--kube-scheduler", str(kube_scheduler_binary)])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    expect_harmless(printed.out, indented=form != "yaml")
    expect_harmless(printed.err)
    if form == "json":
        assert json.loads(printed.out)
    elif form == "yaml":
        assert yaml.safe_load(printed.out)

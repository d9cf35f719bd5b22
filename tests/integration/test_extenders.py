"""SchedulerExtenders on a real API server, with the real DaemonSet controller.

The operator is the ServiceAccount that deploy/kubeadm makes: what it is not granted it cannot do.
The node, its installer and the kubelet that runs agents are played.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.api import ApiError
from cluster.observe import KUBESCHEDULER

from ..expect import has_conditions
from .harness import NODE, PlayedNode
from .played_cluster import APPS, CORE, GROUP, PlayedCluster, brought_up

KIND = f"{GROUP}/schedulerextenders"
LABEL = "kube-scheduler-operator.dev/extender"
SAFE = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 80}}]}
URL = "http://127.0.0.1:5401/safe"

# These tests share one cluster and must run in one process, in order.
pytestmark = pytest.mark.timeout(600, func_only=True)


class World(PlayedCluster):
    """The cluster of these tests; by default agents become Ready on its node."""

    kind, objects, label = "SchedulerExtender", KIND, LABEL
    makes = (f"{CORE}/configmaps", f"{APPS}/daemonsets")
    well = True  # whether an agent that starts becomes Ready

    def pending(self, pod: dict[str, Any]) -> None:
        if not pod["spec"].get("nodeName"):
            # The pods' scheduler is played as well.
            metadata = {"name": pod["metadata"]["name"]}
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata}
            path = f"{CORE}/pods/{pod['metadata']['name']}/binding"
            self.api.request("POST", path, {**binding, "target": target})
        elif self.well:
            self.becomes_ready(pod)

    def called(self) -> list[str]:
        """What the node's scheduler calls: the revision that it runs."""
        status = self.get(KUBESCHEDULER).get("status", {})
        current = (status.get("nodeStatuses") or [{}])[0].get("currentRevision", 0)
        if not current:
            return []
        data = self.get(f"{CORE}/configmaps/config-{current}")["data"]
        return [one["urlPrefix"] for one in json.loads(data["config.yaml"]).get("extenders", ())]

    def calm(self) -> bool:
        found = self.get(KUBESCHEDULER)
        entries = found.get("status", {}).get("nodeStatuses") or [{}]
        is_calm = has_conditions(found, NodeInstallerProgressing="False")
        return is_calm and bool(entries[0].get("currentRevision"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with brought_up(World, "se", tmp_path_factory.mktemp("operator")) as found:
        node = PlayedNode(found.sandbox)
        node.start()
        try:
            found.start()
            found.wait(found.calm)
            yield found
        finally:
            node.stop()


@pytest.fixture(autouse=True)
def _alone(world: World) -> Iterator[None]:
    world.well = True
    world.proxy.refuse = lambda method, path: 0
    world.start()
    yield
    world.well = True
    world.proxy.refuse = lambda method, path: 0
    for obj in world.listed(KIND):
        with contextlib.suppress(ApiError):
            world.delete(obj["metadata"]["name"])
    world.wait(lambda: world.called() == [] and world.made("safe") == set() and world.calm())


MADE = {"configmaps extender-safe", "daemonsets extender-safe"}


@pytest.mark.presubmit
def test_agents_come_with_the_operators_own_rights_and_are_called_once_they_are_ready(
    world: World,
) -> None:
    world.well = False
    world.put("safe", agent=SAFE)
    world.wait(lambda: world.made("safe") == MADE)
    world.wait(lambda: world.condition("safe", "Available")[1] == "AgentsNotReady")
    assert world.status("safe")["agent"]["port"] == 5401
    assert "readySince" not in world.status("safe")["agent"]
    assert world.called() == []
    world.well = True
    world.wait(lambda: world.called() == [URL])
    world.wait(lambda: world.condition("safe", "Available")[0] == "True")
    status = world.status("safe")
    assert (status["endpoint"], status["agent"]["ready"]) == (URL, 1)


def test_a_settled_operator_writes_nothing(world: World) -> None:
    world.put("safe", agent={**SAFE, "resources": {"requests": {"cpu": "0.10"}}})
    world.put("foreign", url="http://10.0.0.1/x", verbs={"filter": "f"})
    world.wait(lambda: world.called() == ["http://10.0.0.1/x", URL])
    world.wait(lambda: world.condition("safe", "Available")[0] == "True" and world.calm())
    time.sleep(2)
    assert world.writes_within(5) == [], world.proxy.bodies


@pytest.mark.presubmit
def test_after_a_bad_edit_the_last_accepted_version_stays_in_use(world: World) -> None:
    world.put("safe", agent=SAFE)
    world.wait(lambda: world.called() == [URL])
    world.put("safe", agent={"policies": [{"name": "safe-overlord"}]})
    world.put("zz", url="http://10.0.0.1/zz", verbs={"filter": "f"})
    world.wait(lambda: world.called() == [URL, "http://10.0.0.1/zz"])
    assert world.condition("safe", "Accepted")[:2] == ("False", "LastAcceptedInUse")
    assert "did you mean" in world.condition("safe", "Accepted")[2]
    assert world.made("safe") == MADE


@pytest.fixture
def gate(world: World) -> Iterator[str]:
    """The path of OperatorSettings with a Gate; deleted at the end, with what it holds."""
    path = f"{GROUP}/operatorsettings"
    metadata = {"metadata": {"name": "cluster"}}
    kind = {"apiVersion": GROUP.removeprefix("/apis/"), "kind": "OperatorSettings"}
    world.put("safe", agent=SAFE)
    world.wait(lambda: world.called() == [URL] and world.calm())
    spec = {"placementCheck": {"mode": "Gate"}}
    world.api.request("POST", path, {**kind, **metadata, "spec": spec})
    yield f"{path}/cluster"
    world.api.request("DELETE", f"{path}/cluster")


def test_with_a_gate_new_policies_reach_agents_after_an_approval(world: World, gate: str) -> None:
    def check() -> dict[str, Any]:
        return dict(world.get(gate).get("status", {}).get("placementCheck") or {})

    def file() -> str:
        return str(world.get(f"{CORE}/configmaps/extender-safe")["data"]["extender.json"])

    world.wait(lambda: check().get("ran"))
    edited = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 1}}]}
    world.put("safe", agent=edited)
    world.wait(lambda: world.condition("safe", "Accepted")[:2] == ("False", "Waiting"))
    world.wait(lambda: check().get("state") == "Held")
    time.sleep(2)
    # No node of this cluster can run the simulation.
    assert (check()["result"], '"utilization":80' in file()) == ("Failed", True)
    approval = {"spec": {"placementCheck": {"approved": check()["configuration"]}}}
    world.api.request("PATCH", gate, approval)
    world.wait(lambda: '"utilization":1' in file())
    world.wait(lambda: world.condition("safe", "Accepted")[0] == "True")
    assert world.called() == [URL]


def test_the_scheduler_stops_calling_before_the_agents_go(world: World) -> None:
    world.put("safe", agent=SAFE)
    world.wait(lambda: world.called() == [URL] and world.calm())
    seen: list[tuple[bool, bool]] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            with contextlib.suppress(ApiError):
                called = world.called() == [URL]  # in this order, because time goes on in between
                seen.append((called, "daemonsets extender-safe" in world.made("safe")))

    thread = threading.Thread(target=look, daemon=True)
    there = world.made("safe")
    thread.start()
    world.delete("safe")
    world.wait(lambda: world.made("safe") == set())
    done.set()
    thread.join(10)
    assert there == MADE
    assert world.called() == []
    # What was called at one moment must have been there a moment before.
    gone = next((i for i, (_, exists) in enumerate(seen) if not exists), len(seen))
    assert not any(called for called, _ in seen[gone + 1 :]), seen


def test_changed_or_deleted_objects_are_restored(world: World) -> None:
    world.put("safe", agent=SAFE)
    world.wait(lambda: world.called() == [URL])
    daemon_set = f"{APPS}/daemonsets/extender-safe"
    patch = {"spec": {"template": {"spec": {"hostNetwork": False}}}}
    world.api.request("PATCH", daemon_set, patch)
    world.api.request("DELETE", f"{CORE}/configmaps/extender-safe")
    world.wait(lambda: bool(world.get(daemon_set)["spec"]["template"]["spec"].get("hostNetwork")))
    world.wait(lambda: world.made("safe") == MADE)
    world.api.request("DELETE", daemon_set)
    world.wait(lambda: world.made("safe") == MADE)
    assert world.called() == [URL], "it was Ready once"


def test_other_arguments_need_no_revision_and_no_restart(world: World) -> None:
    world.put("safe", agent=SAFE)
    world.wait(lambda: world.called() == [URL] and world.calm())
    generation = world.get(f"{APPS}/daemonsets/extender-safe")["metadata"]["generation"]
    revision = world.get(KUBESCHEDULER)["status"]["latestAvailableRevision"]
    other = {"policies": [{"name": "safe-overload", "arguments": {"utilization": 71}}]}
    world.put("safe", agent=other)
    path = f"{CORE}/configmaps/extender-safe"
    world.wait(lambda: "71" in world.get(path)["data"]["extender.json"])
    found = world.get(f"{APPS}/daemonsets/extender-safe")
    assert found["metadata"]["generation"] == generation
    status = world.get(KUBESCHEDULER)["status"]
    assert status["latestAvailableRevision"] == revision


def test_a_refused_write_is_reported_and_stops_nothing_else(world: World) -> None:
    world.proxy.refuse = lambda method, path: (
        403 if method == "POST" and path.endswith("/daemonsets") else 0
    )
    world.put("safe", agent=SAFE)
    world.put("zz", url="http://10.0.0.1/zz", verbs={"filter": "f"})
    world.wait(lambda: world.called() == ["http://10.0.0.1/zz"])
    world.wait(lambda: world.condition("safe", "Degraded")[0] == "True")
    assert "403" in world.condition("safe", "Degraded")[2]
    world.proxy.refuse = lambda method, path: 0
    world.wait(lambda: URL in world.called(), 90)
    world.wait(lambda: world.condition("safe", "Degraded")[0] == "False")


@pytest.mark.presubmit
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "set either url"),
        ({"url": "http://a", "verbs": {"filter": "f"}, "agent": SAFE}, "set either url"),
        (
            {"url": "http://a", "verbs": {"filter": "f"},
             "agent": {**SAFE, "schedulerNames": ["x"]}},
            "calls an extender for all Pods",
        ),
        ({"url": "http://a"}, "never called"),
        ({"agent": SAFE, "verbs": {"filter": "f"}}, "agent.verbs"),
        ({"agent": {**SAFE, "verbs": {"filter": False, "prioritize": False}}}, "never called"),
        ({"agent": {**SAFE, "port": 80}}, "need privileges"),
        ({"agent": {**SAFE, "port": 10259}}, "Kubernetes itself"),
        ({"agent": {"policies": []}}, "at least 1"),
        ({"agent": {"policies": [{"name": "a"}, {"name": "a"}]}}, "Duplicate"),
        ({"agent": SAFE, "timeout": "0s"}, "1ms to 1m"),
        ({"agent": SAFE, "timeout": "61s"}, "1ms to 1m"),
        ({"agent": SAFE, "weight": -1}, "greater than or equal to 0"),
        ({"agent": SAFE, "managedResources": [{"name": "cpu"}]}, "extended resource"),
        ({"agent": SAFE, "tls": {"insecure": True}}, "begins with https"),
        (
            {"url": "https://a", "verbs": {"filter": "f"}, "tls": {"certFile": "/a"}},
            "need each other",
        ),
        (
            {"url": "https://a", "verbs": {"filter": "f"},
             "tls": {"insecure": True, "caFile": "/a"}},
            "cannot be combined with a CA",
        ),
    ],
)  # fmt: skip
def test_the_api_server_refuses_invalid_objects(
    world: World, spec: dict[str, Any], words: str
) -> None:
    with pytest.raises(ApiError, match=words):
        world.api.request("POST", KIND, world.body("refused", spec))


@pytest.mark.parametrize("name", ["a.b", "a" * 41])
def test_names_that_cannot_be_parts_of_urls_and_pods(world: World, name: str) -> None:
    with pytest.raises(ApiError, match="at most 40"):
        world.put(name, agent=SAFE)

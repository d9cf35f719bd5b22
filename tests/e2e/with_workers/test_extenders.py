"""HTTP extenders of real schedulers: of a further one in its own pod, and of the control plane's.

The first half is what people do with IBM's kube-safe-scheduler: two agents as two containers beside
a scheduler of their own, a pod that asks for it, and a look into the logs.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from cluster import images
from cluster.api import ApiError
from cluster.console import SandboxError
from cluster.observe import OPERATOR_NAMESPACE, follow, until

from ...expect import is_ready
from ..conftest import CONFIG_MAPS, REPOSITORY, SCHEDULER_EXTENDERS, SECONDARY_SCHEDULERS, Cluster
from ..faults import dead, pids_of
from ..workloads import (
    annotate,
    apply,
    conditions,
    create,
    delete,
    events,
    made_for,
    node_of,
    own_pods,
    patient,
    placed,
    pod,
    wait_for,
    why_pending,
)

pytestmark = pytest.mark.usefixtures("no_pods_left")

EXAMPLES = REPOSITORY / "docs/examples"
NAME = "my-scheduler"
OF_SCHEDULER = f"kube-scheduler-operator.dev/secondary-scheduler={NAME}"
WELL = {"Available": "True", "Progressing": "False", "Degraded": "False"}
REQUEST = 200
"""Millicores that test-pod requests."""

FOREIGN = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = asked.get("NodeNames") or asked["nodenames"]
        if self.path.endswith("/only"):
            rest = {name: "reserved for another Pod" for name in names if name != NODE}
            answer = {"NodeNames": [name for name in names if name == NODE], "FailedNodes": rest}
        else:
            answer = [{"Host": name, "Score": 0} for name in names]
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("", PORT), Handler).serve_forever()
"""
FOREIGN_PORT = 8765
SYNCED = 3.0
"""Seconds after which an agent knows what has changed on a node: it takes 0.1 of them."""


@pytest.fixture(scope="module")
def safe(shared_cluster: Cluster, workers: tuple[str, str]) -> Iterator[Cluster]:
    """The cluster with my-scheduler and its extenders safe and congestion."""
    shared_cluster.rest()
    apply(shared_cluster, *patient((EXAMPLES / "safe-congestion.yaml").read_text()))
    _is_well(shared_cluster)
    for name in ("safe", "congestion"):
        wait_for(shared_cluster, f"{SCHEDULER_EXTENDERS}/{name}", Accepted="True", Available="True")
    yield shared_cluster
    for name in workers:
        _used(shared_cluster, name, None)
    for path in (SECONDARY_SCHEDULERS, SCHEDULER_EXTENDERS):
        shared_cluster.api.request("DELETE", path)


def _is_well(cluster: Cluster) -> None:
    wait_for(cluster, f"{SECONDARY_SCHEDULERS}/{NAME}", timeout=120, **WELL)


def _called(cluster: Cluster) -> list[str]:
    """Where the extenders are that the scheduler's status has."""
    status = cluster.api.request("GET", f"{SECONDARY_SCHEDULERS}/{NAME}")["status"]
    return list(status.get("extenders", ()))


def _used(
    cluster: Cluster, node: str, share: float | None, deviation: float = 0, congestion: int = 0
) -> None:
    """Annotate a node as kube-safe-scheduler's annotator does: `share` of its CPU with test-pod."""
    values: dict[str, str | None] = dict.fromkeys(
        ("mean_free_cpu", "std_free_cpu", "congestion_factor")
    )
    if share is not None:
        found = cluster.api.request("GET", f"/api/v1/nodes/{node}")["status"]["allocatable"]["cpu"]
        cpus = int(found.removesuffix("m")) if found.endswith("m") else int(found) * 1000
        values = {
            "mean_free_cpu": f"{cpus * (1 - share) + REQUEST:.0f}",
            "std_free_cpu": f"{cpus * deviation:.0f}",
            "congestion_factor": str(congestion),
        }
    annotate(cluster, node, **values)


def _test_pod(name: str, **spec: Any) -> dict[str, Any]:
    """The example's pod with an image that the nodes have."""
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "test-pod.yaml").read_text())
    found["metadata"]["name"] = name
    found["spec"]["containers"][0]["image"] = images.PAUSE
    found["spec"] |= {"terminationGracePeriodSeconds": 0, **spec}
    return found


def _lands(cluster: Cluster, name: str, **spec: Any) -> str:
    """The node that a pod like test-pod gets once the agents have the annotations."""
    time.sleep(SYNCED)  # not until the result is right: ties are broken at random
    create(cluster, _test_pod(name, **spec))
    node = placed(cluster, name)
    until(lambda: bool(events(cluster, name, "Scheduled")), 30, "there is no event")
    (event,) = events(cluster, name, "Scheduled")
    assert event["reportingController"] == spec.get("schedulerName", NAME)
    assert event["note"] == f"Successfully assigned default/{name} to {node}"
    delete(cluster, name)
    return node


def _log(cluster: Cluster, extender: str) -> str:
    """The log of a container of the scheduler's pod."""
    (found,) = own_pods(cluster, OF_SCHEDULER)
    (container,) = (
        each["name"] for each in found["spec"]["containers"] if extender in each["name"]
    )
    name = found["metadata"]["name"]
    return cluster.kubectl("-n", OPERATOR_NAMESPACE, "logs", name, "-c", container)


@pytest.mark.presubmit
def test_a_pod_goes_to_the_node_that_two_extenders_score_highest(
    safe: Cluster, workers: tuple[str, str]
) -> None:
    (found,) = own_pods(safe, OF_SCHEDULER)
    assert len(found["spec"]["containers"]) == 3, "the scheduler and two extenders in one pod"
    one, other = workers
    # safe: 0.3 of a node leaves (10 + 10 * 9) / 11 = 9 points, 0.6 leaves (10 + 10 * 7) / 11 = 7.
    _used(safe, one, 0.6)
    _used(safe, other, 0.3)
    assert _lands(safe, "test-pod") == other
    # congestion: 8 of at most 10 leaves 2 points, none leaves 10: 17 against 11 together.
    _used(safe, other, 0.3, congestion=8)
    assert _lands(safe, "of-both") == one
    # safe: with a mean of 0.85 and this deviation the risk of more than 0.9 is above 30 %.
    _used(safe, one, 0.85, deviation=0.15)
    assert _lands(safe, "not-at-risk") == other
    trace = _log(safe, "safe")
    for part in ("of-both", one, other, "safe-overload", "safe-balance"):
        assert part in trace, f"{part} is not in the trace:\n{trace[-3000:]}"
    trace = _log(safe, "congestion")
    for part in ("of-both", one, other, "congestion"):
        assert part in trace, f"{part} is not in the trace:\n{trace[-3000:]}"


def test_a_pod_without_a_node_gets_an_event_with_the_reasons(
    safe: Cluster, workers: tuple[str, str]
) -> None:
    for name, level in zip(workers, (0.98, 0.99), strict=True):
        _used(safe, name, level)
    time.sleep(SYNCED)
    create(safe, _test_pod("rejected"))
    until(  # one reason for both
        lambda: "2 safe-overload: the risk" in why_pending(safe, "rejected"),
        60,
        lambda: f"no event: {why_pending(safe, 'rejected')!r}",
    )

    def event() -> str:
        found = events(safe, "rejected", "FailedScheduling")
        return str(found[-1]["note"]) if found else ""

    until(lambda: "risk" in event(), 30, lambda: f"not in the event: {event()!r}")
    table = _explain(safe, "default/rejected")
    for part in ("safe-overload", *workers):
        assert part in table, table
    # The load of one goes. The pod is tried again with this change; if the extender learns of it
    # later than kube-scheduler, with the next one.
    shares = itertools.cycle((0.2, 0.21))

    def tried_again() -> bool:
        _used(safe, workers[1], next(shares))
        time.sleep(SYNCED)
        return bool(node_of(safe, "rejected"))

    until(tried_again, 60, lambda: why_pending(safe, "rejected"))
    assert node_of(safe, "rejected") == workers[1]
    _used(safe, workers[0], 0.2)
    time.sleep(SYNCED)
    create(safe, _test_pod("compared"))
    placed(safe, "compared")
    table = _explain(safe, "default/compared")
    for part in ("safe-overload", "safe-balance", "congestion", *workers):
        assert part in table, table
    print(table)
    delete(safe, "rejected", "compared")


def _explain(cluster: Cluster, name: str) -> str:
    """`kubectl scheduler explain`, which knows the last decisions about a pod."""
    done = cluster.plugin("explain", name)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def _foreign(cluster: Cluster, node: str) -> Iterator[str]:
    """A foreign extender in a node's network that accepts only that node."""
    program = f"NODE, PORT = {node!r}, {FOREIGN_PORT}\n{FOREIGN}"
    container = {
        "name": "main",
        "image": images.OPERATOR,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", program],
        "readinessProbe": {"tcpSocket": {"port": FOREIGN_PORT}, "periodSeconds": 1},
    }
    create(cluster, pod("foreign", nodeName=node, hostNetwork=True, containers=[container]))
    path = "/api/v1/namespaces/default/pods/foreign"

    def ready() -> bool:
        return is_ready(cluster.api.request("GET", path))

    until(ready, 60, "the foreign extender does not run")
    address = cluster.api.request("GET", path)["status"]["hostIP"]
    yield f"http://{address}:{FOREIGN_PORT}/any"
    delete(cluster, "foreign")


def test_a_foreign_url_is_called_as_well(safe: Cluster, workers: tuple[str, str]) -> None:
    one, other = workers
    _used(safe, one, 0.2)
    _used(safe, other, 0.7)
    with _foreign(safe, other) as url:
        spec = {"scheduler": NAME, "url": url, "verbs": {"filter": "only", "prioritize": "scores"}}
        # It is Python's simplest server on a busy machine, and one that is late is left out.
        _extender(safe, "foreign", {**spec, "timeout": "5s"})
        found = wait_for(safe, f"{SCHEDULER_EXTENDERS}/foreign", Accepted="True")
        assert conditions(found)["Available"]["status"] == "Unknown", "only the scheduler knows"
        assert found["status"]["endpoint"] == url
        # Each object's status is written by itself: the scheduler's may be older.
        until(lambda: url in _called(safe), 60, lambda: f"called: {_called(safe)}")
        _is_well(safe)
        assert _lands(safe, "foreign-decides") == other
    # It is gone, and ignorable as extenders are by default.
    assert _lands(safe, "foreign-is-away") == one
    safe.api.request("DELETE", f"{SCHEDULER_EXTENDERS}/foreign")
    _is_well(safe)
    both = {**spec, "agent": {**AGENT, "podSelector": {"matchLabels": {"a": "b"}}}}
    with pytest.raises(SandboxError, match="Only an agent supports podSelector"):
        _extender(safe, "narrowed", both)


def _manifest(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "SchedulerExtender",
        "metadata": {"name": name},
        "spec": spec,
    }


def _extender(cluster: Cluster, name: str, spec: dict[str, Any]) -> None:
    apply(cluster, _manifest(name, spec))


def test_deleting_the_scheduler_leaves_its_extenders_without_one(safe: Cluster) -> None:
    safe.api.request("DELETE", f"{SECONDARY_SCHEDULERS}/{NAME}")
    until(
        lambda: not made_for(safe, OF_SCHEDULER),
        90,
        lambda: f"left: {made_for(safe, OF_SCHEDULER)}",
    )
    found = wait_for(safe, f"{SCHEDULER_EXTENDERS}/safe", Available="False")
    assert NAME in conditions(found)["Accepted"].get("message", "") + str(found["status"])
    for name in ("safe", "congestion"):
        safe.api.request("DELETE", f"{SCHEDULER_EXTENDERS}/{name}")


# --- a scheduler that learns ----------------------------------------------------------------------

STATE = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/configmaps/rl-priority-state"
FLAKY = "flaky"


def _pods_of_monitor(cluster: Cluster) -> str:
    return cluster.kubectl(
        "-n", OPERATOR_NAMESPACE, "get", "pods", "-l", "app=rl-monitor", "-o", "name"
    )


@pytest.fixture
def learning(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with docs/examples/rl-priority.yaml."""
    shared_cluster.rest()
    manifests = (EXAMPLES / "rl-priority.yaml").read_text()
    apply(shared_cluster, *patient(manifests))
    wait_for(shared_cluster, f"{SECONDARY_SCHEDULERS}/learning", timeout=120, **WELL)
    wait_for(
        shared_cluster, f"{SCHEDULER_EXTENDERS}/rl-priority", Accepted="True", Available="True"
    )
    yield shared_cluster
    # It writes down what it knows when it ends, for which it needs its rights.
    scale = ("scale", "deployment/rl-monitor", "--replicas=0")
    shared_cluster.kubectl("-n", OPERATOR_NAMESPACE, *scale)
    until(lambda: not _pods_of_monitor(shared_cluster), 60, "rl-monitor does not end")
    shared_cluster.kubectl("delete", "--wait=false", "-f", "-", stdin=manifests)
    shared_cluster.api.request("DELETE", STATE)


def _flaky(name: str, code: str, **spec: Any) -> dict[str, Any]:
    """A pod of one type that exits with the given code."""
    container = {
        "name": "main",
        "image": images.OPERATOR,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", code],
    }
    made = pod(name, containers=[container], **spec)
    made["metadata"]["labels"] = {"app": FLAKY}
    return made


@pytest.mark.presubmit
def test_a_scheduler_learns_on_which_nodes_pods_succeed(
    learning: Cluster, workers: tuple[str, str]
) -> None:
    bad, good = workers
    create(
        learning,
        _flaky("fails", "raise SystemExit(1)", nodeName=bad),
        _flaky("runs", "import time; time.sleep(3600)", nodeName=good),
    )

    def learnt() -> dict[str, float]:
        try:
            state = json.loads(learning.api.request("GET", STATE)["data"]["state.json"])
        except ApiError:
            return {}
        return {node: value for kind, node, value in state["values"] if kind == FLAKY}

    until(
        lambda: learnt().get(good) == 1.0 and learnt().get(bad, 1.0) < 0.9,
        90,
        lambda: f"two failures and a pod that runs, and nothing was learnt of it: {learnt()}",
    )
    time.sleep(SYNCED)
    names = [f"flaky-{number}" for number in range(4)]
    for name in names:
        create(learning, _flaky(name, "import time; time.sleep(3600)", schedulerName="learning"))
        assert placed(learning, name) == good
    table = _explain(learning, f"default/{names[-1]}")
    assert "rl-priority" in table, table
    delete(learning, "fails", "runs", *names)


# --- the control plane's scheduler ----------------------------------------------------------------

GUIDE = "guide"
OF_GUIDE = f"kube-scheduler-operator.dev/extender={GUIDE}"
AGENT = {
    "policies": [
        {"name": "safe-overload", "arguments": {"annotations": "safe"}},
        {"name": "safe-balance", "arguments": {"annotations": "safe"}},
        {"name": "rl-priority"},
        # Looks at pods, which the others do not, and has no say.
        {"name": "pigeon-holing", "weight": 0},
    ],
    "verbs": {"bind": True},
}
DEFAULT = {"schedulerName": "default-scheduler"}


@pytest.fixture(scope="module")
def guided(shared_cluster: Cluster, workers: tuple[str, str]) -> Iterator[Cluster]:
    """The control plane's scheduler with an agent on its node."""
    shared_cluster.rest_with_default_profile()
    before = {"status": shared_cluster.status}
    start = time.monotonic()
    _extender(shared_cluster, GUIDE, {"agent": AGENT, "weight": 10, "timeout": "2s"})
    line = follow(shared_cluster.api, before, start)
    assert line.outcome == "installed", line.message
    wait_for(shared_cluster, f"{SCHEDULER_EXTENDERS}/{GUIDE}", Accepted="True", Available="True")
    yield shared_cluster
    for name in workers:
        _used(shared_cluster, name, None)
    with contextlib.suppress(ApiError):
        shared_cluster.api.request("DELETE", f"{SCHEDULER_EXTENDERS}/{GUIDE}")


def _bound_by_agents(cluster: Cluster) -> int:
    """How many bindings the API server had from agents."""
    log = (cluster.sandbox.state / "logs/audit.log").read_text()
    return sum(
        "scheduler-extender-binder" in line and '"subresource":"binding"' in line
        for line in log.splitlines()
    )


def _revised_extenders(cluster: Cluster) -> str:
    """The configuration of the revision that the nodes run, if it has extenders."""
    revision = cluster.api.request("GET", f"{CONFIG_MAPS}/config-{cluster.current}")
    found = "\n".join(revision["data"].values())
    return found if "extenders" in found else ""


def _agents(cluster: Cluster) -> list[int]:
    """The processes of the control plane's agents."""
    return pids_of(cluster, OF_GUIDE, "extender")


def test_an_agent_runs_next_to_the_control_planes_scheduler(
    guided: Cluster, workers: tuple[str, str]
) -> None:
    one, other = workers
    (agent,) = own_pods(guided, OF_GUIDE)
    assert agent["spec"]["hostNetwork"]
    assert agent["spec"]["nodeName"] == guided.node.name
    found = guided.api.request("GET", f"{SCHEDULER_EXTENDERS}/{GUIDE}")
    assert found["status"]["endpoint"].startswith("http://127.0.0.1:")
    assert found["status"]["endpoint"] in _revised_extenders(guided)
    before = _bound_by_agents(guided)
    for better, worse in ((one, other), (other, one)):
        _used(guided, better, 0.1)
        _used(guided, worse, 0.9, deviation=0.1)
        assert _lands(guided, "guided", **DEFAULT) == better
    assert _bound_by_agents(guided) >= before + 2, "it was to bind them as well"
    _used(guided, one, 0.99)
    time.sleep(SYNCED)
    only = {"nodeSelector": {"kubernetes.io/hostname": one}}
    create(guided, _test_pod("rejected", **DEFAULT, **only))
    until(
        lambda: bool(events(guided, "rejected", "ExtenderRejectedNodes")),
        60,
        lambda: f"no event: {why_pending(guided, 'rejected')!r}",
    )
    delete(guided, "rejected")


def test_pods_are_scheduled_while_the_agent_hangs_and_while_it_is_dead(
    guided: Cluster, workers: tuple[str, str]
) -> None:
    one, other = workers
    _used(guided, one, 0.1)
    _used(guided, other, 0.9, deviation=0.1)
    stopped = _agents(guided)
    assert stopped
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert guided.schedules() < 15, "an agent that hangs costs its time-out"
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    path = f"{SCHEDULER_EXTENDERS}/{GUIDE}"
    with dead(lambda: _agents(guided)):
        found = wait_for(guided, path, timeout=90, Available="False", Degraded="True")
        assert "crashes" in conditions(found)["Degraded"]["message"]
        for _ in range(3):
            assert guided.schedules() < 15
    # The kubelet waits for up to 20 s until it starts a container again that has just ended.
    wait_for(guided, path, Available="True", Degraded="False", timeout=120)
    assert _lands(guided, "back", **DEFAULT) == one, "it does not count again"


def test_a_deleted_extender_is_not_called_any_more_when_its_agents_stop(guided: Cluster) -> None:
    left = made_for(guided, OF_GUIDE)
    assert any("daemonset" in name for name in left)
    guided.api.request("DELETE", f"{SCHEDULER_EXTENDERS}/{GUIDE}")

    def gone() -> bool:
        left = made_for(guided, OF_GUIDE)
        called = bool(_revised_extenders(guided))
        assert left or not called, "the scheduler calls an agent that has gone"
        return not called and not left

    until(gone, 180, lambda: f"left: {made_for(guided, OF_GUIDE)}")
    guided.rest()
    guided.schedules()

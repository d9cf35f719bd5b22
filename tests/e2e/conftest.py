"""Real clusters for the end-to-end tests: one with a control-plane node, then one with three.

The tests run in the order of their files, each starts from a calm cluster and leaves one. The
profile stays what the test before made it, because going back to the default is one more rollout.

`make e2e` runs them in two processes, which mostly wait: one has the tests of the cluster with one
control-plane node, the other those of all other clusters, one after the other. The last tests are
about all of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from cluster import lifecycle, nodes, operator_image, teardown
from cluster.api import Api
from cluster.console import run
from cluster.model import Node, Sandbox
from cluster.observe import (
    KUBESCHEDULER,
    OPERATOR_NAMESPACE,
    SCHEDULER,
    Timeline,
    cluster_operator,
    delete_pod,
    edit,
    schedule_pod,
    scheduler_processes,
    until,
)

from .ledger import Ledger

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = f"e2e-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
NAME_OF_THREE = f"{NAME}-3"
NAME_OF_OPENSHIFT = f"{NAME}-o"
NAME_TO_LEAVE = f"{NAME}-i"
NAMES = (NAME, NAME_OF_THREE, NAME_OF_OPENSHIFT, NAME_TO_LEAVE)
STARTED: list[str] = []
LEDGER = Ledger()
PODS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods"
PODS_IN_DEFAULT = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/configmaps"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{OPERATOR_NAMESPACE}/deployments/kube-scheduler-operator"
SCHEDULER_PROFILES = "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerprofiles"
SECONDARY_SCHEDULERS = "/apis/kube-scheduler-operator.dev/v1alpha1/secondaryschedulers"
SCHEDULER_EXTENDERS = "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerextenders"
LOAD_POLICIES = "/apis/kube-scheduler-operator.dev/v1alpha1/loadpolicies"
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bound the tests themselves, not the start of the cluster before the first of them."""
    if "KSO_SOAK" not in os.environ:
        long = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
    for item in items:
        if (
            item.path.is_relative_to(Path(__file__).parent)
            and item.get_closest_marker("timeout") is None
        ):
            item.add_marker(pytest.mark.timeout(300, func_only=True))


class ByCluster(LoadScopeScheduling):
    """Shares the tests out: those of the first cluster, and those of all others."""

    def _split_scope(self, nodeid: str) -> str:
        return "first" if re.search(r"/test_[1-5]_", nodeid) else "others"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByCluster:
    return ByCluster(config, log)


def pytest_xdist_setupnodes() -> None:
    """Only before there are several processes: what one of them finds may be the other's."""
    _nothing_is_left()


def pytest_runtest_setup(item: pytest.Item) -> None:
    LEDGER.files.add(item.path.name)


def pytest_sessionfinish(session: pytest.Session) -> None:
    folder = os.environ.get("KSO_LEDGER")
    if folder and hasattr(session.config, "workerinput"):
        LEDGER.save(Path(folder, f"{os.getpid()}.pickle"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    audit, search = LEDGER.audit, LEDGER.search
    if audit.requests:
        terminalreporter.write_line(
            f"{audit.requests} requests to {len(audit.clusters)} clusters audited: "
            f"{len(audit.granted)} rights granted, {len(audit.unused())} of them not used, "
            f"{len(audit.refused)} requests refused"
        )
    if search.clusters:
        places = ", ".join(f"{count} {kind}" for kind, count in sorted(search.places.items()))
        terminalreporter.write_line(
            f"{search.size / 2**20:.0f} MiB searched for {search.secrets} secrets "
            f"({places}): {len(search.found)} found"
        )


class Cluster:
    """The cluster, as tests talk about it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.api = Api(sandbox)
        self.node = sandbox.nodes[0]

    @property
    def kubescheduler(self) -> dict[str, Any]:
        return self.api.request("GET", KUBESCHEDULER)

    @property
    def status(self) -> dict[str, Any]:
        return self.kubescheduler.get("status", {})

    @property
    def current(self) -> int:
        """The revision that all control-plane nodes have reached."""
        entries = self.status.get("nodeStatuses") or [{}]
        return min(int(entry.get("currentRevision", 0)) for entry in entries)

    @property
    def latest(self) -> int:
        return int(self.status.get("latestAvailableRevision", 0))

    def condition(self, kind: str) -> tuple[str, str]:
        """Status and message of a condition of KubeScheduler."""
        for condition in self.status.get("conditions", []):
            if condition["type"] == kind:
                return condition["status"], condition.get("message", "")
        return "", ""

    def cluster_operator(self, kind: str) -> tuple[str, str]:
        return cluster_operator(self.api).get(kind, ("", ""))

    def edit(self, path: str, spec: dict[str, Any], timeout: float = 180) -> Timeline:
        return edit(self.api, path, {"spec": spec}, timeout)

    def profile(self, profile: str) -> Timeline:
        return self.edit(SCHEDULER, {"profile": profile})

    def another_profile(self) -> str:
        """A profile that leads to a new revision."""
        now = self.api.request("GET", SCHEDULER).get("spec", {}).get("profile")
        return "NoScoring" if now == "HighNodeUtilization" else "HighNodeUtilization"

    def override(self, value: Any, timeout: float = 180) -> Timeline:
        return self.edit(KUBESCHEDULER, {"unsupportedConfigOverrides": value}, timeout)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        kubectl = self.sandbox.state / "bin" / "kubectl"
        kubeconfig = f"--kubeconfig={self.sandbox.kubeconfig}"
        return run(kubectl, kubeconfig, *arguments, stdin=stdin)

    def plugin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`kubectl scheduler ARGUMENTS`."""
        environment = {**os.environ, "KUBECONFIG": str(self.sandbox.kubeconfig)}
        program = "import sys; from kube_scheduler_operator.__main__ import kubectl_plugin; "
        command = [sys.executable, "-c", f"{program}sys.exit(kubectl_plugin())", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    def on_node(self, *command: str, node: Node | None = None) -> str:
        """Run a command in a control-plane node's namespaces."""
        return run(*nodes.enter(self.sandbox, node or self.node, command))

    def scheduler(self, node: Node | None = None) -> tuple[int, str]:
        """Pid and command line of a control-plane node's one scheduler; 0 if there is none."""
        found = scheduler_processes(self.sandbox, node or self.node)
        found = {
            pid: words for pid, words in found.items() if "--write-config-to" not in str(words)
        }
        assert len(found) <= 1, f"two schedulers on one node: {found}"
        for pid, words in found.items():
            return pid, " ".join(words)
        return 0, ""

    def schedules(self, timeout: float = 60) -> float:
        """Create a pod; seconds until it has a node."""
        name, _, seconds = schedule_pod(self.api, timeout=timeout)
        delete_pod(self.api, name)
        return seconds

    @property
    def schedulers(self) -> dict[str, int]:
        """The pid of every control-plane node's scheduler, by node."""
        return {node.name: self.scheduler(node)[0] for node in self.sandbox.nodes}

    @property
    def operators(self) -> list[str]:
        """The names of the operator's pods."""
        path = f"{PODS}?labelSelector=app.kubernetes.io%2Fname%3Dkube-scheduler-operator"
        return [pod["metadata"]["name"] for pod in self.api.request("GET", path)["items"]]

    def operand_image(self, image: str | None) -> None:
        """Set OPERAND_IMAGE on the operator's Deployment, or take it away."""
        deployment = self.api.request("GET", DEPLOYMENT)
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        container["env"] = [e for e in container["env"] if e["name"] != "OPERAND_IMAGE"]
        if image:
            container["env"].append({"name": "OPERAND_IMAGE", "value": image})
        del deployment["metadata"]["resourceVersion"]  # controllers write its status meanwhile
        self.api.request("PUT", DEPLOYMENT, deployment)

    def installer(self, revision: int) -> dict[str, Any]:
        """The installer pod of a revision; empty if there is none."""
        return next(iter(self.installers(revision)), {})

    def installers(self, revision: int) -> list[dict[str, Any]]:
        """The installer pods of a revision."""
        pods = self.api.request("GET", f"{PODS}?labelSelector=app%3Dinstaller")["items"]
        prefix = f"installer-{revision}-"
        return [pod for pod in pods if pod["metadata"]["name"].startswith(prefix)]

    def revision_status(self, revision: int) -> dict[str, str]:
        """The annotations of revision-status-N."""
        found = self.api.request("GET", f"{CONFIG_MAPS}/revision-status-{revision}")
        return dict(found["metadata"].get("annotations", {}))

    def events(self) -> list[str]:
        path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/events"
        return [f"{e['reason']}: {e['message']}" for e in self.api.request("GET", path)["items"]]

    def calm(self) -> bool:
        """Nothing is on its way and nothing is wrong."""
        status = self.status
        states = {c["type"]: c["status"] for c in status.get("conditions", [])}
        entries = status.get("nodeStatuses") or []
        return (
            bool(entries)
            and not any(entry.get("targetRevision") for entry in entries)
            and all(entry.get("currentRevision") for entry in entries)
            and states.get("NodeInstallerProgressing") == "False"
            and states.get("StaticPodsAvailable") == "True"
            and not any(
                kind.endswith("Degraded") and state == "True" for kind, state in states.items()
            )
            and status.get("observedGeneration") == self.kubescheduler["metadata"].get("generation")
        )

    def is_plain(self) -> bool:
        """A profile alone is wanted, nothing else, and it is in the revision that the node runs."""
        items = self.api.request("GET", CONFIG_MAPS)["items"]
        data = {item["metadata"]["name"]: item.get("data") for item in items}
        parts = ("config", "kube-scheduler-pod")
        return all(
            data.get(part) == data.get(f"{part}-{self.current}") for part in parts
        ) and "-v=2" in json.dumps(data.get("kube-scheduler-pod"))

    def rest(self, timeout: float = 180) -> None:
        """Back to the defaults but for the profile, and wait until everything has come to rest."""
        defaults = {
            "logLevel": "Normal",
            "operatorLogLevel": "Normal",
            "unsupportedConfigOverrides": None,
            "managementState": "Managed",
        }
        self.api.request("PATCH", KUBESCHEDULER, {"spec": defaults})
        for kind in (SCHEDULER_PROFILES, SCHEDULER_EXTENDERS, LOAD_POLICIES):
            self.api.request("DELETE", kind)
        calm_since: list[float] = []

        def settled() -> bool:
            if not (self.is_plain() and self.calm()):
                calm_since.clear()
                return False
            calm_since.append(time.monotonic())
            return calm_since[-1] - calm_since[0] > 1.0

        until(settled, timeout, f"no rest: {json.dumps(self.status)[:2000]}")

    def pods(self) -> set[str]:
        """The names of the pods in the namespace default."""
        items = self.api.request("GET", PODS_IN_DEFAULT)["items"]
        return {item["metadata"]["name"] for item in items}

    def delete_pods(self, names: Iterable[str]) -> None:
        """Delete pods of that namespace and wait until they have gone: their requests are free."""
        gone = set(names)
        for name in gone:
            delete_pod(self.api, name)
        until(
            lambda: not self.pods() & gone,
            60,
            lambda: f"pods that did not go away: {self.pods() & gone}",
        )

    def without_pods(self, *kept: str) -> None:
        """Delete all of them but some."""
        self.delete_pods(self.pods() - set(kept))


@contextmanager
def up(name: str, control_plane: int, workers: int, **wanted: Any) -> Iterator[Sandbox]:
    """A sandbox of this process; one at a time is enough, so the one before goes."""
    retire_all()
    operator_image.build()
    STARTED.append(name)
    try:
        sandbox = lifecycle.up(name, control_plane, workers, **wanted)
        LEDGER.search.follow(sandbox)
        yield sandbox
    finally:
        LEDGER.close(name)


def retire_all() -> None:
    """Take down what this process has started, but for what there is to know of it."""
    for name in STARTED:
        LEDGER.close(name)


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    """All that the clusters of the run asked for and left behind; no cluster is there any more."""
    retire_all()
    if folder := os.environ.get("KSO_LEDGER"):
        for file in Path(folder).iterdir():
            LEDGER.take(file)
    return LEDGER


def _nothing_is_left() -> None:
    for name in NAMES:
        teardown.down(name)


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_of_a_run_that_was_killed(request: pytest.FixtureRequest) -> None:
    if not hasattr(request.config, "workerinput"):
        _nothing_is_left()


@pytest.fixture(scope="session")
def _cluster() -> Iterator[Cluster]:
    with up(NAME, 1, 2, with_operator=True) as sandbox:
        for worker in sandbox.nodes[1:]:
            nodes.power_off(sandbox, worker)  # few tests need them, and they slow down the others
        yield Cluster(sandbox)


@pytest.fixture(scope="module")
def workers(_cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Two workers that run, for the modules that ask for them."""
    first, second = _cluster.sandbox.nodes[1:]
    for node in (first, second):
        lifecycle.start_node(_cluster.sandbox, node)
    yield first.name, second.name
    for node in (first, second):
        nodes.power_off(_cluster.sandbox, node)


@pytest.fixture
def no_pods_left(_cluster: Cluster) -> Iterator[None]:
    """A test's pods go with it, also if it failed: the next one may want the names."""
    yield
    _cluster.without_pods()


@pytest.fixture
def cluster(_cluster: Cluster) -> Cluster:
    """The cluster at rest, without overrides, and without pods of a test that failed."""
    _cluster.without_pods()
    _cluster.rest()
    return _cluster


@pytest.fixture(scope="session")
def _three_nodes() -> Iterator[Cluster]:
    with up(NAME_OF_THREE, 3, 0, with_operator=True) as sandbox:
        cluster = Cluster(sandbox)
        cluster.rest(400)
        yield cluster


@pytest.fixture
def three_nodes(_three_nodes: Cluster) -> Cluster:
    """Three control-plane nodes at rest, without overrides."""
    _three_nodes.rest(400)
    return _three_nodes

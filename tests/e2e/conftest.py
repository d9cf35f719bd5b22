"""Real clusters for the end-to-end tests: one node, with workers, three nodes, OpenShift and more.

The files of a folder share a cluster; other files have their own. They are one group, which runs in
one process; each test starts from a settled cluster and leaves one. The profile stays as the
previous test set it, because a reset would be another rollout. Files that must be the first or the
last on their cluster are marked. `shared_cluster` of a folder is its cluster.

`make e2e` runs the groups in two processes, which mostly wait, and then the tests that are marked
`audit`: they examine what all clusters of the run requested and left behind.
"""

from __future__ import annotations

import hashlib
import json
import os
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

from ..browser import axe, browser
from ..expect import condition_of
from ..seeds import SOAK
from .ledger import Ledger

__all__ = ["axe", "browser"]  # one browser for all files: a process has one at a time

FOLDER = Path(__file__).parent
REPOSITORY = Path(__file__).resolve().parents[2]
NAME = f"e2e-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
NAME_WITH_WORKERS = f"{NAME}-w"
NAME_OF_THREE = f"{NAME}-3"
NAME_OF_OPENSHIFT = f"{NAME}-o"
NAME_TO_LEAVE = f"{NAME}-i"
NAME_OF_ASSIGNED = f"{NAME}-a"
NAME_OF_KUBEADM = f"{NAME}-k"
NAME_TO_UPGRADE = f"{NAME}-u"
NAME_OF_TENANT = f"{NAME}-t"
NAME_OF_STATES = f"{NAME}-s"
NAME_OF_STORY = f"{NAME}-n"
NAME_OF_CONSOLE = f"{NAME}-c"
NAME_OF_MANAGED = f"{NAME}-m"
NAMES = (
    NAME, NAME_WITH_WORKERS, NAME_OF_THREE, NAME_OF_OPENSHIFT, NAME_TO_LEAVE, NAME_OF_ASSIGNED,
    NAME_OF_KUBEADM, NAME_TO_UPGRADE, NAME_OF_TENANT, NAME_OF_STATES,
    NAME_OF_STORY, NAME_OF_CONSOLE, NAME_OF_MANAGED,
)  # fmt: skip
STARTED: list[str] = []
LEDGER = Ledger()
PODS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods"
PODS_IN_DEFAULT = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/configmaps"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{OPERATOR_NAMESPACE}/deployments/kube-scheduler-operator"
SCHEDULER_PROFILES = "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerprofiles"
SECONDARY_SCHEDULERS = "/apis/kube-scheduler-operator.dev/v1alpha1/secondaryschedulers"
SCHEDULER_EXTENDERS = "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerextenders"
OPERATOR_SETTINGS = "/apis/kube-scheduler-operator.dev/v1alpha1/operatorsettings"
LOAD_POLICIES = "/apis/kube-scheduler-operator.dev/v1alpha1/loadpolicies"
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests by cluster and bound their duration."""
    if not SOAK:
        long = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
    ours = [item for item in items if item.path.is_relative_to(FOLDER)]
    for item in ours:
        if item.get_closest_marker("timeout") is None:
            # Without the start of the cluster, which comes before the first test.
            item.add_marker(pytest.mark.timeout(300, func_only=True))
    items[:] = [*(item for item in items if item not in ours), *sorted(ours, key=_position)]


def _position(item: pytest.Item) -> tuple[bool, str, int, str]:
    """Audits follow all tests; of one cluster, marked files come first and last."""
    audit = item.get_closest_marker("audit") is not None
    place = bool(item.get_closest_marker("runs_last")) - bool(item.get_closest_marker("runs_first"))
    return audit, group(item.path), place, item.path.name


def group(file: Path) -> str:
    """Files that share a cluster: those of one folder, or one file of this folder."""
    return file.relative_to(FOLDER).parts[0]


class ByCluster(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Runs all tests of a group in one process."""

    def _split_scope(self, nodeid: str) -> str:
        return group(REPOSITORY / nodeid.partition("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByCluster:
    return ByCluster(config, log)


def pytest_xdist_setupnodes() -> None:
    """Only before several processes start: a worker could remove another one's cluster."""
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
    """A cluster, with the operations of the tests."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.api = Api(sandbox)
        self.node = sandbox.nodes[0]

    @property
    def kubescheduler(self) -> dict[str, Any]:
        return self.api.request("GET", KUBESCHEDULER)

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.kubescheduler.get("status", {}))

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
        status, _, message = condition_of(self.kubescheduler, kind)
        return status, message

    def cluster_operator(self, kind: str) -> tuple[str, str]:
        return cluster_operator(self.api).get(kind, ("", ""))

    def edit(self, path: str, spec: dict[str, Any], timeout: float = 180) -> Timeline:
        return edit(self.api, path, {"spec": spec}, timeout)

    def profile(self, profile: str) -> Timeline:
        """Edit the profile; the edit always leads to a new revision."""
        if self._profile == profile:
            self.edit(SCHEDULER, {"profile": self.another_profile()})
        return self.edit(SCHEDULER, {"profile": profile})

    def another_profile(self) -> str:
        """A profile that leads to a new revision."""
        return "NoScoring" if self._profile == "HighNodeUtilization" else "HighNodeUtilization"

    @property
    def _profile(self) -> str:
        spec = self.api.request("GET", SCHEDULER).get("spec", {})
        return spec.get("profile") or "LowNodeUtilization"

    def override(self, value: Any, timeout: float = 180) -> Timeline:
        return self.edit(KUBESCHEDULER, {"unsupportedConfigOverrides": value}, timeout)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        kubectl = self.sandbox.state / "bin" / "kubectl"
        kubeconfig = f"--kubeconfig={self.sandbox.kubeconfig}"
        return run(kubectl, kubeconfig, *arguments, stdin=stdin)

    def plugin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`kubectl scheduler ARGUMENTS`."""
        process = self.start_plugin(*arguments)
        out, err = process.communicate()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def start_plugin(self, *arguments: str) -> subprocess.Popen[str]:
        """`kubectl scheduler ARGUMENTS`, not waited for."""
        environment = {**os.environ, "KUBECONFIG": str(self.sandbox.kubeconfig)}
        # A shell starts its background jobs, which may be these tests, with SIGINT ignored.
        program = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "from kube_scheduler_operator.__main__ import kubectl_plugin; "
        )
        command = [sys.executable, "-c", f"{program}sys.exit(kubectl_plugin())", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment)

    def on_node(self, *command: str, node: Node | None = None) -> str:
        """Run a command in a control-plane node's namespaces."""
        return run(*nodes.enter(self.sandbox, node or self.node, command))

    def scheduler(self, node: Node | None = None) -> tuple[int, str]:
        """Pid and command line of a control-plane node's one scheduler; 0 if none runs."""
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
        """Set OPERAND_IMAGE on the operator's Deployment, or remove it."""
        deployment = self.api.request("GET", DEPLOYMENT)
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        container["env"] = [e for e in container["env"] if e["name"] != "OPERAND_IMAGE"]
        if image:
            container["env"].append({"name": "OPERAND_IMAGE", "value": image})
        del deployment["metadata"]["resourceVersion"]  # controllers write its status meanwhile
        self.api.request("PUT", DEPLOYMENT, deployment)

    def installer(self, revision: int) -> dict[str, Any]:
        """The installer pod of a revision; empty if it does not exist."""
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
        """No rollout is in progress and no condition reports a problem."""
        status = self.status
        states = {c["type"]: c["status"] for c in status.get("conditions", [])}
        entries = status.get("nodeStatuses") or []
        return (
            bool(entries)
            and not any(entry.get("targetRevision") for entry in entries)
            and all(entry.get("currentRevision") for entry in entries)
            and states.get("NodeInstallerProgressing") == "False"
            and states.get("StaticPodsAvailable") == "True"
            and not self.problems()
            and status.get("observedGeneration") == self.kubescheduler["metadata"].get("generation")
        )

    def problems(self) -> set[str]:
        """The conditions that report a problem."""
        conditions = self.status.get("conditions", [])
        return {
            one["type"]
            for one in conditions
            if one["type"].endswith("Degraded") and one["status"] == "True"
        }

    def is_plain(self) -> bool:
        """The desired configuration has only a profile, and the node runs it."""
        items = self.api.request("GET", CONFIG_MAPS)["items"]
        data = {item["metadata"]["name"]: item.get("data") for item in items}
        parts = ("config", "kube-scheduler-pod")
        return all(
            data.get(part) == data.get(f"{part}-{self.current}") for part in parts
        ) and "-v=2" in json.dumps(data.get("kube-scheduler-pod"))

    def rest(self, timeout: float = 180) -> None:
        """Restore all defaults except the profile, and wait until the rollout has finished."""
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

        until(settled, timeout, f"not settled: {json.dumps(self.status)[:2000]}")

    def rest_with_default_profile(self) -> None:
        """As `rest`, and the profile too: for tests of where pods go.

        Most tests only need another profile than before, and a rollout takes seconds.
        """
        self.rest()
        if self._profile != "LowNodeUtilization":
            self.edit(SCHEDULER, {"profile": None})

    def pods(self) -> set[str]:
        """The names of the pods in the namespace default."""
        items = self.api.request("GET", PODS_IN_DEFAULT)["items"]
        return {item["metadata"]["name"] for item in items}

    def delete_pods(self, names: Iterable[str]) -> None:
        """Delete pods of that namespace and wait until their resources are free."""
        gone = set(names)
        for name in gone:
            delete_pod(self.api, name)
        until(
            lambda: not self.pods() & gone,
            60,
            lambda: f"pods that did not go away: {self.pods() & gone}",
        )

    def without_pods(self, *kept: str) -> None:
        """Delete all pods except some."""
        self.delete_pods(self.pods() - set(kept))


@contextmanager
def up(name: str, control_plane: int, workers: int, **wanted: Any) -> Iterator[Sandbox]:
    """A sandbox of this process; the previous one is taken down."""
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
    """Take down the clusters of this process and keep their audits and findings."""
    for name in STARTED:
        LEDGER.close(name)


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    """The audits and findings of all clusters of the run; the clusters are down."""
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


@pytest.fixture
def no_pods_left(shared_cluster: Cluster) -> Iterator[None]:
    """Deletes a test's pods, also if it failed: the next test may use the same names."""
    yield
    shared_cluster.without_pods()


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """The settled cluster, without overrides, and without pods of a failed test."""
    shared_cluster.without_pods()
    shared_cluster.rest()
    return shared_cluster

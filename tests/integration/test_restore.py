"""Etcd is restored from an older backup while the real operator, and a standby, keep running.

Stopping etcd and the API server and starting them with an older data directory is what
`etcdutl snapshot restore` without `--bump-revision` amounts to: versions that clients have seen do
not exist any more, and new writes reuse their numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import controlplane, lifecycle, processes, teardown
from cluster.api import Api, ApiError
from cluster.console import run
from cluster.model import Sandbox
from cluster.observe import KUBESCHEDULER, until

from .harness import NAMESPACE, Operator, PlayedNode, Proxy

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = f"rs-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/kube-scheduler-operator-lock"

pytestmark = pytest.mark.timeout(600, func_only=True)


class World:
    """A cluster with a leader, a standby and a played node."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.api = Api(sandbox)
        self.node = PlayedNode(sandbox)
        self.node.start()
        self.proxies = (Proxy(sandbox), Proxy(sandbox))
        self.operators = []
        for number, proxy in enumerate(self.proxies):
            (folder / str(number)).mkdir()
            self.operators.append(Operator(proxy, folder / str(number), identity=f"pod-{number}"))
        self.leader, self.standby = self.operators

    @property
    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self.api.request("GET", KUBESCHEDULER).get("status", {})
        except ApiError:  # it has just started
            return {}
        return found

    def condition(self, kind: str) -> dict[str, Any]:
        return next((c for c in self.status.get("conditions", []) if c["type"] == kind), {})

    def percentage(self) -> int:
        """`percentageOfNodesToScore` of the revision that the node runs."""
        number = (self.status.get("nodeStatuses") or [{}])[0].get("currentRevision", 0)
        if not number:
            return -1
        copy = self.api.request("GET", f"{CONFIG_MAPS}/config-{number}")
        return int(json.loads(copy["data"]["config.yaml"]).get("percentageOfNodesToScore", 0))

    def tune(self, percentage: int) -> None:
        spec = {"unsupportedConfigOverrides": {"percentageOfNodesToScore": percentage}}
        self.api.request("PATCH", KUBESCHEDULER, {"spec": spec})

    def arrives(self, percentage: int, seconds: float = 60) -> None:
        """An edit reaches the node."""
        until(lambda: self._runs(percentage), seconds, self.why)

    def _runs(self, percentage: int) -> bool:
        try:
            return self.percentage() == percentage
        except ApiError:
            return False

    def holder(self) -> str:
        try:
            return str(self.api.request("GET", LEASE)["spec"].get("holderIdentity", ""))
        except ApiError:
            return ""

    def by_role(self) -> tuple[Operator, Operator]:
        """The leader and the other one."""
        holder = self.holder()
        leads = [f"_{operator.identity}" in holder for operator in self.operators]
        first, second = self.operators
        return (first, second) if leads[0] else (second, first)

    def why(self) -> str:
        logs = "\n---\n".join(operator.text()[-3000:] for operator in self.operators)
        return f"not in time; {self.status}; the logs end: {logs}"

    # --- etcd -----------------------------------------------------------------------------------
    def stop_control_plane(self) -> None:
        for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
            processes.kill_one(self.sandbox, name)  # a grace period would cost the Lease

    def start_control_plane(self) -> None:
        folder = self.sandbox.state / "bin"
        controlplane.start(self.sandbox, {path.name: path for path in folder.iterdir()})

    def back_up(self) -> Path:
        """A copy of etcd's data directory."""
        self.stop_control_plane()
        copy = self.sandbox.state / "etcd-backup"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.sandbox.state / "etcd", copy)
        self.start_control_plane()
        self.wait_for_leader()
        return copy

    def wait_for_leader(self) -> None:
        """Wait until a leader renews its Lease."""
        before = self._renewed()

        def is_led() -> bool:
            return self._is_led() and self._renewed() not in ("", before)

        until(is_led, 60, self.why)

    def _renewed(self) -> str:
        try:
            return str(self.api.request("GET", LEASE)["spec"].get("renewTime", ""))
        except ApiError:
            return ""

    def _is_led(self) -> bool:
        leading, _ = self.by_role()
        alive = leading.process is not None and leading.process.poll() is None
        return alive and f"_{leading.identity}" in self.holder()

    def restore(self, copy: Path) -> None:
        self.stop_control_plane()
        data = self.sandbox.state / "etcd"
        shutil.rmtree(data)
        shutil.copytree(copy, data)
        self.start_control_plane()

    def grow(self, writes: int) -> None:
        """Let etcd's revision grow, as other clients do."""
        path = "/api/v1/namespaces/default/configmaps"
        self.api.create(path, {"metadata": {"name": "counter"}})
        for number in range(writes):
            self.api.request("PATCH", f"{path}/counter", {"data": {"count": str(number)}})

    def close(self) -> None:
        for operator in self.operators:
            if operator.process is not None:
                operator.process.send_signal(signal.SIGCONT)
            operator.kill()
        self.node.stop()
        for proxy in self.proxies:
            proxy.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    teardown.down(NAME)
    sandbox = lifecycle.up(NAME, 0, 0, with_operator=False)
    made = None
    try:
        kubectl = [str(sandbox.state / "bin/kubectl"), f"--kubeconfig={sandbox.kubeconfig}"]
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "crds")
        run(*kubectl, "wait", "--for=condition=Established", "crd", "--all")
        for manifest in ("kubeadm/namespace.yaml", "base/cluster/cluster.yaml"):
            path = REPOSITORY / "deploy" / manifest
            run(*kubectl, "apply", "--server-side", "-f", path)
        made = World(sandbox, tmp_path_factory.mktemp("operators"))
        made.leader.start()
        made.standby.start(wait=False)
        made.tune(11)
        made.arrives(11)
        yield made
    finally:
        if made is not None:
            made.close()
        teardown.down(NAME)


@pytest.mark.presubmit
def test_an_operator_that_outlives_a_restore_of_etcd_continues_with_the_restored_state(
    world: World,
) -> None:
    backup = world.back_up()
    world.arrives(11)
    for percentage in (12, 13, 14):
        world.tune(percentage)
        world.arrives(percentage)
    world.grow(300)
    world.restore(backup)
    assert all(o.process and o.process.poll() is None for o in world.operators)
    for proxy in world.proxies:
        proxy.writes = []
    restored = time.monotonic()
    world.tune(21)
    world.arrives(21, 60)
    print(f"the edit arrived after {time.monotonic() - restored:.1f} s")
    time.sleep(10)
    writes = [write for proxy in world.proxies for write in proxy.writes]
    assert len(writes) < 60, (len(writes), writes[-20:])
    leading, _ = world.by_role()
    assert "restored from a backup" in leading.text(), leading.text()[-2000:]
    until(lambda: world.condition("EtcdRestored").get("status") == "True", 60, world.why)
    assert "older backup" in world.condition("EtcdRestored")["message"]


def test_a_standby_that_takes_over_after_a_restore_has_the_restored_state(world: World) -> None:
    backup = world.back_up()
    leading, other = world.by_role()
    for percentage in (31, 32):
        world.tune(percentage)
        world.arrives(percentage)
    world.grow(300)
    world.restore(backup)
    leading.kill()
    for proxy in world.proxies:
        proxy.writes = []
    world.tune(41)
    world.arrives(41)
    time.sleep(5)
    assert f"_{other.identity}" in world.holder()
    writes = [write for proxy in world.proxies for write in proxy.writes]
    assert len(writes) < 60, (len(writes), writes[-20:])
    leading.start(wait=False)  # as a kubelet does


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_leader_that_was_stopped_writes_nothing_after_it_wakes(world: World, number: int) -> None:
    """SIGSTOP in the middle of a plan; SIGCONT after the other one has taken over and finished."""
    world.wait_for_leader()
    leading, other = world.by_role()
    proxy = world.proxies[world.operators.index(leading)]
    process = leading.process
    assert process is not None
    proxy.arm(number, lambda: os.kill(process.pid, signal.SIGSTOP), after=True)
    world.tune(50 + number)
    until(lambda: proxy.killed, 30, world.why)
    until(lambda: f"_{other.identity}" in world.holder(), 60, world.why)
    world.tune(60 + number)
    world.arrives(60 + number)
    seen = len(proxy.writes)
    lost = leading.latest_text().count("lost leadership")
    os.kill(process.pid, signal.SIGCONT)
    until(lambda: leading.latest_text().count("lost leadership") > lost, 20, world.why)
    time.sleep(2)
    assert process.poll() is None, "it waits for the Lease"
    assert proxy.writes[seen:] == [], "nothing of it lands after another one leads"
    proxy.disarm()

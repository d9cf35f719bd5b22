"""Clusters whose control plane the real kubeadm makes and upgrades.

A cluster takes a minute on one node and more on three, so a test takes over the previous test's one
if that has the version and the nodes that it needs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from cluster import kubeadm, lifecycle, operator_image, releases, teardown, upgrades
from cluster.console import SandboxError
from cluster.load import Load
from cluster.model import Node, Sandbox
from cluster.observe import until

from ..conftest import NAME_OF_KUBEADM, Cluster, retire_all

V35, V36, V37 = (releases.PINNED[minor] for minor in (35, 36, 37))
FOLLOWED = 420.0
"""Seconds within which the operator follows once kubeadm has ended."""


def image_of(version: str) -> str:
    """kube-scheduler's image of a version, as kubeadm names it."""
    return f"registry.k8s.io/kube-scheduler:{version}"


class KubeadmCluster(Cluster):
    """A cluster of the real kubeadm.

    Attributes:
        version: of the whole control plane; empty while it is not the same everywhere.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self.version = sandbox.kubernetes

    def upgrade(self, version: str, node: Node | None = None) -> float:
        """Run `kubeadm upgrade apply` on the first node, `kubeadm upgrade node` on another.

        Returns:
            The seconds that kubeadm took.

        Raises:
            SandboxError: kubeadm fails.
        """
        node = node or self.node
        kubeadm.provide_version(self.sandbox, version)
        self.version = ""
        seconds = upgrades.upgrade(self.sandbox, node, version)
        print(f"{node.name}: kubeadm upgrade to {version} took {seconds:.0f} s", flush=True)
        return seconds

    def follows(self, version: str, nodes: tuple[Node, ...] = ()) -> float:
        """Wait until nodes, by default all, run a version with the operator's configuration.

        Returns:
            The seconds that it took.
        """
        begin = time.monotonic()
        wanted = nodes or self.sandbox.nodes
        until(
            lambda: all(self.runs(node, version) for node in wanted),
            FOLLOWED,
            lambda: f"{version} does not run with the configuration: {self.state()}",
        )
        if not nodes:
            until(self.calm, FOLLOWED, lambda: f"not settled: {self.state()}")
            self.version = version
        seconds = time.monotonic() - begin
        print(f"{version} runs with the configuration after {seconds:.0f} s", flush=True)
        return seconds

    def runs(self, node: Node, version: str) -> bool:
        """Whether a node's scheduler has a version and is the operator's."""
        ours = upgrades.runs(self.sandbox, self.api, node, version)
        return ours and "--config=" in self.scheduler(node)[1]

    def state(self) -> str:
        """What a person would look at, as text."""
        return upgrades.state(self.api)

    def message(self, kind: str, text: str, timeout: float = 120) -> str:
        """Wait until a condition of KubeScheduler has a text in its message; return all of it."""
        until(
            lambda: text in self.condition(kind)[1],
            timeout,
            lambda: f"{kind} has no {text!r}: {self.state()}",
        )
        return self.condition(kind)[1]

    def warnings(self) -> list[str]:
        """What `kubectl scheduler status` warns of."""
        done = self.plugin("status", "-o", "json")
        assert done.stdout, done.stderr
        return [f"{one['object']}: {one['message']}" for one in json.loads(done.stdout)["warnings"]]


def reported(load: Load) -> int:
    """End the load, and print how long Pods waited; the number of those that were never bound."""
    waits, lost = load.finish()
    waits.sort()
    print(
        f"{len(waits)} pods bound, {lost} lost, {load.refused} not taken by the API server; "
        f"median {waits[len(waits) // 2]:.2f} s, p99 {waits[int(len(waits) * 0.99)]:.2f} s, "
        f"longest {waits[-1]:.1f} s; the Lease moved {load.lease_moves} times"
    )
    return lost


class Clusters:
    """The cluster of this process."""

    def __init__(self) -> None:
        self._cluster: KubeadmCluster | None = None

    def get(self, nodes: int, version: str, *, with_operator: bool = True) -> KubeadmCluster:
        """A settled cluster: the previous test's one, or a new one."""
        if self._fits(nodes, version) and self._cluster is not None:
            return self._cluster
        self.close()
        retire_all()
        operator_image.build()
        sandbox = lifecycle.up(
            NAME_OF_KUBEADM, nodes, 0, with_operator=with_operator, kubernetes=version,
            kind=lifecycle.ClusterKind(kubeadm=True),
        )  # fmt: skip
        self._cluster = KubeadmCluster(sandbox)
        if with_operator:
            self._cluster.rest(400)
        return self._cluster

    def _fits(self, nodes: int, version: str) -> bool:
        cluster = self._cluster
        if cluster is None or len(cluster.sandbox.nodes) != nodes or cluster.version != version:
            return False
        try:
            cluster.rest(120)
        except SandboxError:
            return False
        return True

    def close(self) -> None:
        """Take the cluster down."""
        self._cluster = None
        teardown.down(NAME_OF_KUBEADM)


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    found = Clusters()
    yield found
    found.close()

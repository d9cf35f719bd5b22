"""The real kubeadm's upgrade of a control plane: an untouched cluster beside one of the operator.

Both have a load of ten pods a second. The operator's cluster has HighNodeUtilization, a
SchedulerProfile and an extender. Addons are skipped, and kubelets stay at their version.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from benchmarks.table import Row
from cluster import kubeadm, lifecycle, teardown, upgrades
from cluster.api import Api
from cluster.console import say
from cluster.load import Load
from cluster.model import Sandbox
from cluster.observe import until

_FOLLOWED = 420.0
"""Seconds within which all nodes run the configuration of the operator again."""


class Measured:
    """What the upgrades of one kind of cluster took.

    Attributes:
        nodes: seconds of kubeadm on each node.
        followed: seconds from the end of kubeadm on the last node until all nodes run the new
            version with the operator's configuration.
        waits: seconds from the creation of each pod to its binding.
        lost: pods that were never bound.
    """

    def __init__(self) -> None:
        self.nodes: list[float] = []
        self.followed: list[float] = []
        self.waits: list[float] = []
        self.lost = 0

    def rows(self, name: str) -> Iterator[Row]:
        """The lines of the table."""
        yield Row(f"{name}: kubeadm upgrade, each node", self.nodes, "s", None)
        if self.followed:
            yield Row(f"{name}: configured afterwards", self.followed, "s", None)
        waits = sorted(self.waits)
        for part, what in ((0.5, "median"), (0.99, "p99"), (1.0, "longest")):
            value = waits[min(int(len(waits) * part), len(waits) - 1)]
            yield Row(f"{name}: creation to binding, {what}", [value], "s", None)
        yield Row(f"{name}: {len(waits)} pods; never bound", [float(self.lost)], "", 0.0)


def measure(name: str, nodes: int, versions: Sequence[str], repeat: int) -> Iterator[Row]:
    """Make clusters of `versions[0]`, upgrade them to the others in turn, and take them down.

    Raises:
        SandboxError: kubeadm fails, or the operator does not follow.
    """
    kinds = {"untouched": Measured(), "operator": Measured()}
    for _ in range(repeat):
        for kind, measured in kinds.items():
            managed = kind == "operator"
            teardown.down(name)
            sandbox = lifecycle.up(
                name, nodes, 0, with_operator=managed, kubernetes=versions[0], real_kubeadm=True
            )
            try:
                if managed:
                    upgrades.configure(Api(sandbox))
                for version in versions[1:]:
                    _upgrade(sandbox, version, measured, managed=managed)
            finally:
                teardown.down(name)
    for kind, measured in kinds.items():
        yield from measured.rows(kind)


def _upgrade(sandbox: Sandbox, version: str, measured: Measured, *, managed: bool) -> None:
    api = Api(sandbox)
    kubeadm.provide_version(sandbox, version)
    with Load(api) as load:
        for node in sandbox.nodes:
            measured.nodes.append(upgrades.upgrade(sandbox, node, version))
            say(f"  {node.name}: {version} after {measured.nodes[-1]:.0f} s")
        if managed:
            began = time.monotonic()
            until(
                lambda: (
                    all(upgrades.runs(sandbox, api, node, version) for node in sandbox.nodes)
                    and upgrades.is_configured(api)
                ),
                _FOLLOWED,
                lambda: f"{version} does not run with the configuration: {upgrades.state(api)}",
            )
            measured.followed.append(time.monotonic() - began)
    waits, lost = load.finish()
    measured.waits += waits
    measured.lost += lost

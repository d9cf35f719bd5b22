"""`kubeadm upgrade` on a node: it moves manifests into place, waits, and must not be disturbed."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import replace

from kube_scheduler_operator.kube.resource import PODS

from .machine import Machine
from .scheduler import GOOD, STOCK
from .world import World

OLD, NEW = "v1.35.4", "v1.36.3"
UPGRADE = 400.0
"""Seconds within which kubeadm ends."""

PATIENCE = 300.0
"""Seconds for which kubeadm waits for each component."""

_SCHEDULERS = {"component": "kube-scheduler"}


class Kubeadm:
    """One run of `kubeadm upgrade apply` or `upgrade node` on one machine.

    Attributes:
        error: why it failed; empty if it has not.
        done: whether it has ended.
        rolled_back: whether it failed on purpose, and put the manifest of before back.
    """

    def __init__(
        self, world: World, machine: Machine, version: str, *, seed: int = 0, fails: bool = False
    ) -> None:
        self._world, self._machine = world, machine
        self._rng = random.Random(seed)
        self._fails = fails
        self._version = version
        self.image = f"registry.k8s.io/kube-scheduler:{version}"
        self.error, self.done = "", False
        self._steps = self._run()
        self._go_on()

    def _go_on(self) -> None:
        try:
            delay = next(self._steps)
        except StopIteration:
            self.done = True
            return
        self._world.clock.after(delay, self._go_on)

    def _run(self) -> Generator[float, None, None]:
        machine, rng = self._machine, self._rng
        machine.work = f"kubeadm-upgraded-manifests{rng.randrange(10**6)}"
        machine.look_again()
        waited = 0.0
        while self._world.server.objects.get(machine.mirror_ref) is None:  # for its hash
            yield 0.5
            waited += 0.5
            if waited > PATIENCE:
                self.error = "the scheduler has no mirror Pod"
                return
        same = machine.api_server.endswith(f":{self._version}")
        # Manifests that are equal are skipped: a second run reaches the scheduler at once.
        yield rng.uniform(0.2, 1.0) if same else rng.uniform(8.0, 60.0)
        machine.api_server = f"registry.k8s.io/kube-apiserver:{self._version}"
        yield rng.uniform(0.1, 0.3) if same else rng.uniform(5.0, 40.0)
        before = machine.manifest
        if before is None:
            self.error = "kube-scheduler.yaml: no such file or directory"
            return  # what it made stays
        written = replace(STOCK, image=self.image, behavior=GOOD)
        machine.overwrite(written)
        machine.look_again()
        waited = 0.0
        while not self._all_run(written):
            yield 0.5
            waited += 0.5
            if machine.manifest is not written:
                self.error = "the manifest was replaced while kubeadm waited"
                return
            if waited > PATIENCE:
                self.error = "the scheduler did not run in time"
                return
        if self._fails:
            machine.overwrite(before)
        machine.work = ""
        machine.look_again()

    def _all_run(self, written: object) -> bool:
        process = self._machine.process
        if process is None or process.manifest is not written:
            return False
        namespace = self._world.platform.operand_namespace
        pods = [
            pod
            for pod in self._world.server.list(PODS, namespace)
            if _SCHEDULERS.items() <= pod["metadata"]["labels"].items()
        ]
        return bool(pods) and all(pod["status"].get("phase") == "Running" for pod in pods)


def adopted(nodes: int = 1, seed: int = 1) -> World:
    """A cluster with revision 1 and guards."""
    world = World(nodes=nodes, seed=seed)
    world.settle(120)
    world.run_until(world.is_guarded, 120)
    return world


def upgrade(world: World, machine: Machine, version: str = NEW, seed: int = 0) -> Kubeadm:
    """Run kubeadm to its end."""
    run = Kubeadm(world, machine, version, seed=seed)
    world.run_until(lambda: run.done, UPGRADE, "kubeadm ends")
    assert run.error == ""
    return run


def image(machine: Machine) -> str:
    return machine.manifest.image if machine.manifest is not None else ""


def version(machine: Machine) -> str:
    """The version of the scheduler in the manifest in place."""
    return image(machine).partition(":")[2]

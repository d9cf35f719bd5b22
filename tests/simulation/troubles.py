"""Random histories with restores of etcd, older CRDs, other clients and wrong clocks."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    KUBE_SCHEDULERS,
    PODS,
    SERVICE_ACCOUNTS,
    ObjectRef,
    Resource,
)

from ..imitation.apiserver import Object
from .etcd import Backup, back_up, is_possible, restore
from .histories import History
from .invariants import ViolatedError
from .operator import QUIET
from .other_clients import prune, revert

BOUND = 150
"""Requests to write one object within a minute: no edit, fault or client causes more.

A rollout writes KubeScheduler's status a dozen times; several edits, restarts and retries of failed
requests fit into a minute. An older CRD caused 3,000, a restore 3,200, another client 330.
"""

DROPPED: tuple[tuple[Resource, tuple[str, ...]], ...] = (
    (KUBE_SCHEDULERS, ("status", "readyReplicas")),
    (KUBE_SCHEDULERS, ("status", "version")),
    (KUBE_SCHEDULERS, ("status", "nodeStatuses", "nodeUID")),
    (KUBE_SCHEDULERS, ("spec", "observedConfig")),
    (CLUSTER_OPERATORS, ("status", "versions")),
    (CLUSTER_OPERATORS, ("status", "conditions")),
)
"""Fields that an older CRD may lack."""


class Troubles(History):
    """A history in which these things happen as well."""

    seed_variable = "KSO_TROUBLE"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._backups: list[Backup] = []
        self._ends: list[Callable[[], None]] = []
        self._writes: defaultdict[ObjectRef, deque[float]] = defaultdict(deque)
        connection = self.world.operator.connection
        write = connection._write

        def counted(
            verb: str, ref: ObjectRef, subresource: str | None, perform: Callable[[], Any]
        ) -> Any:
            # Requests count, also those that change nothing or end in a conflict.
            self._note_write(ref)
            return write(verb, ref, subresource, perform)

        connection._write = counted  # type: ignore[method-assign]

    def _note_write(self, ref: ObjectRef) -> None:
        now, times = self.world.clock.now, self._writes[ref]
        times.append(now)
        while times[0] < now - 60.0:
            times.popleft()
        if len(times) > BOUND:
            raise ViolatedError(f"an object is written again and again: {ref}\n{self.world}")

    def _actions(self) -> list[tuple[int, Callable[[], None]]]:
        return [
            *super()._actions(),
            (6, self._back_up),
            (12, self._restore),
            (8, self._drop_a_field),
            (8, self._admit_another_client),
            (8, self._set_a_clock),
        ]

    def _back_up(self) -> None:
        self.note("backup")
        self._backups.append(back_up(self.world))
        self._mark()
        self._pass_time()

    def _mark(self) -> None:
        """Writes that no revision comes from: versions grow."""
        for number in range(self.rng.randint(1, 60)):
            self._spec(
                partial(
                    lambda number: self.world.server.edit(
                        "user",
                        KUBE_SCHEDULERS,
                        "cluster",
                        lambda obj: obj["metadata"].update(labels={"mark": str(number)}),
                    ),
                    number=number,
                )
            )

    def _restore(self) -> None:
        if not self._backups:
            self._back_up()
        possible = [backup for backup in self._backups if is_possible(self.world, backup)]
        if not possible or not self.world.kubescheduler:
            return
        seconds, lease_shows = self.rng.choice((1.0, 5.0, 9.0)), self.rng.random() < 0.5
        self.note(f"etcd is restored after {seconds:g} s; by the Lease: {lease_shows}")
        restore(self.world, self.rng.choice(possible), seconds, lease_shows=lease_shows)
        self._backups.clear()
        if self.rng.random() < 0.5:
            self._edit()

    def _drop_a_field(self) -> None:
        if len(self._ends) < 2:
            resource, path = self.rng.choice(DROPPED)
            self.note(f"the CRD of {resource} lacks {'.'.join(path)}")
            self._ends.append(prune(self.world, resource, *path))

    def _admit_another_client(self) -> None:
        if len(self._ends) >= 2:
            return
        target, kind = self.world.platform.target_namespace, self.rng.randrange(6)
        delay = self.rng.choice((0.01, 0.1, 1.0))
        count = iter(range(10**6))

        def data(obj: Object) -> None:
            obj["data"] = {"x": str(next(count))} if kind == 0 else {}

        def labels(obj: Object) -> None:
            obj["metadata"]["labels"] = {names.MANAGED_BY_LABEL: names.PROGRAM}

        def status(obj: Object) -> None:
            if "status" in obj:
                obj["status"]["readyReplicas"] = 77

        resource, name, change, subresource = (
            (CONFIG_MAPS, names.CONFIG, data, None),
            (CONFIG_MAPS, names.POD, data, None),
            (SERVICE_ACCOUNTS, names.INSTALLER_SERVICE_ACCOUNT, labels, None),
            (KUBE_SCHEDULERS, names.CLUSTER, status, "status"),
            (DISRUPTION_BUDGETS, "", None, None),
            (PODS, "kube-scheduler-guard", None, None),
        )[kind]
        self.note(f"another client of {resource} {name}, after {delay:g} s")

        def selects(ref: ObjectRef) -> bool:
            exact = resource != PODS and name
            return ref.resource == resource and (
                ref.name == name if exact else ref.name.startswith(name)
            )

        self._ends.append(revert(self.world, selects, change, subresource, delay))
        for ref in [ref for ref in self.world.server.objects if selects(ref)]:
            if change is None:
                self.world.server.delete("other", ref)
            else:
                where = target if ref.namespace else None
                self.world.server.edit("other", resource, ref.name, change, where, subresource)

    def _set_a_clock(self) -> None:
        machine = self.rng.choice(sorted(self.world.machines.items()))[1]
        machine.skew = self.rng.choice((-1200.0, -560.0, -30.0, 30.0, 560.0, 1200.0))
        self.note(f"the clock of {machine.name} is off by {machine.skew:g} s")
        if self.rng.random() < 0.5:
            self._lose_api_server()

    def _heal(self) -> None:
        for end in reversed(self._ends):
            end()
        super()._heal()

    def _check_the_end(self) -> None:
        world = self.world
        world.run(QUIET + 5.0)  # a restore that nothing else showed
        world.settle(1500)
        world.run_until(
            lambda: world.condition(names.WRITES_DEGRADED) == "False", 900, "disputes are over"
        )
        super()._check_the_end()

"""The operator as a process: real store, intake, pass and executor, killed at will."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from kube_scheduler_operator.base.platform import Platform
from kube_scheduler_operator.base.recognition import PlatformDecision
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.kube.errors import (
    HistoryRewoundError,
    KubeError,
)
from kube_scheduler_operator.kube.resource import ObjectRef, Resource
from kube_scheduler_operator.kube.store import Store
from kube_scheduler_operator.operator.engine.executor import Executor
from kube_scheduler_operator.operator.engine.intake import Intake
from kube_scheduler_operator.operator.engine.reconcile import reconcile
from kube_scheduler_operator.operator.engine.snapshots import take_snapshot
from kube_scheduler_operator.operator.engine.watches import watches
from kube_scheduler_operator.operator.engine.write_guard import WriteGuard
from kube_scheduler_operator.operator.model.plan import PlacementQuestion, soonest
from kube_scheduler_operator.operator.model.snapshot import CheckIdentity, PlacementAnswer

from ..imitation.apiserver import ApiServer, Change, Object
from ..imitation.clock import Clock, Timer
from ..imitation.connection import Connection, Killed, Recorder, finish

DEBOUNCE = 0.02
RETRY_PERIOD, RENEW_DEADLINE = 2.0, 10.0
QUIET = 150.0


class Informer:
    """One watch: what it selects arrives late, but in order."""

    def __init__(
        self,
        watch: Any,
        server: ApiServer,
        clock: Clock,
        lag: Callable[[], float],
        deliver: Callable[[Resource, str | None, Object], None],
        rewound: Callable[[], None],
    ) -> None:
        self.listed = False
        self._rewound = rewound
        self._version = 0
        self._watch = watch
        self._server = server
        self._clock = clock
        self._lag = lag
        self._deliver = deliver
        self._labels = _selector(watch.label_selector)
        self._fields = _selector(watch.field_selector)
        self._free_at = 0.0
        self._epoch = 0
        self._known: dict[ObjectRef, Object] = {}
        server.listeners.append(self._changed)
        self._list()

    def stop(self) -> None:
        self._epoch += 1
        if self._changed in self._server.listeners:
            self._server.listeners.remove(self._changed)

    def cut(self) -> None:
        """The API server is away: what was under way is lost."""
        self.stop()

    def reconnect(self) -> None:
        """It is back."""
        self._server.listeners.append(self._changed)
        self.relist()

    def resume(self) -> None:
        """It is back, and the watch continues at its version, which may have been taken back."""
        self._server.listeners.append(self._changed)
        self._epoch += 1
        self._schedule_relist(QUIET)

    def start_over(self) -> None:
        """Forget what was delivered and list again."""
        self._epoch += 1
        self.listed, self._known, self._version = False, {}, 0
        if self._changed not in self._server.listeners:
            self._server.listeners.append(self._changed)
        self._list()

    def _schedule_relist(self, delay: float) -> None:
        """A watch that stays silent is listed again."""
        epoch = self._epoch

        def quiet() -> None:
            if epoch == self._epoch and not self._server.away:
                self.relist()

        self._clock.after(delay, quiet)

    def relist(self) -> None:
        """The watch broke: what was under way is lost, everything is listed again."""
        self._epoch += 1
        self._list()

    def _list(self) -> None:
        self._version = self._server.version
        found = [obj for obj in self._server.objects.items() if self._selects(obj[0], obj[1])]
        if any(_version(obj) < _version(self._known.get(ref)) for ref, obj in found):
            self._clock.after(0.0, self._rewound)
            return
        refs = {ref for ref, _ in found}
        for ref, obj in list(self._known.items()):
            if ref not in refs:
                bare = {"metadata": {**obj["metadata"]}}
                self._send("DELETED", ref, bare)
        for ref, obj in found:
            self._send("ADDED" if self.listed else None, ref, obj)
        epoch = self._epoch

        def done() -> None:
            if epoch == self._epoch and not self.listed:
                self.listed = True
                self._deliver(self._watch.resource, "LISTED", {})

        self._schedule(done)

    def _changed(self, change: Change) -> None:
        ref = change.ref
        if ref.resource != self._watch.resource or _version(change.new) <= self._version:
            return  # the API server sends nothing up to the version at which a watch began
        self._version = _version(change.new)
        before = change.old is not None and self._selects(ref, change.old)
        after = change.kind != "DELETED" and self._selects(ref, change.new)
        if after:
            self._send("MODIFIED" if before else "ADDED", ref, change.new)
        elif before:
            # A watch with a selector also sends DELETED when an object is no longer selected.
            self._send("DELETED", ref, change.new)

    def _send(self, kind: str | None, ref: ObjectRef, obj: Object) -> None:
        epoch = self._epoch

        def arrive() -> None:
            if epoch != self._epoch:
                return
            if kind == "DELETED":
                self._known.pop(ref, None)
            else:
                self._known[ref] = obj
            self._deliver(self._watch.resource, kind, obj)

        self._schedule(arrive)

    def _schedule(self, callback: Callable[[], None]) -> None:
        self._free_at = max(self._free_at, self._clock.now + self._lag())
        self._clock.at(self._free_at, callback)

    def _selects(self, ref: ObjectRef, obj: Object) -> bool:
        if ref.resource != self._watch.resource:
            return False
        if self._watch.namespace not in (None, ref.namespace):
            return False
        labels = obj["metadata"].get("labels") or {}
        if any(labels.get(key) not in values for key, values in self._labels.items()):
            return False
        return ref.name in self._fields.get("metadata.name", (ref.name,))


class OperatorProcess:
    """One life after the other of the same operator."""

    def __init__(
        self,
        server: ApiServer,
        clock: Clock,
        rng: random.Random,
        platform: Platform,
        settings: Settings,
        lag: float,
    ) -> None:
        self.alive = False
        self.started_at = 0.0
        self.passes = 0
        self.recorder = Recorder()
        self.connection = Connection(server)
        self.trouble = ""
        self.answered_since: datetime | None = None
        self.recovered_at: datetime | None = None
        self.defects: list[Exception] = []
        self._server = server
        self._clock = clock
        self._rng = rng
        self._platform = platform
        self._settings = settings
        self._max_lag = lag
        self.informers: list[Informer] = []
        self.server_version = "v1.35.4"
        self.decision: PlatformDecision | None = None
        self.secondary_kind_uid = ""  # not read yet
        # A simulation of placements, which takes some seconds; None: it never answers.
        self.simulate: Callable[[PlacementQuestion], PlacementAnswer | None] = lambda _: None
        self.simulation_seconds = 8.0
        self.simulations: list[PlacementQuestion] = []

    def start(self) -> None:
        self.alive = True
        self.started_at = self._clock.now
        self.answered_since, self.recovered_at = self._now(), None
        self.trouble = ""
        self._failures = 0
        self._pass: Timer | None = None
        self._later: tuple[float, Timer] | None = None
        self._store = Store()
        places = self._settings.secondary_namespaces
        self.intake = Intake(
            self._store, self._platform, self.wake, self._now, places, self._is_calm
        )
        guard = WriteGuard(lambda: self._clock.now)
        self._executor = Executor(self.connection, self._store, self.recorder, guard)
        self.restored_at: datetime | None = None
        self._answers: dict[CheckIdentity, PlacementAnswer] = {}
        self._simulating: dict[CheckIdentity, Timer] = {}
        self.informers = [
            Informer(watch, self._server, self._clock, self._lag, self._event, self.start_over)
            for watch in watches(self._platform, places)
        ]

    def kill(self) -> None:
        self.alive = False
        for informer in self.informers:
            informer.stop()
        for timer in (self._pass, self._later and self._later[1], *self._simulating.values()):
            if timer:
                timer.cancel()

    def lose_api_server(self) -> None:
        """Nothing is received; renewals of the Lease fail within seconds and then time out."""
        for informer in self.informers:
            informer.cut()
        self._clock.after(self._rng.uniform(0.0, RETRY_PERIOD), self._notice)
        self._clock.after(RENEW_DEADLINE, self._give_up)

    def _notice(self) -> None:
        if self._server.away:
            self.answered_since = None

    def _give_up(self) -> None:
        if self._server.away and self.alive:
            self.kill()

    def find_api_server(self) -> None:
        """It is back; a process that gave up is started again."""
        if not self.alive:
            self.start()
            return
        for informer in self.informers:
            informer.reconnect()
        self._clock.after(self._rng.uniform(0.0, RETRY_PERIOD), self._renew)

    def _renew(self) -> None:
        if self.alive and not self._server.away and self.answered_since is None:
            self.answered_since = self.recovered_at = self._now()
            self.wake()

    def wake(self, *, urgent: bool = True) -> None:
        """Ask for a pass, as the queue does: soon, and once. Storms are not part of this."""
        if self.alive and self._pass is None:
            self._pass = self._clock.after(DEBOUNCE, self._run)

    def _wake_after(self, delay: float) -> None:
        due = self._clock.now + delay
        if self._later is not None:
            if self._later[0] <= due:
                return
            self._later[1].cancel()

        def arrive() -> None:
            self._later = None
            self.wake()

        self._later = (due, self._clock.at(due, arrive))

    def _event(self, resource: Resource, kind: str | None, obj: Object) -> None:
        if not self.alive:
            return
        if kind == "LISTED":
            self.wake()
        else:
            self.intake.event(resource, kind, obj)

    def _lag(self) -> float:
        return self._rng.uniform(0.005, self._max_lag)

    def _now(self) -> datetime:
        return self._clock.wall()

    def _run(self) -> None:
        self._pass = None
        if not self.alive or not all(informer.listed for informer in self.informers):
            return
        if self.answered_since is None:
            return
        self.passes += 1
        snapshot = replace(
            take_snapshot(
                self._store,
                self._platform,
                self._settings,
                self._now(),
                leases_seen=self.intake.leases_seen,
                clocks=self.intake.clocks.differences,
            ),
            decision=self.decision,
            secondary_kind_uid=self.secondary_kind_uid,
            server_version=self.server_version,
            node_left=self.intake.node_left,
            answered_since=self.answered_since,
            recovered_at=self.recovered_at,
            restored_at=self.restored_at,
            last_error=self.trouble,
            write_errors=self._executor.write_errors,
            futile_writes=self._executor.futile,
            placement_answers=self._answers,
        )
        futile = self._executor.futile
        try:
            plan = reconcile(snapshot)
            if plan.simulations is not None:
                self._follow(plan.simulations)
            again = finish(self._executor.execute(plan))
        except Killed:
            self.connection.kill_at = None
            self.kill()
            return
        except HistoryRewoundError:
            self.start_over()
            return
        except KubeError as error:
            self._failed(str(error))
            return
        except Exception as error:
            self.defects.append(error)
            raise
        recovered, self.trouble, self._failures = self.trouble != "", "", 0
        if again or recovered or futile != self._executor.futile:
            self.wake()
        resync = self._settings.resync
        self._wake_after(soonest(plan.requeue_after, self._executor.wait(), resync) or 0.0)

    def _follow(self, questions: Sequence[PlacementQuestion]) -> None:
        """As PlacementRunner: the simulations that are requested, and no other ones."""
        asked = {question.identity: question for question in questions}
        for identity in [known for known in self._simulating if known not in asked]:
            self._simulating.pop(identity).cancel()
            self._answers.pop(identity, None)
        for identity, question in asked.items():
            if identity not in self._simulating:
                self.simulations.append(question)
                answer = partial(self._answered, question)
                self._simulating[identity] = self._clock.after(self.simulation_seconds, answer)

    def _answered(self, question: PlacementQuestion) -> None:
        found = self.simulate(question)
        if found is not None:
            self._answers = {**self._answers, question.identity: found}
            self.wake(urgent=False)

    def _is_calm(self) -> bool:
        since = self.answered_since
        return since is not None and (self._now() - since).total_seconds() > 60.0

    def start_over(self, *, restored: bool = True) -> None:
        """Etcd was restored, or may have been: list everything again, as the process does."""
        if restored:
            self.restored_at = self._now()
        self._store.clear()
        self.intake.forget()
        self._executor.forget()
        for informer in self.informers:
            informer.start_over()

    def _failed(self, trouble: str) -> None:
        self.trouble = trouble
        delay = min(0.005 * 2 ** min(self._failures, 30), self._settings.resync)
        self._failures += 1
        self._wake_after(delay)


def _version(obj: Object | None) -> int:
    return int(((obj or {}).get("metadata") or {}).get("resourceVersion") or 0)


def _selector(text: str | None) -> dict[str, tuple[str, ...]]:
    """`key=value` and `key in (value,value)`: which values a key may have."""
    found = {}
    for part in re.split(r",(?![^(]*\))", text or ""):
        if part:
            key, _, values = part.replace(" in (", "=").rstrip(")").partition("=")
            found[key] = tuple(values.split(","))
    return found

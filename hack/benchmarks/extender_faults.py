"""Scheduling while an extender is killed, hangs, returns invalid responses or is slow.

A real kube-scheduler gets Pods at a constant rate; a proxy between it and the extender simulates
faults that our extender does not have.
"""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from benchmarks.extenders import Extender, Variant
from benchmarks.ill_proxy import PASS, RUBBISH, SLOW, SLOW_SECONDS, Proxy
from cluster import hollow, scheduling
from cluster.api import Api
from cluster.console import SandboxError
from cluster.model import Sandbox

NAMESPACE = "faults"
NODES = 30
PACE = 50.0
HEALTHY_SECONDS = 1.5
FAULT_SECONDS = 5.0
TIMEOUT_SECONDS = 0.2
PATIENCE = 60.0
"""The back-off of an unschedulable Pod is at most 10 s; the rest is for busy machines."""
_AGAIN_SECONDS = 0.5
"""Seconds after a fault during which Pods are still created."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of an extender."""

    name: str  # name in the table
    # start and end the fault; `end` returns when the extender responds
    begin: Callable[[Extender, Proxy], None]
    end: Callable[[Extender, Proxy], None]
    call: float  # seconds until a call ends or times out
    ignorable: bool = True  # the field of its entry in KubeSchedulerConfiguration


def _set(mode: str) -> Callable[[Extender, Proxy], None]:
    def change(_: Extender, proxy: Proxy) -> None:
        proxy.mode = mode

    return change


def _send(number: signal.Signals) -> Callable[[Extender, Proxy], None]:
    return lambda extender, _: os.kill(extender.pid, number)


_KILLED = (lambda extender, _: extender.kill(), lambda extender, _: extender.start())
_HANGS = (_send(signal.SIGSTOP), _send(signal.SIGCONT))
FAULTS = (
    Fault("killed", *_KILLED, 0.0),
    Fault("answers rubbish", _set(RUBBISH), _set(PASS), 0.0),
    Fault("hangs", *_HANGS, TIMEOUT_SECONDS),
    Fault("takes its time", _set(SLOW), _set(PASS), SLOW_SECONDS),
    Fault("killed", *_KILLED, 0.0, ignorable=False),
    Fault("hangs", *_HANGS, TIMEOUT_SECONDS, ignorable=False),
)


def pods_a_second(fault: Fault) -> float:
    """The maximum rate: one Pod at a time, each with a filter and a prioritize call.

    Without `ignorable`, a filter call that fails also fails the attempt, so the rate is 0.
    """
    if not fault.ignorable:
        return 0.0
    return PACE if not fault.call else min(PACE, 1 / (2 * fault.call))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The effects of a fault."""

    fault: str
    ignorable: bool
    created: int  # number of Pods
    lost: int  # Pods that were never scheduled
    # bindings per second; `during` in the second half of the fault, when earlier calls have ended
    before: float
    during: float
    left: int  # Pods that were pending when the fault ended
    worked_off: float  # seconds after the end until these Pods were scheduled

    def as_json(self) -> dict[str, object]:
        """All fields."""
        return asdict(self)


class Pace:
    """Creates Pods at a constant rate for the duration of the block.

    Attributes:
        created: Pod to the monotonic time at which the API server had created it.
    """

    def __init__(self, api: Api, prefix: str) -> None:
        self._api, self._prefix = api, prefix
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._create, daemon=True)
        self._trouble: list[Exception] = []
        self.created: dict[str, float] = {}

    def __enter__(self) -> Pace:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Raise an error of the thread, if any."""
        if self._trouble:
            raise self._trouble[0]

    def _create(self) -> None:
        begun, number = time.monotonic(), 0
        while not self._over.wait(max(begun + number / PACE - time.monotonic(), 0)):
            name = f"{self._prefix}-{number:04}"
            try:
                scheduling.create_pods(self._api, NAMESPACE, [scheduling.pod(name, number)])
            except SandboxError as error:
                self._trouble.append(error)
                return
            self.created[name] = time.monotonic()
            number += 1


class Ward:
    """A cluster of hollow nodes with an extender for fault injection."""

    def __init__(self, sandbox: Sandbox, variant: Variant) -> None:
        self._api = Api(sandbox)
        self._variant = variant
        self._scheduler = scheduling.Scheduler(sandbox)
        self._extender = Extender(sandbox, variant)
        self._proxy = Proxy(self._extender.port)
        self._number = 0

    def play(self, fault: Fault) -> Outcome:
        """Inject one fault.

        Raises:
            SandboxError: Pods cannot be created, or a process does not start.
        """
        self._number += 1
        # Without the proxy, which would hide faults of the process.
        direct = fault.begin in (_KILLED[0], _HANGS[0])
        entry = self._extender.entry | {
            "httpTimeout": f"{TIMEOUT_SECONDS}s",
            "ignorable": fault.ignorable,
        }
        if not direct:
            entry["urlPrefix"] = str(entry["urlPrefix"]).replace(
                f":{self._extender.port}", f":{self._proxy.port}"
            )
        scheduling.delete_pods(self._api, NAMESPACE)
        bindings = scheduling.Bindings(self._api, NAMESPACE)
        self._scheduler.start([entry])
        try:
            return self._play(fault, bindings)
        finally:
            bindings.close()
            self._scheduler.stop()

    def _play(self, fault: Fault, bindings: scheduling.Bindings) -> Outcome:
        with Pace(self._api, f"pod-{self._number}") as pods:
            bindings.wait(1, PATIENCE, self._scheduler.log)
            time.sleep(1)  # until the Pods created during the start of kube-scheduler are scheduled
            well = time.monotonic()
            time.sleep(HEALTHY_SECONDS)
            fault.begin(self._extender, self._proxy)
            ill = time.monotonic()
            time.sleep(FAULT_SECONDS)
            fault.end(self._extender, self._proxy)
            again = time.monotonic()
            waiting = set(pods.created) - set(bindings.seconds)
            time.sleep(_AGAIN_SECONDS)
        pods.check()
        _wait(lambda: pods.created.keys() <= bindings.seconds.keys())
        bound = bindings.seconds
        ends = [bound[name] for name in waiting if name in bound]
        middle = ill + FAULT_SECONDS / 2
        return Outcome(
            fault.name,
            fault.ignorable,
            len(pods.created),
            len(pods.created.keys() - bound.keys()),
            _rate(bound, well, ill),
            _rate(bound, middle, ill + FAULT_SECONDS),
            len(waiting),
            max((end - again for end in ends), default=0.0),
        )

    def close(self) -> None:
        """Stop the proxy and the extender."""
        self._proxy.close()
        self._extender.stop()


@contextmanager
def ward(sandbox: Sandbox, variant: Variant) -> Iterator[Ward]:
    """A cluster with nodes and an extender for the duration of the block."""
    api = Api(sandbox)
    scheduling.create_namespace(api, NAMESPACE)
    hollow.create(api, NODES)
    made = Ward(sandbox, variant)
    try:
        yield made
    finally:
        made.close()
        scheduling.delete_pods(api, NAMESPACE)
        hollow.remove(api)


def table(outcomes: list[Outcome]) -> Iterator[str]:
    """The lines of a Markdown table, with medians over repetitions."""
    heads = ("The extender", "`ignorable`", "before", "during", "waiting at the end",
             "backlog cleared in", "lost")  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for fault, ignorable in dict.fromkeys((one.fault, one.ignorable) for one in outcomes):
        same = [one for one in outcomes if (one.fault, one.ignorable) == (fault, ignorable)]
        before, during, left, worked_off = (
            statistics.median(getattr(one, name) for one in same)
            for name in ("before", "during", "left", "worked_off")
        )
        yield (
            f"| {fault} | {str(ignorable).lower()} | {before:.0f}/s | {during:.1f}/s "
            f"| {left:.0f} | {worked_off:.1f} s | {sum(one.lost for one in same)} |"
        )


def _rate(bound: dict[str, float], begin: float, end: float) -> float:
    return sum(begin <= moment < end for moment in list(bound.values())) / (end - begin)


def _wait(done: Callable[[], bool]) -> None:
    """Wait until `done` is true, or for PATIENCE seconds."""
    deadline = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)

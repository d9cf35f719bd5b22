"""What becomes of pods while an extender is killed, hangs, answers rubbish or takes its time.

A real kube-scheduler is given pods at a steady pace; between it and the extender is a proxy for the
faults that ours does not have.
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
"""Back-off of a pod that could not be scheduled is at most 10 s; the rest is for busy machines."""
_AGAIN_SECONDS = 0.5
"""So long pods go on coming after a fault."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to an extender.

    Attributes:
        name: for people.
        begin, end: make it so, and well again; `end` returns when the extender answers.
        call: seconds that a call takes or is waited for.
        ignorable: what its entry in KubeSchedulerConfiguration says.
    """

    name: str
    begin: Callable[[Extender, Proxy], None]
    end: Callable[[Extender, Proxy], None]
    call: float
    ignorable: bool = True


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
    """How many can be scheduled at most: one at a time, each with a call of filter and prioritize.

    Without `ignorable` a filter that does not answer fails the attempt, so it is none at all.
    """
    if not fault.ignorable:
        return 0.0
    return PACE if not fault.call else min(PACE, 1 / (2 * fault.call))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a fault led to.

    Attributes:
        created: pods, all in all.
        lost: of them, that no node was ever found for.
        before, during: bindings a second; `during` in the fault's second half, when what had begun
            before it is over.
        left: pods that waited for a node when it ended.
        worked_off: seconds after it ended until none waited that had been created before that.
    """

    fault: str
    ignorable: bool
    created: int
    lost: int
    before: float
    during: float
    left: int
    worked_off: float

    def as_json(self) -> dict[str, object]:
        """All of it."""
        return asdict(self)


class Pace:
    """Creates pods, so many a second, while the block runs.

    Attributes:
        created: pod -> the monotonic clock when the API server had taken it.
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
        """Raise what went wrong, if anything did."""
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
    """A cluster of hollow nodes with an extender to make ill."""

    def __init__(self, sandbox: Sandbox, variant: Variant) -> None:
        self._api = Api(sandbox)
        self._variant = variant
        self._scheduler = scheduling.Scheduler(sandbox)
        self._extender = Extender(sandbox, variant)
        self._proxy = Proxy(self._extender.port)
        self._number = 0

    def play(self, fault: Fault) -> Outcome:
        """Let one fault come and go.

        Raises:
            SandboxError: Pods cannot be made, or something does not start.
        """
        self._number += 1
        # Faults of the process are not to be softened by the proxy.
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
            time.sleep(1)  # until what was created while kube-scheduler started is done
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
        """End what was started."""
        self._proxy.close()
        self._extender.stop()


@contextmanager
def ward(sandbox: Sandbox, variant: Variant) -> Iterator[Ward]:
    """A cluster with nodes and an extender, for as long as the block runs."""
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
    """The lines of a table in Markdown; of what was played several times, the medians."""
    heads = ("The extender", "`ignorable`", "before", "meanwhile", "waiting in the end",
             "worked off in", "lost")  # fmt: skip
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
    """Until it is so or one has been patient."""
    deadline = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < deadline:
        time.sleep(0.02)

"""One trial of `hack/bench extender`: a kube-scheduler starts and schedules pending Pods."""

from __future__ import annotations

import json
import random
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks import processors
from benchmarks.extender_calls import Calls, call
from benchmarks.extender_profile import Perf
from benchmarks.extender_results import Trial
from benchmarks.extenders import Extender, Variant
from benchmarks.intervals import buckets_of, quantile, total
from benchmarks.pace import Pace
from cluster import hollow, processes, scheduling
from cluster.api import Api
from cluster.console import SandboxError

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.model import Sandbox

NAMESPACE = "bench"
USAGE = "load.kube-scheduler-operator.dev/usage"
TRIAL_SECONDS = 900.0
SETTLING_SECONDS = 0.5
"""Seconds after the last binding in which an extender reads the last watch events."""
HISTOGRAMS = (
    "yardstick_request_duration_seconds",
    "kube_scheduler_operator_extender_call_duration_seconds",
)
POINTS = ("PreFilter", "Filter", "PostFilter", "PreScore", "Score", "ScoreExtensionNormalize")
_CONTROL_PLANE = ("kube-apiserver", "etcd")
_HOT = 0.03
"""Share of overloaded nodes; the load of the others is at most 65 %."""
_SHARE_OF_FULL = 10


class Bed:
    """The cluster of the trials, with hollow nodes and their loads."""

    def __init__(self, sandbox: Sandbox, nodes: int, pods: int) -> None:
        self.sandbox, self.api = sandbox, Api(sandbox)
        self.nodes, self.pods = nodes, pods
        self._random = random.Random(1)  # identical loads in every run
        self._scheduler = scheduling.Scheduler(sandbox)
        scheduling.create_namespace(self.api, NAMESPACE)
        scheduling.free_of_limits(self.api)
        hollow.create(self.api, nodes)

    def load_nodes(self) -> None:
        """Give every node a current load; a few are overloaded."""
        loads = {
            hollow.name_of(number): {USAGE: self._load(number)} for number in range(self.nodes)
        }
        hollow.annotate(self.api, loads)

    def trial(
        self, variant: Variant, profile: Path | None = None, *, python: bool = False
    ) -> Trial:
        """Schedule all pods once.

        Args:
            variant: the variant.
            profile: file for a profile of the extender; None: no profile.
            python: whether to profile Python functions instead of native code.

        Raises:
            SandboxError: Pods were not scheduled, or without calls to the extender.
        """
        scheduling.delete_pods(self.api, NAMESPACE)
        # With complete nodes, a few hundred Pods take as long as thousands otherwise.
        pods = self.pods // _SHARE_OF_FULL if variant.full else self.pods
        made = (scheduling.pod(f"pod-{number:05}", number) for number in range(pods))
        scheduling.create_pods(self.api, NAMESPACE, made)
        sampled = profile if python else None
        extender = Extender(self.sandbox, variant, sampled) if variant.program else None
        recorded = (
            nullcontext() if not (extender and profile) or python else Perf(extender.pid, profile)
        )
        bindings = scheduling.Bindings(self.api, NAMESPACE)
        try:
            with recorded:
                return self._measure(variant, extender, bindings, pods)
        finally:
            bindings.close()
            self._scheduler.stop()
            if extender:
                extender.stop()

    def call(self, variant: Variant, pods: int) -> Calls:
        """Call an extender for Pods with the names of all nodes, without kube-scheduler."""
        scheduling.delete_pods(self.api, NAMESPACE)
        names = [hollow.name_of(number) for number in range(self.nodes)]
        extender = Extender(self.sandbox, variant)
        try:
            prefix = extender.entry["urlPrefix"]
            return call(self.api, NAMESPACE, prefix, variant.verbs, names, pods)
        finally:
            extender.stop()

    def _measure(
        self,
        variant: Variant,
        extender: Extender | None,
        bindings: scheduling.Bindings,
        pods: int,
    ) -> Trial:
        before = processors.used(extender.pid) if extender else None
        self._scheduler.start([extender.entry] if extender else [])
        bindings.wait(1, 120, self._scheduler.log)
        pids = {name: self._pid(name) for name in _CONTROL_PLANE}
        pids["kube-scheduler"] = self._scheduler.pid
        clock, machine, begun = time.monotonic(), processors.machine(), _used(pids)
        seen = len(bindings.seconds)
        with Pace() as pace:
            bindings.wait(pods, TRIAL_SECONDS, self._scheduler.log)
        ended, busy = _used(pids), processors.machine() - machine
        elapsed, share = time.monotonic() - clock, pods - seen
        spent = {name: ended[name] - begun[name] for name in pids}
        own = sum(one.total for one in spent.values())
        cpu = {name: _per_pod(one, share) for name, one in spent.items()}
        moments = sorted(bindings.seconds.values())
        rate = (pods - 1) / (moments[-1] - moments[0])
        trial = Trial(variant.name, pods, rate, cpu, 0.0, full=variant.full, pace=pace.cost)
        metrics = self._scheduler.metrics()
        trial.phases = _phases(metrics)
        trial.refused = total(metrics, "rest_client_requests_total", code="429")
        if extender and before:
            time.sleep(SETTLING_SECONDS)
            used = processors.used(extender.pid) - before
            cpu["extender"] = _per_pod(used, pods)
            own += used.total * share / pods
            trial.memory = processors.memory(extender.pid, "VmHWM")
            self._note_calls(variant, extender.metrics(), trial)
        trial.others = max(busy - own, 0.0) / elapsed
        return trial

    def _note_calls(self, variant: Variant, metrics: str, trial: Trial) -> None:
        for verb in variant.verbs:
            for histogram in HISTOGRAMS:
                if buckets := buckets_of(metrics, histogram, verb=verb):
                    trial.calls[verb] = (
                        1000 * quantile(buckets, 0.5),
                        1000 * quantile(buckets, 0.99),
                    )
                    trial.counted[verb] = total(metrics, f"{histogram}_count", verb=verb)
            if trial.counted.get(verb, 0.0) < trial.pods:  # otherwise failed calls were ignored
                raise SandboxError(
                    f"{variant.name}: {trial.counted.get(verb, 0.0):.0f} calls of {verb} for "
                    f"{trial.pods} pods\n{self._scheduler.log()}"
                )

    def _pid(self, name: str) -> int:
        found = processes.find(self.sandbox, name)
        if found is None:
            raise SandboxError(f"{name} has ended:\n{processes.log_tail(self.sandbox, name)}")
        return found.pid

    def _load(self, number: int) -> str:
        """The annotator's annotation: fractions, millicores and bytes."""
        capacity = hollow.node(number)["status"]["capacity"]
        cpu, memory = 1000.0 * int(capacity["cpu"]), 1024.0 * int(capacity["memory"][:-2])
        chance = self._random
        busy = 0.9 if chance.random() < _HOT else 0.65 * chance.betavariate(2, 3)
        full = 0.65 * chance.betavariate(4, 4)
        usage = {"at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "source": "bench"}
        metrics: dict[str, float] = {"congestion": float(chance.randrange(30))}
        for name, level in (("cpu", busy), ("mem", full)):
            metrics |= {
                f"{name}_usage_avg_5m": round(level * 0.9, 5),
                f"{name}_usage_max_avg_1h": round(level * 0.95, 5),
                f"{name}_usage_max_avg_1d": round(level, 5),
            }
        for name, level, amount in (("cpu", busy, cpu), ("memory", full, memory)):
            metrics |= {
                f"free_{name}_mean": round(amount * (1 - level), 1),
                f"free_{name}_std": round(amount * 0.04, 1),
                f"free_{name}_forecast": round(amount * (1 - level * 0.95), 1),
            }
        return json.dumps({**usage, **metrics}, separators=(",", ":"))


def _used(pids: dict[str, int]) -> dict[str, processors.Used]:
    return {name: processors.used(pid) for name, pid in pids.items()}


def _per_pod(used: processors.Used, pods: int) -> tuple[float, float]:
    return 1000 * used.user / pods, 1000 * used.system / pods


def _phases(metrics: str) -> dict[str, float]:
    """Elapsed milliseconds per Pod from kube-scheduler's metrics.

    `extenders and the rest` is the time of finding a node without that of plugins. It is small
    without an extender, so with one it is the time for encoding, waiting and decoding.
    """
    pods = total(metrics, "scheduler_scheduling_attempt_duration_seconds_count", result="scheduled")
    if not pods:
        return {}

    def of(name: str, **labels: str) -> float:
        return 1000 * total(metrics, f"{name}_sum", **labels) / pods

    duration = "scheduler_framework_extension_point_duration_seconds"
    points = {point: of(duration, extension_point=point) for point in POINTS}
    algorithm = of("scheduler_scheduling_algorithm_duration_seconds")
    return {
        "attempt": of("scheduler_scheduling_attempt_duration_seconds", result="scheduled"),
        "finding a node": algorithm,
        **points,
        "extenders and the rest": algorithm - sum(points.values()),
        "Bind": of(duration, extension_point="Bind"),
    }

"""The results of `hack/bench extender`: trials, statistics and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

from benchmarks.extender_calls import Calls, Times, percentile
from benchmarks.intervals import Estimate, estimate

BASE, YARDSTICK = "none", "go"
SHARE_TARGET = 0.55
CALL_TARGETS = {500: 3.0, 5000: 10.0}
"""Maximum number of names to the target of the p99 in milliseconds."""
ENOUGH_CALLS = 300
"""Number of undisturbed calls needed for a p99; with fewer, all calls are used."""
PROCESSES = ("extender", "kube-scheduler", "kube-apiserver", "etcd")
_UNKNOWN = (math.nan, math.nan)


@dataclass
class Trial:
    """The measurements of one trial: times in milliseconds, processor time per Pod likewise."""

    variant: str
    pods: int
    rate: float  # bindings per second between the first and the last
    cpu: dict[str, tuple[float, float]]  # process to processor time [user, system]
    others: float  # average number of processors used by other processes
    # verb to p50 and p99 of a call, from the extender's metrics
    calls: dict[str, tuple[float, float]] = field(default_factory=dict)
    counted: dict[str, float] = field(default_factory=dict)  # verb to number of calls
    # kube-scheduler's time per Pod, by phase
    phases: dict[str, float] = field(default_factory=dict)
    memory: float = 0.0  # peak memory of the extender, MiB
    full: bool = False  # whether complete nodes were sent
    pace: float = math.nan  # duration of a constant piece of work during the trial, milliseconds
    refused: float = 0.0  # number of the scheduler's requests that the API server throttled

    @property
    def at_pace(self) -> float:
        """Pods in the time of a thousand pieces of that work."""
        return self.rate * self.pace

    def spent(self, process: str) -> float:
        """User and system time; NaN without such a process."""
        return sum(self.cpu[process]) if process in self.cpu else math.nan

    def as_json(self) -> dict[str, object]:
        """All fields."""
        return asdict(self)


@dataclass
class Results:
    """All measurements."""

    nodes: int  # number of nodes

    # trials by variant, in the order of the rounds
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    # calls with the names of all nodes, by variant
    calls: dict[str, Calls] = field(default_factory=dict)

    def add(self, trial: Trial) -> None:
        """Add a trial."""
        self.trials.setdefault(trial.variant, []).append(trial)

    def estimate(self, variant: str, value: Callable[[Trial], float]) -> Estimate | None:
        """The estimate of one value; None if no trial has it."""
        values = [value(trial) for trial in self.trials.get(variant, [])]
        values = [one for one in values if not math.isnan(one)]
        return estimate(values) if values else None

    def ratio(
        self, variant: str, other: str, value: Callable[[Trial], float] = lambda trial: trial.rate
    ) -> Estimate | None:
        """The ratio of two variants in the same rounds."""
        pairs = zip(self.trials.get(variant, []), self.trials.get(other, []), strict=False)
        values = [value(one) / value(base) for one, base in pairs]
        return estimate(values) if values else None

    def fair(self, variant: str, other: str) -> Estimate | None:
        """The ratio, corrected for the speed of the machine during each trial; see `pace`."""
        found = self.ratio(variant, other, lambda trial: trial.at_pace)
        return None if found is None or math.isnan(found.median) else found

    def as_json(self) -> dict[str, object]:
        """All measurements and statistics."""
        variants = {name: self._variant(name) for name in self.trials}
        return {"variants": variants, "misses": list(self.misses())}

    def _variant(self, name: str) -> dict[str, object]:
        figures = {
            "pods/s": self.estimate(name, lambda trial: trial.rate),
            f"share of {BASE}": self.ratio(name, BASE),
            f"share of {YARDSTICK}": self.ratio(name, YARDSTICK),
            f"share of {BASE} at one pace": self.fair(name, BASE),
            f"share of {YARDSTICK} at one pace": self.fair(name, YARDSTICK),
            **{f"CPU of {one}, ms/pod": self._cpu(name, one) for one in PROCESSES},
        }
        return {
            **{what: found.as_json() for what, found in figures.items() if found},
            "calls": self.calls[name].as_json() if name in self.calls else {},
            "trials": [trial.as_json() for trial in self.trials[name]],
        }

    def _cpu(self, variant: str, process: str) -> Estimate | None:
        return self.estimate(variant, lambda trial: trial.spent(process))

    # --- tables ---------------------------------------------------------------------------------

    def table(self) -> Iterator[str]:
        """The lines of the tables: medians, with intervals for ratios."""
        processes = "".join(f"{one:>10}" for one in ("extender", "scheduler", "apiserver", "etcd"))
        heads = "".join(f"{one:>20}" for one in ("pods/s", "of none", "of go", "of go, one pace"))
        yield f"{'':<17}{heads}{'':>6}CPU, ms per pod"
        yield f"{'':<17}{'':>80}{processes}"
        for name in self.trials:
            shares = (
                self.ratio(name, BASE), self.ratio(name, YARDSTICK), self.fair(name, YARDSTICK)
            )  # fmt: skip
            cpu = "".join(_plain(self._cpu(name, one), 10, 2) for one in PROCESSES)
            yield (
                f"{name:<17}{_interval(self.estimate(name, lambda trial: trial.rate), 20, 0)}"
                f"{''.join(_interval(one, 20, 2) for one in shares)}{cpu}"
            )
        verbs = ("filter", "prioritize")
        yield ""
        alone = f"{self.nodes} names, alone"
        whose = ("in the trials", alone, f"{alone}, undisturbed")
        yield f"{'calls, ms: p50, p99':<22}{''.join(f'{who:^36}' for who in whose)}".rstrip()
        yield f"{'':<22}{''.join(f'{verb:^18}' for verb in verbs * 3)}".rstrip()
        for name, trials in self.trials.items():
            if any(trial.calls for trial in trials):
                seen = "".join(f"{self._served(name, verb):^18}" for verb in verbs)
                calls = self.calls.get(name, Calls())
                called = "".join(
                    f"{_alone(times, verb):^18}"
                    for times in (calls.took, calls.undisturbed)
                    for verb in verbs
                )
                yield f"{name:<22}{seen}{called}".rstrip()

    def misses(self) -> Iterator[str]:
        """The missed targets."""
        limit = CALL_TARGETS[min((one for one in CALL_TARGETS if one >= self.nodes), default=5000)]
        for name, calls in self.calls.items():
            counted = calls.undisturbed if calls.pods >= ENOUGH_CALLS else calls.took
            for verb, times in counted.items():
                if name != YARDSTICK and (worst := percentile(times, 0.99)) > limit:
                    yield f"{name}: {verb} takes {worst:.1f} ms at p99, not {limit:.0f}"
        for name, trials in self.trials.items():
            if refused := sum(trial.refused for trial in trials):
                yield f"{name}: {refused:.0f} requests were throttled, which distorts the result"
            if name in (BASE, YARDSTICK) or any(trial.full for trial in trials):
                continue
            for other, target in ((BASE, SHARE_TARGET), (YARDSTICK, 1.0)):
                share = self.ratio(name, other)
                if share and share.median < target:
                    yield f"{name}: {share.median:.2f} of {other}, not {target:.2f}"

    def _served(self, variant: str, verb: str) -> str:
        return _pair(
            *(
                self.estimate(variant, lambda trial, i=i: trial.calls.get(verb, _UNKNOWN)[i])  # type: ignore[misc]
                for i in (0, 1)
            )
        )


def _alone(calls: Times, verb: str) -> str:
    times = calls.get(verb)
    return f"{percentile(times, 0.5):.2f}, {percentile(times, 0.99):.2f}" if times else "-"


def _pair(median: Estimate | None, rare: Estimate | None) -> str:
    return f"{median.median:.2f}, {rare.median:.2f}" if median and rare else "-"


def _interval(found: Estimate | None, width: int, digits: int) -> str:
    if found is None:
        return f"{'-':>{width}}"
    text = f"{found.median:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"
    return f"{text:>{width}}"


def _plain(found: Estimate | None, width: int, digits: int) -> str:
    return f"{'-':>{width}}" if found is None else f"{found.median:>{width}.{digits}f}"

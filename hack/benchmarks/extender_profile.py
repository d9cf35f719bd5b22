"""Breakdown of time: by process, by kube-scheduler's phases, and within our extender."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.extender_results import Trial

_TOP = 25
_START_SECONDS = 20.0
_IMPORTING = "_find_and_load"


def by_process(trials: Sequence[Trial]) -> Iterator[str]:
    """Lines: processor milliseconds per Pod, in user and system mode."""
    yield f"  {'CPU, ms per pod':<28}{'user':>8}{'system':>8}"
    names = dict.fromkeys(name for trial in trials for name in trial.cpu)
    for name in names:
        user, system = (
            statistics.median(trial.cpu[name][which] for trial in trials if name in trial.cpu)
            for which in (0, 1)
        )
        yield f"  {name:<28}{user:8.2f}{system:8.2f}"


def by_phase(trials: Sequence[Trial]) -> Iterator[str]:
    """Lines: elapsed milliseconds per Pod, from kube-scheduler's metrics."""
    yield f"  {'kube-scheduler, ms per pod':<28}{'median':>8}"
    for name in dict.fromkeys(name for trial in trials for name in trial.phases):
        median = statistics.median(trial.phases[name] for trial in trials if name in trial.phases)
        yield f"  {name:<28}{median:8.3f}"


def by_function(stacks: Path) -> Iterator[str]:
    """Lines: shares of our extender's processor time by function.

    Args:
        stacks: output of `benchmarks.sampled`.
    """
    own: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for line in stacks.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        if _IMPORTING in stack:  # before the trial
            continue
        functions = stack.split(";")
        own[functions[-1]] += int(count)
        for function in set(functions):
            within[function] += int(count)
    total = own.total() or 1
    yield f"  {total} samples; including and excluding callees"
    for function, seen in within.most_common(_TOP):
        yield f"  {100 * seen / total:6.1f} %{100 * own[function] / total:7.1f} %  {function}"


def by_symbol(record: Path) -> Iterator[str]:
    """Lines: shares by symbol from `perf`, with the kernel and C libraries; empty without it."""
    if not record.exists():
        return
    for by in (
        "dso",
        "dso,symbol",
    ):  # without symbols, at least the program and the kernel are distinguished
        command = [
            "perf", "report", "--input", str(record), "--stdio", "--no-children",
            "--sort", by, "--percent-limit", "0.8", "--quiet",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        yield from (f"  {line.rstrip(' -')}" for line in done.stdout.splitlines() if line.strip())


class Perf:
    """`perf record` of one process for the duration of the block, if available."""

    def __init__(self, pid: int, target: Path) -> None:
        self._target = target
        self._command = ["perf", "record", "-q", "-F", "999", "-e", "cpu-clock", "-p", str(pid),
                         "-o", str(target)]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Perf:
        if shutil.which("perf"):
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            deadline = time.monotonic() + _START_SECONDS
            while not self._begun() and time.monotonic() < deadline:
                time.sleep(0.05)
        return self

    def _begun(self) -> bool:
        return self._target.exists() and self._target.stat().st_size > 0

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)


def write(path: Path, lines: Iterable[str]) -> None:
    """Print the lines and write them to a file."""
    text = "\n".join(lines)
    print(text)
    path.write_text(f"{text}\n")

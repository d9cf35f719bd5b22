"""Where the time goes: by process, by kube-scheduler's phases, and within our own extender."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.extender_figures import Trial

_TOP = 25
_START_SECONDS = 20.0
_IMPORTING = "_find_and_load"


def by_process(trials: Sequence[Trial]) -> Iterator[str]:
    """Lines: milliseconds of a processor a pod, in the programs and in the kernel for them."""
    yield f"  {'CPU, ms a pod':<28}{'user':>8}{'system':>8}"
    names = dict.fromkeys(name for trial in trials for name in trial.cpu)
    for name in names:
        user, system = (
            statistics.median(trial.cpu[name][which] for trial in trials if name in trial.cpu)
            for which in (0, 1)
        )
        yield f"  {name:<28}{user:8.2f}{system:8.2f}"


def by_phase(trials: Sequence[Trial]) -> Iterator[str]:
    """Lines: milliseconds a pod by the clock, as kube-scheduler measures them."""
    yield f"  {'kube-scheduler, ms a pod':<28}{'median':>8}"
    for name in dict.fromkeys(name for trial in trials for name in trial.phases):
        median = statistics.median(trial.phases[name] for trial in trials if name in trial.phases)
        yield f"  {name:<28}{median:8.3f}"


def by_function(stacks: Path) -> Iterator[str]:
    """Lines: what share of our extender's processor time is in which functions.

    Args:
        stacks: what `benchmarks.sampled` wrote.
    """
    own: Counter[str] = Counter()
    within: Counter[str] = Counter()
    for line in stacks.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        if _IMPORTING in stack:  # that was before the trial
            continue
        functions = stack.split(";")
        own[functions[-1]] += int(count)
        for function in set(functions):
            within[function] += int(count)
    total = own.total() or 1
    yield f"  {total} samples; with what it calls, and itself"
    for function, seen in within.most_common(_TOP):
        yield f"  {100 * seen / total:6.1f} %{100 * own[function] / total:7.1f} %  {function}"


def by_symbol(record: Path) -> Iterator[str]:
    """Lines: the same by `perf`, which sees the kernel and libraries in C; none without it."""
    if not record.exists():
        return
    for by in ("dso", "dso,symbol"):  # a program without symbols is told from the kernel at least
        command = [
            "perf", "report", "--input", str(record), "--stdio", "--no-children",
            "--sort", by, "--percent-limit", "0.8", "--quiet",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        yield from (f"  {line.rstrip(' -')}" for line in done.stdout.splitlines() if line.strip())


class Perf:
    """`perf record` of one process while the block runs, if the machine has it."""

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
    """Print them, and keep them."""
    text = "\n".join(lines)
    print(text)
    path.write_text(f"{text}\n")

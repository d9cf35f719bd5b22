"""Run a program and sample its stacks: `python -m benchmarks.sampled FILE ARGUMENTS...`.

Every millisecond of its processor time, or as often as the kernel's clock ticks, it notes where it
is, and in the end it writes each stack with how often it was seen, innermost function last, as for
flame graphs. What a library does in C is counted for the Python that called it.
"""

from __future__ import annotations

import atexit
import signal
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

from kube_scheduler_operator.__main__ import main as program

INTERVAL = 0.001
_DEEPEST = 60


def main() -> int:
    """Run the program until it ends."""
    target = Path(sys.argv[1])
    seen: Counter[tuple[CodeType, ...]] = Counter()

    def sample(_: int, frame: FrameType | None) -> None:
        stack: list[CodeType] = []
        while frame is not None and len(stack) < _DEEPEST:
            stack.append(frame.f_code)
            frame = frame.f_back
        seen[tuple(stack)] += 1

    def write() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        lines = (f"{';'.join(map(_name, reversed(stack)))} {n}\n" for stack, n in seen.items())
        target.write_text("".join(lines))

    signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
    atexit.register(write)
    del sys.argv[1]
    return program()


def _name(code: CodeType) -> str:
    path = Path(code.co_filename)
    return f"{path.parent.name}/{path.stem}.{code.co_qualname}"


if __name__ == "__main__":
    sys.exit(main())

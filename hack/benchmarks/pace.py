"""How fast the machine is while something is measured on it.

Neighbours of a virtual machine take its cache, half of each core and sometimes the core itself, and
what takes one millisecond now takes two a minute later. A small piece of work that is always the
same is done again and again meanwhile; its cost shows how much of a difference is the
machine's.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from types import TracebackType
from typing import Self

from benchmarks.processors import stolen

PERIOD_SECONDS = 0.03
"""A piece takes a quarter to half a millisecond: a hundredth of a processor or so."""

_NAMES = [f"hollow-{number:05}" for number in range(500)]
_WORK = json.dumps({"NodeNames": _NAMES, "Scores": [{"Host": one, "Score": 7} for one in _NAMES]})


class Pace:
    """Does the work from time to time while the block runs."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._costs: list[float] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._stolen = self._all = 0.0

    def __enter__(self) -> Self:
        self._stolen, self._all = stolen()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        taken, passed = stolen()
        self._stolen, self._all = taken - self._stolen, passed - self._all

    @property
    def cost(self) -> float:
        """Milliseconds of a processor that the work took, with what the host took away meanwhile.

        After the block. The median, so that a piece during which the kernel did something else does
        not count.
        """
        if not self._costs:
            return float("nan")
        taken = self._stolen / self._all if self._all else 0.0
        return 1000 * statistics.median(self._costs) / (1.0 - taken)

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_SECONDS):
            began = time.thread_time()
            json.loads(_WORK)
            self._costs.append(time.thread_time() - began)

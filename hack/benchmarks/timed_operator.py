"""The operator as it is, with a line of JSON for each of its passes in a file.

Run as a program of its own, with the operator's package on the path: FILE, the folder with its
service account's token and CA, then the operator's options. What is timed is what the process
calls: taking a snapshot begins a pass, and executing the plan ends it.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.kube import credentials
from kube_scheduler_operator.operator.engine import process

if TYPE_CHECKING:
    from kube_scheduler_operator.operator.engine.executor import Executor
    from kube_scheduler_operator.operator.model.plan import Plan


@dataclass
class _Clock:
    """When the pass began that is under way: wall clock, seconds, and CPU of this thread."""

    wall: float = 0.0
    cpu: float = 0.0

    def start(self) -> None:
        self.wall, self.cpu = time.monotonic(), time.thread_time()

    def lap(self) -> dict[str, float]:
        """Milliseconds since then."""
        return {
            "wall": 1000 * (time.monotonic() - self.wall),
            "cpu": 1000 * (time.thread_time() - self.cpu),
        }


def instrument(path: Path) -> None:
    """Have every pass leave a line in `path`: what it took to decide, and with its writes."""
    output = path.open("w", buffering=1)
    clock = _Clock()
    patched: Any = process
    take_snapshot, execute = patched.take_snapshot, patched.Executor.execute

    def taking(*args: Any, **keywords: Any) -> Any:
        clock.start()
        return take_snapshot(*args, **keywords)

    async def executing(self: Executor, plan: Plan) -> bool:
        decided = clock.lap()  # up to here nothing was waited for: all of it is this pass
        write_sets = (plan.actions, plan.reports, *plan.write_sets.values())
        try:
            return bool(await execute(self, plan))
        finally:
            line = {"decided": decided, "done": clock.lap(), "writes": sum(map(len, write_sets))}
            print(json.dumps(line), file=output)

    patched.take_snapshot = taking
    patched.Executor.execute = executing


if __name__ == "__main__":
    instrument(Path(sys.argv[1]))
    vars(credentials)["SERVICE_ACCOUNT_DIR"] = Path(sys.argv[2])
    sys.exit(main(["operator", *sys.argv[3:]]))

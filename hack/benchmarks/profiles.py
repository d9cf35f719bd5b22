"""Hundreds of SchedulerProfiles: what a pass costs, what an edit leads to, memory.

No cluster: the real pass over snapshots, in a process of its own whose memory is measured. A pass
waits for nothing, so its time is that of the processor: what runs besides does not count.
"""

from __future__ import annotations

import json
import os
import subprocess

from benchmarks.table import REPOSITORY, Row

PASS_TARGET = 0.1
MEMORY_TARGET = 120.0


def measure(profiles: int, repeat: int) -> list[Row]:
    """All figures."""
    python = REPOSITORY / ".venv/bin/python"
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'operator'}:{REPOSITORY / 'hack'}"}
    done = subprocess.run(
        [python, "-m", "benchmarks.profile_passes", str(profiles), str(repeat)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    found = json.loads(done.stdout)
    return [
        Row(f"{profiles} profiles: the very first pass", found["first"], "s CPU", None),
        Row("a pass when nothing has changed", found["steady"], "s CPU", PASS_TARGET),
        Row("the pass that sees an edit of one", found["edited"], "s CPU", PASS_TARGET),
        Row("the pass that sees a mistake in one", found["held"], "s CPU", PASS_TARGET),
        Row("the pass that sees an edit of what all share", found["shared"], "s CPU", None),
        Row("writes of profiles' status for an edit of one", found["statuses"], "", 1.0),
        Row("writes of them when nothing has changed", found["calm"], "", 0.0),
        Row("memory of the process", found["memory"], "MiB", MEMORY_TARGET),
    ]

"""Background tasks run until their program ends."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

from kube_scheduler_operator.base.tasks import RESTARTS, cancel, keep


def test_a_task_that_an_error_ends_runs_again(virtual_time: Any) -> None:
    runs: list[float] = []

    async def work() -> None:
        runs.append(asyncio.get_running_loop().time())
        if len(runs) < 4:
            raise OSError(errno.ENOSPC, "No space left on device")

    virtual_time.run(keep("work", work))
    assert runs == [0.0, 1.0, 3.0, 7.0]


def test_a_task_that_ran_for_long_is_restarted_at_once(virtual_time: Any) -> None:
    runs: list[float] = []

    async def work() -> None:
        runs.append(asyncio.get_running_loop().time())
        if len(runs) < 4:
            await asyncio.sleep(RESTARTS.delays[-1] + 1)
            raise ValueError

    virtual_time.run(keep("work", work))
    pause = RESTARTS.delays[-1] + 1 + RESTARTS.delays[0]
    assert runs == [0.0, pause, 2 * pause, 3 * pause]


async def test_a_cancelled_task_ends() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(keep("work", work))
    await asyncio.sleep(0)
    await cancel(task)
    assert task.cancelled()

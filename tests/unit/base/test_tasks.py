"""Background tasks run until their program ends."""

from __future__ import annotations

import asyncio
import errno
from functools import partial
from typing import Any

import pytest

from kube_scheduler_operator.base.tasks import RESTARTS, cancel, gathered, keep


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


def test_work_is_gathered_in_its_order_and_a_few_at_a_time(virtual_time: Any) -> None:
    running: set[int] = set()
    most: list[int] = []

    async def work(number: int) -> int:
        running.add(number)
        most.append(len(running))
        await asyncio.sleep(5 - number)
        running.remove(number)
        return number

    numbers = virtual_time.run(gathered([partial(work, each) for each in range(5)], 2))
    assert numbers == [0, 1, 2, 3, 4]
    assert max(most) == 2


async def test_the_first_error_ends_all_work() -> None:
    started: list[str] = []
    ended: list[str] = []

    async def waits() -> None:
        started.append("waits")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waits")

    async def fails() -> None:
        await asyncio.sleep(0)
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        await gathered([waits, fails, waits], 2)
    assert ended == started != []


def test_a_caller_goes_on_after_an_error_of_gathered_work(virtual_time: Any) -> None:
    async def fails() -> None:
        await asyncio.sleep(1)
        raise ValueError

    async def caller() -> str:
        with pytest.raises(ValueError, match=r"^$"):
            await gathered([fails, fails], 2)
        try:
            async with asyncio.timeout(1):
                await asyncio.sleep(2)
        except TimeoutError:
            return "timed out"
        return "not"

    assert virtual_time.run(caller()) == "timed out"

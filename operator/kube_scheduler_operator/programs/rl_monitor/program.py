"""rl-monitor as a program: its start and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from dataclasses import dataclass

from ... import __version__
from ...base import names
from ...base.klog import kv
from ...kube.client import ApiClient
from ...kube.credentials import find
from ...kube.reflector import Reflector, Selection
from ...kube.resource import PODS
from .monitor import EVERY, Memory, Monitor, keep, write
from .rewards import MTTF

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says.

    Attributes:
        namespace: whose pods are watched; None: of all.
        state_namespace: where the ConfigMap is.
        kubeconfig: how to get to the API; empty: found as usual.
        mttf: seconds after which a failure is held against its node only half.
        every: seconds between two writes.
    """

    namespace: str | None
    state_namespace: str
    kubeconfig: str = ""
    mttf: float = MTTF
    every: float = EVERY


async def run(options: Options) -> int:
    """Watch until SIGTERM or SIGINT; the exit code."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    program = f"{names.PROGRAM}-rl-monitor"
    async with ApiClient(
        find(options.kubeconfig or None),
        field_manager=program,
        user_agent=f"{names.PROGRAM}/{__version__} rl-monitor",
    ) as client:
        memory = Memory(client, options.state_namespace)
        begin = asyncio.create_task(_begin(memory, client, options))
        await asyncio.wait((begin, waiting := asyncio.create_task(stop.wait())),
                           return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        waiting.cancel()
        if not begin.done():
            await _cancel(begin)
            return 0
        monitor, reflector = begin.result()
        tasks = [
            asyncio.create_task(reflector.run()),
            asyncio.create_task(keep(monitor, memory, options.every)),
        ]
        await stop.wait()
        log.info("Stopping")
        for task in tasks:
            await _cancel(task)
        await write(monitor, memory)
    return 0


async def _begin(memory: Memory, client: ApiClient, options: Options) -> tuple[Monitor, Reflector]:
    monitor = Monitor(await memory.load(), options.mttf)
    log.info("Watching pods", extra=kv(namespace=options.namespace or "(all)"))
    selection = Selection(options.namespace, field_selector="spec.nodeName!=")
    return monitor, Reflector(client, PODS, monitor, selection)


async def _cancel(task: asyncio.Task[object]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

"""The rl-monitor program: start, tasks and termination."""

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
from .monitor import EVERY, Monitor, StateStore, write, write_periodically
from .rewards import MTTF

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RlMonitorOptions:
    namespace: str | None  # namespace of the pods to watch; None for all
    state_namespace: str  # namespace of the ConfigMap
    kubeconfig: str = ""  # path of a kubeconfig; empty for the default
    mttf: float = MTTF  # runtime in seconds after which a failure counts only half
    every: float = EVERY  # minimum seconds between writes


async def run(options: RlMonitorOptions) -> int:
    """Watch until SIGTERM or SIGINT; return the exit code."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    program = f"{names.PROGRAM}-rl-monitor"
    async with ApiClient(
        find(options.kubeconfig or None),
        field_manager=program,
        user_agent=f"{names.PROGRAM}/{__version__} rl-monitor",
    ) as client:
        store = StateStore(client, options.state_namespace)
        begin = asyncio.create_task(_begin(store, client, options))
        await asyncio.wait((begin, waiting := asyncio.create_task(stop.wait())),
                           return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        waiting.cancel()
        if not begin.done():
            await _cancel(begin)
            return 0
        monitor, reflector = begin.result()
        tasks = [
            asyncio.create_task(reflector.run()),
            asyncio.create_task(write_periodically(monitor, store, options.every)),
        ]
        await stop.wait()
        log.info("Stopping")
        for task in tasks:
            await _cancel(task)
        await write(monitor, store)
    return 0


async def _begin(
    store: StateStore, client: ApiClient, options: RlMonitorOptions
) -> tuple[Monitor, Reflector]:
    monitor = Monitor(await store.load(), options.mttf)
    log.info("Watching pods", extra=kv(namespace=options.namespace or "(all)"))
    selection = Selection(options.namespace, field_selector="spec.nodeName!=")
    return monitor, Reflector(client, PODS, monitor, selection)


async def _cancel(task: asyncio.Task[object]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

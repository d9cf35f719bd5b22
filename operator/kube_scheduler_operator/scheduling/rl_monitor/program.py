"""The rl-monitor program: start, tasks and termination."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from ... import __version__
from ...base import names
from ...base.klog import kv
from ...base.tasks import cancel, stop_on_signals
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
    stop = stop_on_signals()
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
            await cancel(begin)
            return 0
        monitor, reflector = begin.result()
        tasks = [
            asyncio.create_task(reflector.run()),
            asyncio.create_task(write_periodically(monitor, store, options.every)),
        ]
        await stop.wait()
        log.info("Stopping")
        await cancel(*tasks)
        await write(monitor, store)
    return 0


async def _begin(
    store: StateStore, client: ApiClient, options: RlMonitorOptions
) -> tuple[Monitor, Reflector]:
    monitor = Monitor(await store.load(), options.mttf)
    log.info("Watching pods", extra=kv(namespace=options.namespace or "(all)"))
    selection = Selection(options.namespace, field_selector="spec.nodeName!=")
    return monitor, Reflector(client, PODS, monitor, selection)

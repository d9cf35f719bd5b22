"""The annotator as a process: one leads and writes, the others wait for its Lease.

All of it is one task group around the Lease: when that is lost, everything ends at once and what
was known is forgotten, because another one knows better; then it competes again.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import logging
import os
import signal
import socket
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from ...base.klog import kv
from ...base.names import OWN_LABELS
from ...kube.client import ApiClient
from ...kube.credentials import find
from ...kube.lease import LeaderElector, Timings
from ...kube.reflector import Pace, Reflector, Selection
from ...kube.resource import NODES, PODS
from ...load.policy import LoadPolicy, LoadPolicyError
from ...load.policy_files import read_policy
from ...policies.pod_fields import POD
from .annotation import CRANE, SAFE
from .bindings import PodBindings
from .counters import Counters
from .cycle import Annotator
from .reported_state import Publisher, State, take_state
from .sources import make_source

if TYPE_CHECKING:
    from ...kube.api import Object

log = logging.getLogger(__name__)

LEASE: Final = "load-annotator"
PATIENCE: Final = Timings(lease_duration=45.0, renew_deadline=30.0, retry_period=5.0)
"""Two that write at a time do no harm, for what was not seen is not overwritten; but to lead is to
list all nodes first. So a busy moment costs nobody the Lease, and who was killed is followed late:
what is written is good for minutes."""

LOOK_SECONDS: Final = 2.0
"""The policy's file is looked at so often: a ConfigMap's mount changes once a minute at most."""

NODES_PAGE: Final = 100
"""Whole nodes in memory at a time; they have tens of kilobytes."""

_NODES_PACE: Final = Pace(batch=0.1, page=NODES_PAGE)
_PODS_PACE: Final = Pace(batch=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The flags of `kube-scheduler-operator annotator`, under their names."""

    config: Path
    namespace: str
    kubeconfig: str | None = None
    address: str = "0.0.0.0"
    port: int = 8080
    identity: str = ""


class PolicyFile:
    """The policy's file, read again when its content changes.

    Raises:
        LoadPolicyError, OSError: at the beginning it must be right.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bytes = path.read_bytes()
        self.policy = self._read(self._bytes)
        self.problem = ""

    @property
    def digest(self) -> str:
        """The first ten hexadecimal digits of the SHA-256 of what it is gone by."""
        return hashlib.sha256(self._bytes).hexdigest()[:10]

    def changed(self) -> bool:
        """Whether there is another policy than before; one that is wrong is none."""
        try:
            content = self._path.read_bytes()
            if content == self._bytes:
                self.problem = ""
                return False
            policy = self._read(content)
        except (OSError, LoadPolicyError) as error:
            problem = f"{self._path} is not taken, the policy before it stays: {error}"
            if problem != self.problem:
                log.error("%s", problem)
            self.problem = problem
            return False
        self._bytes, self.policy, self.problem = content, policy, ""
        return True

    @staticmethod
    def _read(content: bytes) -> LoadPolicy:
        loaded = read_policy(content.decode("utf-8", "replace"))
        for note in loaded.notes:
            log.warning("Policy: %s", note.sentence)
        return loaded.policy


class Program:
    """One process.

    Args:
        options: its flags.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._file = PolicyFile(options.config)
        self._counters = Counters()
        self._annotator: Annotator | None = None
        self._identity = options.identity or (
            f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}"
        )

    async def run(self) -> int:
        """Run until SIGTERM; the exit code."""
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        client = ApiClient(find(self._options.kubeconfig), field_manager="load-annotator")
        async with client as api, self._serving():
            leading = asyncio.create_task(self._compete(api))
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait((leading, stopping), return_when=asyncio.FIRST_COMPLETED)
            leading.cancel()
            stopping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await leading
        log.info("Terminated")
        return 0

    async def _compete(self, api: ApiClient) -> None:
        elector = LeaderElector(
            api,
            self._options.namespace,
            LEASE,
            self._identity,
            timings=PATIENCE,
            labels=OWN_LABELS,
        )
        try:
            while True:
                await elector.acquire()
                await self._lead(api, elector)
        finally:
            await elector.release()

    async def _lead(self, api: ApiClient, elector: LeaderElector) -> None:
        """Work until the Lease is lost."""
        holding = asyncio.create_task(elector.hold())
        working = asyncio.create_task(self._work(api))
        try:
            await asyncio.wait((holding, working), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (working, holding):
                task.cancel()
            await asyncio.gather(working, holding, return_exceptions=True)
            self._annotator = None
        if not working.cancelled() and (error := working.exception()):
            raise error

    async def _work(self, api: ApiClient) -> None:
        while True:
            policy = self._file.policy
            pods = bool({CRANE, SAFE} & set(policy.write))
            bindings = PodBindings(policy.rules) if pods else None
            annotator = Annotator(
                api,
                policy,
                make_source(policy, api),
                bindings=bindings,
                counters=self._counters,
            )
            try:
                await self._annotate(api, annotator, bindings)
            finally:
                await annotator.stop()

    async def _annotate(
        self, api: ApiClient, annotator: Annotator, bindings: PodBindings | None
    ) -> None:
        """Work by one policy, until one comes that needs other watches."""
        async with asyncio.TaskGroup() as group:
            nodes = Reflector(api, NODES, _Nodes(annotator), loads=orjson.loads, pace=_NODES_PACE)
            tasks = [group.create_task(nodes.run())]
            if bindings is not None:
                bindings.changed = annotator.nudge
                pods = Reflector(
                    api,
                    PODS,
                    bindings,
                    Selection(field_selector="spec.nodeName!="),
                    loads=orjson.loads,
                    fields=POD,
                    pace=_PODS_PACE,
                )
                tasks.append(group.create_task(pods.run()))
                await pods.synced()
            self._annotator = annotator
            await nodes.synced()
            annotator.listed()
            gc.collect()
            gc.freeze()  # the nodes stay; looking through them again and again finds nothing
            tasks.append(group.create_task(self._report(api, annotator)))
            while await self._same_watches(api, annotator, bindings):
                pass
            for task in tasks:
                task.cancel()

    async def _same_watches(
        self, api: ApiClient, annotator: Annotator, bindings: PodBindings | None
    ) -> bool:
        """Look for another policy and take it; whether nothing else needs to be watched."""
        await asyncio.sleep(LOOK_SECONDS)
        if not self._file.changed():
            return True
        policy = self._file.policy
        self._counters.reloads += 1
        log.info("The policy has changed", extra=kv(policy=self._file.digest))
        if bool({CRANE, SAFE} & set(policy.write)) != (bindings is not None):
            return False
        if bindings is not None:
            bindings.rules = policy.rules
        old = annotator.policy
        if policy.source == old.source and policy.cycle == old.cycle:
            annotator.use(policy)
            return True
        before = annotator.source
        annotator.use(policy, make_source(policy, api))
        await before.close()
        return True

    async def _report(self, api: ApiClient, annotator: Annotator) -> None:
        """Once a cycle: tell how it is going; one line in the log when that has changed."""
        publisher = Publisher(api, self._options.namespace, time.monotonic)
        said = ""
        while True:
            await asyncio.sleep(min(annotator.policy.cycle, 60.0))
            self._counters.turn()
            state = take_state(annotator, self._file.digest, self._file.problem, time.time())
            said = _log_change(state, said)
            await publisher.publish(state)

    # --- what others ask ------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        from aiohttp import web

        async def answer(request: web.Request) -> web.Response:
            if request.path == "/metrics":
                text = self._metrics()
                return web.Response(
                    text=text, headers={"Content-Type": "text/plain; version=0.0.4"}
                )
            return web.Response(text="ok\n")

        app = web.Application(client_max_size=1024)
        app.add_routes([web.get(path, answer) for path in ("/metrics", "/healthz", "/readyz")])
        runner = web.AppRunner(app, access_log=None, keepalive_timeout=30, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._options.address, self._options.port).start()
            host, port = runner.addresses[0][:2]
            log.info("Serving", extra=kv(address=f"{host}:{port}"))
            yield
        finally:
            await runner.cleanup()

    def _metrics(self) -> str:
        annotator, nodes = self._annotator, dict[str, int]()
        if annotator is not None:
            state = take_state(annotator, self._file.digest, "", time.time())
            nodes = {
                "known": state.known, "stale": state.staleCount, "missing": state.missingCount,
            }  # fmt: skip
        return self._counters.exposition(annotator is not None, nodes)


class _Nodes:
    """Hands nodes of a watch on."""

    def __init__(self, annotator: Annotator) -> None:
        self._fleet = annotator.fleet

    def set(self, obj: Object) -> None:
        self._fleet.see(obj)

    def remove(self, obj: Object) -> None:
        self._fleet.lose(obj["metadata"]["name"])


def _log_change(state: State, said: str) -> str:
    """Log how it is going if that is another matter than what was said last; what is said now."""
    bad = state.staleCount + state.missingCount
    kind = "all" if not bad else "none" if not state.known else "some"
    saying = f"{kind}: {state.error.partition(';')[0] if kind == 'none' else ''}"
    if saying != said:
        values = kv(
            known=state.known, stale=state.staleCount, missing=state.missingCount, err=state.error
        )
        if bad:
            log.warning("The load of some nodes is not known", extra=values)
        else:
            log.info("The load of all nodes is known", extra=values)
    return saying


def run(options: Options) -> int:
    """Run until SIGTERM; the exit code."""
    gc.set_threshold(20_000, 20, 50)
    return asyncio.run(Program(options).run())

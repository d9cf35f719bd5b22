"""The operator as a process: what is started, in which order, and how it ends.

Serving, watching and the competition for the Lease begin together: a standby answers probes and
knows the cluster, too. Passes begin once this process leads and everything has been listed. SIGTERM
undoes it in reverse: the running pass ends, the Lease is released, and a successor leads at once. A
lost Lease ends the process with an error: another one leads already, and its view is the better
one.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import time
import uuid
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..base import klog, names
from ..base.platform import Platform
from ..base.settings import Settings
from ..kube.client import ApiClient
from ..kube.credentials import Credentials, find
from ..kube.errors import KubeError
from ..kube.events import EventRecorder, Involved
from ..kube.kopf.watcher import Watcher
from ..kube.lease import LeaderElector
from ..kube.pacing import Pace
from ..kube.queue import ShutDown, WorkQueue
from ..kube.resource import Stream
from ..kube.store import Store
from ..telemetry.authorize import cached, delegated
from ..telemetry.certificate import ServingCertificate
from ..telemetry.metrics import Metrics
from ..telemetry.server import Server
from .accounting import Accountant
from .executor import Executor
from .handlers import Intake, take_snapshot, watches
from .polling import Looks
from .reconcile import reconcile

log = logging.getLogger(__name__)

_WORK = "cluster"  # the queue's only key: there is one pass over everything
_STALE_SECONDS = 600.0  # a queue that is stuck this long makes /healthz fail


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line decides.

    Attributes:
        kubeconfig: path; None: $KUBECONFIG, in-cluster or ~/.kube/config, whichever there is.
        platform: the kind of cluster.
        settings: see Settings.
        host: address of the HTTPS server.
        port: its port; 0 lets the system choose.
        tls_cert_file: its certificate; None: a self-signed one.
        tls_key_file: its key.
    """

    kubeconfig: str | None
    platform: Platform
    settings: Settings
    host: str = "0.0.0.0"
    port: int = 8443
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None


class Operator:
    """One operator process."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._platform = options.platform
        self._metrics = Metrics(options.settings.operator_version)
        self._accountant = Accountant(self._metrics)
        self._credentials: Credentials = find(options.kubeconfig)
        self._store = Store()
        self._queue: WorkQueue[str] = WorkQueue(observer=self._metrics.queue("reconcile"))
        self._pace = Pace()
        places = options.settings.secondary_namespaces
        self._intake = Intake(self._store, options.platform, self._wake, secondary=places)
        self._metrics.lease_seen = lambda: self._intake.lease_seen
        self._looks = Looks(options.settings.pending_interval, lambda: self._wake(urgent=False))
        # A container that is started again in its pod is who it was, and need not wait.
        self._identity = f"{socket.gethostname()}_{os.environ.get('POD_UID') or uuid.uuid4()}"
        self._trouble = ""
        self._log_level = ""
        self._server_version = ""
        self._passed_at: float | None = None
        self._watcher: Watcher | None = None
        self._elector: LeaderElector | None = None

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT; returns the exit code."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        api = ApiClient(
            self._credentials, field_manager=names.FIELD_MANAGER, observer=self._metrics.requested
        )
        async with api:
            elector = LeaderElector(
                api,
                self._platform.operator_namespace,
                names.LEASE,
                self._identity,
                labels=names.OWN_LABELS,
            )
            self._elector = elector
            unwatch = asyncio.Event()
            # None of these needs what another one brings, and each waits for somebody else.
            watching = asyncio.create_task(self._watch(unwatch), name="watches")
            acquiring = asyncio.create_task(elector.acquire(), name="lease")
            asking = asyncio.create_task(self._ask(api, stop), name="questions")
            server: Server | None = None
            try:
                server = await asyncio.to_thread(self._make_server, api)
                await server.start()
                return await self._lead(api, stop, acquiring, asking, watching)
            finally:
                unwatch.set()
                acquiring.cancel()
                asking.cancel()
                await elector.release()
                await asyncio.gather(acquiring, asking, watching, return_exceptions=True)
                if server is not None:
                    await server.stop()

    def _make_server(self, api: ApiClient) -> Server:
        """The HTTPS server; making a certificate takes a moment."""
        options = self._options
        certificate = ServingCertificate(options.tls_cert_file, options.tls_key_file)
        self._metrics.certificate_expires = lambda: certificate.expires
        return Server(
            render=self._metrics.render,
            authorize=cached(delegated(api)),
            alive=self._alive,
            ready=self._ready,
            certificate=certificate,
            host=options.host,
            port=options.port,
        )

    async def _watch(self, unwatch: asyncio.Event) -> None:
        """Keep the store up to date; a standby does as well, and so takes over without delay."""
        watcher = Watcher(
            watches(self._platform, self._options.settings.secondary_namespaces),
            on_event=self._intake.event,
            on_listed=self._listed,
        )
        self._watcher = watcher
        self._metrics.watch_ages = lambda: {
            (stream.resource.plural, stream.namespace or ""): age
            for stream, age in watcher.ages().items()
        }
        await watcher.run(self._credentials, unwatch)

    async def _lead(
        self,
        api: ApiClient,
        stop: asyncio.Event,
        acquiring: asyncio.Task[None],
        asking: asyncio.Task[str],
        watching: asyncio.Task[None],
    ) -> int:
        elector = self._elector
        assert elector is not None  # noqa: S101 - run() made it
        self._metrics.leading(names.LEASE, leads=False)
        if not await _unless(stop, acquiring) or not await _unless(stop, asking):
            return 0
        self._metrics.leading(names.LEASE, leads=True)
        involved = Involved(
            "apps/v1",
            "Deployment",
            names.PROGRAM,
            self._platform.operator_namespace,
            asking.result(),
        )
        instance = os.environ.get("POD_NAME") or socket.gethostname()
        recorder = EventRecorder(
            api,
            component=names.PROGRAM,
            instance=instance,
            involved=involved,
            observer=self._metrics.event_sent,
        )
        async with recorder:
            held = asyncio.create_task(elector.hold(), name="lease")
            work = asyncio.create_task(self._work(api, recorder, stop, watching), name="work")
            await asyncio.wait({held, work}, return_when=asyncio.FIRST_COMPLETED)
            lost = held.done()
            if lost:
                # Nothing may be written any more, not even by a pass that has begun.
                work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
        held.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await held
        self._metrics.leading(names.LEASE, leads=False)
        return 1 if lost else 0

    async def _work(
        self,
        api: ApiClient,
        recorder: EventRecorder,
        stop: asyncio.Event,
        watching: asyncio.Task[None],
    ) -> None:
        executor = Executor(api, self._store, recorder)
        self._queue.add(_WORK)  # what was listed before this process led
        passes = asyncio.create_task(self._passes(executor, recorder), name="passes")
        looking = asyncio.create_task(self._looks.run(api), name="looks")
        stopped = asyncio.create_task(stop.wait(), name="stop")
        try:
            await asyncio.wait({watching, passes, stopped}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            passes.cancel()
            raise
        finally:
            self._queue.close()
            self._pace.hurry()
            stopped.cancel()
            looking.cancel()
        await passes
        if watching.done():
            watching.result()  # the error that ended it, if one did

    async def _ask(self, api: ApiClient, stop: asyncio.Event) -> str:
        """Ask what does not change: the server's version, and our Deployment's uid (returned)."""
        uid = asyncio.create_task(_deployment_uid(api, self._platform.operator_namespace))
        try:
            self._server_version = await self._ask_version(api, stop)
            return await uid
        finally:
            uid.cancel()

    async def _ask_version(self, api: ApiClient, stop: asyncio.Event) -> str:
        while not stop.is_set():
            try:
                return str((await api.get_path("/version")).get("gitVersion", ""))
            except KubeError as error:
                log.warning("Cannot ask the API server for its version: %s", error)
                await _unless(stop, asyncio.sleep(2.0))
        return ""

    def _listed(self, stream: Stream) -> None:
        """A stream has been listed; once all have, absence means something and passes may begin."""
        self._store.mark_listed(stream)
        if self._synced:
            self._queue.add(_WORK)

    @property
    def _synced(self) -> bool:
        return self._watcher is not None and self._store.synced(self._watcher.streams)

    def _wake(self, *, urgent: bool) -> None:
        self._pace.event(urgent=urgent)
        self._queue.add(_WORK)

    async def _passes(self, executor: Executor, recorder: EventRecorder) -> None:
        while True:
            try:
                key = await self._queue.get()
            except ShutDown:
                return
            try:
                if self._synced:
                    await self._pace.rest()
                    await self._pass(executor, recorder)
            finally:
                self._queue.done(key)

    async def _pass(self, executor: Executor, recorder: EventRecorder) -> None:
        began = time.monotonic()
        snapshot = take_snapshot(
            self._store,
            self._platform,
            self._options.settings,
            server_version=self._server_version,
            lease_seen=self._intake.lease_seen,
            node_left=self._intake.node_left,
            answered_since=self._elector.answered_since if self._elector else None,
            recovered_at=self._elector.recovered_at if self._elector else None,
            trouble=self._trouble,
            now=datetime.now(UTC),
            unserved=self._watcher.missing if self._watcher else (),
            leases_seen=self._intake.leases_seen,
            troubles=executor.troubles,
            pending=self._looks.pods,
            binders=self._looks.binders,
        )
        troubles = executor.troubles
        self._follow_log_level(snapshot.spec, recorder)
        self._accountant.observe(snapshot)
        try:
            plan = reconcile(snapshot)
            self._looks.tell(recorder, plan.unserved)
            again = await executor.execute(plan)
        except KubeError as error:
            self._failed(str(error), began)
            log.warning("A pass ended early, it will be tried again: %s", error)
            return
        except Exception as error:
            # A defect of ours must not take the operator down: schedulers keep running, people are
            # told, and the next change may get past it.
            self._failed(f"{type(error).__name__}: {error}", began)
            log.exception("A pass failed because of a defect in the operator")
            return
        recovered, self._trouble = self._trouble != "", ""
        news = executor.troubles != troubles
        if executor.troubles:
            # Of some chain only: the next pass says so, then it is tried with patience.
            for whose, trouble in executor.troubles.items() if news else ():
                log.warning("Writing for %s failed: %s", whose, trouble)
            self._queue.add_rate_limited(_WORK)
        else:
            self._queue.forget(_WORK)
        if again or recovered or news:
            self._queue.add(_WORK)
        after = plan.requeue_after
        resync = self._options.settings.resync
        self._queue.add_after(_WORK, min(after, resync) if after is not None else resync)
        self._pace.passed(idle=not again)
        first, self._passed_at = self._passed_at is None, time.monotonic()
        if first:
            self._metrics.first_pass()
            log.info("First complete pass")
            # What has been loaded stays; to look through all of it again takes the collector some
            # 70 ms, and nearly always in the middle of a pass.
            gc.collect()
            gc.freeze()
        self._metrics.passed(self._passed_at - began, success=True)

    def _failed(self, trouble: str, began: float) -> None:
        self._trouble = trouble
        self._metrics.passed(time.monotonic() - began, success=False)
        self._queue.add_rate_limited(_WORK)

    def _follow_log_level(self, spec: Mapping[str, object], recorder: EventRecorder) -> None:
        level = str(spec.get("operatorLogLevel") or "Normal")
        if level == self._log_level:
            return
        before, self._log_level = self._log_level, level
        if not klog.set_level(level):
            message = f'operatorLogLevel "{level}" is unknown; Normal is used'
            recorder.event("Warning", "OperatorLogLevelInvalid", message)
        elif before:
            message = f'Operator log level changed from "{before}" to "{level}"'
            recorder.event("Normal", "OperatorLogLevelChange", message)

    def _alive(self) -> dict[str, str | None]:
        leads = self._elector is not None and self._elector.is_leader
        age = time.monotonic() - self._passed_at if leads and self._passed_at else 0.0
        stuck = age > _STALE_SECONDS
        return {"passes": f"no pass for {age:.0f} s although this process leads" if stuck else None}

    def _ready(self) -> dict[str, str | None]:
        if self._elector is None:
            return {"start": "the process is starting"}
        if not self._elector.is_leader:
            return {"leader-election": None}  # a standby is ready to take over
        if self._watcher is None:
            return {"watches": "the API server has not answered yet"}
        missing = ", ".join(map(str, self._store.unsynced(self._watcher.streams)))
        return {
            "watches": f"not listed yet: {missing}" if missing else None,
            "passes": None if self._passed_at is not None else "no pass has succeeded yet",
        }


async def _unless(stop: asyncio.Event, work: Awaitable[object]) -> bool:
    """Await `work`; False if `stop` came first."""
    task = asyncio.ensure_future(work)
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        stopped.cancel()
        task.result()
        return True
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return False


async def _deployment_uid(api: ApiClient, namespace: str) -> str:
    """The uid that makes `kubectl describe deployment` show our events; empty off cluster."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{names.PROGRAM}"
    try:
        return str((await api.get_path(path))["metadata"]["uid"])
    except (KubeError, KeyError):
        return ""


def run(options: Options) -> int:
    """Run the operator until it is told to stop; returns the exit code."""
    return asyncio.run(Operator(options).run())

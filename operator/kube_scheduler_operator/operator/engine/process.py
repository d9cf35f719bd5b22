"""The operator as a process: its tasks, the order in which they start, and how they end.

The server, the watches and leader election start together: a standby answers probes and keeps its
store up to date. Reconciles begin once this process leads and every watch is listed. SIGTERM undoes
this in reverse: the running reconcile ends, the Lease is released, and a successor leads at once.
When the Lease is lost, all work is cancelled and its state dropped, and the process waits for the
Lease again as a standby does: a slow API server must not end containers, whose restarts would cost
it more.

The server has its own thread, event loop and API client: whatever its clients send, the Lease is
renewed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import uvloop

from ...base import klog, names
from ...base.defects import contained, observe_defects
from ...base.objects import Object
from ...base.tasks import cancel, keep, stop_on_signals, until
from ...kube.client import ApiClient, Writes
from ...kube.credentials import Credentials, find
from ...kube.errors import HistoryRewoundError, KubeError
from ...kube.events import EventRecorder, Involved
from ...kube.kopf.watcher import Watcher
from ...kube.lease import ElectionLease, LeaderElector
from ...kube.queue import ShutDown, Throttle, WorkQueue
from ...kube.resource import SECONDARY_SCHEDULERS, Resource, Stream
from ...kube.server_clock import ServerClock
from ...kube.store import Store
from ...serving.certificate import ServingCertificate
from ..model.plan import Plan, soonest
from ..model.snapshot import Snapshot
from ..secondary.assignment import assigned_pods, in_effect
from ..telemetry.authorize import CachedReviews, delegated
from ..telemetry.cluster_metrics import OWN_CERTIFICATE, WEBHOOK_CERTIFICATE
from ..telemetry.metrics import OperatorMetrics
from ..telemetry.server import Pulse, ServerThread, TelemetryServer
from .assignment import STARTING, AssignmentWebhook, WayPoller
from .discovery import Discovery
from .executor import Executor
from .former_operator import replace_former_operator
from .intake import Intake
from .late_leases import read_late_leases
from .options import OperatorOptions
from .placement_run import PlacementRunner, in_cluster
from .polling import BINDINGS, PENDING, Poller
from .reconcile import reconcile
from .reconcile_health import ReconcileHealth
from .secondary_kind import SecondaryKind
from .serving import Serving, ServingSources
from .snapshot_metrics import SnapshotMetrics
from .snapshots import take_snapshot
from .upgrade_run import UpgradeRunner, upgrades_in_cluster
from .watches import watches

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_CALM = timedelta(seconds=60)  # kubelets have reported what an outage delayed


class Operator:
    def __init__(self, options: OperatorOptions) -> None:
        self._options = options
        self._platform = options.platform
        self._discovery = Discovery(options, partial(self._wake, urgent=False))
        self._metrics = OperatorMetrics(options.settings.operator_version)
        self._snapshot_metrics = SnapshotMetrics(self._metrics)
        self._credentials: Credentials = find(options.kubeconfig)
        self._store = Store()
        self._queue = WorkQueue(observer=self._metrics.queue)
        self._queue.close()  # until this process leads
        self._throttle = Throttle()
        namespaces = options.settings.secondary_namespaces
        self._clock = ServerClock()
        self._intake = Intake(
            self._store,
            options.platform,
            self._wake,
            self._clock.now,
            secondary=namespaces,
            calm=self._calm,
        )
        observe_defects(self._metrics.defect_contained)
        self._metrics.lease_seen = self._lease_seen
        self._metrics.waiting_pods = lambda: self._poller.waiting
        self._poller = self._make_poller()
        self._ways = WayPoller(self._assigning, lambda: self._wake(urgent=False))
        self._kind = SecondaryKind(lambda: self._wake(urgent=False))
        self._webhook = AssignmentWebhook(
            options.platform,
            options.webhook,
            options.kubeconfig,
            lambda: self._schedulers() if self._synced else None,
            lambda: self._ways.configuration,
            self._metrics.reviewed,
        )
        # A container that restarts in its Pod keeps its identity and need not wait for the Lease.
        self._identity = f"{socket.gethostname()}_{os.environ.get('POD_UID') or uuid.uuid4()}"
        self._began = time.monotonic()
        self._health = ReconcileHealth()
        self._restored_at: datetime | None = None
        self._executor: Executor | None = None
        self._placements: PlacementRunner | None = None
        self._upgrades: UpgradeRunner | None = None
        self._recorder: EventRecorder | None = None
        self._log_level = ""
        self._watcher: Watcher | None = None
        self._elector: LeaderElector | None = None
        self._sources = ServingSources()
        self._pulse = Pulse(self._alive, self._ready, self._look)

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT, and return the exit code."""
        stop = stop_on_signals()
        api = self._make_client(lambda: True)
        # A process that was paused, and wakes after its Lease is lost, must write nothing: neither
        # the rest of a plan nor a repeated request.
        leading = self._make_client(lambda: self._elector is not None and self._elector.is_leader)
        async with api, leading:
            elector = LeaderElector(
                api,
                ElectionLease(
                    self._platform.operator_namespace,
                    self._platform.operator.lease,
                    names.OWN_LABELS,
                ),
                self._identity,
                now=self._clock.now,
                rewound=self._rewound,
                recovered=lambda: self._start_over("the API server was away"),
            )
            self._elector = elector
            unwatch = asyncio.Event()
            # These are independent of each other, and each waits for the API server.
            watching = asyncio.create_task(self._watch(unwatch), name="watches")
            acquiring = asyncio.create_task(elector.acquire(), name="lease")
            discovering = asyncio.create_task(self._discovery.read(api, stop), name="discovery")
            deciding = asyncio.create_task(
                keep("platform", partial(self._discovery.decide, api, stop)), name="platform"
            )
            # Both replicas serve the webhook.
            looking = asyncio.create_task(
                keep("assignment", partial(self._ways.run, api)), name="assignment"
            )
            applying = asyncio.create_task(
                self._webhook.run(api, leading, lambda: elector.is_leader, self._clock.now),
                name="webhook",
            )
            server = ServerThread(self._serve)
            beating = asyncio.create_task(keep("pulse", self._pulse.run), name="pulse")
            try:
                await server.start()
                await self._lead(leading, stop, acquiring, discovering, watching)
            finally:
                unwatch.set()
                for task in (acquiring, discovering, deciding, looking):
                    task.cancel()
                await elector.release()
                await self._webhook.drain()
                applying.cancel()
                tasks = (acquiring, discovering, deciding, watching, looking, applying)
                await asyncio.gather(*tasks, return_exceptions=True)
                await server.stop()
                beating.cancel()
        return 0

    def _make_poller(self) -> Poller:
        interval = self._options.settings.pending_interval
        return Poller(interval, lambda: self._wake(urgent=False))

    def _make_client(self, may_write: Callable[[], bool]) -> ApiClient:
        return ApiClient(
            self._credentials,
            field_manager=names.FIELD_MANAGER,
            observer=self._metrics.requested,
            clock=self._clock,
            writes=Writes(may_write),
        )

    def _look(self) -> None:
        """Pass objects to the server's thread, which must not read the store."""
        self._sources = ServingSources.of(self._store, self._platform)

    @contextlib.asynccontextmanager
    async def _serve(self) -> AsyncIterator[TelemetryServer]:
        """Run the HTTPS server in its own thread, which must not use objects of the loop of `run`.

        Any thread may use credentials, metrics and the pulse.
        """
        options = self._options
        certificate = ServingCertificate(options.tls_cert_file, options.tls_key_file)
        self._metrics.certificates |= {
            OWN_CERTIFICATE: lambda: certificate.expires,
            WEBHOOK_CERTIFICATE: lambda: self._webhook.expires,
        }
        serving = Serving(certificate, lambda: self._sources, self._platform)
        client = ApiClient(
            self._credentials,
            field_manager=names.FIELD_MANAGER,
            observer=self._metrics.requested,
        )
        async with client as api:
            server = TelemetryServer(
                render=self._metrics.render,
                authorize=CachedReviews(delegated(api)),
                alive=self._pulse.alive,
                ready=self._pulse.ready,
                certificate=certificate,
                refresh=serving.refresh,
                address=(options.host, options.port),
            )
            await server.start()
            try:
                yield server
            finally:
                await server.stop()

    async def _watch(self, unwatch: asyncio.Event) -> None:
        """Keep the store up to date, also on a standby, so that it takes over without delay."""
        await self._clock.known()
        watcher = Watcher(
            watches(self._platform, self._options.settings.secondary_namespaces),
            on_event=self._event,
            on_listed=self._listed,
            on_rewound=self._rewound,
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
        discovering: asyncio.Task[str],
        watching: asyncio.Task[None],
    ) -> None:
        """Lead each time that the Lease is acquired, until `stop` is set or the watches end."""
        elector = self._elector
        assert elector is not None  # noqa: S101 - set by run()
        self._metrics.leading(self._platform.operator.lease, leads=False)
        while await until(stop.wait(), acquiring):
            if not await until(stop.wait(), discovering):
                return
            self._metrics.leading(self._platform.operator.lease, leads=True)
            try:
                if not await self._lead_once(api, stop, discovering.result(), watching):
                    return
            finally:
                self._metrics.leading(self._platform.operator.lease, leads=False)
            acquiring = asyncio.create_task(elector.acquire(), name="lease")

    async def _lead_once(
        self, api: ApiClient, stop: asyncio.Event, uid: str, watching: asyncio.Task[None]
    ) -> bool:
        """Work while this process leads; return whether it ended because the Lease was lost."""
        elector = self._elector
        assert elector is not None  # noqa: S101 - set by run()
        self._forget_leading()
        involved = Involved(
            "apps/v1",
            "Deployment",
            self._platform.operator.deployment,
            self._platform.operator_namespace,
            uid,
        )
        instance = os.environ.get("POD_NAME") or socket.gethostname()
        recorder = EventRecorder(
            api,
            component=names.PROGRAM,
            instance=instance,
            involved=involved,
            observer=self._metrics.event_sent,
            now=self._clock.now,
        )
        async with recorder:
            holding = asyncio.create_task(elector.hold(), name="lease")
            work = asyncio.create_task(self._work(api, recorder, stop, watching), name="work")
            await asyncio.wait({holding, work}, return_when=asyncio.FIRST_COMPLETED)
            lost = holding.done()
            if lost:
                # From here on no write is allowed, not even by a running reconcile.
                work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
        await cancel(holding)
        return lost

    def _forget_leading(self) -> None:
        """Drop the state of earlier reconciles: another process may have led since."""
        self._queue = WorkQueue(observer=self._metrics.queue)
        self._poller = self._make_poller()
        self._executor, self._recorder = None, None
        self._placements, self._upgrades = None, None
        self._health = ReconcileHealth()

    async def _work(
        self,
        api: ApiClient,
        recorder: EventRecorder,
        stop: asyncio.Event,
        watching: asyncio.Task[None],
    ) -> None:
        replaced = replace_former_operator(api, self._platform, recorder)
        if not await until(stop.wait(), replaced):
            return
        if not await until(stop.wait(), self._discovery.recall(api, stop)):
            return
        executor = Executor(api, self._store, recorder)
        self._executor, self._recorder = executor, recorder
        # A copy of the cluster has tens of megabytes, so there is one.
        common = api, self._platform, self._discovery.settings, asyncio.Lock()
        wake = partial(self._wake, urgent=False)
        placements = PlacementRunner(in_cluster(*common), wake)
        upgrades = UpgradeRunner(upgrades_in_cluster(*common), wake)
        self._placements, self._upgrades = placements, upgrades
        self._queue.add()  # for objects listed before this process led
        reconciling = asyncio.create_task(self._run_queue(executor, recorder), name="reconcile")
        polling = asyncio.create_task(
            keep("polling", partial(self._poller.run, api)), name="polling"
        )
        following = asyncio.create_task(
            keep("version", partial(self._discovery.follow, api, stop)), name="version"
        )
        late = partial(read_late_leases, api, self._intake.late_leases, self._event)
        reading = asyncio.create_task(keep("late Leases", late), name="late Leases")
        kind = asyncio.create_task(self._read_kind(api), name="kind")
        stopped = asyncio.create_task(stop.wait(), name="stop")
        try:
            await asyncio.wait(
                {watching, reconciling, stopped}, return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError:
            reconciling.cancel()
            await asyncio.gather(reconciling, return_exceptions=True)
            raise
        finally:
            self._queue.close()
            self._throttle.release()
            background = (stopped, polling, following, reading, kind)
            for task in background:
                task.cancel()
            await placements.close()
            await upgrades.close()
            await asyncio.gather(*background, return_exceptions=True)
        await reconciling
        if watching.done():
            watching.result()  # raises the error that ended it, if any

    async def _read_kind(self, api: ApiClient) -> None:
        """Read what owns the scheduler that is in the place of static Pods."""
        if not self._platform.owns_static_pods:
            await keep("kind", partial(self._kind.run, api))

    def _event(self, resource: Resource, kind: str | None, obj: Mapping[str, Any]) -> None:
        self._intake.event(resource, kind, obj)
        if resource == SECONDARY_SCHEDULERS:
            self._webhook.changed()

    def _listed(self, stream: Stream) -> None:
        """Note a listed stream; once all are listed, objects that are absent do not exist."""
        self._store.mark_listed(stream)
        if self._synced:
            self._queue.add()
            self._webhook.changed()

    @property
    def _synced(self) -> bool:
        return self._watcher is not None and self._store.synced(self._watcher.streams)

    def _schedulers(self) -> Sequence[Object]:
        return self._store.view().list(SECONDARY_SCHEDULERS)

    def _assigning(self) -> bool:
        """Return whether a SecondaryScheduler has `spec.assign` or still has an assignment."""
        return any(assigned_pods(obj) is not None or in_effect(obj) for obj in self._schedulers())

    def _calm(self) -> bool:
        """Return whether no outage of the API server delays the reports of kubelets."""
        since = self._elector.answered_since if self._elector is not None else None
        return since is not None and self._clock.now() - since > _CALM

    def _lease_seen(self) -> datetime | None:
        """Return the last observed renewal of the schedulers' Lease by this machine's clock."""
        seen = self._intake.lease_seen
        return None if seen is None else seen + (datetime.now(UTC) - self._clock.now())

    def _rewound(self, evidence: str) -> None:
        """Report a restore of etcd, and start over with its state as a new process would."""
        if self._watcher is None or not self._store.listed:
            return  # everything is being listed already
        self._restored_at = self._clock.now()
        self._metrics.rewound()
        log.warning("%s; listing everything again", HistoryRewoundError(evidence))
        if self._recorder is not None:
            message = f"{HistoryRewoundError(evidence)}; everything is listed again"
            self._recorder.event("Warning", "EtcdRestored", message)
        self._start_over("etcd was restored from a backup")

    def _start_over(self, reason: str) -> None:
        """List everything again before the next reconcile.

        This is needed after every outage too, because it may have been a restore of etcd: then
        versions are used again for other content, and a write at such a version would not conflict.
        """
        if self._watcher is None or not self._store.listed:
            return
        self._store.clear()
        self._webhook.changed()
        self._intake.forget()
        if self._executor is not None:
            self._executor.forget()
        self._watcher.start_over(reason)

    @property
    def _answered(self) -> bool:
        """Whether the API server answers; if not, everything is listed again when it does."""
        return self._elector is None or self._elector.answered_since is not None

    def _wake(self, *, urgent: bool) -> None:
        self._throttle.event(urgent=urgent)
        self._queue.add()

    async def _run_queue(self, executor: Executor, recorder: EventRecorder) -> None:
        while True:
            try:
                await self._queue.get()
            except ShutDown:
                return
            try:
                if self._synced and self._answered:
                    await self._throttle.wait()
                    await self._reconcile(executor, recorder)
            finally:
                self._queue.done()

    async def _reconcile(self, executor: Executor, recorder: EventRecorder) -> None:
        began = time.monotonic()
        snapshot = self._snapshot(executor)
        before = executor.write_errors, executor.futile
        self._follow_log_level(snapshot.spec, recorder)
        try:
            self._snapshot_metrics.observe(snapshot)
        except Exception as error:  # metrics must not stop a reconcile
            contained("metrics", "", error)
        try:
            plan = self._decide(snapshot, recorder)
            again = await executor.execute(plan)
        except HistoryRewoundError as error:
            self._rewound(error.evidence)
            self._metrics.passed(time.monotonic() - began, success=False)
            return
        except KubeError as error:
            self._failed(str(error), began)
            log.warning("Reconcile failed, will retry: %s", error)
            return
        except Exception as error:
            # A defect must not stop the operator: schedulers keep running, a condition reports it,
            # and the next change may avoid it.
            self._failed(f"{type(error).__name__}: {error}", began)
            log.exception("Reconcile failed because of a defect in the operator")
            return
        recovered = self._health.error != ""
        changed = (executor.write_errors, executor.futile) != before
        for owner, text in executor.write_errors.items() if changed else ():
            log.warning("Writes for %s failed: %s", owner, text)
        self._queue_next(executor, plan, at_once=again or recovered or changed)
        self._throttle.reconciled(idle=not again)
        self._note_success(plan, began)

    def _snapshot(self, executor: Executor) -> Snapshot:
        elector, poller = self._elector, self._poller
        objects = take_snapshot(
            self._store,
            self._platform,
            self._discovery.settings,
            self._clock.now(),
            missing_kinds={*self._intake.unread, *(self._watcher.missing if self._watcher else ())},
            leases_seen=self._intake.leases_seen,
            clocks=self._intake.clocks.differences,
        )
        return replace(
            objects,
            decision=self._discovery.decision,
            server_version=self._discovery.version.text,
            newer_version=self._discovery.version.newer,
            node_left=self._intake.node_left,
            answered_since=elector.answered_since if elector else None,
            recovered_at=elector.recovered_at if elector else None,
            restored_at=self._restored_at,
            last_error=self._health.error,
            write_errors=executor.write_errors,
            futile_writes=executor.futile,
            pending_pods=poller.pods.values,
            pending_unread=poller.unread(PENDING),
            binding_schedulers=poller.bindings,
            bindings_unread=poller.unread(BINDINGS),
            assignment_way=self._ways.way,
            secondary_kind_uid=self._kind.uid,
            placement_answers=self._placements.answers if self._placements else {},
            upgrade_answers=self._upgrades.answers if self._upgrades else {},
        )

    def _decide(self, snapshot: Snapshot, recorder: EventRecorder) -> Plan:
        """Make the plan of this reconcile, and pass its polls and simulations on."""
        plan = reconcile(snapshot)
        self._poller.report(recorder, plan.pods_without_scheduler)
        if plan.served is not None:
            self._poller.served = plan.served
        if self._placements is not None and plan.simulations is not None:
            self._placements.follow(plan.simulations)
        if self._upgrades is not None and plan.upgrades is not None:
            self._upgrades.follow(plan.upgrades)
        return plan

    def _queue_next(self, executor: Executor, plan: Plan, *, at_once: bool) -> None:
        if executor.write_errors or plan.failures:
            # Other write sets succeeded: the next reconcile reports this error, retries back off.
            self._queue.add_rate_limited()
        else:
            self._queue.forget()
        if at_once:
            self._queue.add()
        after = soonest(plan.requeue_after, executor.wait(), self._options.settings.resync)
        self._queue.add_after(after if after is not None else 0.0)

    def _note_success(self, plan: Plan, began: float) -> None:
        """Note an executed plan, for probes and metrics."""
        if self._health.executed(plan.failures):
            self._metrics.first_pass()
            log.info("First reconcile complete")
            # The objects that exist now stay. The garbage collector would need some 70 ms to scan
            # them again, nearly always during a reconcile.
            gc.collect()
            gc.freeze()
        self._metrics.passed(time.monotonic() - began, success=not plan.failures)

    def _failed(self, error: str, began: float) -> None:
        self._health.failed(error)
        self._metrics.passed(time.monotonic() - began, success=False)
        self._queue.add_rate_limited()

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
        return {"reconcile": self._health.staleness() if leads else None}

    def _ready(self) -> dict[str, str | None]:
        if self._elector is None:
            return {"start": "the operator is starting"}
        if not self._elector.is_leader:
            # A standby is ready to take over; it serves the webhook as the leader does.
            return {"leader-election": None, "webhook": self._webhook_problem()}
        if self._watcher is None:
            return {"watches": "waiting for the API server"}
        missing = ", ".join(map(str, self._store.unsynced(self._watcher.streams)))
        return {
            "watches": f"waiting for the first list of {missing}" if missing else None,
            "reconcile": self._health.problem(),
            "webhook": self._webhook_problem(),
        }

    def _webhook_problem(self) -> str | None:
        """Explain why this starting process would not assign Pods; None if it would.

        A Service with a replica that does not listen loses assignments, so a Deployment must not
        replace the next replica before. Longer failures are reported elsewhere.
        """
        if time.monotonic() - self._began > STARTING:
            return None
        if not self._synced:
            return "waiting for the first lists, which show whether Pods are assigned"
        if not self._assigning() or self._webhook.port:
            return None
        if self._ways.configuration is not None:
            return "it does not listen yet"
        return "looking for what applies spec.assign" if self._ways.way is None else None


def run(options: OperatorOptions) -> int:
    # asyncio's TLS connections are reference cycles with 256 KiB each, and any client may connect.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Operator(options).run())

"""The annotator program: one replica leads and writes, the others wait for its Lease.

All work is one task group under the Lease: when the Lease is lost, the work is cancelled and its
state discarded, because another replica leads; then this one competes again.
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
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from ...base.klog import kv
from ...base.names import OWN_LABELS
from ...base.tasks import stop_on_signals, until
from ...kube.client import ApiClient
from ...kube.credentials import find
from ...kube.lease import ElectionLease, LeaderElector, Timings
from ...kube.reflector import Callbacks, Decoding, Reflector, ReflectorTuning, Selection
from ...kube.resource import NODES, PODS
from ...kube.server_clock import ServerClock
from ...serving.health import HealthServer
from ...serving.http_types import HttpResponse
from ..load.policy import CRANE, SAFE, LoadPolicy
from ..load.policy_follower import PolicyFollower
from ..load.reported_state import ReportedState
from ..policies.pod_fields import POD
from .bindings import PodBindings
from .counters import Counters
from .cycle import Annotator
from .reported_state import Publisher, take_state
from .sources import LoadSource, make_source

log = logging.getLogger(__name__)

LEASE: Final = "load-annotator"
LEASE_TIMINGS: Final = Timings(lease_duration=45.0, renew_deadline=30.0, retry_period=5.0)
"""Long: two simultaneous writers are harmless because writes are conditional, but a new leader has
to list all nodes. A short overload does not lose the Lease, and a killed leader is replaced late:
annotations are valid for minutes."""

POLICY_INTERVAL: Final = 2.0
"""Seconds between reads of the policy file; a mounted ConfigMap changes at most once a minute."""

GRACE: Final = 2.0
"""Seconds that requests in progress may take when the program ends."""

NODES_PAGE: Final = 100
"""Number of complete Node objects in memory; each has tens of kilobytes."""

_NODES_PACE: Final = ReflectorTuning(batch=0.1, page=NODES_PAGE)
_PODS_PACE: Final = ReflectorTuning(batch=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorOptions:
    """The flags of `kube-scheduler-operator annotator`, under their names."""

    config: Path
    namespace: str
    kubeconfig: str | None = None
    address: str = "0.0.0.0"
    port: int = 8080
    identity: str = ""


class AnnotatorProgram:
    def __init__(self, options: AnnotatorOptions) -> None:
        self._options = options
        self._file = PolicyFollower(options.config, time.monotonic, interval=0.0, required=True)
        self._counters = Counters()
        # Extenders on other machines judge the age of annotations, so their clock is not this one.
        self._clock = ServerClock()
        self._annotator: Annotator | None = None
        self._identity = options.identity or (
            f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}"
        )

    async def run(self) -> int:
        """Run until SIGTERM; return the exit code."""
        stop = stop_on_signals()
        credentials = find(self._options.kubeconfig)
        client = ApiClient(credentials, field_manager="load-annotator", clock=self._clock)
        async with client as api, self._serving():
            await until(stop.wait(), self._compete(api))
        log.info("Terminated")
        return 0

    async def _compete(self, api: ApiClient) -> None:
        elector = LeaderElector(
            api,
            ElectionLease(self._options.namespace, LEASE, OWN_LABELS),
            self._identity,
            timings=LEASE_TIMINGS,
            now=self._clock.now,
        )
        try:
            while True:
                await elector.acquire()
                try:
                    await until(elector.hold(), self._work(api))
                finally:
                    self._annotator = None
        finally:
            await elector.release()

    async def _work(self, api: ApiClient) -> None:
        while True:
            policy = self._file.policy
            pods = bool({CRANE, SAFE} & set(policy.write))
            bindings = PodBindings(policy.rules, self._clock.seconds) if pods else None
            annotator = Annotator(
                api,
                policy,
                self._source(policy, api),
                bindings=bindings,
                counters=self._counters,
                now=self._clock.seconds,
            )
            try:
                await self._annotate(api, annotator, bindings)
            finally:
                await annotator.stop()

    async def _annotate(
        self, api: ApiClient, annotator: Annotator, bindings: PodBindings | None
    ) -> None:
        """Work until the policy changes so that other watches are needed."""
        async with asyncio.TaskGroup() as group:
            registry = annotator.nodes
            nodes = Reflector(
                api,
                NODES,
                Callbacks(registry.update, lambda node: registry.remove(node["metadata"]["name"])),
                decoding=Decoding(orjson.loads),
                tuning=_NODES_PACE,
            )
            tasks = [group.create_task(nodes.run())]
            if bindings is not None:
                bindings.changed = annotator.pods_changed
                pods = Reflector(
                    api,
                    PODS,
                    bindings,
                    Selection(field_selector="spec.nodeName!="),
                    decoding=Decoding(orjson.loads, POD),
                    tuning=_PODS_PACE,
                )
                tasks.append(group.create_task(pods.run()))
                await pods.synced()
            self._annotator = annotator
            await nodes.synced()
            annotator.listed()
            gc.collect()
            gc.freeze()  # the nodes stay; collecting them repeatedly finds nothing
            tasks.append(group.create_task(self._report(api, annotator)))
            while await self._same_watches(api, annotator, bindings):
                pass
            for task in tasks:
                task.cancel()

    async def _same_watches(
        self, api: ApiClient, annotator: Annotator, bindings: PodBindings | None
    ) -> bool:
        """Apply a changed policy; return whether the same watches are sufficient."""
        await asyncio.sleep(POLICY_INTERVAL)
        if not self._file.changed():
            return True
        policy = self._file.policy
        self._counters.reloads += 1
        log.info("Applying the changed policy", extra=kv(policy=self._file.digest))
        if bool({CRANE, SAFE} & set(policy.write)) != (bindings is not None):
            return False
        if bindings is not None:
            bindings.rules = policy.rules
        old = annotator.policy
        if policy.source == old.source and policy.cycle == old.cycle:
            annotator.use(policy)
            return True
        before = annotator.source
        annotator.use(policy, self._source(policy, api))
        await before.close()
        return True

    def _source(self, policy: LoadPolicy, api: ApiClient) -> LoadSource:
        return make_source(policy, api, self._options.namespace, self._clock.seconds)

    async def _report(self, api: ApiClient, annotator: Annotator) -> None:
        """Write a report once a cycle, and log changes of the nodes' state."""
        publisher = Publisher(api, self._options.namespace, time.monotonic)
        logged = ""
        while True:
            await asyncio.sleep(min(annotator.policy.cycle, 60.0))
            self._counters.end_cycle()
            now = self._clock.seconds()
            state = take_state(annotator, self._file.digest, self._policy_error(), now)
            logged = _log_change(state, logged)
            await publisher.publish(state)

    def _policy_error(self) -> str:
        error = self._file.error
        return f"{self._options.config}: {error}; the previous policy stays in use" if error else ""

    # --- probes and metrics ---------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        content_type = b"text/plain; version=0.0.4; charset=utf-8"
        server = HealthServer(lambda _: HttpResponse(200, self._metrics(), content_type))
        try:
            host, port = await server.start(self._options.address, self._options.port)
            log.info("Serving", extra=kv(address=f"{host}:{port}"))
            yield
        finally:
            await server.stop(GRACE)

    def _metrics(self) -> bytes:
        annotator, nodes = self._annotator, dict[str, int]()
        if annotator is not None:
            state = take_state(annotator, self._file.digest, "", self._clock.seconds())
            nodes = {
                "known": state.known, "stale": state.staleCount, "missing": state.missingCount,
            }  # fmt: skip
        return self._counters.exposition(annotator is not None, nodes).encode()


def _log_change(state: ReportedState, logged: str) -> str:
    """Log the nodes' state if it differs from `logged`; return the current state."""
    bad = state.staleCount + state.missingCount
    kind = "all" if not bad else "none" if not state.known else "some"
    current = f"{kind}: {state.error.partition(';')[0] if kind == 'none' else ''}"
    if current != logged:
        values = kv(
            known=state.known, stale=state.staleCount, missing=state.missingCount, err=state.error
        )
        if bad:
            log.warning("Load unknown for some nodes", extra=values)
        else:
            log.info("Load known for all nodes", extra=values)
    return current


def run(options: AnnotatorOptions) -> int:
    gc.set_threshold(20_000, 20, 50)
    return asyncio.run(AnnotatorProgram(options).run())

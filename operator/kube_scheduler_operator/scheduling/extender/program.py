"""The extender process: start, configuration reloads and shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import uvloop

from ... import __version__
from ...base import klog, names
from ...base.files import fingerprint
from ...base.klog import kv
from ...base.tasks import cancel, keep, stop_on_signals
from ...kube.client import ApiClient
from ...kube.credentials import find, pod_namespace
from ...kube.events import EventRecorder, Involved
from ...kube.resource import PODS, ObjectRef
from ...kube.server_clock import ServerClock
from ...serving.http_server import HttpServer
from ...serving.http_types import HEALTH_LIMITS, Limits
from ...serving.tls_files import TlsError, TlsFiles
from ..policies.cluster import Cluster
from .assembly import Assembly, NodeLearner
from .binding_rule import bindable_uid
from .cluster_feed import ClusterFeed
from .config import Config, ConfigError, Listen, override, read
from .decisions import Decisions
from .metrics import ExtenderMetrics, MetricSources
from .pod_events import PodEventRecorder
from .routes import Routes, calls_of
from .verbs import VerbContext
from .wire import Binding, Fragments

log = logging.getLogger(__name__)

RELOAD: Final = 2.0
"""Seconds between two checks of the files; a ConfigMap volume updates about once a minute."""

GRACE: Final = 10.0
"""Seconds that requests in progress may take during shutdown."""

_GC: Final = (50_000, 20, 50)
"""Thresholds of the garbage collector: requests create hardly any reference cycles."""


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    config: Config  # the initial configuration, without overrides
    # the configuration file, which is reloaded; None: the configuration is from flags
    file: Path | None = None
    port: int | None = None  # override the configuration
    kubeconfig: str = ""
    watch: bool = True  # False disables watches regardless of the configuration
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def completed(self, config: Config) -> Config:
        """Return a configuration with the overrides of flags and environment.

        Raises ConfigError.
        """
        config = override(config, self.environ, self.port)
        return replace(
            config,
            kubeconfig=self.kubeconfig or config.kubeconfig,
            watch=config.watch and self.watch,
        )


def run(options: ExtenderOptions) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code.

    Raises:
        ConfigError, OSError: the program cannot start.
    """
    gc.set_threshold(*_GC)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(ExtenderProgram(options).run())


class ExtenderProgram:
    def __init__(self, options: ExtenderOptions) -> None:
        self._options = options
        self._config = options.completed(options.config)
        # Times in Pods and annotations are by the API server's clock.
        self._clock = ServerClock()
        self._cluster = Cluster(self._clock.seconds)
        self._decisions = Decisions(self._config.decisions, self._cluster.now)
        self._context = VerbContext(self._cluster, Fragments(self._cluster), self._decisions)
        self._assembly = Assembly(self._cluster, self._context, self._bind, options.environ)
        self._client: ApiClient | None = None
        self._feed: ClusterFeed | None = None
        self._pod_events: PodEventRecorder | None = None
        self._stopping = False
        self._config_problem = ""
        self._tls: TlsFiles | None = None
        self._ports: list[tuple[Listen, HttpServer]] = []
        metrics = ExtenderMetrics(
            MetricSources(
                calls=lambda: calls_of(self._assembly.verbs),
                agents=lambda: self._assembly.agents,
                servers=lambda: [server for _, server in self._ports],
                watched=lambda: self._feed.watched() if self._feed else (),
                nodes=lambda: sum(node is not None for node in self._cluster.nodes),
                pods=lambda: len(self._cluster.pod_keys()),
                decisions=lambda: len(self._decisions),
                config_valid=lambda: not self._config_problem,
                events=self._events,
                waits=lambda: self._context.freshness.waits,
            )
        )
        self._routes = Routes(
            version=self._version,
            alive=lambda: {"ping": None},
            ready=self._ready,
            render=metrics.render,
            explain=self._explain,
        )

    async def run(self) -> int:
        """Serve until a signal arrives."""
        stop = stop_on_signals()
        self._assembly.use(self._config)
        self._apply()
        async with contextlib.AsyncExitStack() as stack:
            await self._listen()
            stack.push_async_callback(self._close)
            if self._config.watch:
                await stack.enter_async_context(self._watching())
            else:
                self._context.learn = NodeLearner(self._cluster)
                log.info("Not watching the API: node data comes from requests only")
            reloading = asyncio.create_task(keep("reload", self._reloading))
            stack.push_async_callback(cancel, reloading)
            await stop.wait()
            log.info("Stopping")
            self._stopping = True
        return 0

    # --- the port -------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Listen on the configured addresses, and close all others."""
        handlers: list[tuple[Listen, Callable[..., Any], Limits | None]] = [
            (self._config.listen, self._routes, None)
        ]
        if self._config.health is not None:
            handlers.append((self._config.health, self._routes.health, HEALTH_LIMITS))
        current = [listen for listen, _ in self._ports]
        if current == [listen for listen, _, _ in handlers]:
            return
        started: list[tuple[Listen, HttpServer]] = []
        tls = None
        for listen, app, limits in handlers:
            if listen in current:
                started.append(self._ports[current.index(listen)])
                continue
            server = HttpServer(app, limits)
            if listen.tls is not None:
                # Kubelet probes have no certificate; routes.py requires one for verbs.
                tls = TlsFiles(ssl.CERT_OPTIONAL, *astuple(listen.tls))
            await server.start(
                listen.address, listen.port, tls.context if listen.tls and tls else None
            )
            log.info("Listening", extra=kv(address=listen.address, port=server.port))
            started.append((listen, server))
        old, self._ports = self._ports, started
        if self._config.listen not in current:
            self._tls = tls
        for port in old:
            if port not in started:
                await port[1].stop(GRACE)

    async def _close(self) -> None:
        await asyncio.gather(*(server.stop(GRACE) for _, server in self._ports))

    # --- the API --------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        credentials = find(self._config.kubeconfig or None)
        async with contextlib.AsyncExitStack() as stack:
            client = ApiClient(
                credentials,
                field_manager=f"{names.PROGRAM}-extender",
                user_agent=f"{names.PROGRAM}/{__version__} extender",
                clock=self._clock,
            )
            self._client = await stack.enter_async_context(client)
            instance = self._options.environ.get("POD_NAME") or socket.gethostname()
            recorder = EventRecorder(
                client,
                component=f"{names.PROGRAM}-extender",
                instance=instance,
                involved=Involved("v1", "Pod", instance),
                now=self._clock.now,
            )
            await stack.enter_async_context(recorder)
            self._pod_events = PodEventRecorder(recorder)
            self._context.rejected = self._pod_events.rejected
            self._feed = ClusterFeed(
                self._cluster, client, self._config_map, pods=self._needs_pods()
            )
            await self._follow_config_maps()
            task = asyncio.create_task(self._feed.run())
            settled = asyncio.create_task(self._settle(self._feed))
            stack.push_async_callback(cancel, settled, task)
            yield

    async def _settle(self, feed: ClusterFeed) -> None:
        """Exempt the objects of the initial lists from garbage collection."""
        began = time.monotonic()
        await feed.synced()
        values = kv(
            nodes=len(self._cluster), pods=len(self._cluster.pod_keys()),
            seconds=round(time.monotonic() - began, 2),
        )  # fmt: skip
        log.info("Synced nodes and pods", extra=values)
        gc.collect()
        gc.freeze()

    def _own_namespace(self) -> str:
        return self._options.environ.get("POD_NAMESPACE") or pod_namespace() or "default"

    def _needs_pods(self) -> bool:
        return any(policy.pods for policy in self._assembly.policies())

    async def _follow_config_maps(self) -> None:
        own = self._own_namespace()
        if self._feed is not None:
            await self._feed.watch_config_maps(
                (namespace or own, name)
                for policy in self._assembly.policies()
                for namespace, name in policy.config_maps()
            )

    def _config_map(self, namespace: str, name: str, data: Mapping[str, str] | None) -> None:
        own = self._own_namespace()
        for policy in self._assembly.policies():
            for reference in policy.config_maps():
                if (reference[0] or own, reference[1]) == (namespace, name):
                    policy.on_config_map(*reference, data)

    async def _bind(self, binding: Binding) -> None:
        if self._client is None:
            raise RuntimeError("bind needs the API, which watch: false disables")
        uid = await bindable_uid(self._client, binding, self._config.bind.scheduler_names)
        metadata = {"name": binding.name, "namespace": binding.namespace, "uid": uid}
        await self._client.create_in(
            ObjectRef(PODS, binding.namespace, binding.name),
            "binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": metadata,
                "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
            },
        )

    # --- the configuration ----------------------------------------------------------------------

    def _apply(self) -> None:
        config = self._config
        klog.set_threshold(klog.SEVERITIES[config.log_level])
        self._decisions.resize(config.decisions)
        tls = config.listen.tls
        self._routes.certificates = tls is not None and bool(tls.client_ca_file)
        self._routes.verbs = self._assembly.verbs

    async def _reloading(self) -> None:
        file = self._options.file
        seen = fingerprint((str(file),)) if file else ()
        while True:
            await asyncio.sleep(RELOAD)
            self._reload_certificates()
            if file is None or (now := fingerprint((str(file),))) == seen:
                continue
            seen = now
            try:
                await self._reload(file)
            except Exception as error:  # including a policy's constructor
                problem = (
                    "; ".join(error.problems) if isinstance(error, ConfigError) else str(error)
                )
                self._config_problem = problem
                values = kv(file=str(file), err=problem)
                log.error("Keeping the current configuration: the new one is invalid", extra=values)

    def _reload_certificates(self) -> None:
        try:
            if self._tls is not None and self._tls.reload():
                log.info("Using new certificates", extra=kv(cert=self._tls.certificate))
        except TlsError as error:
            message = "Keeping the current certificates: the new files are invalid"
            log.warning(message, extra=kv(err=str(error)))

    async def _reload(self, file: Path) -> None:
        text = await asyncio.to_thread(file.read_text, encoding="utf-8")
        config = self._options.completed(read(text))
        if replace(config, digest="") != replace(self._config, digest=""):
            self._assembly.use(config)
            before, self._config = self._config, config
            try:
                await self._listen()
            except OSError:
                self._config = replace(config, listen=before.listen, health=before.health)
                self._apply()
                raise
            if (config.watch, config.kubeconfig) != (before.watch, before.kubeconfig):
                log.warning("Changes of watch and kubeconfig take effect after a restart")
        self._config = config
        self._config_problem = ""
        self._apply()
        await self._follow_config_maps()
        if self._feed is not None:
            await self._feed.watch_pods(self._needs_pods())
        log.info("Using the new configuration", extra=kv(file=str(file), digest=config.digest))

    # --- status ---------------------------------------------------------------------------------

    def _version(self) -> Mapping[str, Any]:
        return {
            "program": f"{names.PROGRAM} extender",
            "version": __version__,
            "config": self._config.digest,
            "agents": {
                agent.name: [member.name for member in agent.members]
                for agent in self._assembly.agents
            },
            **({"configProblem": self._config_problem} if self._config_problem else {}),
        }

    def _ready(self) -> Mapping[str, str | None]:
        checks: dict[str, str | None] = {
            "shutdown": "the program is shutting down" if self._stopping else None
        }
        if self._feed is not None:
            for watch in self._feed.watched():
                why = watch.state.problem or "the initial list is in progress"
                problem = None if watch.state.synced else f"not synced: {why}"
                checks[f"watch-{watch.resource.plural}"] = problem
        elif self._config.watch:
            checks["watch"] = "not started"
        return checks

    def _explain(self, pod: str, details: bool) -> Any:
        if not pod:
            return {"pods": self._decisions.pods()}
        explanation = self._decisions.explain(pod)
        if explanation is None or not details:
            return explanation
        last = self._decisions.last(pod)
        if last is not None:
            last.locate(self._cluster)
            called = {entry["agent"] for entry in explanation["agents"]}
            self._cluster.expire_assumed()
            with self._cluster.without_assumed(last.pod.key):
                explanation["now"] = {
                    agent.name: agent.explain(last)
                    for agent in self._assembly.agents
                    if agent.name in called
                }
        return explanation

    def _events(self) -> tuple[int, int]:
        return (self._pod_events.sent, self._pod_events.withheld) if self._pod_events else (0, 0)

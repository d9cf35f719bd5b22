"""The extender as a program: what it is made of, its start, its reloads and its end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
import uvloop

from ... import __version__
from ...base import klog, names
from ...base.klog import kv
from ...kube.client import ApiClient
from ...kube.credentials import SERVICE_ACCOUNT_DIR, find, fingerprint
from ...kube.events import EventRecorder, Involved
from ...kube.resource import PODS, ObjectRef
from ...policies.cluster import Cluster
from . import config as configs
from .assembly import Assembly, Learner
from .cluster_feed import View
from .config import Config, ConfigError
from .decisions import Decisions
from .http_server import Server
from .messages import Limits
from .metrics import Metrics, Sources
from .pod_events import Teller
from .prioritize_response import Fragments
from .routes import Routes, calls_of
from .tls import Context as TlsContext
from .verbs import Context

if TYPE_CHECKING:
    from .config import Listen
    from .wire_bind_preempt import Binding

log = logging.getLogger(__name__)

RELOAD: Final = 2.0
"""Seconds between two looks at the files; a ConfigMap takes a minute to get here anyway."""

GRACE: Final = 10.0
"""Seconds that requests in progress may take at the end."""

_GC: Final = (50_000, 20, 50)
"""What requests leave behind is freed by counting references; cycles hardly ever come about."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says.

    Attributes:
        config: the configuration to begin with, without flags and environment.
        file: where it is from; looked at again while the program runs. None: from flags.
        port: instead of the configuration's.
        kubeconfig: likewise.
        watch: False: do not, whatever the configuration says.
        environ: the environment.
        limits: of the port.
    """

    config: Config
    file: Path | None = None
    port: int | None = None
    kubeconfig: str = ""
    watch: bool = True
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    limits: Limits | None = None

    def completed(self, config: Config) -> Config:
        """A configuration with what flags and environment say instead.

        Raises:
            ConfigError: the environment is wrong.
        """
        config = configs.override(config, self.environ, self.port)
        return replace(
            config,
            kubeconfig=self.kubeconfig or config.kubeconfig,
            watch=config.watch and self.watch,
        )


def run(options: Options) -> int:
    """Serve until SIGTERM or SIGINT; the exit code.

    Raises:
        ConfigError, TlsError, OSError: it cannot start.
    """
    gc.set_threshold(*_GC)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Program(options).run())


class Program:
    """One extender process."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._config = options.completed(options.config)
        self._cluster = Cluster(time.time)
        self._decisions = Decisions(self._config.decisions, self._cluster.now)
        self._context = Context(self._cluster, Fragments(self._cluster), self._decisions)
        self._assembly = Assembly(self._cluster, self._context, self._bind, options.environ)
        self._client: ApiClient | None = None
        self._view: View | None = None
        self._teller: Teller | None = None
        self._stopping = False
        self._config_problem = ""
        self._tls: TlsContext | None = None
        self._ports: list[tuple[Listen, Server]] = []
        metrics = Metrics(
            Sources(
                calls=lambda: calls_of(self._assembly.verbs),
                agents=lambda: self._assembly.agents,
                servers=lambda: [server for _, server in self._ports],
                watched=lambda: self._view.watched() if self._view else (),
                nodes=lambda: sum(node is not None for node in self._cluster.nodes),
                pods=lambda: len(self._cluster.pod_keys()),
                decisions=lambda: len(self._decisions),
                config_valid=lambda: not self._config_problem,
                events=self._events,
                waits=lambda: self._context.behind.waits,
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
        """Serve until told to stop."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        self._assembly.use(self._config)
        self._apply()
        async with contextlib.AsyncExitStack() as stack:
            await self._listen()
            stack.push_async_callback(self._close)
            if self._config.watch:
                await stack.enter_async_context(self._watching())
            else:
                self._context.learn = Learner(self._cluster)
                log.info("Not watching the API: nodes are known by what requests say of them")
            reloading = asyncio.create_task(self._reloading())
            stack.push_async_callback(_cancelled, reloading)
            await stop.wait()
            log.info("Stopping")
            self._stopping = True
        return 0

    # --- the port -------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Listen where the configuration says, and nowhere else."""
        wanted = [(self._config.listen, self._routes)]
        handlers: list[tuple[Listen, Callable[..., Any]]] = list(wanted)
        if self._config.health is not None:
            handlers.append((self._config.health, self._routes.health))
        have = [listen for listen, _ in self._ports]
        if have == [listen for listen, _ in handlers]:
            return
        started: list[tuple[Listen, Server]] = []
        tls = None
        for listen, app in handlers:
            if listen in have:
                started.append(self._ports[have.index(listen)])
                continue
            server = Server(app, self._options.limits)
            if listen.tls is not None:
                tls = TlsContext(listen.tls)
            await server.start(
                listen.address, listen.port, tls.context if listen.tls and tls else None
            )
            log.info("Listening", extra=kv(address=listen.address, port=server.port))
            started.append((listen, server))
        old, self._ports = self._ports, started
        if self._config.listen not in have:
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
            )
            self._client = await stack.enter_async_context(client)
            instance = self._options.environ.get("POD_NAME") or socket.gethostname()
            recorder = EventRecorder(
                client,
                component=f"{names.PROGRAM}-extender",
                instance=instance,
                involved=Involved("v1", "Pod", instance),
            )
            await stack.enter_async_context(recorder)
            self._teller = Teller(recorder)
            self._context.rejected = self._teller.rejected
            self._view = View(
                self._cluster, client, self._config_map, loads=orjson.loads, pods=self._wants_pods()
            )
            await self._want_config_maps()
            task = asyncio.create_task(self._view.run())
            stack.push_async_callback(_cancelled, task)
            settled = asyncio.create_task(self._settle(self._view))
            stack.push_async_callback(_cancelled, settled)
            yield

    async def _settle(self, view: View) -> None:
        """When all is read, take it out of the garbage collector's way."""
        began = time.monotonic()
        await view.synced()
        values = kv(
            nodes=len(self._cluster), pods=len(self._cluster.pod_keys()),
            seconds=round(time.monotonic() - began, 2),
        )  # fmt: skip
        log.info("Nodes and pods are known", extra=values)
        gc.collect()
        gc.freeze()

    def _own_namespace(self) -> str:
        given = self._options.environ.get("POD_NAMESPACE")
        if given:
            return given
        with contextlib.suppress(OSError):
            return (SERVICE_ACCOUNT_DIR / "namespace").read_text(encoding="utf-8").strip()
        return "default"

    def _wants_pods(self) -> bool:
        return any(policy.pods for policy in self._assembly.policies())

    async def _want_config_maps(self) -> None:
        own = self._own_namespace()
        if self._view is not None:
            await self._view.want(
                (namespace or own, name)
                for policy in self._assembly.policies()
                for namespace, name in policy.config_maps()
            )

    def _config_map(self, namespace: str, name: str, data: Mapping[str, str] | None) -> None:
        own = self._own_namespace()
        for policy in self._assembly.policies():
            for wanted in policy.config_maps():
                if (wanted[0] or own, wanted[1]) == (namespace, name):
                    policy.on_config_map(*wanted, data)

    async def _bind(self, binding: Binding) -> None:
        if self._client is None:
            raise RuntimeError("this extender does not talk to the API (watch: false)")
        metadata = {"name": binding.name, "namespace": binding.namespace}
        if binding.uid:
            metadata["uid"] = binding.uid
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
            if self._tls is not None:
                self._tls.reload()
            if file is None or (now := fingerprint((str(file),))) == seen:
                continue
            seen = now
            try:
                await self._reload(file)
            except Exception as error:  # a bug in a policy's constructor as well
                told = "; ".join(error.problems) if isinstance(error, ConfigError) else str(error)
                self._config_problem = told
                log.error("Keeping the configuration", extra=kv(file=str(file), err=told))

    async def _reload(self, file: Path) -> None:
        text = await asyncio.to_thread(file.read_text, encoding="utf-8")
        config = self._options.completed(configs.read(text))
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
                log.warning("watch and kubeconfig are read at the start only: restart the program")
        self._config = config
        self._config_problem = ""
        self._apply()
        await self._want_config_maps()
        if self._view is not None:
            await self._view.want_pods(self._wants_pods())
        log.info("Using a new configuration", extra=kv(file=str(file), digest=config.digest))

    # --- what is told ---------------------------------------------------------------------------

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
            "shutdown": "the program is ending" if self._stopping else None
        }
        if self._view is not None:
            for one in self._view.watched():
                why = one.problem or "they are being read"
                checks[f"watch-{one.resource}"] = None if one.synced else f"not known yet: {why}"
        elif self._config.watch:
            checks["watch"] = "not begun yet"
        return checks

    def _explain(self, pod: str, details: bool) -> Any:
        if not pod:
            return {"pods": self._decisions.pods()}
        told = self._decisions.explain(pod)
        if told is None or not details:
            return told
        last = self._decisions.last(pod)
        if last is not None:
            last.locate(self._cluster)
            asked = {each["agent"] for each in told["agents"]}
            told["now"] = {
                agent.name: agent.explain(last)
                for agent in self._assembly.agents
                if agent.name in asked
            }
        return told

    def _events(self) -> tuple[int, int]:
        return (self._teller.sent, self._teller.withheld) if self._teller else (0, 0)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

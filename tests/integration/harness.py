"""The operator as a process, a proxy that can kill it at any write, and a node that is played.

The API server is real and so is the operator; the kubelet and the installer are played, because
here it is the operator that is put through faults. tests/e2e has real ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from cluster import images
from cluster.api import Api, ApiError
from cluster.model import Sandbox
from cluster.observe import until

from ..imitation import kubelet

NAMESPACE = "kube-scheduler-operator"
NODE = "played"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_MIRROR = f"/api/v1/namespaces/kube-system/pods/kube-scheduler-{NODE}"


class Proxy:
    """Forwards everything to the API server and acts on the n-th write of the operator.

    Attributes:
        url: the server in the operator's kubeconfig.
        writes: writes seen since `arm`, Leases and Events not counted: "VERB path".
        bodies: their bodies.
        identity: as whom the operator is to be taken; empty: the administrator.
        version: the API server's version that the operator is to see; empty: the real one.
        silent: nothing of a watch is forwarded.
        struck: the write to kill at has come; `killed` once the operator is dead.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._kill_at = 0
        self._after = False
        self._kill: Callable[[], None] = lambda: None
        self.refuse: Callable[[str, str], int] = lambda method, path: 0
        self.writes: list[str] = []
        self.bodies: list[str] = []
        self.identity: tuple[tuple[str, str], ...] = ()
        self.version = ""
        self.silent = False
        self.struck = False
        self.killed = False
        self.url = ""
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    def arm(self, number: int, kill: Callable[[], None], *, after: bool) -> None:
        """Kill at the `number`-th write from now, before or after it took effect; 0: never."""
        self.writes, self.bodies, self.struck, self.killed = [], [], False, False
        self._kill_at, self._kill, self._after = number, kill, after

    def disarm(self) -> bool:
        """Stop killing; whether the operator was killed."""
        self._kill_at = 0
        if self.struck:
            until(lambda: self.killed, 30, "the write to kill at never ended")
        return self.killed

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._stop())
        self._loop.close()

    async def _start(self) -> None:
        pki = self._sandbox.state / "pki"
        tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        # First what goes to the server: it is broken off, while an answer that a handler closes
        # would say goodbye over TLS and wait for the server beyond the end of the loop.
        await self._session.close()
        await self._runner.cleanup()
        # A watch may still be forwarded; it must not outlive the loop.
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _strike(self) -> None:
        self._kill()
        self.killed = True  # who sees that may start another one

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        counted = request.method != "GET" and not any(
            word in request.path for word in ("/leases", "/events", "reviews")
        )
        strike = False
        if counted:
            self.writes.append(f"{request.method} {request.path}")
            strike = not self.struck and len(self.writes) == self._kill_at
            self.struck |= strike
        if strike and not self._after:
            self._strike()
            raise web.HTTPServiceUnavailable
        if self.version and request.path == "/version":
            return web.json_response({"gitVersion": self.version})
        if code := self.refuse(request.method, request.path):
            return web.json_response(_status(code, request), status=code)
        url = f"{self._sandbox.server}{request.path_qs}"
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in ("host", "content-length", "authorization")
        }
        headers |= dict(self.identity)
        body = await request.read()
        if counted:
            self.bodies.append(body.decode(errors="replace"))
        try:
            return await self._forward(request, url, headers, body, strike=strike)
        except aiohttp.ClientConnectorError:
            if request.transport is not None:  # as if there were no proxy
                request.transport.abort()
            raise

    async def _forward(
        self,
        request: web.Request,
        url: str,
        headers: dict[str, str],
        body: bytes,
        *,
        strike: bool,
    ) -> web.StreamResponse:
        async with self._session.request(
            request.method, url, headers=headers, data=body or None
        ) as answer:
            if strike:
                await answer.read()
                self._strike()
                raise web.HTTPServiceUnavailable
            response = web.StreamResponse(status=answer.status)
            for name in ("Content-Type", "Content-Encoding"):
                if name in answer.headers:
                    response.headers[name] = answer.headers[name]
            with contextlib.suppress(ConnectionResetError, aiohttp.ClientError):
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    if not (self.silent and "watch" in request.query):
                        await response.write(chunk)
                await response.write_eof()
            return response


def _status(code: int, request: web.Request) -> dict[str, Any]:
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
    resource = request.path.split("/")[-1]
    reasons = {401: "Unauthorized", 403: "Forbidden", 503: "ServiceUnavailable"}
    message = {
        401: "Unauthorized",
        403: f'{resource} is forbidden: User "operator" cannot '
        f'{verb.get(request.method, "list")} resource "{resource}"',
    }.get(code, "the server is currently unable to handle the request")
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reasons.get(code, "Unknown"),
        "message": message,
    }


class Operator:
    """The operator as a process on this machine."""

    def __init__(self, proxy: Proxy, folder: Path, identity: str = "the-one") -> None:
        self.identity = identity
        self.kubeconfig = folder / "kubeconfig"
        self.log = folder / "operator.log"
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": {"server": proxy.url}}],
                    "users": [{"name": "u", "user": {"token": "anything"}}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        self.program: tuple[str, ...] = ("-m", "kube_scheduler_operator")
        self.process: subprocess.Popen[bytes] | None = None
        self._arguments: tuple[str, ...] = ()
        self._before = 0  # the log up to its latest start

    def start(self, *arguments: str, wait: bool = True) -> None:
        """Start it and wait for its first pass; its identity stays, so it leads at once.

        A standby is not waited for.
        """
        self._arguments, self._before = arguments, len(self.text())
        command = [sys.executable, *self.program, "operator"]
        options = [f"--kubeconfig={self.kubeconfig}", "--listen=127.0.0.1:0", *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *options],
                stdout=log,
                stderr=log,
                env={**os.environ, "POD_UID": self.identity, "POD_NAME": "operator"},
            )
        if wait:
            until(lambda: "First reconcile complete" in self.latest_text(), 60, "no pass")

    def kill(self) -> None:
        """SIGKILL, and wait until it is dead."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    @property
    def port(self) -> int:
        """The port of its latest start; the system has chosen it."""
        return int(re.findall(r'"Serving metrics and health".* port=(\d+)', self.text())[-1])

    def speaks(self, version: ssl.TLSVersion) -> bool:
        """Whether its port accepts a client of one TLS version."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        try:
            with (
                socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection,
                context.wrap_socket(connection) as secure,
            ):
                return secure.version() is not None
        except (ssl.SSLError, ConnectionError):
            return False

    def latest_text(self) -> str:
        """Its log since its latest start."""
        return self.text()[self._before :]

    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


class PlayedNode:
    """A control-plane node whose kubelet and installer are a thread of the test.

    Attributes:
        refusal: the last log line of a revision's preflight, by pod; empty if it passes.
        failure: why a revision that passes does not become healthy; empty if it does.
        install: runs an installer's pod.
        beat: reports the state of the node, every five seconds.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._api = Api(sandbox)
        self._image = images.scheduler_name(sandbox.kubernetes)
        self.refusal: Callable[[dict[str, Any]], str] = lambda pod: ""
        self.failure = ""
        self.install: Callable[[dict[str, Any]], None] = self._install
        self.beat: Callable[[], None] = self._beat
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._main, daemon=True)

    def start(self) -> None:
        """Register the node with the stock scheduler on it."""
        self._api.create(
            "/api/v1/nodes",
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": NODE,
                    "labels": {"node-role.kubernetes.io/control-plane": ""},
                },
            },
        )
        self._beat()
        self._mirror(
            {},
            {},
            [
                "kube-scheduler",
                "--kubeconfig=/etc/kubernetes/scheduler.conf",
                "--leader-elect=true",
            ],
        )
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)

    def _main(self) -> None:
        beaten = 0.0
        while not self._stop.is_set():
            try:
                if time.monotonic() - beaten > 5:
                    self.beat()
                    beaten = time.monotonic()
                for pod in self._api.request("GET", f"{_PODS}?labelSelector=app%3Dinstaller")[
                    "items"
                ]:
                    self.install(pod)
            except ApiError as error:
                print(f"played node: {error}", file=sys.stderr)
            time.sleep(0.05)

    def _beat(self) -> None:
        status = kubelet.node_status(now())
        self._api.request("PATCH", f"/api/v1/nodes/{NODE}/status", {"status": status})
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        spec = kubelet.lease_spec(f"{NODE}_x", now())
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "kube-scheduler"},
            "spec": spec,
        }
        self._api.create(lease, body)
        self._api.request("PATCH", f"{lease}/kube-scheduler", {"spec": spec})

    def _install(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            self._api.request("DELETE", f"{_PODS}/{name}", body)
            return
        if pod["status"].get("phase") != "Pending" or pod["status"].get("containerStatuses"):
            return
        revision = pod["metadata"]["labels"]["kube-scheduler-operator.dev/revision"]
        sentence = self.refusal(pod)
        if sentence:
            ended = kubelet.terminated(1, sentence, now())
            preflight = kubelet.container_status("preflight", ended)
            status = {"phase": "Pending", "containerStatuses": [preflight]}
            self._api.request("PATCH", f"{_PODS}/{name}/status", {"status": status})
            return
        copy = f"/api/v1/namespaces/{NAMESPACE}/configmaps/kube-scheduler-pod-{revision}"
        if self.failure:
            self._end(name, revision, "RolledBack", int(revision) - 1, reason=self.failure)
            return
        static = json.loads(self._api.request("GET", copy)["data"]["pod.yaml"])
        container = static["spec"]["containers"][0]
        labels = {"revision": revision}
        digest = self._api.request(
            "GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/revision-status-{revision}"
        )["data"]["hash"]
        self._mirror(
            labels,
            {"kube-scheduler-operator.dev/content-hash": digest},
            [*container["command"], *container["args"]],
        )
        self._end(name, revision, "Installed", int(revision))

    def _end(self, pod: str, revision: str, outcome: str, good: int, reason: str = "") -> None:
        """Report the result of an installer."""
        result = {
            "result": outcome,
            "revision": int(revision),
            "node": NODE,
            "lastGoodRevision": good,
            "steps": {"stage": 0.1},
            **({"reason": reason} if reason else {}),
        }
        status = kubelet.ended_status("installer", 0, json.dumps(result), now())
        self._api.request("PATCH", f"{_PODS}/{pod}/status", {"status": status})

    def _mirror(
        self, labels: dict[str, str], annotations: dict[str, str], command: list[str]
    ) -> None:
        with contextlib.suppress(ApiError):
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            self._api.request("DELETE", _MIRROR, body)
        pod = kubelet.mirror_pod(
            NODE,
            "kube-system",
            {"image": self._image, "command": command},
            labels={"component": "kube-scheduler", "tier": "control-plane", **labels},
            annotations=annotations,
        )
        pod["spec"] |= {
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
        }
        self._api.request("POST", "/api/v1/namespaces/kube-system/pods", pod)
        status = kubelet.ready_status(pod, now())
        self._api.request("PATCH", f"{_MIRROR}/status", {"status": status})


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

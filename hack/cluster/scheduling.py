"""A kube-scheduler as a process of this machine, pods for it, and when it bound them.

For a control plane without nodes (`up --nodes 0`) and hollow ones (`hollow.py`).
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
import urllib.request
from ssl import CERT_NONE, create_default_context
from typing import TYPE_CHECKING

from cluster import hollow, paths, pki, processes
from cluster.api import METADATA, ApiError, wait
from cluster.console import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from ssl import SSLContext

    from cluster.api import Api, Object
    from cluster.model import Sandbox

DEFAULT_SCHEDULER = "default-scheduler"
_QUERIES_PER_SECOND = 5000
"""kube-scheduler's default, 50, would be all that is measured."""
_USER = "system:kube-scheduler"
_START_SECONDS = 60.0
FREE_PORTS = range(22_000, 30_000)
"""Above the ports of sandboxes, below NodePorts and those that the kernel gives to connections."""
_IMMEDIATELY: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


class Scheduler:
    """The kube-scheduler of a sandbox without nodes, with its own rights.

    Args:
        sandbox: whose it is.
        name: of the process, if there are several.
    """

    def __init__(self, sandbox: Sandbox, name: str = "kube-scheduler") -> None:
        self._sandbox, self._name = sandbox, name
        self._port = free_port()

    @property
    def pid(self) -> int:
        """Of the running process.

        Raises:
            SandboxError: It does not run.
        """
        found = processes.find(self._sandbox, self._name)
        if found is None:
            raise SandboxError(f"{self._name} does not run:\n{self.log()}")
        return found.pid

    def start(
        self,
        extenders: Sequence[Object] = (),
        scheduler_name: str = DEFAULT_SCHEDULER,
        flags: Sequence[str] = (),
        profiles: Sequence[Object] = (),
    ) -> None:
        """Start it; it schedules from then on.

        Args:
            extenders: the list of that name in KubeSchedulerConfiguration.
            scheduler_name: of whose pods it is to take care.
            flags: further ones.
            profiles: in the place of the one of `scheduler_name`.
        """
        config: Object = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": str(self._kubeconfig()),
                "qps": _QUERIES_PER_SECOND,
                "burst": _QUERIES_PER_SECOND,
            },
            "leaderElection": {"leaderElect": False},
            "profiles": list(profiles) or [{"schedulerName": scheduler_name}],
            "extenders": list(extenders),
        }
        path = self._sandbox.state / f"{self._name}.json"
        paths.write_atomically(path, json.dumps(config, indent=2))
        command: list[str | Path] = [
            self._sandbox.state / "bin/kube-scheduler",
            f"--config={path}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics,/metrics/resources",
            *flags,
        ]
        processes.spawn(self._sandbox, self._name, command)

    def stop(self) -> None:
        """Kill it, if it runs."""
        processes.kill_one(self._sandbox, self._name)

    @property
    def port(self) -> int:
        """Of 127.0.0.1, where it serves HTTPS."""
        return self._port

    def metrics(self, path: str = "/metrics") -> str:
        """Its metrics, as Prometheus reads them.

        Raises:
            SandboxError: It does not answer.
        """
        context = create_default_context()  # its certificate is its own
        context.check_hostname, context.verify_mode = False, CERT_NONE
        return fetch(f"https://127.0.0.1:{self._port}{path}", context)

    def log(self) -> str:
        """The end of its log."""
        return processes.log_tail(self._sandbox, self._name)

    def _kubeconfig(self) -> str:
        folder = self._sandbox.state / "pki"
        credentials = pki.Authority(folder, "ca").issue("scheduler", _USER)
        path = folder / "scheduler.conf"
        content = pki.kubeconfig(self._sandbox.server, folder / "ca.crt", _USER, credentials)
        paths.write_atomically(path, content, 0o600)
        return str(path)


class Bindings:
    """When the pods of a namespace get their nodes; it looks from the moment that it is made.

    Only their names are watched: that is what costs the API server least.

    Attributes:
        seconds: pod -> the monotonic clock when it was seen to be bound.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._path = f"{pods_of(namespace)}?fieldSelector=spec.nodeName!="
        self._over = threading.Event()
        self._trouble = ""
        self.seconds: dict[str, float] = {}
        known = api.request("GET", self._path)
        self._version: str = known["metadata"]["resourceVersion"]
        self._before = {pod["metadata"]["uid"] for pod in known["items"]}
        threading.Thread(target=self._watch, daemon=True).start()

    def wait(self, count: int, seconds: float, trouble: Callable[[], str] = str) -> None:
        """Wait until that many are bound.

        Raises:
            SandboxError: They were not in time; with what `trouble` knows about it.
        """

        def progress() -> str:
            return f"{len(self.seconds)} of {count} pods were bound. {self._trouble} {trouble()}"

        wait(lambda: len(self.seconds) >= count, seconds, progress, every=0.01)

    def close(self) -> None:
        """Look no longer."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.is_set():
            query = f"&watch=1&timeoutSeconds=50&resourceVersion={self._version}"
            try:
                for event in self._api.watch(f"{self._path}{query}", METADATA):
                    self._look(event)
                    if self._over.is_set():
                        return
            except ApiError as error:
                self._trouble = str(error)
                time.sleep(0.5)

    def _look(self, event: Object) -> None:
        metadata = event.get("object", {}).get("metadata", {})
        if event.get("type") == "ERROR" or "resourceVersion" not in metadata:
            raise ApiError(410, f"watch of pods: {event}")
        self._version = metadata["resourceVersion"]
        if event["type"] != "DELETED" and metadata["uid"] not in self._before:
            self.seconds.setdefault(metadata["name"], time.monotonic())


def free_of_limits(api: Api) -> None:
    """Have the API server take as many of a scheduler's requests as come.

    It has room for some four hundred at a time (API Priority and Fairness), refuses the others, and
    asks them to retry after seconds, more from time to time. A scheduler that is quicker than
    its API server is then measured by these pauses.
    """
    subject = {"kind": "User", "user": {"name": _USER}}
    everything = {
        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
        "clusterScope": True,
    }  # fmt: skip
    schema = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "bench-scheduler"},
        "spec": {
            "priorityLevelConfiguration": {"name": "exempt"},
            "matchingPrecedence": 2,  # 1 is the API server's own
            "rules": [{"subjects": [subject], "resourceRules": [everything]}],
        },
    }
    api.create("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", schema)


def pods_of(namespace: str) -> str:
    """The path of a namespace's pods."""
    return f"/api/v1/namespaces/{namespace}/pods"


def create_namespace(api: Api, namespace: str) -> None:
    """Make a namespace and wait until it takes pods."""
    api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})

    def takes_pods() -> bool:
        try:
            api.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
        except ApiError:
            return False
        return True

    wait(takes_pods, _START_SECONDS, lambda: f"namespace {namespace} has no service account")


def create_pods(api: Api, namespace: str, pods: Iterable[Object]) -> None:
    """Make pods, several at a time."""
    hollow.in_parallel(lambda pod: api.request("POST", pods_of(namespace), pod), pods)


def delete_pods(api: Api, namespace: str) -> None:
    """Delete all pods of a namespace at once, and wait until they are gone."""
    path = pods_of(namespace)
    api.request("DELETE", path, _IMMEDIATELY)
    wait(
        lambda: not api.request("GET", f"{path}?limit=1")["items"],
        _START_SECONDS,
        lambda: f"pods of {namespace} are still there",
    )


def pod(
    name: str,
    number: int = 0,
    scheduler_name: str = DEFAULT_SCHEDULER,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """A pod of an application, without an owner; its number selects one of some sizes."""
    cpu, memory = ((50, 64), (100, 128), (100, 256), (250, 256))[number % 4]
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    limits = {"cpu": f"{2 * cpu}m", "memory": f"{2 * memory}Mi"}
    application = f"application-{number % 20:02}"
    container = {
        "name": "server",
        "image": f"registry.example.com/team-{number % 6}/{application}:v1.0.{number % 20}",
        "args": ["--listen=:8080", "--log-format=json"],
        "env": [{"name": "GOMEMLIMIT", "value": f"{memory}MiB"}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": requests, "limits": limits},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/name": application, **(labels or {})},
        },
        "spec": {"schedulerName": scheduler_name, "containers": [container]},
    }


def free_port() -> int:
    """A port of 127.0.0.1 for a program that cannot choose one itself.

    It is free, and no connection can take it before the program listens.
    """
    for port in random.sample(FREE_PORTS, len(FREE_PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise SandboxError(f"no port of {FREE_PORTS} is free")


def fetch(url: str, context: SSLContext | None = None) -> str:
    """The text that a GET is answered with.

    Raises:
        SandboxError: There is no such answer.
    """
    try:
        with urllib.request.urlopen(url, timeout=30, context=context) as answer:
            text: str = answer.read().decode()
    except OSError as error:
        raise SandboxError(f"GET {url}: {error}") from error
    return text


def answers(url: str) -> bool:
    """Whether a GET is answered with 200."""
    try:
        fetch(url)
    except SandboxError:
        return False
    return True

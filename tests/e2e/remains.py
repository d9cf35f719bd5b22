"""What the clusters of a run leave behind, searched for everything that should have stayed secret.

A cluster is searched before it is taken down: logs, also of pods that have gone, what is in the
API, what the operator serves and what its commands show. The API server's audit log is its own.
"""

from __future__ import annotations

import base64
import contextlib
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from cluster import model, nodes
from cluster.api import Api, Object
from cluster.console import SandboxError, run
from cluster.model import Sandbox
from kube_scheduler_operator.base.platform import PLATFORMS

from .leaks import Secret, leaks, secret, secret_in_file

Place = tuple[str, bytes]
Some = TypeVar("Some")

_CLUSTER_WIDE = (
    "/apis/config.openshift.io/v1/schedulers",
    "/apis/operator.openshift.io/v1/kubeschedulers",
    "/apis/config.openshift.io/v1/clusteroperators",
    "/api/v1/nodes",
    "/api/v1/events",
)
_OF_NAMESPACES = (
    "/api/v1/namespaces/{}/configmaps",
    "/api/v1/namespaces/{}/pods",
    "/api/v1/namespaces/{}/serviceaccounts",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/apps/v1/namespaces/{}/replicasets",
    "/apis/apps/v1/namespaces/{}/daemonsets",
    "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
)
_COMMANDS = (("status", "--verbose", "-o", "json"), ("status", "--verbose"))
_READER = "secret-search"
SCRAPE = """
import ssl, sys, time, urllib.request
header = {"Authorization": "Bearer " + sys.stdin.read()}
request = urllib.request.Request(sys.argv[1], headers=header)
context = ssl._create_unverified_context()
for _ in range(30):
    try:
        print(urllib.request.urlopen(request, context=context, timeout=5).read().decode())
        break
    except OSError:
        # The right is new, and a refusal is remembered for ten seconds; or the process is.
        time.sleep(1)
else:
    sys.exit("refused")
"""
_TOKENS = (
    "find /var/lib/kubelet/pods -path '*kubernetes.io~projected*' -type f -name token "
    """-exec sh -c 'for file; do cat "$file"; echo; done' _ {} + 2>/dev/null || true"""
)


class Follower(threading.Thread):
    """Keeps the logs of pods that go: a file that has a second name outlives its first.

    The kubelet removes logs with their pods, and packs those that have become long.
    """

    def __init__(self, state: Path) -> None:
        super().__init__(name=f"logs of {state.name}", daemon=True)
        self._state = state
        self._known: set[int] = set()
        self._over = threading.Event()
        self.trouble: set[str] = set()

    @property
    def kept(self) -> Path:
        """Where they are: NODE/POD/CONTAINER/FILE.INODE."""
        return self._state / "kept-logs"

    def run(self) -> None:
        """Look once a second."""
        while not self._over.wait(1.0):
            self.sweep()

    def sweep(self) -> None:
        """Keep what has come since the last time."""
        # Not Path.glob, which ends with the first folder that goes while it looks.
        for name in glob.iglob(str(self._state / "nodes/*/var/log/pods/*/*/*")):  # noqa: PTH207
            log = Path(name)
            node, pod, container, file = (log.parts[i] for i in (-7, -3, -2, -1))
            try:
                number = log.stat().st_ino
                if number in self._known or not log.is_file():
                    continue
                kept = self.kept / node / pod / container / f"{file}.{number}"
                kept.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    os.link(log, kept)
                self._known.add(number)
            except FileNotFoundError:
                continue  # it went meanwhile
            except OSError as error:
                self.trouble.add(f"{log}: {error}")

    def end(self) -> None:
        """Look a last time."""
        self._over.set()
        if self.is_alive():
            self.join()
        self.sweep()


@dataclass
class Search:
    """The sum of several clusters."""

    clusters: list[str] = field(default_factory=list)  # which ones
    secrets: int = 0  # how many secrets there were
    places: Counter[str] = field(default_factory=Counter)  # kind of place -> how many were searched
    size: int = 0  # of all of them, in bytes
    found: list[str] = field(default_factory=list)  # what was where it should not be
    unread: list[str] = field(default_factory=list)  # what could not be searched, and why
    _followers: dict[str, Follower] = field(default_factory=dict, repr=False)

    def follow(self, sandbox: Sandbox) -> None:
        """From now on nothing that is logged in a sandbox gets lost."""
        follower = Follower(sandbox.state)
        self._followers[sandbox.name] = follower
        follower.start()

    def add(self, name: str) -> None:
        """Search a sandbox that still runs, once."""
        follower = self._followers.pop(name, None)
        try:
            sandbox = model.load(name)
            if sandbox is not None and name not in self.clusters:
                self.clusters.append(name)
                self._add(sandbox, follower or Follower(sandbox.state))
        finally:
            if follower:
                follower.end()  # or it would write into a folder that is being removed

    def merge(self, other: Search) -> None:
        """Take in what another process has found; it follows nothing any more."""
        self.clusters += other.clusters
        self.secrets += other.secrets
        self.size += other.size
        self.found += other.found
        self.unread += other.unread
        self.places += other.places

    def _add(self, sandbox: Sandbox, follower: Follower) -> None:
        name, api = sandbox.name, Api(sandbox)
        secrets: list[Secret] = []
        seen: dict[str, list[Place]] = {}
        if _is_installed(api):  # or only its logs are left
            seen = {
                "scrapes": self._all(name, lambda: _metrics(sandbox, api, secrets)),
                "files and screens": self._all(name, lambda: _commands(sandbox)),
                "objects": self._all(name, lambda: objects(sandbox, api)),
            }
            secrets += self._all(name, lambda: _tokens(sandbox))
        for collect in (lambda: secrets_of_api(api), lambda: secrets_of_files(sandbox.state)):
            secrets += self._all(name, collect)
        distinct = list({(each.texts, each.runs): each for each in reversed(secrets)}.values())
        self.secrets += len(distinct)
        follower.end()
        self.unread += sorted(follower.trouble)
        # Logs are last: what was asked for here has left its traces in them, too.
        for kind, places in (*seen.items(), ("logs", logs(follower.kept))):
            for place, text in places:
                self.places[kind] += 1
                self.size += len(text)
                self.found += leaks(distinct, f"{name}: {place}", text)

    def _all(self, name: str, collect: Callable[[], Iterator[Some]]) -> list[Some]:
        """Everything up to the first thing that cannot be had, which is remembered."""
        found: list[Some] = []
        try:
            found.extend(collect())
        except (SandboxError, OSError, subprocess.SubprocessError) as error:
            self.unread.append(f"{name}: {error}")
        return found


def _is_installed(api: Api) -> bool:
    """Whether an operator runs, or ended unexpectedly."""
    try:
        groups = api.request("GET", "/apis")["groups"]
    except (SandboxError, OSError):
        return True  # what cannot be searched is listed
    return any(group["name"] == "operator.openshift.io" for group in groups)


# --- what is secret -------------------------------------------------------------------------------


def secrets_of_api(api: Api) -> Iterator[Secret]:
    """The values of every Secret."""
    for item in api.request("GET", "/api/v1/secrets")["items"]:
        values = {key: base64.b64decode(value) for key, value in (item.get("data") or {}).items()}
        beside = b"\n".join(values.values())
        for key, value in values.items():
            if key == "namespace" and item.get("type") == "kubernetes.io/service-account-token":
                continue
            name = f"{key} of Secret {_name(item)}"
            if found := secret(name, value, beside):
                yield found


def secrets_of_files(state: Path) -> Iterator[Secret]:
    """Private keys and credentials of a sandbox and of its nodes."""
    contents: dict[Path, bytes] = {}
    for root in (state / "pki", *state.glob("nodes/*/etc/kubernetes"),
                 *state.glob("nodes/*/var/lib/kubelet/pki")):  # fmt: skip
        for path in sorted(root.rglob("*")):
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                contents[path] = path.read_bytes()
    public = b"\n".join(
        content for path, content in contents.items() if path.suffix in (".crt", ".pub")
    )
    for path, content in contents.items():
        if found := secret_in_file(str(path.relative_to(state)), content, public):
            yield found


def _tokens(sandbox: Sandbox) -> Iterator[Secret]:
    """The tokens that pods have right now."""
    there = False
    for node in sandbox.nodes:
        if not nodes.runs(sandbox, node):
            continue
        text = run(*nodes.enter(sandbox, node, ["sh", "-c", _TOKENS]))
        for number, token in enumerate(text.split(), 1):
            there = True
            if found := secret(f"token {number} of a pod on {node.name}", token.encode()):
                yield found
    if not there:
        raise SandboxError("no pod has a token, not even the operator's")


# --- where it is searched for ---------------------------------------------------------------------


def logs(folder: Path) -> Iterator[Place]:
    """Of all containers there have been; the kubelet packs those that have become long."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            packed = ".gz." in path.name
            text = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
            yield f"the log {path.relative_to(folder)}", text


def objects(sandbox: Sandbox, api: Api) -> Iterator[Place]:
    """Whole objects, and of Secrets everything else than their values."""
    platform = PLATFORMS[sandbox.platform]
    namespaces = sorted(
        {platform.operator_namespace, platform.target_namespace, platform.operand_namespace}
    )
    paths = [*_CLUSTER_WIDE, *(p.format(name) for p in _OF_NAMESPACES for name in namespaces)]
    for path in paths:
        for item in api.request("GET", path)["items"]:
            yield f"{path.rpartition('/')[2]} {_name(item)}", _text(item)
    for item in api.request("GET", "/api/v1/secrets")["items"]:
        yield f"the metadata of Secret {_name(item)}", _text(item["metadata"])


def _metrics(sandbox: Sandbox, api: Api, secrets: list[Secret]) -> Iterator[Place]:
    """What every process of the operator serves to a token, which is a secret as well."""
    platform = PLATFORMS[sandbox.platform]
    found = api.request("GET", f"/api/v1/namespaces/{platform.operator_namespace}/pods")["items"]
    pods = [pod for pod in found if pod["spec"]["serviceAccountName"] == platform.operator.account]
    token = metrics_reader(api)
    if hidden := secret("the token that /metrics was read with", token.encode()):
        secrets.append(hidden)
    there = False
    for pod in pods:
        status = pod.get("status", {})
        if status.get("phase") != "Running" or "deletionTimestamp" in pod["metadata"]:
            continue
        there = True
        node = sandbox.node(pod["spec"]["nodeName"])
        url = f"https://{status['podIP']}:8443/metrics"
        command = nodes.enter(sandbox, node, [sys.executable, "-c", SCRAPE, url])
        yield f"/metrics of {_name(pod)}", run(*command, stdin=token).encode()
    if not there:
        raise SandboxError("no operator runs whose /metrics could be read")


def metrics_reader(api: Api) -> str:
    """A token of an account that may read /metrics only."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    meta = {"metadata": {"name": _READER}}
    api.create(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", **meta})
    role = {"rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}], **meta}
    api.create(f"{rbac}/clusterroles", role)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _READER}
    subject = {"kind": "ServiceAccount", "name": _READER, "namespace": "default"}
    binding = {"roleRef": reference, "subjects": [subject], **meta}
    api.create(f"{rbac}/clusterrolebindings", binding)
    asked: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = api.request("POST", f"{accounts}/{_READER}/token", asked)
    return str(answer["status"]["token"])


def _commands(sandbox: Sandbox) -> Iterator[Place]:
    """What `kubectl scheduler` shows and collects."""
    for words in _COMMANDS:
        yield f"kubectl scheduler {' '.join(words)}", _plugin(sandbox, *words)
    with tempfile.TemporaryDirectory() as folder:
        output = _plugin(sandbox, "must-gather", "--dest", folder)
        yield "the output of kubectl scheduler must-gather", output
        files = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
        if not any(path.name == "current.log" for path in files):
            raise SandboxError(f"must-gather has no logs: {output.decode()[-500:]}")
        for path in files:
            yield f"must-gather's {path.relative_to(folder)}", path.read_bytes()


def _plugin(sandbox: Sandbox, *words: str) -> bytes:
    """The whole output of a command, whatever its exit code."""
    program = "import sys; from kube_scheduler_operator.__main__ import kubectl_plugin; "
    done = subprocess.run(
        [sys.executable, "-c", f"{program}sys.exit(kubectl_plugin())", *words,
         "--kubeconfig", str(sandbox.kubeconfig), "--platform", sandbox.platform],
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    if not done.stdout:
        raise SandboxError(f"kubectl scheduler {words[0]}: {done.stderr.decode()[-500:]}")
    return done.stdout + done.stderr


def _name(item: Object) -> str:
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _text(value: Object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()

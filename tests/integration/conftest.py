"""A real API server (hack/sandbox without nodes) for all tests of this folder and all workers.

The first worker of the first session brings it up from scratch; the last one takes it down. Who
uses it is a shared file lock, which the kernel releases however a worker ends, so no worker waits
for a worker that crashed. If it cannot be brought up, tests fail: they are not skipped.

A file runs in one worker, the longest files first. Those that need all nodes for themselves run in
the same worker, one after the other, so that no other worker waits for them.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import shlex
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from xdist.scheduler import LoadScopeScheduling

from cluster import binaries, releases

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
SANDBOX = REPOSITORY / "hack" / "sandbox"
# Two checkouts on one machine must not share an API server.
NAME = f"it-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
UP_SECONDS = 1200  # the very first time Kubernetes may have to be built
TEST_SECONDS = 60
OWN_NODES = "nodes_of_ones_own"
"""The fixture of files that need all nodes for themselves."""
LONGEST = (
    "test_operator.py", "test_assignment.py", "test_check_broken_clusters.py", "test_secondary.py",
    "test_containment.py", "test_migrations.py", "test_load_policies.py",
    "test_check_against_binary.py", "test_managed.py", "test_restore.py", "test_rights_of_kinds.py",
    "test_openshift_habits.py",
)  # fmt: skip
"""Files that take longer than a minute, the longest first."""


class RefusedError(AssertionError):
    """The API server or kubectl refused; the text is its message."""


@dataclass(frozen=True)
class ApiServer:
    """A running API server with our CustomResourceDefinitions."""

    kubeconfig: Path  # of an administrator
    kubectl_path: Path  # the program
    binaries: Path  # the folder of kubectl, kube-scheduler and so on
    url: str  # where it listens
    tls: ssl.SSLContext  # trusts it and authenticates as the administrator

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request; many times faster than a kubectl process.

        Raises:
            RefusedError: with the message of the server's Status.
        """
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=TEST_SECONDS, context=self.tls) as answer:
                obj = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                message = json.load(error)["message"]
            raise RefusedError(f"{method} {path}: {message}") from None
        assert isinstance(obj, dict)
        return obj

    def create_namespace(self, name: str) -> None:
        """A namespace that pods can be made in at once: with its ServiceAccount."""
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        account = {"metadata": {"name": "default"}}
        with suppress(RefusedError):  # where the controller has been quicker
            self.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl and return what it printed.

        Raises:
            RefusedError: with the output of kubectl.
        """
        done = subprocess.run(
            [self.kubectl_path, f"--kubeconfig={self.kubeconfig}", *arguments],
            capture_output=True,
            text=True,
            timeout=TEST_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RefusedError(f"kubectl {shlex.join(arguments)}: {done.stderr.strip()}")
        return done.stdout


class ByLongest(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Runs a file in one process, and all files that need all nodes in the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return OWN_NODES if _needs_all_nodes(REPOSITORY / file) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByLongest:
    return ByLongest(config, log)


@cache
def _needs_all_nodes(file: Path) -> bool:
    return OWN_NODES in file.read_text(encoding="utf-8")


def _rank(item: pytest.Item) -> int:
    """Files with all nodes first, then the longest; in a file, the order stays."""
    if _needs_all_nodes(item.path):
        return -1
    return LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by duration, and bound the tests themselves, not what comes before them.

    That is the start of the API server, and for minutes the turns of other workers.
    """
    here = Path(__file__).parent
    items.sort(key=lambda item: _rank(item) if item.path.is_relative_to(here) else -2)
    for item in items:
        if item.path.is_relative_to(here):
            marker = item.get_closest_marker("timeout")
            seconds = marker.args[0] if marker else TEST_SECONDS
            item.add_marker(pytest.mark.timeout(seconds, func_only=True), append=False)


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """The API server; objects that a test makes need names of their own."""
    directory = _shared_directory()
    with (directory / "users").open("a") as users:
        try:
            with _locked(directory / "change"):
                if _alone(users.fileno()):
                    _sandbox("down")  # what a killed session left
                    _sandbox("up", "--nodes", "0", "--no-operator")
                fcntl.flock(users, fcntl.LOCK_SH)
                server = _describe()
                server.kubectl("apply", "-k", str(REPOSITORY / "crds"))
                ours = "app.kubernetes.io/part-of=kube-scheduler-operator"  # tests make others
                server.kubectl("wait", "--for=condition=Established", "crd", "-l", ours)
            yield server
        finally:
            with _locked(directory / "change"):
                fcntl.flock(users, fcntl.LOCK_UN)
                if _alone(users.fileno()):
                    _sandbox("down")


@contextmanager
def another_api_server(version: str) -> Iterator[ApiServer]:
    """An API server of another version, for one worker alone."""
    name = f"{NAME}-{releases.minor(version)}"
    try:
        _sandbox("down", name=name)  # what a killed session left
        _sandbox("up", "--nodes", "0", "--no-operator", "--kubernetes-version", version, name=name)
        yield _describe(name)
    finally:
        _sandbox("down", name=name)


@pytest.fixture(scope="session")
def kube_scheduler_binary() -> Path:
    """The real kube-scheduler, of the version of `api_server`, which need not run for it."""
    return binaries.provide(["kube-scheduler"], releases.choose())["kube-scheduler"]


@pytest.fixture(scope="module")
def nodes_of_ones_own(api_server: ApiServer) -> Iterator[None]:
    """All nodes are those of this file: pods go to any, so files with a scheduler take turns."""
    with _locked(_shared_directory() / "nodes"):
        yield


def _shared_directory() -> Path:
    """For what the workers of all sessions agree on."""
    directory = Path(tempfile.gettempdir()) / f"kube-scheduler-operator-{os.getuid()}-{NAME}"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _alone(users: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _sandbox(*words: str, name: str = NAME) -> str:
    """Run hack/sandbox for a sandbox; a failure is the failure of the test that needs it."""
    if not SANDBOX.exists():
        pytest.fail(f"{SANDBOX} is missing: integration tests need it for a real API server")
    command = [str(SANDBOX), *words, "--name", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=UP_SECONDS, check=False)
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip()
        pytest.fail(f"integration tests need a real API server: {shlex.join(command)}: {output}")
    return done.stdout


def _describe(name: str = NAME) -> ApiServer:
    variables = {}
    for line in _sandbox("env", name=name).splitlines():
        _export, _, assignment = line.partition(" ")
        variable, _, value = assignment.partition("=")
        variables[variable] = "".join(shlex.split(value))
    binaries = Path(variables["KUBEBUILDER_ASSETS"])
    kubeconfig = Path(variables["KUBECONFIG"])
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    tls = ssl.create_default_context(cadata=_decoded(cluster, "certificate-authority-data"))
    with (
        tempfile.TemporaryDirectory() as directory
    ):  # ssl reads client certificates from files only
        pem = Path(directory, "client.pem")
        pem.touch(0o600)
        pem.write_text(
            _decoded(user, "client-certificate-data") + _decoded(user, "client-key-data")
        )
        tls.load_cert_chain(pem)
    return ApiServer(kubeconfig, binaries / "kubectl", binaries, cluster["server"], tls)


def _decoded(entry: dict[str, str], key: str) -> str:
    return base64.b64decode(entry[key]).decode()

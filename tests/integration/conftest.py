"""A real API server (hack/sandbox without nodes) for all tests of this folder and all workers.

The first worker of the first session brings it up from scratch; the last one takes it down. Who
uses it is a shared file lock, which the kernel releases however a worker ends, so no worker waits
for a worker that crashed. If it cannot be brought up, tests fail: they are not skipped.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cluster import binaries, releases

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
SANDBOX = REPOSITORY / "hack" / "sandbox"
# Two checkouts on one machine must not share an API server.
NAME = f"it-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
UP_SECONDS = 1200  # the very first time Kubernetes may have to be built
TEST_SECONDS = 60


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bound the tests themselves, not what comes before them.

    That is the start of the API server, and for minutes the turns of other workers.
    """
    here = Path(__file__).parent
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


def _sandbox(*words: str) -> str:
    """Run hack/sandbox for our sandbox; a failure is the failure of the test that needs it."""
    if not SANDBOX.exists():
        pytest.fail(f"{SANDBOX} is missing: integration tests need it for a real API server")
    command = [str(SANDBOX), *words, "--name", NAME]
    done = subprocess.run(command, capture_output=True, text=True, timeout=UP_SECONDS, check=False)
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip()
        pytest.fail(f"integration tests need a real API server: {shlex.join(command)}: {output}")
    return done.stdout


def _describe() -> ApiServer:
    variables = {}
    for line in _sandbox("env").splitlines():
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

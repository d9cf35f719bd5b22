"""`kubectl scheduler console` over a real API server: two people see what each of them may see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from openapi_spec_validator import validate as validate_openapi

from .conftest import ApiServer, RefusedError

NAME = "console-of-two"
OTHER = "second-person"
MARKUP = "<script>alert(1)</script>"
READS = [
    {
        "apiGroups": ["", "apps", "coordination.k8s.io"],
        "resources": ["pods", "configmaps", "nodes", "deployments", "leases", "services"],
        "verbs": ["get", "list"],
    },
    {
        "apiGroups": ["config.openshift.io", "operator.openshift.io"],
        "resources": ["schedulers", "clusteroperators", "kubeschedulers"],
        "verbs": ["get", "list"],
    },
]
"""What the second person may read: no SchedulerProfile."""


class Console:
    """A running console; `path` is asked with its token."""

    def __init__(self, address: str) -> None:
        self._url, _, self.token = address.partition("/?token=")

    def answer(self, path: str) -> str:
        """The page with its answer, which takes longer on a busy machine."""
        end = time.monotonic() + 60
        while True:
            status, page = self.ask(path)
            assert status == 200
            if "being computed" not in page:
                return page
            assert time.monotonic() < end

    def ask(self, path: str, *, host: str = "", token: str = "") -> tuple[int, str]:
        request = urllib.request.Request(self._url + path)
        request.add_header("Authorization", f"Bearer {token or self.token}")
        if host:
            request.add_header("Host", host)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


@contextmanager
def console_of(server: ApiServer, *flags: str) -> Iterator[Console]:
    command = [sys.executable, "-c", "from kube_scheduler_operator.__main__ import kubectl_plugin\n"
               "raise SystemExit(kubectl_plugin())", "console", "--platform=kubeadm",
               f"--kubeconfig={server.kubeconfig}", *flags]  # fmt: skip
    # A buffered address would never arrive.
    os_environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    environment = {**os_environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield Console(process.stdout.readline().strip())
        finally:
            process.terminate()


@pytest.fixture
def profile(api_server: ApiServer) -> Iterator[ApiServer]:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": NAME}, "rules": READS}  # fmt: skip
    api = "/apis/rbac.authorization.k8s.io/v1"
    own = "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerprofiles"
    api_server.request("POST", f"{api}/clusterroles", role)
    binding = {
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OTHER}],
    }
    api_server.request("POST", f"{api}/clusterrolebindings", binding)
    obj = {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "SchedulerProfile",
        "metadata": {"name": NAME},
        "spec": {"scheduler": "none-of-these", "percentageOfNodesToScore": 50},
    }
    api_server.request("POST", own, obj)
    condition = {
        "type": "Accepted", "status": "False", "reason": "Invalid", "message": MARKUP,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    found = api_server.request("GET", f"{own}/{NAME}")
    found["status"] = {"observedGeneration": 1, "conditions": [condition]}
    api_server.request("PUT", f"{own}/{NAME}/status", found)
    yield api_server
    for path in (
        f"{own}/{NAME}",
        f"{api}/clusterrolebindings/{NAME}",
        f"{api}/clusterroles/{NAME}",
    ):
        with suppress(RefusedError):
            api_server.request("DELETE", path)


def test_each_person_sees_what_each_may_see(profile: ApiServer) -> None:
    with console_of(profile) as administrator:
        page = administrator.answer("/now")
        assert f'scope="row">{NAME}</th>' in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert MARKUP not in page
        answer = json.loads(administrator.ask("/api/v1/now")[1])
        assert NAME in [one["name"] for one in answer["schedulerProfiles"]]
        validate_openapi(json.loads(administrator.ask("/api/v1/openapi.json")[1]))
        with console_of(profile, "--as", OTHER) as other:
            assert other.token != administrator.token
            assert other.ask("/now", token=administrator.token)[0] == 403
            page = other.answer("/now")
            assert NAME not in page
            assert (
                "SchedulerProfiles are not shown: no permission to list schedulerprofiles" in page
            )
            assert f"--as={OTHER}" in page  # commands to copy are this person's
        with console_of(profile, "--as", "stranger") as stranger:
            for path in ("/now", "/rollout", "/decides", "/extenders", "/compare"):
                status, page = stranger.ask(path)
                assert (status, "no permission to" in page) == (200, True), path
                assert NAME not in page
            status, text = stranger.ask("/api/v1/now")
            assert (status, "no permission to" in json.loads(text)["error"]) == (503, True)


def test_a_name_that_points_to_loopback_reads_nothing(profile: ApiServer) -> None:
    with console_of(profile) as console:
        status, page = console.ask("/now", host="rebound.example")
        assert (status, NAME in page) == (403, False)

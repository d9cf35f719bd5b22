"""The pages of nodes, waiting Pods, why and what if, and the report, of a real API server."""

from __future__ import annotations

import http.cookiejar
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Final

import pytest

from .conftest import ApiServer
from .played_nodes import NEW
from .test_why import node

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(300, func_only=True)]

SPACE: Final = "console-pages"
SECONDS: Final = 120
PLUGIN: Final = "from kube_scheduler_operator.__main__ import kubectl_plugin as run; exit(run())"


def _command(api: ApiServer, binary: Path, *words: str) -> list[str]:
    program = [sys.executable, "-c", PLUGIN]
    flags = [f"--kubeconfig={api.kubeconfig}", "--platform=managed"]
    return [*program, *words, *flags, f"--kube-scheduler={binary}"]


class Console:
    """A console as a process, and a browser's cookies."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(jar)
        self._opener.open(self.address, timeout=SECONDS).read()

    def words(self, path: str) -> str:
        """The words of a page, once it has its answer."""
        url = f"{self.address.partition('/?')[0]}{path}"
        deadline = time.monotonic() + SECONDS
        while True:
            html = self._opener.open(url, timeout=SECONDS).read().decode()
            if "The answer is being computed" not in html or time.monotonic() > deadline:
                return words_of(html)
            time.sleep(0.2)

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=SECONDS)


def words_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def _pod(name: str, cpu: str, node: str = "") -> dict[str, object]:
    requests = {"requests": {"cpu": cpu}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": requests}]}
    return {"metadata": {"name": name}, "spec": {**spec, **({"nodeName": node} if node else {})}}


@pytest.fixture(scope="module")
def pods(api_server: ApiServer, nodes_of_ones_own: None) -> Iterator[ApiServer]:
    api_server.create_namespace(SPACE)
    for name in ("a", "b"):
        made = node(name, f"zone-{name}")
        status = made.pop("status")
        stored = api_server.request("POST", "/api/v1/nodes", made)
        stored["status"] = {**status, "conditions": [{"type": "Ready", "status": "True"}]}
        stored["metadata"].pop("resourceVersion")
        api_server.request("PUT", f"/api/v1/nodes/{name}/status", stored)
        _until_known(api_server, name)
    for pod in (_pod("runs", "3", "a"), _pod("large", "9"), _pod("fits", "1")):
        api_server.request("POST", f"/api/v1/namespaces/{SPACE}/pods", pod)
    yield api_server
    for name in ("runs", "large", "fits"):
        body = {"gracePeriodSeconds": 0}
        api_server.request("DELETE", f"/api/v1/namespaces/{SPACE}/pods/{name}", body)
    for name in ("a", "b"):
        api_server.request("DELETE", f"/api/v1/nodes/{name}")


def _until_known(api: ApiServer, name: str) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        taints = api.request("GET", f"/api/v1/nodes/{name}")["spec"].get("taints") or ()
        if not [taint for taint in taints if taint["key"] == NEW]:
            return
        time.sleep(0.2)


def test_pages_answer_as_the_commands_do(pods: ApiServer, kube_scheduler_binary: Path) -> None:
    console = Console(_command(pods, kube_scheduler_binary, "console"))
    try:
        nodes = console.words("/nodes")
        assert "2 nodes: 2 open" in nodes
        assert "a: 75 %, open" in nodes
        assert f"{SPACE}/large" in console.words("/waiting")
        causes = console.words("/causes")
        assert f"helps {SPACE}/large: request 4 of cpu instead of 9" in causes
        why = console.words(f"/why?namespace={SPACE}&pod=large")
        assert "It fits on none of 2 nodes" in why
        assert "Insufficient cpu" in why
        assert "spec.containers[0].resources.requests.cpu" in why
        runs = console.words(f"/why?namespace={SPACE}&pod=runs")
        assert "Scores of 2 nodes, with the weights of the plugins" in runs
        compared = console.words("/what-if?profile=BinPacking&pods=waiting")
        assert "CPU requests of 2 nodes, the fullest first" in compared
        assert "today BinPacking" in compared
        gone = console.words(f"/why?namespace={SPACE}&pod=gone")
        assert f"pod {SPACE}/gone does not exist" in gone
    finally:
        console.close()


def test_a_report_is_one_file(pods: ApiServer, kube_scheduler_binary: Path) -> None:
    command = _command(pods, kube_scheduler_binary, "report", "--profile=BinPacking")
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert "<script" not in done.stdout
    words = words_of(done.stdout)
    for sentence in (
        "2 nodes: 2 open",
        f"Why {SPACE}/large waits",
        "request 4 of cpu instead of 9",
    ):
        assert sentence in words
    # The Pod that runs got its node from the test, so no scheduler would place it again.
    note = "note: What if: --replay: no pod runs that could be placed again\n"
    assert done.stderr.endswith(note)


def test_without_a_kube_scheduler_a_page_names_what_helps(pods: ApiServer, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    console = Console(_command(pods, missing, "console"))
    try:
        words = console.words("/causes")
        assert f"--kube-scheduler {missing}: this is not an executable file; restart with" in words
        assert "--in-cluster" in words
        assert "2 nodes: 2 open" in console.words("/nodes")
    finally:
        console.close()

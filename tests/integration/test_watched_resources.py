"""What kube-scheduler waits for before it places Pods: the lists of config/lint/rights.py.

A server in place of the API server forbids everything, and remembers what was asked for.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.rights import watched_resources

from ..seeds import SOAK

pytestmark = [pytest.mark.core, pytest.mark.timeout(300, func_only=True)]

SECONDS = 30
VERSIONS = [releases.choose()]
if SOAK:
    VERSIONS += [one for one in releases.others() if one not in VERSIONS]
_FORBIDDEN = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403}

Resource = tuple[str, str]


@pytest.fixture
def asked() -> Iterator[tuple[str, set[Resource]]]:
    """(the server's address, the kinds that were listed or watched)."""
    kinds: set[Resource] = set()

    class Forbidding(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # named by http.server
            words = self.path.partition("?")[0].strip("/").split("/")
            if words[0] == "api" and len(words) == 3:
                kinds.add(("", words[2]))
            elif words[0] == "apis" and len(words) == 4:
                kinds.add((words[1], words[3]))
            body = json.dumps(_FORBIDDEN).encode()
            self.send_response(403)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Forbidding)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", kinds
    server.shutdown()
    server.server_close()


def config(profile: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }


def without(*plugins: str) -> dict[str, Any]:
    return {"plugins": {"multiPoint": {"disabled": [{"name": name} for name in plugins]}}}


def args(plugin: str, **fields: Any) -> dict[str, Any]:
    return {"pluginConfig": [{"name": plugin, "args": fields}]}


VOLUMES = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("profile", "more"),
    [
        ({}, set()),
        (args("PodTopologySpread", defaultingType="List"), set()),
        (without("DefaultPreemption", "PodTopologySpread"), set()),
        (without(*VOLUMES), {("storage.k8s.io", "csinodes")}),
    ],
    ids=["defaults", "no default constraints", "no preemption, no spread", "no volumes"],
)
def test_a_kube_scheduler_waits_for_the_kinds_of_its_plugins(
    version: str,
    profile: dict[str, Any],
    more: set[Resource],
    asked: tuple[str, set[Resource]],
    tmp_path: Path,
) -> None:
    """`more` is what newer versions watch also without the plugins that need it."""
    url, kinds = asked
    program = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config(profile)))
    words = [str(program), f"--config={file}", f"--master={url}", "--secure-port=0"]
    expected = watched_resources(config(profile), Gates(Version.parse(version)))
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*words, "--authentication-skip-lookup=true"], stderr=log)
        try:
            end = time.monotonic() + SECONDS
            while not expected <= kinds and time.monotonic() < end:
                time.sleep(0.1)
            time.sleep(0.5)  # for kinds that are not expected
        finally:
            process.kill()
            process.wait()
    assert expected <= kinds <= expected | more

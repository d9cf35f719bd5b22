"""The extender as a process: start, reloads and shutdown."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.serving.http_types import HEALTH_LIMITS

from .conftest import names_body, node, nodes_body

if TYPE_CHECKING:
    from tests.unit.conftest import CertificateFiles

PROGRAM = [sys.executable, "-m", "kube_scheduler_operator", "extender"]


@dataclass
class Process:
    process: subprocess.Popen[bytes]
    log: Path
    scheme: str = "http"
    context: ssl.SSLContext | None = None

    @property
    def port(self) -> int:
        """The port in the last log entry."""
        found = 0

        def served() -> bool:
            nonlocal found
            assert self.process.poll() is None, self.log.read_text()
            for line in self.log.read_text().splitlines():
                if '"Listening"' in line:
                    found = int(line.rpartition("port=")[2])
            return bool(found)

        until(served)
        return found

    def ask(self, path: str, body: bytes | None = None, port: int = 0) -> Any:
        url = f"{self.scheme}://localhost:{port or self.port}{path}"
        with urllib.request.urlopen(url, body, timeout=20, context=self.context) as answer:
            text = answer.read()
        try:
            return json.loads(text)
        except ValueError:
            return text.decode()

    def status(self, path: str, body: bytes | None = None) -> int:
        try:
            self.ask(path, body)
        except urllib.error.HTTPError as error:
            return error.code
        return 200


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition was not met"
        time.sleep(0.02)


@contextlib.contextmanager
def extender(directory: Path, *args: str, **environ: str) -> Iterator[Process]:
    log = directory / "log"
    environ = {"HTTP_PORT": "0", **environ}
    inherited = {k: v for k, v in os.environ.items() if k not in ("LOG_LEVEL", "KUBECONFIG")}
    with log.open("wb") as stderr:
        process = subprocess.Popen([*PROGRAM, *args], stderr=stderr, env={**inherited, **environ})
    try:
        yield Process(process, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(20)


def write(file: Path, document: Any) -> str:
    """Replace a file atomically, as a kubelet does."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps(document))
    new.replace(file)
    return str(file)


def test_a_single_policy_needs_neither_file_nor_api(tmp_path: Path) -> None:
    with extender(tmp_path, "--policy", "foo", "--no-watch", LOG_LEVEL="DEBUG") as process:
        body = nodes_body(node("a"), node("b"))
        answer = process.ask("/foo/filter", body)
        assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["a", "b"]
        assert process.ask("/scheduler/priorities/foo", body) == [
            {"Host": "a", "Score": 1},
            {"Host": "b", "Score": 1},
        ]
        assert process.status("/readyz") == 200
        metrics = process.ask("/metrics")
        assert "kube_scheduler_operator_extender_nodes 2.0" in metrics
        assert '"Answered" agent="foo" verb="filter"' in process.log.read_text()
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(20) == 0


def test_without_the_api_it_serves_and_is_not_ready(tmp_path: Path) -> None:
    kubeconfig = str(tmp_path / "none")
    with extender(tmp_path, "--policy", "foo", "--kubeconfig", kubeconfig) as process:
        assert process.ask("/foo/filter", names_body("a"))["NodeNames"] == ["a"]
        until(lambda: "Cannot list or watch" in process.log.read_text())
        assert process.status("/readyz") == 503
        assert process.status("/healthz") == 200
        process.process.send_signal(signal.SIGINT)
        assert process.process.wait(20) == 0


def test_a_changed_file_is_reloaded(tmp_path: Path) -> None:
    def config(value: int, **more: Any) -> dict[str, Any]:
        policy = {"policy": "foo", "arguments": {"value": value}}
        return {"policies": [policy], "watch": False, "listen": {"port": 0}, **more}

    file = tmp_path / "config.json"
    with extender(tmp_path, "--config", write(file, config(3)), HTTP_PORT="") as process:
        body = names_body("a", "b")

        def score() -> int:
            return int(process.ask("/foo/prioritize", body)[0]["Score"])

        assert score() == 0  # an unknown node
        process.ask("/foo/filter", nodes_body(node("a"), node("b")))
        assert score() == 3
        first = process.ask("/version")["config"]
        write(file, config(7))
        until(lambda: score() == 7)
        assert process.ask("/version")["config"] != first

        write(file, {"policies": [{"policy": "fo"}]})
        until(lambda: "configProblem" in process.ask("/version"))
        assert score() == 7
        assert "kube_scheduler_operator_extender_config_valid 0.0" in process.ask("/metrics")
        assert 'did you mean "foo"' in process.log.read_text().replace('\\"', '"')

        # a connection that is open goes on, on the old port as well as on the new one
        old = process.port
        write(file, config(8, listen={"address": "localhost", "port": 0}, logLevel="DEBUG"))
        until(lambda: process.port != old)
        until(lambda: score() == 8)
        calls = process.ask("/metrics")
        assert 'call_duration_seconds_count{agent="foo",verb="filter"} 1.0' in calls
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", old), 5)


def test_the_health_port_serves_only_health(tmp_path: Path) -> None:
    document = {
        "policies": [{"policy": "foo"}],
        "watch": False,
        "listen": {"port": 0, "health": {"address": "127.0.0.1", "port": 0}},
    }
    with extender(tmp_path, "--config", write(tmp_path / "c", document)) as process:
        until(lambda: len(lines(process, '"Listening"')) == 2)
        main, health = (int(line.rpartition("port=")[2]) for line in lines(process, '"Listening"'))
        assert process.ask("/foo/filter", names_body("a"), main)["NodeNames"] == ["a"]
        assert "config" in process.ask("/version", port=health)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            process.ask("/foo/filter", names_body("a"), health)
        with pytest.raises(urllib.error.HTTPError, match="413"):
            process.ask("/foo/filter", b" " * (HEALTH_LIMITS.body + 1), health)


def lines(process: Process, part: str) -> list[str]:
    process.port  # noqa: B018 - waits until it listens
    return [line for line in process.log.read_text().splitlines() if part in line]


@pytest.mark.parametrize(
    ("args", "environ", "message"),
    [
        (["--config", "/does/not/exist"], {}, "No such file"),
        (["--policy", "fooo"], {}, 'did you mean "foo"?'),
        (["--policy", "foo", "--port", "70000"], {}, "not a port"),
        (["--policy", "foo"], {"HTTP_PORT": "x"}, "HTTP_PORT"),
        ([], {}, "required"),
    ],
)
def test_start_errors_are_reported(args: list[str], environ: dict[str, str], message: str) -> None:
    done = subprocess.run(
        [*PROGRAM, *args],
        capture_output=True,
        text=True,
        timeout=50,
        env={**os.environ, **environ},
        check=False,
    )
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_occupied_port_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*PROGRAM, "--policy", "foo", "--no-watch", "--port", str(port)],
            capture_output=True, text=True, timeout=50, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_client_certificates_are_required(
    tmp_path: Path, first_certificate: CertificateFiles, second_certificate: CertificateFiles
) -> None:
    server = {"crt": tmp_path / "s.crt", "key": tmp_path / "s.key"}
    clients = tmp_path / "ca.crt"

    def put(files: CertificateFiles, ca: CertificateFiles) -> None:
        server["crt"].write_bytes(files.certificate.read_bytes())
        server["key"].write_bytes(files.key.read_bytes())
        clients.write_bytes(ca.certificate.read_bytes())

    put(first_certificate, second_certificate)
    tls = {
        "certFile": str(server["crt"]),
        "keyFile": str(server["key"]),
        "clientCAFile": str(clients),
    }
    document = {"policies": [{"policy": "foo"}], "watch": False, "listen": {"port": 0, "tls": tls}}

    def context(trusted: CertificateFiles, own: CertificateFiles | None) -> ssl.SSLContext:
        found = ssl.create_default_context(cafile=str(trusted.certificate))
        if own is not None:
            found.load_cert_chain(own.certificate, own.key)
        return found

    with extender(tmp_path, "--config", write(tmp_path / "c", document)) as process:
        process.scheme = "https"
        process.context = context(first_certificate, None)
        assert process.status("/healthz") == 200
        assert process.status("/foo/filter", names_body("a")) == 403
        process.context = context(first_certificate, second_certificate)
        assert process.status("/foo/filter", names_body("a")) == 200
        process.context = context(first_certificate, first_certificate)
        with pytest.raises((ssl.SSLError, OSError)):
            process.ask("/healthz")

        put(second_certificate, first_certificate)
        until(lambda: "Using new certificates" in process.log.read_text())
        process.context = context(second_certificate, first_certificate)
        assert process.status("/foo/filter", names_body("a")) == 200
        process.context = context(second_certificate, second_certificate)
        with pytest.raises((ssl.SSLError, OSError)):
            process.ask("/healthz")

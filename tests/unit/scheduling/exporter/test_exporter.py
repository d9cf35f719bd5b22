"""The exporter as a process: memory, termination, and its history after a restart."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.cli.programs import node_metrics

OPERATOR = Path(__file__).resolve().parents[4] / "operator"
RESIDENT_LIMIT_MIB = 30


class Exporter:
    """A running `node-metrics`."""

    def __init__(self, *flags: Any) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "kube_scheduler_operator", "node-metrics",
                "--listen-address=127.0.0.1:0", "--interval=0.2", *flags,
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(OPERATOR)},
        )  # fmt: skip
        self.log: list[Any] = []
        while not (port := re.search(r"Listening on [\d.]+:(\d+)", "".join(self.log[-1:]))):
            assert self.process.stderr is not None
            line = self.process.stderr.readline()
            assert line, self.log
            self.log.append(line)
        self.url = f"http://127.0.0.1:{port[1]}"

    def get(self, path: Any) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=20) as answer:
            return answer.read().decode()

    def statistics(self) -> Any:
        for _ in range(200):
            try:
                return json.loads(self.get("/statistics"))
            except urllib.error.HTTPError as error:
                error.close()
                time.sleep(0.1)
        raise AssertionError("no sample was served")

    def end(self, number: Any = signal.SIGTERM) -> Any:
        self.process.send_signal(number)
        self.log += self.process.communicate(timeout=30)[1].splitlines()
        return self.process.returncode


@pytest.fixture
def start() -> Iterator[Any]:
    started = []

    def begin(*flags: Any) -> Any:
        started.append(Exporter(*flags))
        return started[-1]

    yield begin
    for exporter in started:
        if exporter.process.poll() is None:
            exporter.process.kill()
            exporter.process.communicate()


def test_memory_is_small_and_termination_is_immediate(start: Any) -> None:
    exporter = start()
    statistics = exporter.statistics()
    assert 0 <= statistics["cpu_usage_avg_5m"] <= 100
    assert 0 < statistics["mem_usage_avg_5m"] < 100
    assert abs(statistics["timestamp"] - time.time()) < 30
    assert "node_cpu_usage_avg_5m" in exporter.get("/metrics")
    status = Path(f"/proc/{exporter.process.pid}/status").read_text()
    highest = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert highest is not None
    resident = int(highest[1]) / 1024
    assert resident < RESIDENT_LIMIT_MIB
    assert exporter.end() == 0
    assert "Terminated" in exporter.log[-1]


def test_restart_resumes_the_history(start: Any, tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = start(f"--state-file={state}")
    first.statistics()
    assert first.end(signal.SIGINT) == 0
    saved = json.loads(state.read_bytes())["content"]["cpu"]["average"]
    second = start(f"--state-file={state}")
    assert any("Loaded the history" in line for line in second.log)
    second.statistics()
    assert second.end() == 0
    assert json.loads(state.read_bytes())["content"]["cpu"]["average"][:3] == saved[:3]


def test_damaged_history_does_not_prevent_the_start(start: Any, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("nonsense")
    exporter = start(f"--state-file={tmp_path / 'state'}")
    assert exporter.statistics()
    assert any("Ignoring the history" in line for line in exporter.log)
    assert exporter.end() == 0
    assert json.loads((tmp_path / "state").read_bytes())["version"] == 1


def test_failure_to_save_the_history_is_logged(start: Any, tmp_path: Path) -> None:
    exporter = start(f"--state-file={tmp_path / 'no' / 'state'}")
    assert exporter.statistics()
    assert exporter.end() == 0
    assert any("Failed to save the history" in line for line in exporter.log)


def test_address_in_use_is_an_error(start: Any) -> None:
    exporter = start()
    port = exporter.url.rpartition(":")[2]
    done = subprocess.run(
        [sys.executable, "-m", "kube_scheduler_operator", "node-metrics",
         f"--web.listen-address=127.0.0.1:{port}"],
        env={**os.environ, "PYTHONPATH": str(OPERATOR)},
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Failed to listen on 127.0.0.1" in done.stderr


@pytest.mark.parametrize(
    ("text", "number"), [("4", 4), ("3500m", 3.5), ("8Gi", 8 * 2**30), ("1.5k", 1500)]
)
def test_capacities_are_quantities(text: str, number: float) -> None:
    parser = argparse.ArgumentParser()
    node_metrics.add_parser(parser.add_subparsers())
    args = parser.parse_args(["node-metrics", "--cgroup=/a", f"--cpu-capacity={text}"])
    assert args.cpu_capacity == number


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--listen-address=here"], "is not HOST:PORT"),
        (["--listen-address=x:99999"], "is not HOST:PORT"),
        (["--interval=0"], "is not a number of seconds"),
        (["--cgroup=/a", "--memory-capacity=much"], "is not a quantity"),
        *(
            (["--cgroup=/a", f"--cpu-capacity={wrong}"], "is not a quantity")
            for wrong in ("", "0", "-1", "4x", "1 Gi", "nan")
        ),
        (["--cpu-capacity=4"], "require --cgroup"),
        (["--tls-private-key-file=k"], "require --tls-cert-file"),
    ],
)
def test_invalid_flags_are_explained(
    flags: Any, message: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["node-metrics", *flags])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err

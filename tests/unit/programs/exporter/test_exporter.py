"""The exporter as a process: its size, its end, and what it knows when it is back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from kube_scheduler_operator.__main__ import main

OPERATOR = Path(__file__).resolve().parents[4] / "operator"
RESIDENT_LIMIT_MIB = 30


class Exporter:
    """A running `node-metrics`."""

    def __init__(self, *flags):
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "kube_scheduler_operator", "node-metrics",
                "--listen-address=127.0.0.1:0", "--interval=0.2", *flags,
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(OPERATOR)},
        )  # fmt: skip
        self.said = []
        while not (port := re.search(r"Serving at [\d.]+:(\d+)", "".join(self.said[-1:]))):
            line = self.process.stderr.readline()
            assert line, self.said
            self.said.append(line)
        self.url = f"http://127.0.0.1:{port[1]}"

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=20) as answer:
            return answer.read().decode()

    def statistics(self):
        for _ in range(200):
            try:
                return json.loads(self.get("/statistics"))
            except urllib.error.HTTPError as error:
                error.close()
                time.sleep(0.1)
        raise AssertionError("there never was a sample")

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.said += self.process.communicate(timeout=30)[1].splitlines()
        return self.process.returncode


@pytest.fixture
def start():
    started = []

    def begin(*flags):
        started.append(Exporter(*flags))
        return started[-1]

    yield begin
    for exporter in started:
        if exporter.process.poll() is None:
            exporter.process.kill()
            exporter.process.communicate()


def test_it_is_small_and_ends_at_once(start):
    exporter = start()
    statistics = exporter.statistics()
    assert 0 <= statistics["cpu_usage_avg_5m"] <= 100
    assert 0 < statistics["mem_usage_avg_5m"] < 100
    assert abs(statistics["timestamp"] - time.time()) < 30
    assert "node_cpu_usage_avg_5m" in exporter.get("/metrics")
    status = Path(f"/proc/{exporter.process.pid}/status").read_text()
    resident = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024
    assert resident < RESIDENT_LIMIT_MIB
    assert exporter.end() == 0
    assert "Terminated" in exporter.said[-1]


def test_it_goes_on_where_it_was(start, tmp_path):
    state = tmp_path / "state"
    first = start(f"--state-file={state}")
    first.statistics()
    assert first.end(signal.SIGINT) == 0
    saved = json.loads(state.read_bytes())["content"]["cpu"]["average"]
    second = start(f"--state-file={state}")
    assert any("Went on with the history" in line for line in second.said)
    second.statistics()
    assert second.end() == 0
    assert json.loads(state.read_bytes())["content"]["cpu"]["average"][:3] == saved[:3]


def test_a_damaged_history_does_not_keep_it_from_starting(start, tmp_path):
    (tmp_path / "state").write_text("nonsense")
    exporter = start(f"--state-file={tmp_path / 'state'}")
    assert exporter.statistics()
    assert any("is left out" in line for line in exporter.said)
    assert exporter.end() == 0
    assert json.loads((tmp_path / "state").read_bytes())["version"] == 1


def test_a_history_that_cannot_be_saved_is_said(start, tmp_path):
    exporter = start(f"--state-file={tmp_path / 'no' / 'state'}")
    assert exporter.statistics()
    assert exporter.end() == 0
    assert any("cannot be saved" in line for line in exporter.said)


def test_an_address_in_use_ends_it(start):
    exporter = start()
    port = exporter.url.rpartition(":")[2]
    done = subprocess.run(
        [sys.executable, "-m", "kube_scheduler_operator", "node-metrics",
         f"--web.listen-address=127.0.0.1:{port}"],
        env={**os.environ, "PYTHONPATH": str(OPERATOR)},
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Cannot serve at 127.0.0.1" in done.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--listen-address=here"], "is not HOST:PORT"),
        (["--listen-address=x:99999"], "is not HOST:PORT"),
        (["--interval=0"], "is not a number of seconds"),
        (["--cgroup=/a", "--memory-capacity=much"], "is not a quantity"),
        (["--cpu-capacity=4"], "need --cgroup"),
        (["--tls-private-key-file=k"], "need --tls-cert-file"),
    ],
)
def test_wrong_flags_are_explained(flags, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["node-metrics", *flags])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err

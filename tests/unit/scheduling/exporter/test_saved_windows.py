"""The history survives restarts and reboots; damaged files are ignored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.exporter.recorder import UsageRecorder
from kube_scheduler_operator.scheduling.exporter.saved_windows import StateError, StateFile
from kube_scheduler_operator.scheduling.exporter.usage_source import Reading


class Machine:
    """Two clocks and a load."""

    def __init__(self) -> None:
        self.now, self.wall = 1000.0, 1_700_000_000.0
        self.busy, self.load = 0.0, 0.5

    def pass_time(self, seconds: Any) -> None:
        self.now, self.wall = self.now + seconds, self.wall + seconds
        self.busy += self.load * seconds * 2

    def read(self, now: Any) -> Reading:
        return Reading(now, self.busy, now * 2, self.load * 1000, 1000.0, 2)

    def state(self, path: Any, boot: str = "this") -> StateFile:
        return StateFile(path, lambda: self.now, lambda: self.wall, boot)

    def recorder(self) -> UsageRecorder:
        return UsageRecorder(self, lambda: self.now)

    def resume(self, recorder: UsageRecorder, state: StateFile) -> None:
        saved = state.load()
        assert saved is not None
        recorder.load(*saved)

    def run(self, recorder: Any, seconds: Any) -> None:
        for _ in range(int(seconds / 15)):
            recorder.sample()
            self.pass_time(15)
        recorder.sample()


def statistics(recorder: UsageRecorder) -> dict[str, float]:
    found = recorder.statistics()
    assert found is not None
    return found


def test_restart_keeps_the_maximum_of_a_day(tmp_path: Path) -> None:
    machine = Machine()
    recorder, state = machine.recorder(), machine.state(tmp_path / "state")
    machine.load = 0.9
    machine.run(recorder, 900)
    machine.load = 0.2
    machine.run(recorder, 7200)
    before = statistics(recorder)
    assert before["cpu_usage_max_avg_1d"] == pytest.approx(90)
    state.save(recorder.dump())
    machine.pass_time(30)
    resumed = machine.recorder()
    machine.resume(resumed, state)
    machine.run(resumed, 30)
    after = statistics(resumed)
    assert after["cpu_usage_max_avg_1d"] == pytest.approx(90)
    assert after["cpu_usage_max_avg_1h"] == pytest.approx(20)
    assert after["free_cpu_mean"] == pytest.approx(before["free_cpu_mean"], rel=0.01)


def test_after_a_reboot_the_wall_clock_determines_the_age(tmp_path: Path) -> None:
    machine = Machine()
    recorder = machine.recorder()
    machine.load = 0.9
    machine.run(recorder, 900)
    machine.state(tmp_path / "state").save(recorder.dump())
    machine.now, machine.wall, machine.busy = 20.0, machine.wall + 23 * 3600, 0.0
    machine.load = 0.2
    resumed = machine.recorder()
    machine.resume(resumed, machine.state(tmp_path / "state", boot="next"))
    machine.run(resumed, 600)
    assert statistics(resumed)["cpu_usage_max_avg_1d"] == pytest.approx(90)
    assert statistics(resumed)["cpu_usage_max_avg_1h"] == pytest.approx(20)
    machine.run(resumed, 3600)
    assert statistics(resumed)["cpu_usage_max_avg_1d"] == pytest.approx(20)


def test_wall_clock_set_back_gives_no_future_times(tmp_path: Path) -> None:
    machine = Machine()
    machine.state(tmp_path / "state").save({})
    machine.now, machine.wall = 5.0, machine.wall - 1e6
    assert machine.state(tmp_path / "state", boot="next").load() == ({}, 5.0 - 1000.0)


def test_missing_file_is_not_an_error(tmp_path: Path) -> None:
    assert Machine().state(tmp_path / "state").load() is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"version": 2}',
        b'{"version": 1}',
        b'{"version": 1, "boot": "x", "clock": "soon", "wall": 0, "content": {}}',
        b"x" * (4 * 2**20 + 1),
    ],
)
def test_damaged_file_is_rejected(tmp_path: Path, content: Any) -> None:
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(StateError):
        Machine().state(tmp_path / "state").load()


def test_directory_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="directory"):
        Machine().state(tmp_path).load()


@pytest.mark.parametrize("content", [{}, {"cpu": {}}, {"cpu": {"average": [float("nan")] * 3}}, 5])
def test_damaged_windows_are_discarded_completely(tmp_path: Path, content: Any) -> None:
    machine = Machine()
    recorder = machine.recorder()
    with pytest.raises(StateError):
        recorder.load(content, 0.0)
    machine.run(recorder, 60)
    assert statistics(recorder)["cpu_usage_avg_5m"] == pytest.approx(50)


def test_file_is_replaced_atomically(tmp_path: Path) -> None:
    machine = Machine()
    state = machine.state(tmp_path / "state")
    state.save({"number": 1})
    (tmp_path / "state.new").mkdir()  # as if the disk refused
    with pytest.raises(IsADirectoryError):
        state.save({"number": 2})
    assert state.load() == ({"number": 1}, 0.0)


def test_file_stays_small(tmp_path: Path) -> None:
    machine = Machine()
    recorder = machine.recorder()
    for number in range(6000):
        machine.load = number % 97 / 97
        machine.run(recorder, 15)
    machine.state(tmp_path / "state").save(recorder.dump())
    assert (tmp_path / "state").stat().st_size < 60_000
    assert json.loads((tmp_path / "state").read_bytes())["version"] == 1

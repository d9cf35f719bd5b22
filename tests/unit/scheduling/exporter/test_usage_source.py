"""CPU and memory usage read from kernel files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.exporter.usage_source import (
    CgroupSource,
    HostSource,
    ReadingError,
)

STAT = """\
cpu  {user} 10 20 {idle} {iowait} 3 2 {steal} {guest} 4
cpu0 1 2 3 4 5 6 7 8 9 10
cpu1 1 2 3 4 5 6 7 8 9 10
intr 12345 0 0
ctxt 999
"""
MEMINFO = """\
MemTotal:        1000 kB
MemFree:          100 kB
MemAvailable:     600 kB
Buffers:           50 kB
Cached:           200 kB
HugePages_Total:       0
"""


def write_proc(
    path: Any,
    *,
    user: int = 100,
    idle: int = 1000,
    iowait: int = 0,
    steal: int = 0,
    guest: int = 0,
    meminfo: Any = MEMINFO,
) -> HostSource:
    path.mkdir(exist_ok=True)
    stat = STAT.format(user=user, idle=idle, iowait=iowait, steal=steal, guest=guest)
    (path / "stat").write_text(stat)
    (path / "meminfo").write_text(meminfo)
    return HostSource(path)


@pytest.mark.parametrize(
    ("change", "usage"),
    [
        ({"user": 200, "idle": 1300}, 0.25),
        ({"idle": 1100}, 0.0),
        ({"user": 200}, 1.0),
        ({"idle": 1050, "iowait": 50}, 0.0),  # waiting for a disk is idle
        ({"idle": 1050, "steal": 50}, 0.5),  # steal is busy, and counted once
        ({"user": 150, "guest": 50, "idle": 1050}, 0.5),  # guest is part of user
        ({"user": 99, "idle": 1001}, None),  # counters of a CPU went away: no time has passed
        ({"user": 90, "idle": 1110}, 0.0),
        ({}, None),
    ],
)
def test_fraction_of_cpu_time(tmp_path: Path, change: Any, usage: Any) -> None:
    source = write_proc(tmp_path)
    before = source.read(0.0)
    write_proc(tmp_path, **change)
    assert source.read(15.0).cpu_since(before) == usage


def test_cpus_and_memory(tmp_path: Path) -> None:
    reading = write_proc(tmp_path).read(7.0)
    assert (reading.at, reading.cpus) == (7.0, 2)
    assert (reading.memory, reading.memory_usage) == (1000 * 1024, 0.4)


def test_old_kernel_without_mem_available(tmp_path: Path) -> None:
    old = MEMINFO.replace("MemAvailable:     600 kB\n", "")
    assert write_proc(tmp_path, meminfo=old).read(0.0).memory_usage == pytest.approx(0.65)


@pytest.mark.parametrize("stat", ["", "cpu\n", "cpu 1 2 x 4\n", "cpu 1 2 3\n", "\xff\xfe\n"])
def test_invalid_stat_is_reported(tmp_path: Path, stat: Any) -> None:
    source = write_proc(tmp_path)
    (tmp_path / "stat").write_text(stat)
    with pytest.raises(ReadingError, match="stat does not start"):
        source.read(0.0)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ReadingError, match=r"stat: No such file"):
        HostSource(tmp_path).read(0.0)
    source = write_proc(tmp_path, meminfo="nothing here\n")
    with pytest.raises(ReadingError, match="no MemTotal"):
        source.read(0.0)


def _v1(root: Any, usage_seconds: Any, memory: Any, inactive: Any) -> None:
    for directory in ("cpuacct/nodes/one", "memory/nodes/one"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    (root / "cpuacct/nodes/one/cpuacct.usage").write_text(f"{usage_seconds * 10**9}\n")
    (root / "memory/nodes/one/memory.usage_in_bytes").write_text(f"{memory}\n")
    stat = f"inactive_file 1\ntotal_inactive_file {inactive}\n"
    (root / "memory/nodes/one/memory.stat").write_text(stat)


def _v2(root: Any, usage_seconds: Any, memory: Any, inactive: Any) -> None:
    group = root / "nodes/one"
    group.mkdir(parents=True, exist_ok=True)
    (group / "cpu.stat").write_text(f"usage_usec {usage_seconds * 10**6}\nuser_usec 1\n")
    (group / "memory.current").write_text(f"{memory}\n")
    (group / "memory.stat").write_text(f"anon 1\ninactive_file {inactive}\n")


@pytest.mark.parametrize("write", [_v1, _v2])
@pytest.mark.parametrize("path", ["/nodes/one", "nodes/one/"])
def test_cgroup_represents_a_node(tmp_path: Path, write: Any, path: Any) -> None:
    host = write_proc(tmp_path / "proc")
    write(tmp_path, 100, 900, 100)
    source = CgroupSource(tmp_path, path, 4.0, 1600.0, host)
    before = source.read(50.0)
    write(tmp_path, 120, 900, 100)
    after = source.read(60.0)
    assert after.cpu_since(before) == 0.5  # 20 s of CPU in 10 s on 4 CPUs
    assert (after.memory_usage, after.cpus) == (0.5, 4.0)
    of_machine = CgroupSource(tmp_path, path, None, None, host).read(60.0)
    assert (of_machine.cpus, of_machine.memory) == (2, 1000 * 1024)


@pytest.mark.parametrize("write", [_v1, _v2])
def test_missing_cgroup_is_reported(tmp_path: Path, write: Any) -> None:
    host = write_proc(tmp_path / "proc")
    write(tmp_path, 1, 1, 0)
    with pytest.raises(ReadingError, match="nodes/two"):
        CgroupSource(tmp_path, "nodes/two", 1.0, 1.0, host).read(0.0)

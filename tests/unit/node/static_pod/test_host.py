"""What the installer learns from the logs of a scheduler that does not become healthy."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kube_scheduler_operator.node.static_pod.host import NodeHost
from kube_scheduler_operator.node.static_pod.program import NodeProgramOptions

PREFIX = "kube-system_kube-scheduler-cp-1_"
FLAG = 'I1126 10:36:02.241237   28253 flags.go:64] FLAG: --allow-metric-labels="[]"'
INFO = "I1126 10:36:09.745290   28253 serving.go:386] Generated self-signed cert in-memory"
BIND = (
    'E1126 10:36:09.754537   28253 run.go:72] "command failed" err="failed to listen on '
    '192.0.2.1:10259: bind: cannot assign requested address"'
)
ERROR = "failed to listen on 192.0.2.1:10259: bind: cannot assign requested address"

Runs = Callable[..., NodeHost]


@pytest.fixture
def after(tmp_path: Path) -> Runs:
    """A node with these logs, oldest first: run number N ended at the time N."""

    def written(*runs: tuple[str, ...]) -> NodeHost:
        folder = tmp_path / f"{PREFIX}uid" / "kube-scheduler"
        folder.mkdir(parents=True)
        for number, lines in enumerate(runs):
            path = folder / f"{number}.log"
            path.write_text("".join(f"2025-11-21T09:00:00Z stderr F {line}\n" for line in lines))
            os.utime(path, (number, number))
        options = NodeProgramOptions(
            node="cp-1",
            static_pod_name="kube-scheduler",
            resource_dir=tmp_path,
            manifest_path=tmp_path,
            pod_log_dir=tmp_path,
            kubelet_pod_dir=tmp_path,
            cgroup_dir=tmp_path,
        )
        return NodeHost(options, PREFIX)

    return written


@pytest.mark.parametrize(
    "newest", [(), (FLAG,), (FLAG, INFO)], ids=["no line yet", "flags", "no error yet"]
)
def test_a_run_that_is_still_starting_does_not_hide_the_error_of_the_one_before(
    newest: tuple[str, ...], after: Runs
) -> None:
    assert after((FLAG, INFO, BIND), newest).last_error(0.0) == ERROR


def test_the_newest_error_counts(after: Runs) -> None:
    earlier = BIND.replace("assign requested address", "find the network")
    assert after((earlier,), (FLAG, BIND)).last_error(0.0) == ERROR


def test_runs_of_an_earlier_manifest_do_not_count(after: Runs) -> None:
    assert after((FLAG, BIND), (FLAG, INFO)).last_error(1.0) == INFO


def test_flags_are_not_an_error(after: Runs) -> None:
    assert after((FLAG,), (FLAG,)).last_error(0.0) == ""

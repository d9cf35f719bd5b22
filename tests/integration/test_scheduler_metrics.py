"""The record of kube-scheduler's metrics, compared with the binaries under load."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cluster import lifecycle, releases, teardown
from monitoring.exposition import read_record
from monitoring.scheduler_load import served

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = f"metrics-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
RECORD = read_record(REPOSITORY / "tests/monitoring/scheduler-metrics.txt")

pytestmark = pytest.mark.timeout(300, func_only=True)


@pytest.mark.parametrize("minor", releases.PINNED)
def test_the_record_is_what_the_binary_serves(minor: int) -> None:
    teardown.down(NAME)
    try:
        kubernetes = releases.PINNED[minor]
        sandbox = lifecycle.up(NAME, 0, 0, with_operator=False, kubernetes=kubernetes)
        assert served(sandbox) == RECORD[f"1.{minor}"], "run hack/scheduler-metrics"
    finally:
        teardown.down(NAME)

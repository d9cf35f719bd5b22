"""The story of docs/stories.md about kubeadm's upgrade, with the real kubeadm on one node."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..stories import Story
from .conftest import V35, V36, Clusters

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600, func_only=True)]


def test_upgrades_kubeadm_on_friday(clusters: Clusters, tmp_path: Path) -> None:
    cluster = clusters.get(1, V35)
    story = Story(cluster, tmp_path)
    for line in story.lines("upgrade"):
        if line.startswith("kubeadm"):
            assert V36 in line
            cluster.upgrade(V36)
            cluster.follows(V36)
            continue
        read = story.type(line)
    assert V36 in read
    cluster.schedules()

"""A cluster of three control-plane nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..conftest import NAME_OF_THREE, Cluster, up


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Cluster]:
    with up(NAME_OF_THREE, 3, 0, with_operator=True) as sandbox:
        cluster = Cluster(sandbox)
        cluster.rest(400)
        yield cluster


@pytest.fixture
def three_nodes(shared_cluster: Cluster) -> Cluster:
    """Three settled control-plane nodes, without overrides."""
    shared_cluster.rest(400)
    return shared_cluster

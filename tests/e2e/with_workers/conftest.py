"""A cluster of a control-plane node and two workers, for tests of where Pods go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..conftest import NAME_WITH_WORKERS, Cluster, up


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Cluster]:
    with up(NAME_WITH_WORKERS, 1, 2, with_operator=True) as sandbox:
        yield Cluster(sandbox)


@pytest.fixture(scope="session")
def workers(shared_cluster: Cluster) -> tuple[str, str]:
    """The names of the workers."""
    _, one, two = shared_cluster.sandbox.nodes
    return one.name, two.name

"""A cluster of one node, which is the control plane."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..conftest import NAME, Cluster, up


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Cluster]:
    with up(NAME, 1, 0, with_operator=True) as sandbox:
        yield Cluster(sandbox)

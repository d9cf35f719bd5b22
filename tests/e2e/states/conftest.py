"""A cluster with a control-plane node and a worker, and a SecondaryScheduler that gets Pods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..conftest import NAME_OF_STATES, up
from .world import World


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    with up(NAME_OF_STATES, 1, 1, with_operator=True) as sandbox:
        world = World(sandbox)
        world.set_up()
        yield world

"""What the tests of further schedulers share."""

from __future__ import annotations

import pytest

from .world import World


@pytest.fixture
def world() -> World:
    """A cluster without further schedulers."""
    return World()

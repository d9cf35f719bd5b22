"""The fixtures of the diagnostics tests."""

from __future__ import annotations

import pytest

from ..secondary.world import World


@pytest.fixture
def world() -> World:
    """A cluster without secondary schedulers."""
    return World()

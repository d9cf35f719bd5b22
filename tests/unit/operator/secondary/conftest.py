"""Fixtures for tests of secondary schedulers."""

from __future__ import annotations

import pytest

from .world import World


@pytest.fixture
def world() -> World:
    """A cluster without secondary schedulers."""
    return World()

"""Fixtures for the tests of LoadPolicies."""

from __future__ import annotations

import pytest

from .world import World


@pytest.fixture
def world() -> World:
    """A cluster without load policies."""
    return World()

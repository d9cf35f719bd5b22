"""Faults of the product, planted one at a time in a copy of it: the named tests notice each."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .checkout import SECONDS, Checkout
from .fault import REPOSITORY, Fault, all_faults

FAULTS = all_faults()
pytestmark = pytest.mark.timeout(SECONDS + 60)


@pytest.fixture(scope="session")
def checkout() -> Iterator[Checkout]:
    """A copy for each worker, always in the same directory.

    Its API server is known by this directory, so a session that was killed leaves none for long.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    source = hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]
    root = Path(tempfile.gettempdir()) / f"planted-faults-{os.getuid()}-{source}-{worker}"
    shutil.rmtree(root, ignore_errors=True)
    yield Checkout.make(root)
    shutil.rmtree(root, ignore_errors=True)


def test_the_tests_pass_without_a_fault(checkout: Checkout) -> None:
    tests = sorted({test for fault in FAULTS for test in fault.caught_by})
    run = checkout.run(tests)
    assert run.exit_code == 0, run.output
    assert set(tests) == run.passed


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_tests_notice_a_fault(checkout: Checkout, fault: Fault) -> None:
    with checkout.with_fault(fault):
        run = checkout.run(fault.caught_by)
    assert run.exit_code == 1, run.output
    assert set(fault.caught_by) == run.failed, run.output

"""Options and fixtures for all tests."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from .seeds import SEED, SOAK

# The duration of an example depends on the machine, not on the code.
hypothesis.settings.register_profile("project", deadline=None, derandomize=not SOAK)
hypothesis.settings.load_profile("project")


# Tests, fixtures and modules live until the end: looking for garbage among them finds none.
gc.set_threshold(100_000, 20, 50)


def pytest_report_header() -> list[str]:
    return [f"KSO_SOAK: generated inputs begin at seed {SEED}"] if SOAK else []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` has what is marked `presubmit_first`, with its first parameters."""
    functions: set[str] = set()
    for item in items:
        function = item.nodeid.partition("[")[0]
        if function not in functions and item.get_closest_marker("presubmit_first"):
            item.add_marker(pytest.mark.presubmit)
        functions.add(function)


Golden = Callable[[str | Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update",
        action="store_true",
        help="rewrite golden files with the current output (then read the diff)",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with `golden/NAME` beside the test; `--update` rewrites the file."""
    directory = Path(request.path).parent / "golden"

    def check(name: str | Path, text: str) -> None:
        path = directory / name  # `name` itself if it is absolute
        if request.config.getoption("--update"):
            directory.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} does not exist: run pytest with --update"
        assert text == path.read_text(encoding="utf-8"), f"{path} differs: run with --update?"

    return check

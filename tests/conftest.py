"""What every test may use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

# How long an example takes says something about the machine, not about the code.
hypothesis.settings.register_profile("project", deadline=None)
hypothesis.settings.load_profile("project")

Golden = Callable[[str | Path, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update",
        action="store_true",
        help="rewrite golden files with what the code renders now (then read the diff)",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with `golden/NAME` beside the test; `--update` rewrites the file."""
    directory = Path(request.path).parent / "golden"

    def check(name: str | Path, text: str) -> None:
        path = directory / name  # which is `name` if that is absolute
        if request.config.getoption("--update"):
            directory.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} does not exist: run pytest with --update"
        assert text == path.read_text(encoding="utf-8"), f"{path} differs: run with --update?"

    return check

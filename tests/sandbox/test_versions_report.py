"""What `hack/test-versions` reads from pytest."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from .programs import load_program


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load_program("test-versions", monkeypatch)


def case(name: str, *ends: str) -> str:
    return f'<testcase name="{name}">{"".join(f"<{end}/>" for end in ends)}</testcase>'


def test_ends_are_counted_and_failures_named(program: ModuleType, tmp_path: Path) -> None:
    cases = [
        case("good"),
        case("bad", "failure"),
        case("torn", "system-out", "error"),
        case("torn", "failure"),  # pytest has an entry of its own for a failed teardown
        case("left", "skipped"),
    ]
    file = tmp_path / "results.xml"
    file.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    assert program.count(file) == ("1 passed, 3 failed, 1 skipped", ("bad", "torn"))


def test_no_results_mean_that_pytest_did_not_get_to_its_end(
    program: ModuleType, tmp_path: Path
) -> None:
    assert program.count(tmp_path / "absent.xml") == ("pytest ended early", ())


def test_the_table_has_every_version_and_the_exit_status_every_failure(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    def attempt(version: str) -> object:
        tried.append(version)
        passed = version != "v1.34.2"
        failed = () if passed else ("test_x",)
        return program.Result(version, passed, "19 passed", failed, (1.0, 9.5))

    monkeypatch.setattr(program, "attempt", attempt)
    monkeypatch.setattr(sys, "argv", ["test-versions", "1.34.2", "1.36", "v1.34.2"])
    assert program.main() == 1
    assert tried == ["v1.34.2", program.releases.PINNED[36]], "one after the other, each once"
    out = capsys.readouterr().out
    assert "== Kubernetes v1.34.2 (1 of 2)" in out
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("v1")] == [
        ["v1.34.2", "FAILED"],
        [program.releases.PINNED[36], "ok"],
    ]
    monkeypatch.setattr(sys, "argv", ["test-versions"])
    tried.clear()
    assert program.main() == 0
    assert tried == [program.releases.PINNED[35], program.releases.PINNED[37]]

"""`hack/test-parts`: which parts run, what counts as passed, and what is reported."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = REPOSITORY / "hack/test-parts"


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program over an empty repository, with three parts that append to a file."""
    loader = importlib.machinery.SourceFileLoader("test_parts_program", str(PROGRAM))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, loader.name, module)  # dataclasses look the module up
    loader.exec_module(module)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("/log\n/build/\n/ok\n")
    made = [
        module.Part(name, f"purpose of {name}", (f"echo {name} $KSO_SOAK >> log", *more))
        for name, more in {"one": (), "two": ("test -e ok", "echo end >> log"), "three": ()}.items()
    ]
    monkeypatch.setattr(module, "REPOSITORY", tmp_path)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "build/test-parts")
    monkeypatch.setattr(module, "SUITES", {"all": tuple(made), "soak": tuple(made[:1])})
    return module


def log(parts: ModuleType) -> list[str]:
    text: str = (parts.REPOSITORY / "log").read_text()
    return [line.strip() for line in text.splitlines()]


def test_parts_that_have_not_passed_are_run_again(
    parts: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    assert parts.main(["all"]) == 1
    assert log(parts) == ["one", "two", "three"]
    assert "two                FAILED" in capfd.readouterr().out
    (parts.REPOSITORY / "ok").touch()
    assert parts.main(["all"]) == 0
    assert log(parts) == ["one", "two", "three", "two", "end"]
    assert "not run: none" in capfd.readouterr().out


def test_a_selected_part_runs_again_and_the_others_are_named(
    parts: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert parts.main(["all", "three"]) == 0
    assert log(parts) == ["three", "three"]
    assert "not run: one, two" in capfd.readouterr().out


@pytest.mark.parametrize("name", ["tracked", "new"])
def test_a_result_counts_until_a_file_changes(
    parts: ModuleType, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (parts.REPOSITORY / "tracked").write_text("a")
    subprocess.run(["git", "-C", str(parts.REPOSITORY), "add", "tracked"], check=True)
    parts.main(["all", "one"])
    (parts.REPOSITORY / name).write_text("b")
    capfd.readouterr()
    parts.main(["all", "three"])
    output = capfd.readouterr().out
    assert "one                not run since files changed" in output
    assert "not run: one, two" in output


def test_soak_parts_have_their_own_results_and_variable(parts: ModuleType) -> None:
    parts.main(["all", "one"])
    assert parts.main(["soak"]) == 0
    assert log(parts) == ["one", "one 1"]


def test_an_unknown_part_is_an_error_with_the_known_ones(
    parts: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parts.main(["all", "four"]) == 2
    assert "PART: four: unknown; supported: one, two, three" in capsys.readouterr().err
    assert not (parts.REPOSITORY / "log").exists()


@pytest.mark.parametrize("content", ["", "[]", '{"passed": true}'])
def test_a_damaged_result_counts_as_not_run(
    parts: ModuleType, capfd: pytest.CaptureFixture[str], content: str
) -> None:
    parts.main(["all", "one"])
    (parts.RESULTS / "all/one.json").write_text(content)
    assert parts.main(["all", "three"]) == 0
    assert "not run: one, two" in capfd.readouterr().out


def test_every_folder_of_tests_belongs_to_a_part() -> None:
    listed = subprocess.run(
        [str(PROGRAM), "list"], capture_output=True, text=True, check=True
    ).stdout
    assert "make test-all PART=integration" in listed
    text = PROGRAM.read_text() + (REPOSITORY / "Makefile").read_text()
    for path in sorted((REPOSITORY / "tests").iterdir()):
        if any(path.rglob("test_*.py")):
            assert f"tests/{path.name}" in text, path


def test_the_nightly_workflow_runs_every_part(parts: ModuleType) -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github/workflows/nightly.yml").read_text())
    matrix = workflow["jobs"]["test-all"]["strategy"]["matrix"]["part"]
    assert matrix == [part.name for part in parts.ALL]

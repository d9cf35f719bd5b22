"""`hack/words`: which words it finds, which it allows, and how it counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "hack/words"
LIST = "told\treported\nis no(?! longer\\b)\tis not a\nso many\tthat many\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An empty repository with a list of three words."""
    git(tmp_path, "init", "-q")
    (tmp_path / "list.txt").write_text(LIST)
    return tmp_path


def git(repository: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    subprocess.run(["git", "-C", repository, *identity, *arguments], check=True)


def write(repository: Path, **files: str) -> None:
    for name, text in files.items():
        (repository / f"{name}.txt").write_text(text)
        git(repository, "add", f"{name}.txt")


def run(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = ("--list", str(repository / "list.txt"), "--repository", str(repository))
    command = [sys.executable, str(PROGRAM), *options, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a\nit was Told so\n", ["a.txt:2: Told -> reported"]),
        ("def test_told_once(): ...\n", ["a.txt:1: told -> reported"]),
        ("this is no\nlist\n", ["a.txt:1: is no -> is not a"]),
        ("# which is\n# no list\n", ["a.txt:1: is no -> is not a"]),
        ("told of so many\n", ["a.txt:1: so many -> that many", "a.txt:1: told -> reported"]),
        ("it is no longer there; untold\n", []),
        ("binary \0 told\n", []),
    ],
)
def test_words_and_phrases_are_listed_with_better_ones(
    repository: Path, text: str, found: list[str]
) -> None:
    write(repository, a=text)
    done = run(repository)
    assert sorted(done.stdout.splitlines()) == found
    assert done.returncode == (1 if found else 0)


def test_only_tracked_files_of_the_requested_paths_are_searched(repository: Path) -> None:
    write(repository, a="told\n", b="told\n")
    (repository / "untracked.txt").write_text("told\n")
    assert run(repository, "b.txt").stdout == "b.txt:1: told -> reported\n"


def test_a_comment_allows_one_word_on_its_line(repository: Path) -> None:
    write(repository, a="told so many  # words: allow told - a quotation\n")
    assert run(repository).stdout == "a.txt:1: so many -> that many\n"


def test_an_exception_without_a_reason_has_no_effect(repository: Path) -> None:
    write(repository, a="told  # words: allow told\n")
    assert run(repository).stdout.count("told -> reported") == 2


def test_the_list_allows_words_by_path(repository: Path) -> None:
    (repository / "list.txt").write_text(
        f"{LIST}allow\ta*.txt\ttold\tquoted\nallow\tb.txt\t*\trecorded\n"
    )
    write(repository, a="told so many\n", b="told so many\n")
    assert run(repository).stdout == "a.txt:1: so many -> that many\n"


@pytest.mark.parametrize("line", ["told", "allow\ta.txt\ttold", "allow\ta.txt\tother\treason"])
def test_a_mistake_in_the_list_is_an_error(repository: Path, line: str) -> None:
    (repository / "list.txt").write_text(f"{LIST}{line}\n")
    done = run(repository)
    assert done.returncode == 1
    assert "list.txt" in done.stderr


def test_counts_of_the_working_tree_and_of_a_commit(repository: Path) -> None:
    write(repository, a="told told so many\n")
    git(repository, "commit", "-q", "-m", "first")
    write(repository, a="told so many\n")
    done = run(repository, "--count", "HEAD")
    lines = [line.rsplit(maxsplit=2) for line in done.stdout.splitlines()]
    assert lines[0] == ["HEAD", "now"]
    assert lines[1:] == [
        ["told", "2", "1"],
        ["is no(?! longer\\b)", "0", "0"],
        ["so many", "1", "1"],
        ["total", "3", "2"],
    ]
    assert done.returncode == 0
    assert run(repository, "--count").stdout.splitlines()[-1].split() == ["total", "2"]


def test_an_unknown_commit_is_an_error(repository: Path) -> None:
    done = run(repository, "--count", "missing")
    assert done.returncode == 1
    assert "missing" in done.stderr

"""`hack/messages`: which texts of a file it prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "hack/messages"
PYTHON = '''\
"""A module of tests."""
KEY = "key"
PATTERN = r"a number (?:of) \\d"
HELP = "how many pods"
def refuse(node: str) -> str:
    return f'node "{node}" is not ' "Ready"
'''
YAML = """\
kind: CustomResourceDefinition
spec:
  description: >-
    Where load is
    measured.
  other: |
    not a description
  parts:
    - description: 'Its image.'
      type: string
"""


def printed(file: Path, *arguments: str) -> list[str]:
    command = [sys.executable, str(PROGRAM), *arguments, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.replace(str(file), file.name).splitlines()


def test_sentences_of_python_files(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(PYTHON)
    assert printed(file) == ["a.py:4\thow many pods", 'a.py:6\tnode "{node}" is not Ready']
    assert printed(file, "--docstrings") == ["a.py:1\tA module of tests."]


def test_descriptions_of_yaml_files(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(YAML)
    assert printed(file) == ["a.yaml:3\tWhere load is measured.", "a.yaml:9\tIts image."]

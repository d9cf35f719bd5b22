"""A copy of this checkout, in which faults are planted and tests run."""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .fault import REPOSITORY, WHOLE_DIRECTORIES, Fault

PACKAGE: Final = "kube_scheduler_operator"
SECONDS: Final = 1500
"""How long pytest may run in a copy; the first time it may have to build Kubernetes."""

_NOT_PASSED: Final = frozenset({"failure", "error", "skipped"})
"""Elements of a report in the format of JUnit; `error` is a failure of a fixture."""


@dataclass(frozen=True)
class PytestRun:
    """How pytest ended."""

    exit_code: int  # 0 if all tests passed, 1 if some failed; others are errors of pytest
    passed: frozenset[str]  # `path::test`, without parameters, of tests of which all cases passed
    # of tests of which a case failed in the test itself, not in its fixtures
    failed: frozenset[str]
    output: str  # what pytest printed

    @classmethod
    def joined(cls, runs: Sequence[PytestRun]) -> PytestRun:
        """The result of all; the exit code is the highest."""
        return cls(
            max(run.exit_code for run in runs),
            frozenset().union(*(run.passed for run in runs)),
            frozenset().union(*(run.failed for run in runs)),
            "\n".join(run.output for run in runs),
        )


class Checkout:
    """A copy of this checkout with a virtual environment of its own, which imports the copy.

    The environment's packages are links to those of this checkout's environment.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._python = root / ".venv" / "bin" / "python"

    @classmethod
    def make(cls, root: Path) -> Checkout:
        """Copy what git would commit to `root`, which must not exist."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            source, target = REPOSITORY / name, root / name
            if source.is_symlink() or source.is_file():  # not deleted
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        checkout = cls(root)
        checkout._make_environment()
        checkout._verify_import()
        return checkout

    @contextmanager
    def with_fault(self, fault: Fault) -> Iterator[None]:
        """The copy, with a fault planted."""
        originals = {path: path.read_bytes() for path in fault.patched(self.root)}
        try:
            for path, content in fault.patched(self.root).items():
                path.write_text(content, encoding="utf-8")
            yield
        finally:
            for path, original in originals.items():
                path.write_bytes(original)

    def run(self, tests: Sequence[str]) -> PytestRun:
        """Run tests, `path::test` each, in the copy; of their cases those that `make test` runs."""
        marked = [test for test in tests if not test.startswith(WHOLE_DIRECTORIES)]
        others = [test for test in tests if test.startswith(WHOLE_DIRECTORIES)]
        runs = [self._run(marked, "-m", "presubmit")] if marked else []
        return PytestRun.joined([*runs, *([self._run(others)] if others else [])])

    def _run(self, tests: Sequence[str], *options: str) -> PytestRun:
        report = self.root / "report.xml"
        report.unlink(missing_ok=True)
        command = [str(self._python), "-m", "pytest", "-p", "no:cacheprovider", "--durations=0"]
        ended = subprocess.run(
            [*command, *options, f"--junitxml={report}", *tests],
            cwd=self.root,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        cases = list(ET.parse(report).iter("testcase")) if report.exists() else []
        elements: dict[str, set[str]] = {}
        for case in cases:
            elements.setdefault(_test_of(case), set()).update(child.tag for child in case)
        passed = frozenset(test for test, tags in elements.items() if not tags & _NOT_PASSED)
        failed = frozenset(test for test, tags in elements.items() if "failure" in tags)
        return PytestRun(ended.returncode, passed, failed, ended.stdout)

    def _make_environment(self) -> None:
        ours, theirs = REPOSITORY / ".venv", self.root / ".venv"
        for name in ("pyvenv.cfg", ".locked-by"):
            theirs.mkdir(exist_ok=True)
            shutil.copy2(ours / name, theirs / name)
        (theirs / "bin").mkdir()
        for program in (ours / "bin").iterdir():
            _copy_program(program, theirs / "bin" / program.name)
        (packages,) = ours.glob("lib/python*/site-packages")
        target = theirs / packages.relative_to(ours)
        target.mkdir(parents=True)
        for entry in packages.iterdir():
            # Not the links of an editable installation to this checkout.
            if entry.name not in (PACKAGE, f"_{PACKAGE}.pth"):
                (target / entry.name).symlink_to(entry)
        (target / f"_{PACKAGE}.pth").write_text(str(self.root / "operator"))

    def _verify_import(self) -> None:
        code = f"import {PACKAGE}; print({PACKAGE}.__file__)"
        command = [str(self._python), "-c", code]
        environment = self._environment()
        path = subprocess.run(
            command, cwd="/", env=environment, capture_output=True, check=True, text=True
        ).stdout.strip()
        if not Path(path).is_relative_to(self.root):
            raise RuntimeError(f"the copy in {self.root} imports {path}")

    def _environment(self) -> dict[str, str]:
        """This process's environment, without what pytest and virtual environments add."""
        own = ("PYTEST_", "PYTHON", "VIRTUAL_ENV", "KSO_LEDGER")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        return {**kept, "PATH": f"{self._python.parent}{os.pathsep}{kept['PATH']}"}


def _copy_program(program: Path, target: Path) -> None:
    """Copy a program of a virtual environment; a script runs in the environment of the target."""
    content = program.read_bytes()
    interpreter = f"#!{program.parent}".encode()
    if program.is_symlink() or not content.startswith(interpreter):
        target.symlink_to(program.resolve())
        return
    target.write_bytes(content.replace(interpreter, f"#!{target.parent}".encode(), 1))
    shutil.copymode(program, target)


def _test_of(case: ET.Element) -> str:
    path = case.attrib["classname"].replace(".", "/")
    return f"{path}.py::{case.attrib['name'].partition('[')[0]}"

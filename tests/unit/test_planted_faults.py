"""The patches of tests/planted_faults fit the product, and `make test` notices each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..planted_faults.fault import (
    FAULTS,
    PRODUCT,
    REPOSITORY,
    Fault,
    PatchError,
    all_faults,
    belongs_to_presubmit,
    read_fault,
)

EXPECTED = 40


def test_there_are_enough_faults() -> None:
    assert len(list(FAULTS.iterdir())) == len(all_faults()) >= EXPECTED


@pytest.mark.parametrize("fault", all_faults(), ids=lambda fault: fault.name)
def test_a_patch_applies_to_the_product(fault: Fault) -> None:
    patched = fault.patched(REPOSITORY)
    for path, content in patched.items():
        assert path.relative_to(REPOSITORY).parts[0] in PRODUCT
        assert content != path.read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", all_faults(), ids=lambda fault: fault.name)
def test_make_test_runs_the_tests_of_a_patch(fault: Fault) -> None:
    assert [test for test in fault.caught_by if not belongs_to_presubmit(test)] == []


PATCH = """\
Fault: The sum is
  wrong.
Caught-by: tests/unit/test_planted_faults.py::test_there_are_enough_faults

--- a/operator/sum.py
+++ b/operator/sum.py
@@ -1,3 +1,3 @@
 def add(a, b):

-    return a + b
+    return a - b
"""
SUM = "def add(a, b):\n\n    return a + b\n"


def _fault(directory: Path, text: str) -> Fault:
    file = directory / "wrong-sum.patch"
    file.write_text(text)
    return read_fault(file)


def _product(directory: Path, content: str) -> Path:
    file = directory / "operator" / "sum.py"
    file.parent.mkdir()
    file.write_text(content)
    return file


def test_a_patch_has_a_header_and_replaces_lines_wherever_they_are(tmp_path: Path) -> None:
    fault = _fault(tmp_path, PATCH)
    assert (fault.name, fault.description) == ("wrong-sum", "The sum is wrong.")
    assert fault.caught_by == ("tests/unit/test_planted_faults.py::test_there_are_enough_faults",)
    file = _product(tmp_path, f"import os\n\n{SUM}")
    assert fault.patched(tmp_path) == {file: f"import os\n\n{SUM.replace('+', '-')}"}


@pytest.mark.parametrize(("content", "times"), [("import os\n", 0), (SUM + SUM, 2)])
def test_a_patch_whose_place_is_not_certain_is_an_error(
    tmp_path: Path, content: str, times: int
) -> None:
    _product(tmp_path, content)
    with pytest.raises(PatchError, match=f"operator/sum.py has {times} times"):
        _fault(tmp_path, PATCH).patched(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Fault: ", "Bug: "),
        ("Caught-by: ", "Caught: "),
        ("+++ b/operator/sum.py", "+++ /dev/null"),
        ("--- a/operator/sum.py", "--- /dev/null"),
        ("-    return", "?    return"),
    ],
)
def test_a_file_in_another_format_is_an_error(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(PatchError):
        _fault(tmp_path, PATCH.replace(old, new))


def test_a_test_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(LookupError):
        belongs_to_presubmit("tests/unit/test_planted_faults.py::test_nothing")
    with pytest.raises(LookupError):
        belongs_to_presubmit("tests/unit/test_nowhere.py::test_nothing")

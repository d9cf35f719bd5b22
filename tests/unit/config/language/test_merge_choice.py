"""By what configurations are merged: only an installation without jsonmerge does without it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.base.installation import InstallationError
from kube_scheduler_operator.config.language import merging
from kube_scheduler_operator.config.language.merging import merge, merge_plain
from kube_scheduler_operator.config.language.merging.merge import merge_process, require_jsonmerge

START = ["operator", "--platform=none"]
"""Ends with exit code 2, because of the platform, if the installation is complete."""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """As in a process that has not merged yet: everything about jsonmerge is imported again."""
    assert merge_process([{"a": 1}]) == {"a": 1}
    with monkeypatch.context() as patch:
        patch.delattr(merging, "merge_with_jsonmerge")
        for name in list(sys.modules):
            if name.partition(".")[0] == "jsonmerge" or name.endswith(".merge_with_jsonmerge"):
                patch.delitem(sys.modules, name)
        yield patch
    assert merge_process([{"a": 1}]) == {"a": 1}


def merges_plainly() -> bool:
    plain = merge_plain.engine(semantic=True)
    return type(merge.engine(semantic=True)) is type(plain)


def test_jsonmerge_merges_if_it_is_installed(fresh: pytest.MonkeyPatch) -> None:
    require_jsonmerge()
    assert not merges_plainly()


def test_files_are_checked_without_jsonmerge(fresh: pytest.MonkeyPatch) -> None:
    fresh.setitem(sys.modules, "jsonmerge", None)
    assert merges_plainly()


DAMAGED = pytest.mark.parametrize(
    "missing",
    ["jsonschema", "jsonschema.validators", "jsonmerge.strategies", "jsonmerge.jsonvalue"],
)


@DAMAGED
def test_a_damaged_jsonmerge_is_never_replaced(missing: str, fresh: pytest.MonkeyPatch) -> None:
    fresh.setitem(sys.modules, missing, None)
    with pytest.raises(InstallationError, match="jsonmerge is installed and cannot be imported"):
        merge.engine(semantic=True)


def test_a_jsonmerge_without_its_names_is_damaged(fresh: pytest.MonkeyPatch) -> None:
    """What an interrupted removal leaves: a folder, which Python imports as an empty package."""
    fresh.setitem(sys.modules, "jsonmerge", ModuleType("jsonmerge"))
    with pytest.raises(InstallationError, match="cannot import name"):
        merge.engine(semantic=True)


def test_the_operator_does_not_start_without_jsonmerge(
    fresh: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh.setitem(sys.modules, "jsonmerge", None)
    assert main(START) == 1
    assert capsys.readouterr().err == (
        "error: `kube-scheduler-operator operator` needs the Python package jsonmerge, which is "
        "not installed; run: pip install 'kube-scheduler-operator[operator]'\n"
    )


@DAMAGED
def test_the_operator_does_not_start_with_a_damaged_jsonmerge(
    missing: str, fresh: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh.setitem(sys.modules, missing, None)
    assert main(START) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: the Python package jsonmerge is installed and cannot be")
    assert missing in error
    assert error.count("\n") == 1


def test_the_operator_starts_with_jsonmerge(
    fresh: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(START) == 2
    assert "--platform" in capsys.readouterr().err

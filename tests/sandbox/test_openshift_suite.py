"""What `hack/openshift-suite` reads from a report of Ginkgo."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cluster.console import SandboxError, run

from .programs import load_program

PROMETHEUS = "should expose metrics endpoints accessible via prometheus"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load_program("openshift-suite", monkeypatch)


def entry(name: str, state: str, message: str = "", kind: str = "It") -> dict[str, Any]:
    failure = {"Failure": {"Message": message}} if message else {}
    return {
        "ContainerHierarchyTexts": ["[sig-scheduling] kube scheduler operator"] * (kind == "It"),
        "LeafNodeText": name, "LeafNodeType": kind, "State": state, "RunTime": 2_500_000_000,
        **failure,
    }  # fmt: skip


def test_each_spec_has_its_result_and_what_it_reported(program: ModuleType) -> None:
    entries = [
        entry("", "passed", kind="BeforeSuite"),
        entry("[Operator][Serial] should verify", "passed"),
        entry(f"[Operator][Parallel] {PROMETHEUS}", "failed", "error\ncreating route client"),
    ]
    results = program.specs([{"SpecReports": entries}])
    assert [spec.is_as_expected for spec in results] == [True, True]
    text = program.summary(results)
    assert "passed      2.5 s  [sig-scheduling] kube scheduler operator [Operator][Serial]" in text
    assert "it reported: error creating route client" in text
    assert "expected: the sandbox has no Prometheus" in text
    assert text.endswith("1 of 2 specs passed")


@pytest.mark.parametrize(
    ("name", "state"),
    [("another", "failed"), ("another", "timedout"), (PROMETHEUS, "passed")],
)
def test_a_result_that_is_new_is_not_as_expected(
    program: ModuleType, name: str, state: str
) -> None:
    (spec,) = program.specs([{"SpecReports": [entry(name, state)]}])
    assert not spec.is_as_expected


def test_only_a_checkout_as_it_was_committed_is_run(program: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="checkout"):
        program.check(tmp_path)
    suite = tmp_path / "test/e2e/main.go"
    suite.parent.mkdir(parents=True)
    suite.write_text("package e2e\n")
    git = ("git", "-C", tmp_path, "-c", "user.name=t", "-c", "user.email=t@example.com")
    run(*git, "init", "--quiet")
    run(*git, "add", ".")
    run(*git, "commit", "--quiet", "--message", "suite")
    program.check(tmp_path)
    suite.write_text("package changed\n")
    with pytest.raises(SandboxError, match="not as it was committed"):
        program.check(tmp_path)

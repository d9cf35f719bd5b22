"""The configurations that are compared with kube-scheduler: enough, half bad, every rule."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from kube_scheduler_operator.schedulerconfig import (
    check,
    check_extenders,
    check_plugin_args,
    check_profiles,
    decode,
)
from kube_scheduler_operator.schedulerconfig.catalogue import NEWEST, OLDEST
from kube_scheduler_operator.schedulerconfig.check import Target, check_config
from kube_scheduler_operator.schedulerconfig.complete import complete
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.versions import Version

from ...configurations.generate import GROUPS, configurations
from ...configurations.model import Made
from ...configurations.page import verdicts, with_tables
from ...configurations.seeds import seeds
from ...conftest import Golden

ROOT = Path(__file__).resolve().parents[3]
MINORS = range(OLDEST.minor, NEWEST.minor + 1)
CHECKS = (check, check_extenders, check_profiles, decode, check_plugin_args)
COMPLAINTS = {"Problem", "_problem", "_wrong_type", "_unknown_field", "_between", "_one_of"}


def target(made: Made, minor: int) -> Target:
    return Target(Gates(Version(1, minor), made.gates))


@pytest.mark.parametrize("minor", MINORS)
def test_there_are_two_thousand_and_half_of_them_are_refused(minor: int) -> None:
    made = configurations(minor)
    refused = sum(is_refused for _, is_refused in verdicts(minor))
    assert len(made) >= 2000
    assert 0.4 < refused / len(made) < 0.6
    assert {one.group for one in made} == set(GROUPS)
    assert len({(one.text, one.flags) for one in made}) == len(made)


def test_they_are_the_same_every_time_and_others_for_every_version() -> None:
    first, other = configurations(35), configurations(36)
    again = configurations.__wrapped__(35)  # what it makes, not what it remembers
    assert [one.text for one in first] == [one.text for one in again]
    shared = {one.text for one in first} & {one.text for one in other}
    assert len(shared) < len(first) / 2


@pytest.mark.parametrize("minor", MINORS)
def test_what_is_mutated_is_right_before(minor: int) -> None:
    for name, config in seeds(minor).items():
        assert check_config(config, Target(Gates(Version(1, minor)))) == [], name


@pytest.mark.timeout(300)  # thousands of configurations
@pytest.mark.parametrize("minor", [29, 34, 36])
def test_a_completed_configuration_is_right_and_complete(minor: int) -> None:
    for made, is_refused in verdicts(minor):
        if is_refused:
            continue
        where = target(made, minor)
        completed = complete(made.config, where)
        assert check_config(completed, where) == [], made.name
        assert complete(completed, where) == completed, made.name


def complaints(module: ModuleType) -> set[tuple[str, int]]:
    """(function, line) of every place of a module that says that something is wrong."""
    assert module.__file__ is not None
    return {
        (module.__file__, node.lineno)
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in COMPLAINTS
    }


def reached(missing: set[tuple[str, int]], tried: Iterator[tuple[Made, int]]) -> None:
    """Take out of `missing` what is reached when the configurations are checked."""
    files = {file for file, _ in missing}

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        missing.discard((frame.f_code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    for made, minor in tried:
        if not missing:
            break
        sys.settrace(trace)
        try:
            check_config(made.config, target(made, minor))
        finally:
            sys.settrace(before)


def test_every_rule_is_broken_by_some_configuration() -> None:
    places = set().union(*(complaints(module) for module in CHECKS))
    missing = set(places)
    # Only what is refused reaches any of them.
    refused = (
        (made, minor)
        for minor in (35, 31, 36)
        for made, is_refused in verdicts(minor)
        if is_refused
    )
    reached(missing, refused)
    assert len(places) > 60
    assert sorted(missing) == []


def test_the_page_tells_what_is_tried(golden: Golden) -> None:
    page = ROOT / "docs" / "checking.md"
    golden(page, with_tables(page.read_text(encoding="utf-8")))

"""The generated configurations: number, share of invalid ones, coverage of all rules."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from kube_scheduler_operator.config.language import decode
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST, OLDEST
from kube_scheduler_operator.config.language.validation import (
    configuration as validation,
)
from kube_scheduler_operator.config.language.validation import (
    extenders as validate_extenders,
)
from kube_scheduler_operator.config.language.validation import (
    plugin_args as validate_plugin_args,
)
from kube_scheduler_operator.config.language.validation import (
    profiles as validate_profiles,
)
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version

from ....configurations.completed import defaulted_config
from ....configurations.generate import GROUPS, configurations
from ....configurations.model import Made
from ....configurations.page import results, with_tables
from ....configurations.seeds import seeds
from ....conftest import Golden

ROOT = Path(__file__).resolve().parents[4]
MINORS = range(OLDEST.minor, NEWEST.minor + 1)
CHECKS = (validation, validate_extenders, validate_profiles, decode, validate_plugin_args)
COMPLAINTS = {"Problem", "_problem", "_wrong_type", "_unknown_field", "_between", "_one_of"}


def target(made: Made, minor: int) -> Target:
    return Target(Gates(Version(1, minor), made.gates))


@pytest.mark.parametrize("minor", MINORS)
def test_there_are_two_thousand_and_half_of_them_are_rejected(minor: int) -> None:
    made = configurations(minor)
    refused = sum(is_rejected for _, is_rejected in results(minor))
    assert len(made) >= 2000
    assert 0.35 < refused / len(made) < 0.65
    assert {one.group for one in made} == set(GROUPS)
    assert len({(one.text, one.flags) for one in made}) == len(made)


def test_generation_is_deterministic_and_differs_between_versions() -> None:
    first, other = configurations(35), configurations(36)
    again = configurations.__wrapped__(35)  # without the cache
    assert [one.text for one in first] == [one.text for one in again]
    shared = {one.text for one in first} & {one.text for one in other}
    assert len(shared) < len(first) / 2


@pytest.mark.parametrize("minor", MINORS)
def test_seeds_are_valid_before_mutation(minor: int) -> None:
    for name, config in seeds(minor).items():
        assert validate_config(config, Target(Gates(Version(1, minor)))) == [], name


@pytest.mark.timeout(300)  # thousands of configurations
@pytest.mark.parametrize("minor", [29, 34, 37])
def test_a_defaulted_configuration_is_valid_and_stable(minor: int) -> None:
    for made, is_rejected in results(minor):
        if is_rejected:
            continue
        where = target(made, minor)
        completed = defaulted_config(made.config, where)
        assert validate_config(completed, where) == [], made.name
        assert defaulted_config(completed, where) == completed, made.name


def complaints(module: ModuleType) -> set[tuple[str, int]]:
    """(function, line) of every statement of a module that creates a problem."""
    assert module.__file__ is not None
    return {
        (module.__file__, node.lineno)
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in COMPLAINTS
    }


def reached(missing: set[tuple[str, int]], tried: Iterator[tuple[Made, int]]) -> None:
    """Remove from `missing` the lines that the validation of the configurations reaches."""
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
            validate_config(made.config, target(made, minor))
        finally:
            sys.settrace(before)


def test_every_rule_is_broken_by_some_configuration() -> None:
    places = set().union(*(complaints(module) for module in CHECKS))
    missing = set(places)
    # Only rejected configurations reach any of them.
    refused = (
        (made, minor)
        for minor in (35, 31, 36, 38)
        for made, is_rejected in results(minor)
        if is_rejected
    )
    reached(missing, refused)
    assert len(places) > 60
    assert sorted(missing) == []


def test_the_page_lists_the_configurations(golden: Golden) -> None:
    page = ROOT / "docs" / "checking.md"
    golden(page, with_tables(page.read_text(encoding="utf-8")))

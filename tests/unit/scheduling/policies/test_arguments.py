from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.policies.arguments import (
    ArgumentsError,
    argument,
    described,
    read,
)


@dataclass(frozen=True, slots=True)
class Example:
    share: float = argument(0.5, "a share", least=0, most=1, above=True)
    how_many: int = argument(3, "how many", least=1)
    mode: str = argument("calm", "how", choices=("calm", "brisk"))
    print_table: bool = argument(default=False, text="more words")
    weights: Mapping[str, float] = argument(
        {"cpu": 1.0}, "weights", least=0, choices=("cpu", "memory")
    )
    names: tuple[str, ...] = argument((), "names")
    plain: float = 1.0

    def __post_init__(self) -> None:
        if self.mode == "brisk" and self.how_many > 9:
            raise ValueError("brisk is for howMany up to 9; lower it")


ENV = {"HOW_MANY": "how_many", "PRINT": "print_table", "MODE": "mode", "SHARE": "share"}


def test_argument_names_are_camel_case() -> None:
    made = read(Example, {"howMany": 4, "printTable": True, "share": 1, "weights": {"memory": 2}})
    assert made == Example(1.0, 4, print_table=True, weights={"memory": 2.0})
    assert [each.name for each in described(Example)][:2] == ["share", "howMany"]


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"howmany": 3}, 'arguments.howmany: unknown argument; did you mean "howMany"?'),
        ({"x": 3}, "arguments.x: unknown argument; use share, howMany, mode"),
        ({"howMany": 0}, "arguments.howMany: 0 is not 1 or more"),
        ({"howMany": 1.5}, "arguments.howMany: 1.5 is not an integer"),
        ({"howMany": "3"}, "arguments.howMany: this must be an integer 1 or more"),
        ({"howMany": True}, "arguments.howMany: this must be an integer"),
        ({"share": 0}, "arguments.share: 0 is not between 0 and 1, without 0 itself"),
        ({"share": 1.2}, "arguments.share: 1.2 is not between 0 and 1"),
        ({"share": float("nan")}, "arguments.share: nan is not a number"),
        ({"mode": "brsk"}, 'arguments.mode: "brsk" is not known; did you mean "brisk"?'),
        ({"mode": 1}, "arguments.mode: this must be a string"),
        ({"printTable": "true"}, "arguments.printTable: this must be true or false"),
        (
            {"weights": {"gpu": 1}},
            'arguments.weights: a key is not valid: "gpu" is not known; use cpu',
        ),
        ({"weights": {"cpu": -1}}, "arguments.weights.cpu: -1 is not 0 or more"),
        ({"weights": []}, "arguments.weights: this must be an object of names and numbers"),
        ({"names": "a"}, "arguments.names: this must be a list of strings"),
        ({"mode": "brisk", "howMany": 10}, "arguments: brisk is for howMany up to 9; lower it"),
    ],
)
def test_errors_name_the_field_and_a_fix(given: dict[str, Any], output: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        read(Example, given)
    assert output in str(caught.value)


def test_all_errors_are_reported_together() -> None:
    with pytest.raises(ArgumentsError) as caught:
        read(Example, {"howMany": 0, "share": 2})
    assert len(caught.value.problems) == 2


def test_the_environment_overrides_and_its_invalid_values_are_ignored() -> None:
    environ = {"HOW_MANY": "7", "PRINT": "true", "MODE": "brisk", "SHARE": "much"}
    made = read(Example, {"howMany": 4, "share": 0.25}, environ, ENV)
    assert made == Example(0.25, 7, "brisk", print_table=True)
    assert read(Example, {}, {"PRINT": "yes"}, ENV) == Example()

"""The check of Volcano's configuration, compared with Volcano's own types and their decoder.

hack/volcano-decoder has the Go types of volcano.sh/volcano and yaml.v2, with which vc-scheduler
reads its file. Actions are names in a string, which the types do not know.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from cluster import go_programs
from kube_scheduler_operator.offline.checks import CheckOptions
from kube_scheduler_operator.offline.places import options_for
from kube_scheduler_operator.offline.validate import validate
from kube_scheduler_operator.offline.volcano.structure import INVALID_TYPE
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.versions import Version

from ..seeds import SEED, number

OPTIONS = options_for("volcano", CheckOptions(Gates(Version(1, 35))))
UNREADABLE = {INVALID_TYPE, "Syntax"}
BASE = {
    "actions": "enqueue, allocate, backfill",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}]},
        {
            "plugins": [
                {"name": "predicates", "enablePredicate": True},
                {"name": "binpack", "arguments": {"binpack.weight": 10, "binpack.resources": "a"}},
            ]
        },
    ],
    "configurations": [{"name": "allocate", "arguments": {"predicateErrorCacheEnable": True}}],
    "metrics": {"type": "prometheus", "address": "http://a", "interval": "30s"},
}
VALUES: list[Any] = [
    None, True, False, 0, 7, 1.5, "", "true", "yes", "gang", [], ["a"], [None], [[]], {}, {"a": 1},
    {"name": "gang"}, [{"name": "gang"}], [{"plugins": []}],
]  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(map or list, key or index) of every value in a configuration."""
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in keys:
        yield value, key
        yield from places(value[key])


def changed(seed: int) -> str:
    """A configuration in which one to three values are others."""
    random = Random(seed)
    config = copy.deepcopy(BASE)
    for _ in range(random.randint(1, 3)):
        owner, key = random.choice(list(places(config)))
        owner[key] = copy.deepcopy(random.choice(VALUES))
    return yaml.safe_dump(config, default_flow_style=random.choice([None, True, False]))


@pytest.fixture(scope="module")
def decoder() -> Path:
    """The program, which is built where no test's limit counts."""
    return go_programs.provide("volcano-decoder", "omit the comparison with Volcano")


def decoded(files: list[str], decoder: Path) -> list[str]:
    done = subprocess.run(
        [str(decoder)],
        input=json.dumps(files),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    errors: list[str] = json.loads(done.stdout)
    return errors


@pytest.mark.timeout(180, func_only=True)
def test_the_check_refuses_what_volcano_refuses(decoder: Path) -> None:
    count = number("KSO_FORMS", 1_000, soak=20_000)
    files = [yaml.safe_dump(BASE), *map(changed, range(SEED, SEED + count))]
    errors = decoded(files, decoder)
    assert errors[0] == ""
    assert 200 < sum(map(bool, errors)) < count - 200
    for text, error in zip(files, errors, strict=True):
        report = validate([("a.yaml", text)], OPTIONS)
        reasons = {each.reason for each in report.findings if each.severity == "error"}
        assert bool(error) == bool(reasons & UNREADABLE), f"{error}\n{reasons}\n{text}"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("actions: a\ntiers:\n\t- plugins: []\n", True),
        ("actions: [allocate]\ntiers: []\n", True),
        ("actions: on\ntiers: []\n", False),
        ("actions: a\ntiers: [{plugins: [{name: gang, enableJobOrder: on}]}]\n", False),
        ('actions: a\ntiers: [{plugins: [{name: gang, enableJobOrder: "on"}]}]\n', True),
        ("actions: a\nactions: allocate\ntiers: []\n", False),
        ('{"actions": "allocate", "tiers": [{"plugins": {}}]}', True),
        ("actions: allocate\ntiers: []\n---\nactions: []\n", False),
    ],
)
def test_texts_are_read_as_by_the_decoder(text: str, refused: bool, decoder: Path) -> None:
    assert bool(decoded([text], decoder)[0]) == refused
    report = validate([("a.yaml", text)], OPTIONS)
    reasons = {each.reason for each in report.findings if each.severity == "error"}
    assert bool(reasons & UNREADABLE) == refused

"""Two thousand sets of feature gates, given to our check and to kube-scheduler: the same results.

The sets are drawn from gates that need others, from those others, and from all gates, with AllAlpha
and AllBeta. One start of the program takes some 80 ms, because it ends before it reads its
configuration or right after it; two run at a time.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.config.language.feature_gates import Gates, known_gates
from kube_scheduler_operator.config.language.flags import validate_flags
from kube_scheduler_operator.config.language.versions import Version

from ..seeds import SEED, SOAK, some_in_presubmit
from .test_check_against_binary import OF_ANOTHER_PROGRAM
from .test_two_thousand_configurations import QUICK

pytestmark = [pytest.mark.core, pytest.mark.timeout(1800, func_only=True)]

PARTS = 4
SETS = 2_000
AT_A_TIME = 2
SECONDS = 600
OF_ALL = ("AllAlpha", "AllBeta")
_UNMET = re.compile(r"(\w+) is enabled, but depends on features that are disabled: \[([\w ]+)\]")
VERSIONS = [releases.choose()]
if SOAK:
    VERSIONS += [one for one in releases.others() if one not in VERSIONS]
    VERSIONS += releases.PRE_RELEASES.values()

Set = Mapping[str, bool]


def sets_of(minor: int, number: int, seed: int) -> list[Set]:
    """Sets of gates of a version, the same ones each time."""
    chance = random.Random(f"{minor} {seed}")
    known = known_gates(minor)
    assert known is not None
    every = sorted(known.keys() - OF_ANOTHER_PROGRAM - {*OF_ALL})
    connected = sorted(connected_gates(minor)) or every
    made: list[Set] = []
    for _ in range(number):
        chosen = chance.choices(connected, k=chance.randint(0, 4)) + chance.choices(
            every, k=chance.randint(0, 2)
        )
        gates: dict[str, bool] = {}
        for name in chosen:
            locked = known[name]
            is_locked = locked is not None and chance.random() < 0.95
            gates[name] = bool(locked) if is_locked else chance.random() < 0.5
        gates |= {name: chance.random() < 0.5 for name in OF_ALL if chance.random() < 0.15}
        made.append(gates)
    return made


def connected_gates(minor: int) -> set[str]:
    """The gates that need others, and those others."""
    version = Version(1, minor)
    names = known_gates(minor) or {}
    found: set[str] = set()
    for name in names:
        # Alone, and everything else off: whatever it needs is unmet.
        others = {each: each == name for each in names if each not in OF_ALL}
        for dependent, needed in Gates(version, others).unmet().items():
            found |= {dependent, *needed}
    return found


def flag(gates: Set) -> str:
    """The value of --feature-gates."""
    return ",".join(f"{name}={str(value).lower()}" for name, value in gates.items())


def described(unmet: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{name}: {' '.join(sorted(unmet[name]))}" for name in sorted(unmet))


def ours(gates: Set, version: Version) -> str:
    """Our result: empty, or what is refused."""
    problems = list(validate_flags({"feature-gates": [flag(gates)]}, version))
    if not problems:
        return ""
    refused_before = [p for p in problems if " needs " not in p.message]
    if refused_before:
        return "refused"
    return described(Gates(version, gates).unmet())


def theirs(program: Path, gates: Set) -> str:
    """The result of kube-scheduler, in the same form."""
    ended = subprocess.run(
        [program, f"--feature-gates={flag(gates)}", "--config=/"],
        env=QUICK,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode != 0
    last = ended.stderr.strip().splitlines()[-1]
    if "is a directory" in last:
        return ""
    unmet = {name: needed.split() for name, needed in _UNMET.findall(last)}
    if not unmet:
        assert "feature gate" in last, last
        return "refused"
    return described(unmet)


@pytest.fixture(scope="module", params=VERSIONS)
def program(request: pytest.FixtureRequest) -> Path:
    return binaries.provide(["kube-scheduler"], request.param)["kube-scheduler"]


@pytest.mark.parametrize("part", some_in_presubmit(range(PARTS), 1))
def test_the_results_are_equal(program: Path, part: int) -> None:
    version = Version.parse(subprocess.check_output([program, "--version"], text=True).split()[-1])
    drawn = sets_of(version.minor, SETS, SEED)[part::PARTS]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        results = list(pool.map(partial(theirs, program), drawn))
    pairs = zip(drawn, results, strict=True)
    different = {str(gates): (theirs_, mine) for gates, theirs_ in pairs
                 if (mine := ours(gates, version)) != theirs_}  # fmt: skip
    assert different == {}
    enough = SETS / PARTS / 20
    assert sum(":" in result for result in results) > (enough if version.minor >= 35 else -1)
    assert sum(not result for result in results) > enough

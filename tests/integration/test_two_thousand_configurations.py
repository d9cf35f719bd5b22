"""Two thousand configurations, given to our check and to kube-scheduler: they agree on every one.

The program is started as the preflight does it (`--write-config-to`): it decodes, defaults,
validates, builds every profile and writes the completed configuration, without a cluster. One start
takes some 60 ms; two run at a time. A second version is tried with KSO_SOAK; `make test-versions`
runs this on each of its versions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import binaries, releases
from kube_scheduler_operator.base.findings import Problem, format_path
from kube_scheduler_operator.schedulerconfig.check import Target, check_config
from kube_scheduler_operator.schedulerconfig.complete import complete
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.versions import Version

from ..configurations.generate import configurations
from ..configurations.model import Made, typed

pytestmark = [pytest.mark.core, pytest.mark.timeout(1800)]

AT_A_TIME = 2
# A process this short need not tidy its memory, and gains nothing from a second processor.
QUICK = {"GOGC": "off", "GOMAXPROCS": "1"}
# Nobody listens there, and nobody is asked: the program only wants to know where.
MASTER = "--master=https://127.0.0.1:1"
VERSIONS = [releases.choose()]
if "KSO_SOAK" in os.environ:
    VERSIONS += [one for one in releases.others() if one not in VERSIONS][-1:]


class _Loader(yaml.CSafeLoader):
    """Reads what Go writes: there 3e+38 is a number, for YAML 1.1 it is a text."""


_Loader.yaml_implicit_resolvers = {
    key: list(value) for key, value in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?\d+(?:\.\d*)?[eE][-+]?\d+"),
    list("-+0123456789"),
)


@dataclass(frozen=True)
class Scheduler:
    """A real kube-scheduler and a folder of its own."""

    program: Path
    folder: Path

    @property
    def target(self) -> Target:
        command = [str(self.program), "--version"]
        said = subprocess.check_output(command, text=True, timeout=50)
        return Target(Gates(Version.parse(said.split()[-1])))

    def run(self, made: Made, *arguments: str, seconds: float = 50) -> tuple[Any, str]:
        """(the completed configuration, None if it is refused; what was said)."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            file, out = Path(folder, "config.yaml"), Path(folder, "out.yaml")
            file.write_text(made.text, encoding="utf-8")
            arguments = arguments or (f"--write-config-to={out}",)
            command = [str(self.program), f"--config={file}", MASTER, "--secure-port=0"]
            done = subprocess.run(
                [*command, *made.flags, *arguments], env={**os.environ, **QUICK},
                capture_output=True, text=True, timeout=seconds, check=False,
            )  # fmt: skip
            if done.returncode:  # a panic as well: it has not started
                return None, done.stderr
            return yaml.load(out.read_text(encoding="utf-8"), Loader=_Loader), done.stderr


@pytest.fixture(scope="module", params=VERSIONS)
def scheduler(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Scheduler:
    program = binaries.provide(["kube-scheduler"], request.param)["kube-scheduler"]
    return Scheduler(program, tmp_path_factory.mktemp("configurations"))


def target_of(made: Made, target: Target) -> Target:
    return Target(Gates(target.gates.version, made.gates))


def problems(made: Made, target: Target) -> list[Problem]:
    return check_config(made.config, target_of(made, target))


def only_when_it_elects(found: Sequence[Problem]) -> bool:
    """True for what kube-scheduler refuses after --write-config-to has ended it."""
    return bool(found) and all("1.2 times retryPeriod" in one.message for one in found)


def disagreement(made: Made, target: Target, completed: Any, said: str) -> str:
    """What the two verdicts are, if they are not the same; else what they make of it."""
    found = problems(made, target)
    if only_when_it_elects(found):
        return "" if completed is not None else f"it refuses it before it elects: {said}"
    if bool(found) == (completed is None):
        if found:
            return ""
        ours = json.loads(json.dumps(complete(made.config, target_of(made, target))))
        return "" if ours == completed else "\n".join(different(ours, completed))
    ours_says = "; ".join(f"{format_path(one.path)}: {one.message}" for one in found)
    theirs = "accepts it" if completed is not None else f"refuses it: {said.strip()[-2000:]}"
    return f"we say: {ours_says or 'nothing is wrong'}\nkube-scheduler {theirs}"


def different(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Where two documents differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            absent = "(not there)"
            yield from different(ours.get(key, absent), theirs.get(key, absent), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from different(one, other, f"{path}[{index}]")
    elif ours != theirs:
        yield f"{path}: we complete {ours!r}, kube-scheduler {theirs!r}"


def test_verdicts_and_completed_configurations_are_the_same(scheduler: Scheduler) -> None:
    target = scheduler.target
    made = configurations(target.minor)
    assert len(made) >= 2000
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        results = list(pool.map(scheduler.run, made))
    refused = sum(completed is None for completed, _ in results)
    assert 0.4 < refused / len(made) < 0.6
    wrong = [
        (one, text)
        for one, (completed, said) in zip(made, results, strict=True)
        if (text := disagreement(one, target, completed, said))
    ]
    wrong.sort(key=lambda pair: len(pair[0].text))
    for one, text in wrong[:1]:
        flags = " ".join(one.flags)
        pytest.fail(
            f"{len(wrong)} of {len(made)} configurations, the smallest ({one.group}: {one.name}):\n"
            f"{one.text} {flags}\n{text}"
        )


@pytest.mark.parametrize(("renew", "retry"), [("2.4s", "2s"), ("9s", "9s"), ("10s", "8.4s")])
def test_what_is_refused_only_when_it_elects(renew: str, retry: str, scheduler: Scheduler) -> None:
    """It is accepted with --write-config-to, and ends kube-scheduler when it would elect."""
    timings = {"renewDeadline": renew, "retryPeriod": retry}
    # Without this it would wait for the API server before it comes to that.
    made = Made("", "", typed({"leaderElection": timings, "delayCacheUntilActive": True}))
    assert only_when_it_elects(problems(made, scheduler.target))
    assert scheduler.run(made)[0] is not None
    _, said = scheduler.run(made, "-v=0", seconds=30)
    assert "couldn't create leader elector" in said

"""Two thousand configurations, given to our check and to kube-scheduler: they agree on every one.

What the JSON Schema refuses, kube-scheduler refuses as well; the schema may refuse less.

The program is started as the preflight does it (`--write-config-to`): it decodes, defaults,
validates, builds every profile and writes the completed configuration, without a cluster. One start
takes some 60 ms; two run at a time. A second version and the pre-releases are tried with KSO_SOAK;
`make test-versions` runs this on each of its versions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from cluster import binaries, releases
from kube_scheduler_operator.base.findings import Problem, format_path
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.schema import KIND
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.json_schemas import schema_of

from ..configurations.compare import different, only_when_it_elects
from ..configurations.completed import defaulted_config
from ..configurations.generate import configurations
from ..configurations.model import TYPE, Made, typed
from ..configurations.schema_violations import violations
from ..seeds import SOAK, some_in_presubmit

pytestmark = [pytest.mark.core, pytest.mark.timeout(1800, func_only=True)]

PARTS = 4
"""`make test` compares the first part. Each has every fourth configuration of every group."""

AT_A_TIME = 2
SECONDS = 600
"""For a start of the program: `make test` runs this file on idle processor time."""
# Such a short process needs no garbage collection and no second CPU.
QUICK = {"GOGC": "off", "GOMAXPROCS": "1"}
# No server listens there; kube-scheduler only requires an address.
MASTER = "--master=https://127.0.0.1:1"
VERSIONS = [releases.choose()]
if SOAK:
    VERSIONS += [one for one in releases.others() if one not in VERSIONS][-1:]
    VERSIONS += releases.PRE_RELEASES.values()


class _Loader(yaml.CSafeLoader):
    """Reads Go's YAML, in which 3e+38 is a number; in YAML 1.1 it is a string."""


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
        output = subprocess.check_output(command, text=True, timeout=SECONDS)
        return Target(Gates(Version.parse(output.split()[-1])))

    def run(self, made: Made, *arguments: str) -> tuple[Any, str]:
        """(the completed configuration, or None if it is rejected; the log)."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            file, out = Path(folder, "config.yaml"), Path(folder, "out.yaml")
            file.write_text(made.text, encoding="utf-8")
            arguments = arguments or (f"--write-config-to={out}",)
            command = [str(self.program), f"--config={file}", MASTER, "--secure-port=0"]
            done = subprocess.run(
                [*command, *made.flags, *arguments], env={**os.environ, **QUICK},
                capture_output=True, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
            if done.returncode:  # also after a panic
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
    return validate_config(made.config, target_of(made, target))


def disagreement(made: Made, target: Target, completed: Any, log: str) -> str:
    """The difference of the two results, or of the completed configurations; empty if equal."""
    found = problems(made, target)
    if only_when_it_elects(found):
        return (
            ""
            if completed is not None
            else f"kube-scheduler rejects it before leader election: {log}"
        )
    if bool(found) == (completed is None):
        if found:
            return ""
        ours = json.loads(json.dumps(defaulted_config(made.config, target_of(made, target))))
        return "" if ours == completed else "\n".join(different(ours, completed))
    expected = "; ".join(f"{format_path(one.path)}: {one.message}" for one in found)
    theirs = "accepts it" if completed is not None else f"rejects it: {log.strip()[-2000:]}"
    return f"the operator: {expected or 'valid'}\nkube-scheduler {theirs}"


@pytest.mark.parametrize("part", some_in_presubmit(range(PARTS), 1))
def test_results_and_defaulted_configurations_are_equal(scheduler: Scheduler, part: int) -> None:
    target = scheduler.target
    made = configurations(target.minor)
    assert len(made) >= 2000
    made = made[part::PARTS]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        results = list(pool.map(scheduler.run, made))
    refused = sum(completed is None for completed, _ in results)
    assert 0.4 < refused / len(made) < 0.6
    wrong = [
        (one, text)
        for one, (completed, log) in zip(made, results, strict=True)
        if (text := disagreement(one, target, completed, log))
    ]
    wrong.sort(key=lambda pair: len(pair[0].text))
    for one, text in wrong[:1]:
        flags = " ".join(one.flags)
        pytest.fail(
            f"{len(wrong)} of {len(made)} configurations, the smallest ({one.group}: {one.name}):\n"
            f"{one.text} {flags}\n{text}"
        )

    schema = jsonschema.Draft7Validator(schema_of(KIND, target.gates.version))
    too_strict = [
        one.text
        for one, (completed, _) in zip(made, results, strict=True)
        if completed is not None and next(schema.iter_errors(one.config), None) is not None
    ]
    assert too_strict == []


@pytest.mark.parametrize("part", some_in_presubmit(range(PARTS), 1))
def test_kube_scheduler_refuses_a_violation_of_each_rule_of_the_json_schema(
    scheduler: Scheduler, part: int
) -> None:
    schema = schema_of(KIND, scheduler.target.gates.version)
    made = [Made("schema", what, config) for what, config in violations(schema, TYPE)]
    assert len(made) > 400
    made = made[part::PARTS]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        results = list(pool.map(scheduler.run, made))
    accepted = [
        f"{one.name}: {one.text}"
        for one, (completed, _) in zip(made, results, strict=True)
        if completed is not None
    ]
    assert accepted == []


@pytest.mark.parametrize(
    ("renew", "retry"), some_in_presubmit([("2.4s", "2s"), ("9s", "9s"), ("10s", "8.4s")], 1)
)
def test_configurations_rejected_at_leader_election(
    renew: str, retry: str, scheduler: Scheduler
) -> None:
    """They are accepted with --write-config-to, and end kube-scheduler at leader election."""
    timings = {"renewDeadline": renew, "retryPeriod": retry}
    # Otherwise it would wait for the API server before leader election.
    made = Made("", "", typed({"leaderElection": timings, "delayCacheUntilActive": True}))
    assert only_when_it_elects(problems(made, scheduler.target))
    assert scheduler.run(made)[0] is not None
    _, log = scheduler.run(made, "-v=0")
    assert "couldn't create leader elector" in log

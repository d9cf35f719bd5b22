"""Files as people, templates and accidents make them: the check reads them as kube-scheduler does.

500 files for each of 1.34, 1.35 and 1.36, 20,000 with KSO_SOAK. Every file follows from its seed,
which a failure prints: KSO_SEED=SEED starts with another one, and `SEED/NUMBER` is a single file.

hack/controlplane/configurations starts kube-scheduler in process, from the modules of a release: a
file takes 2 ms instead of 60. A sample is compared with the real program.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from cluster import binaries, releases
from kube_scheduler_operator.base.findings import ERROR
from kube_scheduler_operator.offline.checks import CheckOptions
from kube_scheduler_operator.offline.validate import validate
from kube_scheduler_operator.schedulerconfig.defaulting import defaulted_config
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.source import read
from kube_scheduler_operator.schedulerconfig.versions import Version

from ..configurations.compare import different, only_when_it_elects
from ..configurations.files import file, files
from ..seeds import SEED, SOAK

pytestmark = [pytest.mark.timeout(7200)]

NUMBER = 20_000 if SOAK else 500
SAMPLED = list(releases.PINNED.values()) if SOAK else [releases.DEFAULT]
"""Versions whose real program is started; the others are only built for `make test-versions`."""
SAMPLE = 40


@dataclass(frozen=True)
class Reader:
    """A kube-scheduler that is started once for each file, in one process.

    Attributes:
        minor: its version.
        requests: names of files.
        answers: a line of JSON for each.
        file: the file that is read.
    """

    minor: int
    requests: IO[str]
    answers: IO[str]
    file: Path

    def read(self, content: bytes) -> tuple[Any, str]:
        """(the completed configuration, or None if it is rejected; the error)."""
        self.file.write_bytes(content)
        self.requests.write(f"{self.file}\n")
        self.requests.flush()
        answer = json.loads(self.answers.readline())
        if answer["error"]:
            return None, answer["error"]
        ((completed,), _) = read(answer["completed"])
        return completed.root.data, ""


@pytest.fixture(scope="module", params=releases.PINNED.values())
def reader(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reader]:
    program = binaries.provide_configuration_reader(request.param)
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "GOMAXPROCS": "1"},
    ) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        path = tmp_path_factory.mktemp("files") / "config"
        yield Reader(releases.minor(request.param), process.stdin, process.stdout, path)
        process.stdin.close()


def names_files(config: Any) -> bool:
    """Whether kube-scheduler reads further files, which the check does not have."""
    if isinstance(config, list):
        return any(names_files(each) for each in config)
    if not isinstance(config, Mapping):
        return False
    named = ("kubeconfig", "certFile", "keyFile", "caFile")
    return any(config.get(name) for name in named) or any(map(names_files, config.values()))


def disagreement(content: bytes, minor: int, completed: Any, error: str) -> str:
    """The difference of the two results, or of the completed configurations; empty if equal."""
    options = CheckOptions(Gates(Version(1, minor)))
    report = validate([("file", content)], options)
    errors = [one for one in report.findings if one.severity == ERROR]
    is_accepted = not errors or only_when_it_elects(errors)
    if is_accepted != (completed is not None):
        ours = "; ".join(f"{one.path}: {one.message}" for one in errors) or "valid"
        return f"the operator: {ours}\nkube-scheduler: {error or 'valid'}"
    if completed is None:
        return ""
    config = read(content)[0][0].root.data
    ours = json.loads(json.dumps(defaulted_config(config, options.target)))
    return "\n".join(different(ours, completed))


def test_files_are_read_as_kube_scheduler_reads_them(reader: Reader) -> None:
    print(f"KSO_SEED={SEED}")
    accepted = compared = 0
    wrong: list[tuple[int, str]] = []
    for seed, content in files(str(SEED), NUMBER, reader.minor):
        documents, _ = read(content)
        if documents and names_files(documents[0].root.data):
            continue
        completed, error = reader.read(content)
        accepted += completed is not None
        compared += 1
        if difference := disagreement(content, reader.minor, completed, error):
            wrong.append((len(content), f"{seed}\n{content!r}\n{difference}"))
    assert not wrong, f"{len(wrong)} of {compared} files, the smallest: {min(wrong)[1]}"
    assert compared > 0.9 * NUMBER
    assert 0.25 < accepted / compared < 0.5


@pytest.mark.parametrize("reader", SAMPLED, indirect=True)
def test_the_reader_answers_as_the_program_does(reader: Reader, tmp_path: Path) -> None:
    version = releases.PINNED[reader.minor]
    program = binaries.provide(["kube-scheduler"], version)["kube-scheduler"]
    path, out = tmp_path / "config", tmp_path / "out"
    for index in range(SAMPLE):
        content = file(f"{SEED}/{index}", reader.minor)
        path.write_bytes(content)
        out.unlink(missing_ok=True)
        done = subprocess.run(
            [program, f"--config={path}", f"--write-config-to={out}", "--secure-port=0",
             "--master=https://127.0.0.1:1"],
            capture_output=True, timeout=50, check=False,
        )  # fmt: skip
        expected = read(out.read_bytes())[0][0].root.data if done.returncode == 0 else None
        assert reader.read(content)[0] == expected, f"{SEED}/{index}"

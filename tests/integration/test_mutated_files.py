"""Files as people, templates and accidents make them: the check reads them as kube-scheduler does.

500 files for each pinned minor version, 20,000 with KSO_SOAK. Every file follows from its seed,
which a failure prints: KSO_SEED=SEED starts with another one, and `SEED/NUMBER` is a single file.

hack/controlplane/configurations starts kube-scheduler in process, from the modules of a release: a
file takes 2 ms instead of 60. A sample is compared with the real program.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster import binaries, releases
from cluster.configuration_reader import ConfigurationReader, configuration_reader
from kube_scheduler_operator.base.findings import ERROR
from kube_scheduler_operator.base.source.reader import read
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate

from ..configurations.compare import different, only_when_it_elects
from ..configurations.completed import defaulted_config
from ..configurations.files import file, files
from ..seeds import SEED, SOAK

pytestmark = [pytest.mark.timeout(7200, func_only=True)]

NUMBER = 20_000 if SOAK else 500
SAMPLED = list(releases.PINNED.values()) if SOAK else [releases.DEFAULT]
"""Versions whose real program is started; the others are only built for `make test-versions`."""
SAMPLE = 40
SECONDS = 600
"""For a start of the program: `make test` runs this file on idle processor time."""


@pytest.fixture(scope="module", params=releases.PINNED.values())
def reader(request: pytest.FixtureRequest) -> Iterator[ConfigurationReader]:
    with configuration_reader(request.param) as found:
        yield found


def completed_by(reader: ConfigurationReader, content: bytes) -> tuple[Any, str]:
    """(the configuration that kube-scheduler completed, or None; its error)."""
    text, error = reader.read(content)
    return (None if error else read(text)[0][0].root.data), error


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


def test_files_are_read_as_kube_scheduler_reads_them(reader: ConfigurationReader) -> None:
    print(f"KSO_SEED={SEED}")
    accepted = compared = 0
    wrong: list[tuple[int, str]] = []
    for seed, content in files(str(SEED), NUMBER, reader.minor):
        documents, _ = read(content)
        if documents and names_files(documents[0].root.data):
            continue
        completed, error = completed_by(reader, content)
        accepted += completed is not None
        compared += 1
        if difference := disagreement(content, reader.minor, completed, error):
            wrong.append((len(content), f"{seed}\n{content!r}\n{difference}"))
    assert not wrong, f"{len(wrong)} of {compared} files, the smallest: {min(wrong)[1]}"
    assert compared > 0.9 * NUMBER
    assert 0.25 < accepted / compared < 0.5


@pytest.mark.parametrize("reader", SAMPLED, indirect=True)
def test_the_reader_answers_as_the_program_does(
    reader: ConfigurationReader, tmp_path: Path
) -> None:
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
            capture_output=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        expected = read(out.read_bytes())[0][0].root.data if done.returncode == 0 else None
        assert completed_by(reader, content)[0] == expected, f"{SEED}/{index}"

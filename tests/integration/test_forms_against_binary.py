"""The configurations and flags in tests/forms, as kube-scheduler reads them.

What the check finds in a form is right only if the program agrees: each configuration of a form is
given to it with the flags that the form sets, and each command line with an empty configuration.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.templates import canonical_json
from kube_scheduler_operator.config.language.feature_gates import Gates, parse_gates
from kube_scheduler_operator.config.language.flags import validate_flags
from kube_scheduler_operator.config.language.schema import API_VERSION, KIND
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import Item, election_of, stock_of
from kube_scheduler_operator.config.lint.documents.find_documents import read_sources
from kube_scheduler_operator.config.lint.forms.form import CommandLine
from kube_scheduler_operator.config.lint.known_kinds import KINDS
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig

from ..forms.corpus import CASES, Case
from ..forms.damaged import damaged
from ..seeds import chunks, number

_OF_FILES = (
    "authentication-kubeconfig", "authorization-kubeconfig", "cert-dir", "client-ca-file",
    "config", "kubeconfig", "secure-port", "tls-cert-file", "tls-private-key-file",
)  # fmt: skip
"""Flags whose files the test does not have, or that a form may set to any port."""

_TLS_FILES = ("caFile", "certFile", "keyFile")

SECONDS = 600
"""For a start of the program: `make test` runs this file on idle processor time."""

pytestmark = pytest.mark.timeout(1800, func_only=True)

Start = Callable[[Any, list[str]], "subprocess.CompletedProcess[str]"]


def own(item: Item) -> bool:
    group = str(item.value.get("apiVersion") or "").rpartition("/")[0]
    return (group, item.kind) in KINDS


def configurations() -> Iterator[tuple[Case, Item]]:
    """The configurations of v1 for Kubernetes' own kube-scheduler, without flaws of the text."""
    for case in CASES:
        for source in read_sources(case.contents, 35, own):
            for item in source.items:
                if source.problems or not stock_of(item.reader):
                    continue
                if item.kind == KIND and item.value.get("apiVersion") == API_VERSION:
                    yield case, item


def command_lines() -> Iterator[tuple[Case, CommandLine]]:
    for case in CASES:
        for source in read_sources(case.contents, 35, own):
            for _, command in source.commands:
                if stock_of(command):
                    yield case, command


def _names(pairs: Sequence[tuple[Case, Any]]) -> list[str]:
    return [f"{case.name}-{number}" for number, (case, _) in enumerate(pairs)]


CHUNKS = chunks(number("KSO_FORMS", 20, soak=2_000), 20)
CONFIGURATIONS = list(configurations())
COMMANDS = list(command_lines())


@pytest.fixture
def start(kube_scheduler_binary: Path, tmp_path: Path) -> Start:
    def run(config: Any, flags: list[str]) -> subprocess.CompletedProcess[str]:
        kubeconfig = tmp_path / "scheduler.conf"
        kubeconfig.write_text(stub_kubeconfig(), encoding="utf-8")
        connection = config.get("clientConnection")
        connection = {} if connection is None else connection
        of_file = connection.get("kubeconfig") if isinstance(connection, dict) else 0
        if isinstance(of_file, str | None):  # else it is damaged
            connection = {**connection, "kubeconfig": str(kubeconfig)}
        file = tmp_path / "config.yaml"
        file.write_text(
            canonical_json({**_without_files(config), "clientConnection": connection}),
            encoding="utf-8",
        )
        last = [f"--write-config-to={tmp_path / 'out.yaml'}", "--secure-port=0"]
        return subprocess.run(
            [str(kube_scheduler_binary), *flags, f"--config={file}", *last],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    return run


def _without_files(config: Any) -> Any:
    """The configuration without certificates and keys of extenders that the test does not have."""
    extenders = config.get("extenders")
    if not isinstance(extenders, list):
        return config
    return {**config, "extenders": [_without_tls_files(extender) for extender in extenders]}


def _without_tls_files(extender: Any) -> Any:
    tls = extender.get("tlsConfig") if isinstance(extender, dict) else None
    if not isinstance(tls, dict):
        return extender
    kept = {
        key: value
        for key, value in tls.items()
        if key not in _TLS_FILES or not isinstance(value, str)
    }
    return {**extender, "tlsConfig": kept}


@pytest.fixture
def version(kube_scheduler_binary: Path) -> Version:
    command = [str(kube_scheduler_binary), "--version"]
    return Version.parse(subprocess.check_output(command, text=True, timeout=SECONDS).split()[-1])


def flags_of(command: CommandLine | None) -> dict[str, list[str]]:
    flags = command.flags if command else {}
    return {name: values for name, values in flags.items() if name not in _OF_FILES}


def words(flags: dict[str, list[str]]) -> list[str]:
    return [
        f"{'-' if len(name) == 1 else '--'}{name}={value}"
        for name, values in flags.items()
        for value in values
    ]


def test_the_corpus_has_enough_to_compare() -> None:
    assert len(CONFIGURATIONS) > 40
    assert len(COMMANDS) > 40


@pytest.mark.presubmit
@pytest.mark.parametrize(("case", "item"), CONFIGURATIONS, ids=_names(CONFIGURATIONS))
def test_a_configuration_in_a_form_is_accepted_as_kube_scheduler_does(
    case: Case, item: Item, start: Start, version: Version
) -> None:
    flags = flags_of(item.reader)
    problems = list(validate_flags(flags, version))
    gates = Gates(version, {} if problems else parse_gates(flags.get("feature-gates", ())))
    config = item.document.root.data
    problems += validate_config(config, Target(gates), election_of(item.value, item.reader))
    done = start(config, words(flags))
    assert (done.returncode == 0) == (not problems), (problems, done.stderr[-500:])


@pytest.mark.presubmit
@pytest.mark.parametrize(("case", "command"), COMMANDS, ids=_names(COMMANDS))
def test_flags_of_a_form_are_accepted_as_kube_scheduler_does(
    case: Case, command: CommandLine, start: Start, version: Version
) -> None:
    flags = flags_of(command)
    problems = list(validate_flags(flags, version))
    done = start({"apiVersion": API_VERSION, "kind": KIND}, words(flags))
    assert (done.returncode == 0) == (not problems), (problems, done.stderr[-500:])


@pytest.mark.parametrize("seeds", CHUNKS, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_a_damaged_configuration_in_a_form_is_accepted_as_kube_scheduler_does(
    seeds: range, start: Start, version: Version
) -> None:
    different = []
    for seed in seeds:
        name, data = damaged(seed)
        for source in read_sources([("a.yaml", data)], version.minor, own):
            for item in source.items:
                if source.problems or item.kind != KIND or not stock_of(item.reader):
                    continue
                config = item.document.root.data
                problems = validate_config(config, Target(Gates(version)))
                done = start(config, [])
                if (done.returncode == 0) != (not problems):
                    different.append(f"{name}: {problems} {done.stderr[-300:]}")
    assert not different, "\n".join(different)

"""The kube-schedulers of this machine by minor version, and how they take a configuration."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...base.foreign_text import foreign
from ...base.limits import FOREIGN_LINE
from ...base.objects import entries, mapping
from ...config.effective.upgrades import UpgradedContent
from ...config.language.command_line import parse, render
from ...config.language.feature_gates import FLAG, known_gates, parse_gates
from ...config.language.versions import Version
from ...simulate.process import PROGRAM, SimulationError, binary_version, candidates, find_binary
from ..console.errors import UsageError

_SECONDS: Final = 60.0
_NOT_HERE: Final = frozenset({
    "allow-metric-labels-manifest", "authentication-kubeconfig", "authorization-kubeconfig",
    "bind-address", "cert-dir", "client-ca-file", "config", "help", "kubeconfig", "master",
    "requestheader-client-ca-file", "secure-port", "tls-cert-file", "tls-private-key-file",
    "tls-sni-cert-key", "version", "write-config-to",
})  # fmt: skip
"""Flags with files and addresses of a node, and those of this check itself."""


@dataclass(frozen=True, slots=True)
class Program:
    path: Path
    version: Version
    named: bool = False  # by the user, so it may have the plugins of the cluster's own image


class Programs:
    """The kube-schedulers of this machine; those that the user names come first."""

    def __init__(self, named: Sequence[str]) -> None:
        self._named = [Path(find(name)) for name in named]
        self._versions: dict[Path, Version | None] = {}

    def of(self, version: Version) -> Program | None:
        """Return a kube-scheduler of a minor version; None: this machine has none."""
        for path in self._named:
            if self._is_of(path, version):
                return Program(path, self._version(path) or version, named=True)
        for path in candidates(str(version)):
            if self._is_of(path, version):
                return Program(path, self._version(path) or version)
        return None

    def _is_of(self, path: Path, version: Version) -> bool:
        known = self._version(path)
        return known is not None and known.short == version.short

    def _version(self, path: Path) -> Version | None:
        if path not in self._versions:
            try:
                self._versions[path] = binary_version(path)
            except SimulationError:
                self._versions[path] = None
        return self._versions[path]


def find(name: str) -> Path:
    """Return the program that the user names.

    Raises:
        UsageError: it is none.
    """
    try:
        path = find_binary(name)
        binary_version(path)
    except SimulationError as error:
        raise UsageError(str(error)) from None
    return path


def how_to_get(version: Version) -> str:
    """Say how to get a kube-scheduler of a minor version."""
    return (
        f"no kube-scheduler {version.short} is on this machine; name one with --kube-scheduler "
        f"PATH: https://dl.k8s.io/release/v{version.short}.0/bin/linux/amd64/kube-scheduler"
    )


def refusal(program: Program, content: UpgradedContent) -> str | None:
    """Return why a kube-scheduler refuses a configuration and flags; None: it would start.

    It reads and completes both, without a cluster. Files and addresses of a node are left out.

    Raises:
        SimulationError: it did not answer.
    """
    with tempfile.TemporaryDirectory(prefix="kube-scheduler-upgrade-") as folder:
        file = Path(folder, "config.json")
        file.write_text(json.dumps(_without_files(content.config)))
        command = [
            PROGRAM,
            f"--config={file}",
            f"--write-config-to={folder}/written.yaml",
            "--secure-port=0",
            "--master=https://127.0.0.1:1",  # nothing listens there; it only has to be set
            *_flags(content.arguments),
        ]
        try:
            done = subprocess.run(
                command,
                executable=program.path,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                env={"PATH": os.environ.get("PATH", ""), "HOME": folder, "TZ": "UTC"},
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise SimulationError(f"{program.path} did not answer: {error}") from None
    return None if done.returncode == 0 else _last_line(done.stderr)


def without_impossible_gates(content: UpgradedContent, version: Version) -> UpgradedContent:
    """Return a content without the feature gates that a version does not have or does not set.

    Without a gate that is locked or gone, the version does what it always does.
    """
    known, gates = known_gates(version.minor), gates_of(content)
    if known is None or not gates:
        return content
    kept = [
        f"{name}={str(value).lower()}"
        for name, value in gates.items()
        if name in known and known[name] in (None, value)
    ]
    flags = {**parse(content.arguments), FLAG: [",".join(kept)] if kept else []}
    return content._replace(arguments=render(flags))


def gates_of(content: UpgradedContent) -> dict[str, bool]:
    """Return the feature gates in the flags of a content; none if they are malformed."""
    try:
        return parse_gates(parse(content.arguments).get(FLAG, ()))
    except ValueError:
        return {}


def _last_line(output: bytes) -> str:
    """Return the error at the end of an output."""
    lines = output[-8 * FOREIGN_LINE :].decode(errors="replace").splitlines()
    last = next((line for line in reversed(lines) if line.strip()), "it prints no error")
    return foreign(last.rpartition(' err="')[2].removesuffix('"'), FOREIGN_LINE)


def _flags(arguments: Sequence[str]) -> Iterator[str]:
    flags = {name: values for name, values in parse(arguments).items() if name not in _NOT_HERE}
    yield from render(flags)


def _without_files(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without the names of files of a node."""
    made = dict(config)
    if "clientConnection" in made:
        connection = mapping(made["clientConnection"])
        made["clientConnection"] = {k: v for k, v in connection.items() if k != "kubeconfig"}
    if entries(made.get("extenders")):
        made["extenders"] = [_without_tls_files(extender) for extender in made["extenders"]]
    return made


def _without_tls_files(extender: Any) -> Any:
    tls = mapping(mapping(extender).get("tlsConfig"))
    kept = {key: value for key, value in tls.items() if not key.endswith("File")}
    return {**extender, "tlsConfig": kept} if tls else extender

"""How a kube-scheduler of another version takes a configuration and flags."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_LINE
from ..base.objects import entries, mapping
from ..config.effective.upgrades import UpgradedContent
from ..config.language.command_line import parse, render
from ..config.language.feature_gates import FLAG, known_gates, parse_gates
from ..config.language.versions import Version
from .launcher import REFUSED
from .process import PROGRAM, Binary, SimulationError

_SECONDS: Final = 60.0
_CONFIG: Final = "config.json"
_WRITTEN: Final = b"Wrote configuration"
"""What kube-scheduler 1.34 to 1.37 logs after --write-config-to, and before it ends with 0."""
_NOT_HERE: Final = frozenset({
    "allow-metric-labels-manifest", "authentication-kubeconfig", "authorization-kubeconfig",
    "bind-address", "cert-dir", "client-ca-file", "config", "help", "kubeconfig", "master",
    "requestheader-client-ca-file", "secure-port", "tls-cert-file", "tls-private-key-file",
    "tls-sni-cert-key", "version", "write-config-to",
})  # fmt: skip
"""Flags with files and addresses of a node, and those of this check itself."""


@dataclass(frozen=True, slots=True)
class Program:
    binary: Binary
    version: Version
    named: bool = False  # by the user, so it may have the plugins of the cluster's own image


async def refusal(program: Program, content: UpgradedContent) -> str | None:
    """Return why a kube-scheduler refuses a configuration and flags; None: it would start.

    It reads and completes both, without a cluster. Files and addresses of a node are left out.

    Raises:
        SimulationError: it did not answer.
    """
    binary, files = program.binary, {_CONFIG: json.dumps(_without_files(content.config))}
    flags = tuple(_flags(content.arguments))
    if isinstance(binary, Path):
        return await asyncio.to_thread(_local_refusal, binary, flags, files)
    output = await binary.run(lambda folder: _arguments(folder, flags), files, _SECONDS)
    if output.startswith(REFUSED.encode()):
        raise SimulationError(output.decode(errors="replace"))
    # A launcher does not pass the exit code on.
    return None if _WRITTEN in output else _last_line(output)


def _arguments(folder: str, flags: Sequence[str]) -> list[str]:
    return [
        f"--config={folder}/{_CONFIG}",
        f"--write-config-to={folder}/written.yaml",
        "--secure-port=0",
        "--master=https://127.0.0.1:1",  # nothing listens there; it only has to be set
        *flags,
    ]


def _local_refusal(binary: Path, flags: Sequence[str], files: Mapping[str, str]) -> str | None:
    with tempfile.TemporaryDirectory(prefix="kube-scheduler-upgrade-") as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text)
        try:
            done = subprocess.run(
                [PROGRAM, *_arguments(folder, flags)],
                executable=binary,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                env={"PATH": os.environ.get("PATH", ""), "HOME": folder, "TZ": "UTC"},
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise SimulationError(f"{binary} did not answer: {error}") from None
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
    return replace(content, arguments=render(flags))


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

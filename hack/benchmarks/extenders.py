"""The extenders of `hack/bench extender`: the variants, and how each is started and configured."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.table import REPOSITORY
from cluster import go_programs, paths, processes
from cluster.api import wait
from cluster.console import SandboxError
from cluster.scheduling import answers, fetch, free_port

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cluster.api import Object
    from cluster.model import Sandbox

PROCESS = "extender"
START_SECONDS = 120.0
TIMEOUT, TIMEOUT_OF_FULL = "500ms", "30s"
"""The first is the default of a SchedulerExtender; the second is for megabytes of nodes."""
AGENT = "bench"
_WITHOUT_GO = "leave the variants go and go-full out (--variants)"


@dataclass(frozen=True, slots=True)
class Variant:
    """One configuration to compare."""

    name: str  # name in tables and on the command line
    program: str = ""  # "" for none, `go` for the yardstick, `ours`
    policies: tuple[tuple[str, int], ...] = ()  # policies of our extender with their weights
    verbs: tuple[str, ...] = ("filter", "prioritize")  # called verbs
    full: bool = False  # whether complete Node objects are sent instead of names

    def entry(self, port: int) -> Object:
        """The entry in KubeSchedulerConfiguration, the same as for a SchedulerExtender."""
        entry: Object = {
            "urlPrefix": f"http://127.0.0.1:{port}{f'/{AGENT}' if self.program == 'ours' else ''}",
            **{f"{verb}Verb": verb for verb in self.verbs},
            "httpTimeout": TIMEOUT_OF_FULL if self.full else TIMEOUT,
            "ignorable": True,
        }
        if not self.full:
            entry["nodeCacheCapable"] = True
        if "prioritize" in self.verbs:
            entry["weight"] = 1
        return entry


_SAFE = (("safe-overload", 1), ("safe-balance", 10))
_LOAD_AWARE = (("load-aware", 1),)
VARIANTS = (
    Variant("none", verbs=()),
    Variant("go", "go"),
    Variant("load-aware", "ours", _LOAD_AWARE),
    Variant("safe", "ours", _SAFE),
    Variant("pigeon", "ours", (("pigeon-holing", 1),), verbs=("prioritize",)),
    Variant("foo", "ours", (("foo", 1),)),
    Variant("go-full", "go", full=True),
    Variant("load-aware-full", "ours", _LOAD_AWARE, full=True),
)


def chosen(names: Sequence[str], *, full: bool) -> list[Variant]:
    """The variants with these names; without names, all, including complete nodes if `full`.

    Raises:
        SandboxError: a variant does not exist.
    """
    if not names:
        return [one for one in VARIANTS if full or not one.full]
    known = {one.name: one for one in VARIANTS}
    if unknown := [name for name in names if name not in known]:
        raise SandboxError(f"unknown variant {', '.join(unknown)}; use {', '.join(known)}")
    return [known[name] for name in names]


class Extender:
    """A running extender.

    Args:
        sandbox: the sandbox whose API server it watches, and with which it ends.
        variant: the variant.
        sampled: file for the stacks of our extender, written when it ends; None: no sampling.

    Attributes:
        port: port on 127.0.0.1, kept over restarts.
    """

    def __init__(self, sandbox: Sandbox, variant: Variant, sampled: Path | None = None) -> None:
        self._sandbox, self._variant = sandbox, variant
        self.port = free_port()
        self._command, self._environment = (
            ([go_programs.provide("yardstick", _WITHOUT_GO), f"-listen=127.0.0.1:{self.port}"], {})
            if variant.program == "go"
            else self._ours(sampled)
        )
        self.stop()  # a process of an earlier run
        self.start()

    def start(self) -> None:
        """Start the process unless it runs, and wait until it is ready.

        Raises:
            SandboxError: it does not become ready.
        """
        processes.spawn(self._sandbox, PROCESS, self._command, env=self._environment)
        wait(self._ready, START_SECONDS, self._trouble)

    def kill(self) -> None:
        """Kill the process."""
        processes.kill_one(self._sandbox, PROCESS)

    @property
    def pid(self) -> int:
        """The process ID.

        Raises:
            SandboxError: the process does not run.
        """
        found = processes.find(self._sandbox, PROCESS)
        if found is None:
            raise SandboxError(self._trouble())
        return found.pid

    @property
    def entry(self) -> Object:
        """The entry in KubeSchedulerConfiguration."""
        return self._variant.entry(self.port)

    def metrics(self) -> str:
        """Its metrics in the text format."""
        return fetch(f"http://127.0.0.1:{self.port}/metrics")

    def stop(self) -> None:
        """Terminate the process, so that it can write its samples."""
        processes.terminate(self._sandbox, PROCESS)

    def _ready(self) -> bool:
        _ = self.pid  # raises if the process has ended
        return answers(f"http://127.0.0.1:{self.port}/readyz")

    def _trouble(self) -> str:
        log = processes.log_tail(self._sandbox, PROCESS)
        return f"the extender of {self._variant.name} does not run:\n{log}"

    def _ours(self, sampled: Path | None) -> tuple[list[str | Path], dict[str, str]]:
        policies = [{"policy": name, "weight": weight} for name, weight in self._variant.policies]
        config: dict[str, Any] = {
            "listen": {"address": "127.0.0.1", "port": self.port},
            "agents": [{"name": AGENT, "policies": policies}],
        }
        path = self._sandbox.state / f"{PROCESS}.json"
        paths.write_atomically(path, json.dumps(config, indent=2))
        sampler = ["-m", "benchmarks.sampled", str(sampled)] if sampled else []
        command: list[str | Path] = [
            sys.executable, *(sampler or ["-m", "kube_scheduler_operator"]), "extender",
            "--config", path, "--kubeconfig", self._sandbox.kubeconfig,
        ]  # fmt: skip
        search = f"{REPOSITORY / 'operator'}:{REPOSITORY / 'hack'}"
        return command, {"PYTHONPATH": search}

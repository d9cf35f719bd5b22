"""docs/packing.md: how many nodes five workloads use with each profile, simulated and bound."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from cluster import hollow, paths, scheduling
from cluster.api import Api, Object
from cluster.console import SandboxError, say
from cluster.model import Sandbox
from cluster.packing import NAMESPACE, NODES, PROFILES, WORKLOADS, used_nodes
from cluster.releases import DEFAULT
from pages.terminal import python

PAGE = paths.REPOSITORY / "docs" / "packing.md"
BEGIN: Final = "<!-- generated: nodes in use -->"
END: Final = "<!-- end: nodes in use -->"
SIMULATED, REAL = 10, 3
_BINDATA: Final = paths.REPOSITORY / "bindata" / "profiles"

Figures = Mapping[tuple[str, str], Sequence[float]]
"""(workload, profile) -> (least, median, most) nodes in use."""


def simulated(folder: Path, binary: Path) -> Figures:
    """Simulate each workload with each profile.

    Raises:
        SandboxError: A simulation failed, or a Pod does not fit.
    """
    nodes = [hollow.node(number) for number in range(NODES)]
    cluster = folder / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    figures: dict[tuple[str, str], Sequence[float]] = {}
    for workload in WORKLOADS:
        file = folder / f"{workload.name}.yaml"
        file.write_text(yaml.safe_dump_all(workload.objects(scheduling.DEFAULT_SCHEDULER)))
        say(f"simulate {workload.name}")
        command: list[str | Path] = [
            python(), "-c", _PLUGIN, "simulate", "-f", file, "--from-files", cluster,
            "--repeat", str(SIMULATED), "--kube-scheduler", binary, "-o", "json",
        ]  # fmt: skip
        for profile in PROFILES:
            command += ["--profile", profile]
        environment = {**os.environ, "PYTHONPATH": str(paths.REPOSITORY / "operator")}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise SandboxError(f"simulate {workload.name}: {done.stdout}{done.stderr}")
        for configuration in json.loads(done.stdout)["configurations"]:
            used = configuration["figures"]["nodesUsed"]
            key = (workload.name, configuration["name"])
            figures[key] = used["least"], used["median"], used["most"]
    return figures


_PLUGIN: Final = (
    "import sys; from kube_scheduler_operator.__main__ import kubectl_plugin; "
    "sys.exit(kubectl_plugin())"
)


def bound(sandbox: Sandbox) -> Figures:
    """Let a real kube-scheduler bind each workload with each profile, on hollow nodes.

    Raises:
        SandboxError: Pods were not bound.
    """
    api = Api(sandbox)
    scheduling.create_namespace(api, NAMESPACE)
    hollow.create(api, NODES)
    scheduler = scheduling.Scheduler(sandbox)
    scheduler.start(profiles=[_profile(name) for name in PROFILES])
    figures: dict[tuple[str, str], Sequence[float]] = {}
    try:
        for workload in WORKLOADS:
            for name in PROFILES:
                runs = sorted(used_nodes(api, workload, name) for _ in range(REAL))
                say(f"{workload.name} with {name}: {runs}")
                figures[workload.name, name] = runs[0], runs[len(runs) // 2], runs[-1]
    finally:
        scheduler.stop()
    return figures


def _profile(name: str) -> Object:
    """Return a named profile under its own name."""
    config = yaml.safe_load((_BINDATA / f"{name}.yaml").read_text())
    (profile,) = config.get("profiles") or [{}]
    return {**profile, "schedulerName": name}


def written(page: str, simulation: Figures, real: Figures) -> str:
    """The page with new figures."""
    head = ("Workload", "Pods", *(f"`{name}`" for name in PROFILES))
    lines = [_row(head), "|---" * len(head) + "|"]
    for workload in WORKLOADS:
        keys = [(workload.name, name) for name in PROFILES]
        cells = [f"{_cell(simulation[key])} / {_cell(real[key])}" for key in keys]
        lines.append(_row((workload.text, str(workload.pods), *cells)))
    lines += [
        "",
        f"Simulated / bound: the median of {SIMULATED} runs of `kubectl scheduler simulate`, and "
        f"of {REAL} runs of kube-scheduler {DEFAULT}; the range in brackets where runs differ.",
    ]
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return "\n".join((f"{before}{begin}", *lines, f"{end}{after}"))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(spread: Sequence[float]) -> str:
    least, median, most = spread
    return f"{median:g}" if least == most else f"{median:g} ({least:g} to {most:g})"

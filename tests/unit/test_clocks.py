"""Every use of a machine's wall clock is on record, with the reason why no other clock matters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "operator/kube_scheduler_operator"

USES = {
    "cli/commands/check.py": "shows how far the clock of this machine is off the API server's",
    "cli/commands/must_gather.py": "names a directory",
    "cli/cluster/operator_objects.py": "a snapshot from which settings are composed, without waits",
    "cli/adoption/input.py": "a snapshot has one; the preview does not read it",
    "cli/simulation/nodes.py": "for files, which no API server answers with its time",
    "cli/web/answers.py": "shown only: when an answer was made, on the machine that shows it",
    "cli/web/report.py": "shown only: when the file was made",
    "cli/console/output.py": "the time of day in front of a line",
    "operator/engine/intake.py": "a default; the operator passes the API server's time",
    "operator/engine/process.py": "translates a time for metrics, for Prometheus to compare",
    "kube/credentials.py": "the expiry of credentials that this machine received",
    "kube/events.py": "a default; programs with an API server's clock pass that one",
    "kube/kopf/settings.py": "the lifetime of a login within this process",
    "kube/lease.py": "a default, shown only: observers measure how long a Lease stays the same",
    "kube/server_clock.py": "the time before the first response",
    "scheduling/exporter/recorder.py": "shown only: readers use the age, by the monotonic clock",
    "scheduling/exporter/saved_windows.py": "within one machine, and only after a reboot",
    "node/static_pod/cert_syncer.py": "the time of an Event, shown only",
    "node/static_pod/guard.py": "compared with the time of a directory of kubeadm",
    "node/static_pod/host.py": "compared with the times of this node's files",
    "node/static_pod/layout.py": "compared with the time of a directory of kubeadm",
    "simulate/run.py": "compared with times of annotations that are valid for minutes",
    "operator/telemetry/metrics.py": "compared with a time by the same clock",
}
"""A module that compares another machine's times needs ServerClock, or measures how long what it
observes stays the same (kube/lease.py, annotator/nodes.py)."""

NAMES = {("time", "time"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today")}


def wall_clocks(path: Path) -> Iterator[int]:
    """The lines that use the wall clock of the machine."""
    for found in ast.walk(ast.parse(path.read_text())):
        if isinstance(found, ast.Attribute) and isinstance(found.value, ast.Name | ast.Attribute):
            owner = found.value.attr if isinstance(found.value, ast.Attribute) else found.value.id
            if (owner, found.attr) in NAMES:
                yield found.lineno


def test_every_use_of_a_wall_clock_is_on_record() -> None:
    used = {
        str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if any(wall_clocks(path))
    }
    assert used == set(USES)

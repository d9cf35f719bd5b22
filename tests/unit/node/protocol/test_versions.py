"""Operators and programs on nodes of different versions understand each other.

`golden/version-N.jsonl` has the messages that the programs of version N write: those of the last
one are compared with the code, and those of earlier ones were recorded with the code of that time.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.node.protocol.disk_report import DiskReport
from kube_scheduler_operator.node.protocol.message import (
    EXIT_CHANGED,
    EXIT_DEFINITIVE,
    EXIT_RETRY,
    EXIT_TERMINATED,
    UNKNOWN,
    VERSION,
    BootTime,
)
from kube_scheduler_operator.node.protocol.result import InstallerOutcome, Result
from kube_scheduler_operator.operator.controlplane.rollout import installer_pods
from kube_scheduler_operator.operator.controlplane.rollout.installer_pods import Stage

from ....builders import installer_pod, installer_status, terminated
from .earlier_readers import OUTCOMES, REPORTS, RESULTS

GOLDEN = Path(__file__).parent / "golden"
EARLIER = range(1, VERSION)
KEYS = {"last_good_revision": "lastGoodRevision", "last_error": "lastWords"}
"""Attribute -> key of a message, if they differ; `api_server` of a result is `apiServer`."""

NEW_IMAGE = "registry.k8s.io/kube-scheduler:v1.36.2"
API_SERVER = "registry.k8s.io/kube-apiserver:v1.36.2"
WORK = "kubeadm-upgraded-manifests-2026-11-25-10-00-00"
READ = BootTime("5d9a3f0e-7c1b-4a52-9f5e-0b6f1f0a2c11", 8123.457)
INSTALLED = Result(
    InstallerOutcome.INSTALLED,
    revision=7,
    node="node-1",
    last_good_revision=7,
    steps={"stage": 0.012, "ready": 4.5},
    strangers=("kube-scheduler-pod-old",),
    kubeconfig="3a7bd3e2360a3d29",
    newest=7,
    api_server=API_SERVER,
    read=READ,
)
FAILED = replace(
    INSTALLED,
    result=InstallerOutcome.ROLLED_BACK,
    revision=8,
    retry=1,
    reason="kube-scheduler exited 3 times within 60 s",
    last_error="unable to load the configuration “…”",
)
UPGRADE = replace(INSTALLED, result=InstallerOutcome.OVERTAKEN, image=NEW_IMAGE, work=WORK)
RESULTS_NOW = (
    INSTALLED,
    replace(INSTALLED, restarted=False),
    FAILED,
    replace(FAILED, result=InstallerOutcome.UNHEALTHY),
    replace(INSTALLED, result=InstallerOutcome.SUPERSEDED, revision=6),
    Result(InstallerOutcome.RESTORED, 0, "node-1", 0),
    Result(InstallerOutcome.KEPT, 0, "node-1", 7, reason="the node has no manifest"),
    UPGRADE,
)
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
REPORT = DiskReport(
    revision=7,
    content="9f86d081884c7d65",
    newest=7,
    kubeconfig="3a7bd3e2360a3d29",
    labelled=7,
    api_server=API_SERVER,
    read=READ,
)
REPORTS_NOW = (
    REPORT,
    replace(REPORT, edits=(MANIFEST,), edit="0123456789ab"),
    replace(REPORT, edits=(MANIFEST,), missing=(MANIFEST,), edit="76543210fedc", labelled=0),
    replace(REPORT, labelled=0, image=NEW_IMAGE, work=WORK, edit="fedcba987654"),
)


@cache
def recorded(version: int) -> tuple[dict[str, Any], ...]:
    lines = (GOLDEN / f"version-{version}.jsonl").read_text().splitlines()
    return tuple(json.loads(line) for line in lines)


def recorded_by(*programs: str) -> list[Any]:
    return [
        pytest.param(
            version, entry["exitCode"], entry["message"], id=f"version {version}, {number}"
        )
        for version in EARLIER
        for number, entry in enumerate(recorded(version))
        if entry["program"] in programs
    ]


def is_message(text: str) -> bool:
    return text.startswith("{")


def attributes_of(message: str, program: str) -> dict[str, Any]:
    """The attributes that a message has, under their names, as its text has them."""
    document = json.loads(message)
    document.pop("protocol", None)  # for people who read it
    keys = {**KEYS, **({"api_server": "apiServer"} if program == "installer" else {})}
    names = {key: name for name, key in keys.items()}
    return {names.get(key, key): value for key, value in document.items()}


def as_written(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def assert_read(value: Result | DiskReport, message: str, program: str) -> None:
    """Every field of a message was read, and every other one has its default."""
    written = attributes_of(message, program)
    boot = BootTime(written.pop("boot"), written.pop("uptime")) if "boot" in written else UNKNOWN
    assert value.read == boot
    defaults = Result(InstallerOutcome.KEPT, 0, "", 0) if program == "installer" else DiskReport()
    for field in fields(value):
        if field.name != "read":
            read = as_written(getattr(value, field.name))
            default = as_written(getattr(defaults, field.name))
            assert read == written.pop(field.name, default), field.name
    assert written == {}


def test_a_change_of_the_messages_has_a_new_version(golden: Any) -> None:
    written = [
        *({"program": "installer", "exitCode": 0, "message": r.serialise()} for r in RESULTS_NOW),
        *({"program": "guard", "exitCode": 0, "message": r.serialise()} for r in REPORTS_NOW),
    ]
    lines = (json.dumps(entry, ensure_ascii=False) + "\n" for entry in written)
    golden(f"version-{VERSION}.jsonl", "".join(lines))


def test_exit_codes_never_change() -> None:
    assert (EXIT_DEFINITIVE, EXIT_RETRY, EXIT_CHANGED, EXIT_TERMINATED) == (0, 1, 3, 143)


@pytest.mark.parametrize("outcome", InstallerOutcome)
def test_each_outcome_is_recorded(outcome: InstallerOutcome) -> None:
    assert outcome in {result.result for result in RESULTS_NOW}


# --- a new operator, earlier programs on nodes ---------------------------------------------------


@pytest.mark.parametrize(("version", "code", "message"), recorded_by("installer", "restore"))
def test_results_of_earlier_installers_are_read(version: int, code: int, message: str) -> None:
    result = Result.parse(message)
    if code != EXIT_DEFINITIVE:
        assert result is None
        return
    assert result is not None
    assert_read(result, message, "installer")


@pytest.mark.parametrize(("version", "code", "message"), recorded_by("installer"))
def test_pods_of_earlier_installers_are_read(version: int, code: int, message: str) -> None:
    phase = "Succeeded" if code == EXIT_DEFINITIVE else "Running"
    status = installer_status(phase, terminated(0), terminated(code, message))
    installer = installer_pods.read(installer_pod("node-1", 7, status))
    if code == EXIT_DEFINITIVE:
        assert (installer.stage, installer.result) == (Stage.DONE, Result.parse(message))
    else:
        assert (installer.stage, installer.problem) == (Stage.INSTALLING, message)


@pytest.mark.parametrize(("version", "code", "message"), recorded_by("guard"))
def test_reports_of_earlier_guards_are_read(version: int, code: int, message: str) -> None:
    report = DiskReport.parse(message)
    if not is_message(message):  # the fingerprint alone; this guard is replaced and looks again
        assert (version, report) == (3, None)
        return
    assert report is not None
    assert_read(report, message, "guard")


# --- new programs on nodes, an earlier operator --------------------------------------------------


@pytest.mark.parametrize("version", EARLIER)
@pytest.mark.parametrize("result", RESULTS_NOW, ids=lambda result: str(result.result))
def test_earlier_operators_read_results(version: int, result: Result) -> None:
    text, read = result.serialise(), RESULTS[version]
    if result.result not in OUTCOMES[version]:
        with pytest.raises(ValueError, match=result.result):  # its Pod ended without a result
            read(text)
        return
    for name, value in read(text).items():
        assert value == getattr(result, name), name


@pytest.mark.parametrize("version", REPORTS)
@pytest.mark.parametrize("report", REPORTS_NOW, ids=lambda report: report.edit or "unchanged")
def test_earlier_operators_read_reports(version: int, report: DiskReport) -> None:
    for name, value in REPORTS[version](report.serialise()).items():
        assert value == getattr(report, name), name


@pytest.mark.parametrize("version", EARLIER)
def test_earlier_readers_read_the_messages_of_their_version(version: int) -> None:
    for entry in recorded(version):
        text, program = entry["message"], entry["program"]
        if is_message(text):
            readers = REPORTS if program == "guard" else RESULTS
            read = readers[version](text)
            written = attributes_of(text, "guard" if program == "guard" else "installer")
            known = {"read" if name in ("boot", "uptime") else name for name in written}
            assert set(read) == known

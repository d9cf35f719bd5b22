"""Command lines of kube-scheduler in units of systemd, files of variables and files of flags."""

from __future__ import annotations

import random
import time

import pytest
import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.reports.report import FileFinding
from kube_scheduler_operator.config.lint.validate import validate

OPTIONS = CheckOptions(Gates(Version(1, 35)))
UNIT = """\
[Unit]
Description=Kubernetes Scheduler

[Service]
EnvironmentFile=-/etc/kubernetes/scheduler
ExecStartPre=/bin/true --wrong
ExecStart=/usr/local/bin/kube-scheduler \\
  --config=/etc/kubernetes/kube-scheduler.yaml $MORE \\
  FLAGS
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""
VARIABLE = """\
# The file of the unit kube-scheduler
KUBE_LOGTOSTDERR="false"
KUBE_SCHEDULER_ARGS="--kubeconfig=/etc/kubernetes/scheduler.conf \\
  FLAGS"
"""
FILE = "# of MicroK8s\n--kubeconfig=${SNAP_DATA}/credentials/scheduler.config\nFLAGS\n"
FORMS = {
    "kube-scheduler.service": (UNIT, 9, "ExecStart[3]"),
    "scheduler": (VARIABLE, 4, "KUBE_SCHEDULER_ARGS[1]"),
    "args/kube-scheduler": (FILE, 3, "arguments[1]"),
}
CONFIG = (
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "profiles: [{schedulerName: mine}]\n"
    "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}\n"
)


def findings(*files: tuple[str, str]) -> list[FileFinding]:
    return list(validate(files, OPTIONS).findings)


def reported(name: str, flags: str) -> list[FileFinding]:
    return findings((name, FORMS[name][0].replace("FLAGS", flags)))


@pytest.mark.parametrize("name", FORMS)
def test_the_flags_are_checked_where_they_stand(name: str) -> None:
    assert reported(name, "--leader-elect=false") == []
    (one,) = reported(name, "--policy-config-file=/etc/policy.json")
    _, line, path = FORMS[name]
    assert (one.position.line, one.path, one.reason) == (line, path, "UnknownArgument")
    assert "convert the Policy" in one.fix


@pytest.mark.parametrize("name", ["kube-scheduler.service", "scheduler"])
def test_words_are_split_as_systemd_does(name: str) -> None:
    assert [each.fix for each in reported(name, "--leader-elect false")] == [
        "write --leader-elect=false"
    ]
    assert reported(name, "--v 4 --vmodule='a*=2,b=3'") == []


@pytest.mark.parametrize("name", FORMS)
def test_a_value_with_a_variable_is_not_checked(name: str) -> None:
    assert reported(name, "--v=${LEVEL}") == []
    (one,) = reported(name, "--lever=${LEVEL}")
    assert one.reason == "UnknownArgument"


@pytest.mark.parametrize("value", ["{{ inventory_hostname }}", "{{ .Address }}", "<%= @address %>"])
@pytest.mark.parametrize("name", FORMS)
def test_the_words_of_a_template_are_not_flags(name: str, value: str) -> None:
    (found,) = reported(name, f"--bind-address={value} --port=0")
    assert (found.reason, found.severity) == ("NotRendered", "error")
    assert found.position.line == FORMS[name][1]
    assert found.fix.startswith("render it first")


def test_the_file_that_a_unit_names_is_that_of_its_scheduler() -> None:
    unit = UNIT.replace("FLAGS", "--leader-elect-resource-name=mine --leader-elect=true")
    shared = findings(("kube-scheduler.yaml", CONFIG))
    assert [each.reason for each in shared] == ["SharedLease"]
    assert findings(("kube-scheduler.service", unit), ("kube-scheduler.yaml", CONFIG)) == []


def test_a_unit_in_another_file_is_checked() -> None:
    text = UNIT.replace("FLAGS", "--policy-config-file=/etc/policy.json")
    units = {"systemd": {"units": [{"name": "kube-scheduler.service", "contents": text}]}}
    files = {"write_files": [{"path": "/etc/systemd/system/s.service", "content": text}]}
    for document in (units, files):
        (one,) = findings(("node.yaml", yaml.safe_dump(document, default_style="|")))
        assert (one.path, one.reason) == ("ExecStart[3]", "UnknownArgument")
        assert one.position.line > 9


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kubelet.service", UNIT.replace("kube-scheduler", "kubelet")),
        ("kubelet", FILE.replace("FLAGS", "--v=2")),
        ("kube-scheduler", "--- {}\n--a: b\n"),
        ("kube-scheduler.conf", "KUBE_SCHEDULER=yes\n"),
    ],
)
def test_other_files_are_not_command_lines(name: str, text: str) -> None:
    assert validate([(name, text)], OPTIONS).count("error") > 0
    assert {each.reason for each in findings((name, text))} <= {
        "Syntax", "NoDocument", "NothingToCheck", "UnknownKind",
    }  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_mutated_files_are_read_without_harm(name: str) -> None:
    draw = random.Random(31)
    whole = FORMS[name][0].replace("FLAGS", "--v=2 --leader-elect 'false' \"--profiling\"")
    for _ in range(300):
        text = whole
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(text) + 1)
            piece = draw.choice(("", '"', "'", "\\", "\n", "--", "$", "=", "\0", "SCHEDULER", text))
            text = text[:at] + piece + text[at + draw.randint(0, 5) :]
        before = time.process_time()
        validate([(name, text)], OPTIONS)
        assert time.process_time() - before < 1

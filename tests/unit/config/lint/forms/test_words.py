"""Words of a container that kube-scheduler does not read as the flags that they are meant to be.

The results are those of kube-scheduler 1.35.4, which was started with these words.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.reports.report import ValidationReport
from kube_scheduler_operator.config.lint.validate import validate

OPTIONS = CheckOptions(Gates(Version(1, 35)))
KUBECONFIG = "/etc/kubernetes/scheduler.conf"


def checked(**container: Any) -> ValidationReport:
    volume = {"name": "k", "hostPath": {"path": "/etc/kubernetes"}}
    mount = {"name": "k", "mountPath": "/etc/kubernetes"}
    shown = {
        "name": "kube-scheduler",
        "image": "registry.k8s.io/kube-scheduler:v1.35.4",
        "volumeMounts": [mount],
        **container,
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-scheduler"},
        "spec": {"hostNetwork": True, "containers": [shown], "volumes": [volume]},
    }
    return validate([("pod.yaml", yaml.safe_dump(pod))], OPTIONS)


def fixes(*words: Any) -> list[str]:
    return [each.fix for each in checked(command=["kube-scheduler", *words]).findings]


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["--leader-elect", "false"], "write --leader-elect=false"),
        (["--leader-elect", False], "write --leader-elect=false"),
        (["--leader-elect", "--profiling", "true"], "write --profiling=true"),
        (["--config /etc/kubernetes/s.yaml"], "write --config=/etc/kubernetes/s.yaml"),
        (
            ["--feature-gates StorageCapacityScoring=true"],
            "write --feature-gates=StorageCapacityScoring=true",
        ),
        (["-config=/etc/kubernetes/s.yaml"], "write --config=/etc/kubernetes/s.yaml"),
        (["\u2014config=/etc/kubernetes/s.yaml"], "write --config=/etc/kubernetes/s.yaml"),
        (["-\u2013config=/etc/kubernetes/s.yaml"], "write --config=/etc/kubernetes/s.yaml"),
        (['"--config=/etc/kubernetes/s.yaml"'], "write --config=/etc/kubernetes/s.yaml"),
        (["--v=2 --leader-elect=true"], "write one entry for each: --v=2, --leader-elect=true"),
        (["start"], "remove it"),
        (["--v=2", "--", "--leader-elect=true"], "remove the --"),
        (["--v"], "write --v=VALUE, or remove it"),
        (["--v", 2], "write it in quotes"),
        (
            [{"--feature-gates=StorageCapacityScoring": True}],
            "write --feature-gates=StorageCapacityScoring=true",
        ),
    ],
)
def test_a_word_that_is_not_read_as_a_flag_is_an_error_with_what_was_meant(
    words: list[Any], fix: str
) -> None:
    assert fixes(*words) == [fix]


@pytest.mark.parametrize(
    "words",
    [
        ["--v", "2", "-v", "2", "-v=2", "-v2"],
        ["--leader-elect", "--profiling=false", f"--kubeconfig={KUBECONFIG}"],
        ["--kubeconfig", KUBECONFIG, "--leader-elect=false"],
        ["", "--v=2", None, "--"],
        ["--logging_format", "json"],
    ],
)
def test_words_that_kube_scheduler_reads_are_not_reported(words: list[Any]) -> None:
    assert fixes(*words) == []


def test_following_the_fix_of_a_word_leads_to_no_other_one() -> None:
    assert fixes("--leader-elect=false") == []
    assert fixes("--config=/etc/kubernetes/s.yaml") == []
    assert fixes("--feature-gates=StorageCapacityScoring=true") == []


def test_a_command_line_in_one_word_is_shown_as_a_list() -> None:
    (found,) = checked(command=["kube-scheduler --v=2 --leader-elect=true"]).findings
    assert found.path == "spec.containers[0].command[0]"
    assert found.fix == "write [kube-scheduler, --v=2, --leader-elect=true]"


@pytest.mark.parametrize("key", ["command", "args"])
def test_a_string_instead_of_a_list_of_words_is_an_error(key: str) -> None:
    (found,) = checked(**{key: "kube-scheduler --v=2"}).findings
    assert (found.reason, found.path) == ("InvalidType", f"spec.containers[0].{key}")
    assert found.fix == "write [kube-scheduler, --v=2]"


@pytest.mark.parametrize(
    ("script", "fix"),
    [
        ("exec kube-scheduler --v=2 2>&1 | tee -a /var/log/s.log", None),
        ("if true; then kube-scheduler --leader-elect=false; fi", None),
        ("set -e\nkube-scheduler \\\n  --v=2\necho stopped", None),
        ("kube-scheduler --v=2 $FLAGS", None),
        ("kube-scheduler --leader-elect false", "write --leader-elect=false"),
        ("kube-scheduler --port=0 >> /var/log/s.log", "use --secure-port, which serves HTTPS only"),
    ],
)
def test_only_the_scheduler_of_a_shells_text_is_checked(script: str, fix: str | None) -> None:
    found = checked(command=["/bin/sh", "-c", script]).findings
    assert [each.fix for each in found] == ([fix] if fix else [])


def test_of_several_rejected_words_in_a_text_the_first_is_reported() -> None:
    text = "kube-scheduler a b c"
    rejected = [each for each in checked(command=text).findings if "arguments" in each.message]
    assert [each.message.rpartition(" ")[2] for each in rejected] == ["a"]


@pytest.mark.parametrize(
    ("image", "container", "is_reported"),
    [
        ("registry.k8s.io/kube-scheduler:v1.35.4", {"args": ["--v=2"]}, True),
        ("k8s.gcr.io/kube-scheduler:v1.22.0", {"args": ["--v=2"]}, True),
        ("registry.aliyuncs.com/google_containers/kube-scheduler:v1.30.1", {"args": ["-v2"]}, True),
        ("registry.k8s.io/kube-scheduler:v1.35.4", {"args": ["kube-scheduler", "--v=2"]}, False),
        ("registry.k8s.io/kube-scheduler:v1.35.4", {"command": ["kube-scheduler"]}, False),
        ("registry.example.com/kube-scheduler:v1.35.4", {"args": ["--v=2"]}, False),
        ("registry.k8s.io/scheduler-plugins/kube-scheduler:v0.34.7", {"args": ["--v=2"]}, False),
    ],
)
def test_kubernetes_image_needs_the_programs_name(
    image: str, container: dict[str, Any], is_reported: bool
) -> None:
    reasons = [each.reason for each in checked(image=image, **container).findings]
    assert ("NoCommand" in reasons) == is_reported


def test_another_program_may_take_arguments() -> None:
    report = checked(image="example.com/mine:1", command=["/bin/mine", "start", "--leader-elect"])
    assert report.documents == ()


def test_the_raw_arguments_of_k0s_are_read_in_the_same_way() -> None:
    scheduler = {"rawArgs": ["--leader-elect", "false"]}
    cluster = {
        "apiVersion": "k0s.k0sproject.io/v1beta1",
        "kind": "ClusterConfig",
        "spec": {"scheduler": scheduler},
    }
    (found,) = validate([("k0s.yaml", yaml.safe_dump(cluster))], OPTIONS).findings
    assert (found.path, found.fix) == ("spec.scheduler.rawArgs[1]", "write --leader-elect=false")


def test_a_mount_without_its_volume_is_an_error() -> None:
    mount = {"name": "other", "mountPath": "/etc/kubernetes"}
    (found,) = checked(command=["kube-scheduler"], volumeMounts=[mount]).findings
    assert (found.reason, found.path) == ("InvalidValue", "spec.containers[0].volumeMounts[0].name")
    assert found.fix == "add it to volumes, or use k"


@pytest.mark.parametrize(
    ("words", "is_kubeconfig"),
    [
        ([f"--config={KUBECONFIG}"], True),
        (["--config=/etc/kubernetes/own", "--kubeconfig=/etc/kubernetes/own"], True),
        (["--config=/etc/kubernetes/s.yaml", f"--kubeconfig={KUBECONFIG}"], False),
    ],
)
def test_a_kubeconfig_is_not_a_configuration(words: list[str], is_kubeconfig: bool) -> None:
    found = checked(command=["kube-scheduler", *words]).findings
    assert [each.fix for each in found if "is a kubeconfig" in each.message] == (
        ["name a file with a KubeSchedulerConfiguration, or remove --config"]
        if is_kubeconfig
        else []
    )

"""`compose --for`: what providers and autoscalers take, as users see it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST
from kube_scheduler_operator.config.lint.providers.table import PROVIDERS

from ....builders import extender, load_policy, profile, secondary
from ....conftest import Golden
from ...config.lint.providers.cases import HARD

SCHEDULER = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Scheduler",
    "metadata": {"name": "cluster"},
    "spec": {"profile": "HighNodeUtilization"},
}
KUBE_SCHEDULER = {
    "apiVersion": "operator.openshift.io/v1",
    "kind": "KubeScheduler",
    "metadata": {"name": "cluster"},
    "spec": {
        "logLevel": "Debug",
        "unsupportedConfigOverrides": {
            "percentageOfNodesToScore": 40,
            "arguments": {"feature-gates": "AllBeta=true"},
        },
    },
}
GPU = extender(
    "gpu",
    url="https://10.96.14.7:8443/scheduler",
    verbs={"filter": "filter"},
    tls={"caFile": "/etc/kubernetes/pki/ca.crt"},
    managedResources=[{"name": "example.com/gpu", "ignoredByScheduler": True}],
)
EVERYTHING = (SCHEDULER, KUBE_SCHEDULER, profile("spread", **HARD), GPU)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `compose` with these flags on a file of these documents: (code, output, errors)."""

    def compose(flags: list[str], *documents: Any) -> tuple[int, str, str]:
        file = tmp_path / "in.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        code = main(["compose", "-f", str(file), *flags])
        output = capsys.readouterr()
        return code, output.out, output.err

    return compose


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("aks", 1),
        ("eks", 1),
        ("gardener", 1),
        ("k3s", 1),
        ("rke2", 0),
        ("kubeadm", 0),
        ("kubeadm:1.30", 0),
        ("kubeadm-patches", 0),
        ("talos", 0),
        ("talos:1.14", 1),
        ("cluster-autoscaler", 1),
        ("karpenter", 1),
    ],
)
def test_what_is_printed(run: Any, golden: Golden, word: str, code: int) -> None:
    got, out, err = run(["--for", word], *EVERYTHING)
    golden(f"compose-for-{word.replace(':', '-')}.yaml", out)
    golden(f"compose-for-{word.replace(':', '-')}.txt", err)
    assert got == code


def test_every_provider_has_golden_files() -> None:
    golden = Path(__file__).parent / "golden"
    assert {
        name for name in PROVIDERS if not (golden / f"compose-for-{name}.yaml").exists()
    } == set()


def test_json_has_files_and_findings(run: Any) -> None:
    code, out, err = run(["--for", "eks", "-o", "json"], SCHEDULER)
    assert (code, err) == (1, "")
    shown = json.loads(out)
    assert shown["for"] == "eks"
    assert "botocore" in shown["source"]
    assert [(each["path"], list(each["content"])) for each in shown["files"]] == [
        ("eks-cluster-config.yaml", ["kubeSchedulerConfig"])
    ]
    outvoted, finding = shown["findings"]
    assert (outvoted["reason"], outvoted["severity"]) == ("OutvotedStrategy", "warning")
    assert list(finding) == ["severity", "reason", "path", "message", "fix"]
    assert (finding["severity"], finding["path"]) == ("error", "Scheduler/cluster spec.profile")


def test_a_directory_receives_the_files_with_their_paths(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "out"
    code, out, _ = run(["--for", "k3s", "--directory", str(target)], SCHEDULER)
    assert code == 0
    files = [
        target / "etc/rancher/k3s/kube-scheduler.yaml",
        target / "etc/rancher/k3s/config.yaml.d/kube-scheduler.yaml",
    ]
    assert out.splitlines() == [str(path) for path in files]
    config, drop_in = (yaml.safe_load(path.read_text()) for path in files)
    assert config["kind"] == "KubeSchedulerConfiguration"
    assert drop_in == {"kube-scheduler-arg+": ["config=/etc/rancher/k3s/kube-scheduler.yaml"]}


def test_a_directory_that_cannot_be_written_is_an_error(run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = run(["--for", "aks", "--directory", str(tmp_path / "file")], SCHEDULER)
    assert code == 2
    assert err.startswith(f"error: {tmp_path}/file/scheduler-configuration.yaml cannot be written")


def test_the_release_is_the_version_of_kubernetes_where_they_are_numbered_alike(run: Any) -> None:
    # 1.29 has no plugin of this name.
    of_1_35 = profile("a", plugins={"filter": {"enabled": [{"name": "NodeDeclaredFeatures"}]}})
    assert run(["--for", "cluster-autoscaler:1.29"], of_1_35)[0] == 1
    # Talos' releases are its own.
    assert run(["--for", "talos:1.14"], SCHEDULER)[0] == 0


@pytest.mark.parametrize("name", ["kubeadm", "k3s", "rke2", "cluster-autoscaler"])
def test_a_release_that_is_newer_than_the_record_is_written_with_a_note(
    run: Any, name: str
) -> None:
    _, expected, _ = run(["--for", f"{name}:{NEWEST.short}"], SCHEDULER)
    code, out, err = run(["--for", f"{name}:1.99"], SCHEDULER)
    assert (code, out) == (0, expected.replace(NEWEST.short, "1.99"))
    assert err.startswith("note: Kubernetes 1.99 is newer than the versions on record (1.29 to ")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--for", "gke"], 'error: --for: "gke" is not aks, eks, gardener, '),
        (["--for", "k3"], 'did you mean "k3s"?'),
        (["--for", "aks:x"], "error: --for: 'x' is not a Kubernetes version such as v1.35.4"),
        (["--for", "aks", "--platform", "kubeadm"], "error: --for and --platform exclude each"),
        (["--directory", "d"], "error: --directory needs --for"),
        (
            ["--for", "k3s:1.34", "--operand-version", "1.35"],
            "error: --operand-version 1.35 is not the Kubernetes 1.34 of --for k3s; remove one",
        ),
    ],
)
def test_flags_that_cannot_be_used(run: Any, flags: list[str], message: str) -> None:
    code, out, err = run(flags, SCHEDULER)
    assert (code, out) == (2, "")
    assert message in err


def test_a_release_and_a_version_may_agree(run: Any) -> None:
    assert run(["--for", "k3s:1.34", "--operand-version", "v1.34.2"], SCHEDULER)[0] == 0


def test_an_invalid_configuration_is_not_written(run: Any) -> None:
    overrides = {"unsupportedConfigOverrides": {"parallelism": -1}}
    code, out, err = run(["--for", "k3s"], {**KUBE_SCHEDULER, "spec": overrides})
    assert (code, out) == (1, "")
    assert err.startswith("error: spec.unsupportedConfigOverrides.parallelism: ")
    assert "\n    fix: " in err


def test_a_profile_that_is_not_accepted_is_an_error(run: Any) -> None:
    bad = profile("bad", plugins={"score": {"enabled": [{"name": "ImageLocalty"}]}})
    code, out, err = run(["--for", "k3s"], bad)
    assert code == 1
    assert "bad" not in out
    assert err.startswith("error: SchedulerProfile/bad spec.plugins.score.enabled[0].name: ")


def test_what_the_operator_runs_in_the_cluster_is_named(run: Any) -> None:
    beside = (secondary("mine"), load_policy(), profile("other", scheduler="mine"))
    code, out, err = run(["--for", "aks"], SCHEDULER, *beside)
    assert code == 0
    assert "other" not in out
    warnings = [line for line in err.splitlines() if line.startswith("warning")]
    assert "[OutvotedStrategy]" in warnings.pop(0)
    assert warnings == [
        f"warning: {name}: the operator runs it in the cluster; it is not part of the files "
        "for aks [RunsInTheCluster]"
        for name in ("SecondaryScheduler/mine", "LoadPolicy/default")
    ]

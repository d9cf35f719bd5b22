"""`compose`: the same answer as the operator's, without a cluster."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.cli.commands import compose as command
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST

SCHEDULER = "apiVersion: config.openshift.io/v1\nkind: Scheduler\nspec: {profile: %s}\n"
KUBESCHEDULER = (
    "apiVersion: operator.openshift.io/v1\nkind: KubeScheduler\n"
    "spec: {unsupportedConfigOverrides: {parallelism: %s}}\n"
)


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["compose", *arguments])
    code: int = args.run(args)
    return code


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_objects_of_several_documents_and_files(file: Any, capsys: Any) -> None:
    one = file(f"---\n{SCHEDULER % 'NoScoring'}---\n---\n")
    two = file(json.dumps(yaml.safe_load(KUBESCHEDULER % 8)))
    assert run("-f", one, "-f", two, "-o", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown) == ["config", "args", "observedConfig", "conditions"]
    assert shown["config"]["parallelism"] == 8
    assert shown["config"]["profiles"][0]["plugins"]["score"] == {"disabled": [{"name": "*"}]}
    assert shown["args"][-1] == "-v=2"
    assert shown["conditions"] == [
        {
            "type": "UnsupportedConfigOverridesUpgradeable",
            "status": "False",
            "reason": "UnsupportedConfigOverridesSet",
            "message": "setting: [parallelism]",
        }
    ]


def test_a_directory_is_read_and_other_kinds_in_it_are_passed_over(
    file: Any, tmp_path: Path, capsys: Any
) -> None:
    file(SCHEDULER % "NoScoring")
    file("apiVersion: v1\nkind: Service\n")
    file("no: [YAML")
    assert run(str(tmp_path), "-o", "json") == 0
    profile = json.loads(capsys.readouterr().out)["config"]["profiles"][0]
    assert profile["plugins"]["score"] == {"disabled": [{"name": "*"}]}
    assert run() == 2
    assert "error: no file" in capsys.readouterr().err


def test_a_directory_without_an_object_is_refused(file: Any, tmp_path: Path, capsys: Any) -> None:
    file("apiVersion: v1\nkind: Service\n")
    assert run(str(tmp_path)) == 2
    assert f"no object in {tmp_path}; use a Scheduler" in capsys.readouterr().err


def test_a_newer_operand_is_composed_for_by_the_rules_of_the_newest_one(
    file: Any, capsys: Any
) -> None:
    name = file(SCHEDULER % "NoScoring")
    assert run("-f", name, "--operand-version", NEWEST.short) == 0
    expected = capsys.readouterr().out
    assert run("-f", name, "--operand-version", "1.99") == 0
    printed = capsys.readouterr()
    assert printed.out == expected
    assert "note: Kubernetes 1.99 is newer than the versions on record" in printed.err
    assert run("-f", file(KUBESCHEDULER % -1), "--operand-version", "1.99") == 1


def test_absent_objects_are_as_their_definitions_default_them(file: Any, capsys: Any) -> None:
    assert run("-f", file(KUBESCHEDULER % 8)) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["config"]["kind"] == "KubeSchedulerConfiguration"


def test_what_would_not_be_rolled_out_is_shown_and_exits_with_1(file: Any, capsys: Any) -> None:
    assert run("-f", file(KUBESCHEDULER % 0)) == 1
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["config"]["parallelism"] == 0
    messages = {condition["type"]: condition["message"] for condition in shown["conditions"]}
    assert set(messages) == {
        "UnsupportedConfigOverridesDegraded",
        "UnsupportedConfigOverridesUpgradeable",
    }
    path = "spec.unsupportedConfigOverrides.parallelism: "
    assert messages["UnsupportedConfigOverridesDegraded"].startswith(path)


def test_standard_input(monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(SCHEDULER % "Nope"))
    assert run("-f", "-") == 1
    assert "UnknownProfile" in capsys.readouterr().out


def test_the_version_decides(file: Any, capsys: Any) -> None:
    text = KUBESCHEDULER.replace(
        "{parallelism: %s}",
        "{profiles: [{plugins: {filter: {enabled: [{name: NodeDeclaredFeatures}]}}}]}",
    )
    assert run("-f", file(text), "--operand-version", "v1.35.0") == 0
    assert run("-f", file(text), "--operand-version", "1.34") == 1
    assert "added in Kubernetes 1.35" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (
            "kind: Pod\napiVersion: v1\n",
            "unsupported kind Pod; use a Scheduler, a KubeScheduler, SchedulerProfiles, SchedulerE",
        ),
        ("- a\n", "not a Kubernetes object"),
        ("kind: Scheduler\napiVersion: v1\n", "use config.openshift.io/v1"),
        (f"{SCHEDULER % 'a'}---\n{SCHEDULER % 'b'}", "a Scheduler is already defined"),
        ("", "no object in it; use a Scheduler"),
        ("# nothing\n---\n", "no object in it; use a Scheduler"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "no object in it; use a Scheduler"),
        ("a: [", ":1:5: expected a value"),
        ("a: 1\na: 2\n", ':2:1: duplicate key "a", first in line 1; remove one'),
    ],
)
def test_other_input_is_refused_naming_the_file(
    file: Any, capsys: Any, text: str, output: str
) -> None:
    name = file(text)
    assert run("-f", name) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert name in printed.err
    assert output in printed.err


def test_the_items_of_a_list_are_composed(file: Any, capsys: Any) -> None:
    profile = "apiVersion: kube-scheduler-operator.dev/v1alpha1, kind: SchedulerProfile"
    items = "".join(f"- {{{profile}, metadata: {{name: {n}}}, spec: {{}}}}\n" for n in "ab")
    assert run("-f", file(f"apiVersion: v1\nkind: List\nitems:\n{items}")) == 0
    composed = yaml.safe_load(capsys.readouterr().out)
    assert [each["name"] for each in composed["schedulerProfiles"]] == ["a", "b"]


OWN = "apiVersion: kube-scheduler-operator.dev/v1alpha1\nmetadata: {name: a}\n"
PRIVILEGED = f"""{OWN}kind: SecondaryScheduler
spec:
  namespace: kube-scheduler-operator
  sidecars:
  - {{name: a, image: "example.com/a:1", securityContext: {{privileged: true}}}}
"""


def test_a_secondary_scheduler_with_more_rights_is_not_rolled_out(file: Any, capsys: Any) -> None:
    assert run("-f", file(PRIVILEGED)) == 1
    (composed,) = yaml.safe_load(capsys.readouterr().out)["secondarySchedulers"]
    where = "spec.sidecars[0]"
    found = [(one["type"], one["message"].partition(": ")[0]) for one in composed["conditions"]]
    assert found == [
        ("Warnings", f"{where}.image"),
        ("Degraded", f"{where}.securityContext.privileged"),
    ]


def test_an_argument_that_node_metrics_may_not_have_is_refused(file: Any, capsys: Any) -> None:
    spec = "{source: {nodeMetrics: {args: [--root=/]}}}"
    assert run("-f", file(f"{OWN}kind: LoadPolicy\nspec: {spec}\n")) == 2
    assert 'spec.source.nodeMetrics.args[0]: "--root=/" is not' in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [("-f", "no-such-file"), ("--platform", "mars"), ("--operand-version", "new")]
)
def test_wrong_usage_exits_with_2(file: Any, capsys: Any, arguments: tuple[str, ...]) -> None:
    assert run("-f", file(SCHEDULER % "NoScoring"), *arguments) == 2
    assert capsys.readouterr().err.startswith("error: ")


# --- OpenShift --------------------------------------------------------------------------------

APISERVER = """
apiVersion: config.openshift.io/v1
kind: APIServer
metadata: {name: cluster}
spec: {tlsSecurityProfile: %s}
---
"""
FEATURE_GATE = """
apiVersion: config.openshift.io/v1
kind: FeatureGate
metadata: {name: cluster}
status:
  featureGates:
  - version: 4.20.1
    enabled: [{name: RotateKubeletServerCertificate}, {name: OpenShiftPodSecurityAdmission}]
    disabled: [{name: AllAlpha}]
---
"""
INFRASTRUCTURE = """
apiVersion: config.openshift.io/v1
kind: Infrastructure
status: {apiServerInternalURI: "https://api-int.example.com:6443"}
---
"""
CUSTOM = """{type: Custom, custom: {minTLSVersion: VersionTLS12,
  ciphers: [ECDHE-ECDSA-AES128-GCM-SHA256, ECDHE-RSA-AES128-GCM-SHA256]}}"""


@pytest.fixture
def on_openshift(file: Any, capsys: Any) -> Any:
    def compose(*documents: str, options: tuple[str, ...] = ()) -> Any:
        name = file("---\n".join(documents))
        code = run("-f", name, "--platform", "openshift", "-o", "json", *options)
        assert code == 0
        return json.loads(capsys.readouterr().out)

    return compose


def test_on_openshift_it_is_what_its_own_operator_gives(on_openshift: Any) -> None:
    overrides = KUBESCHEDULER.replace(
        "{parallelism: %s}",
        "{arguments: {master: 'https://localhost:1234', unsupported-kube-api: ['1', '2']}}",
    )
    shown = on_openshift(APISERVER % CUSTOM, INFRASTRUCTURE, overrides)
    kubeconfig = "/etc/kubernetes/static-pod-resources/configmaps/scheduler-kubeconfig/kubeconfig"
    suites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    assert shown["args"] == [
        "--config=/etc/kubernetes/static-pod-resources/configmaps/config/config.yaml",
        "--cert-dir=/var/run/kubernetes",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "-v=2",
        f"--tls-cipher-suites={suites}",
        "--tls-min-version=VersionTLS12",
        "--master=https://localhost:1234",
        "--unsupported-kube-api=1",
        "--unsupported-kube-api=2",
    ]
    assert shown["observedConfig"] == {
        "servingInfo": {"minTLSVersion": "VersionTLS12", "cipherSuites": suites.split(",")}
    }
    assert shown["config"] == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "clientConnection": {"kubeconfig": kubeconfig},
        "enableContentionProfiling": False,
        "enableProfiling": False,
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": "137s",
            "renewDeadline": "107s",
            "resourceLock": "leases",
            "resourceName": "kube-scheduler",  # theirs is empty, which means the same
            "resourceNamespace": "openshift-kube-scheduler",
            "retryPeriod": "26s",
        },
    }


def test_gates_stand_between_the_files_and_the_verbosity(on_openshift: Any) -> None:
    for version in ("4.20.1", "4.21.0"):
        args = on_openshift(FEATURE_GATE, options=("--payload-version", version))["args"]
        # OpenShiftPodSecurityAdmission is none of kube-scheduler's.
        gates = "--feature-gates=AllAlpha=false,RotateKubeletServerCertificate=true"
        assert args[4:6] == [gates, "-v=2"]
        assert args[-1] == "--tls-min-version=VersionTLS12"


def test_missing_objects_are_composed_as_absent(on_openshift: Any) -> None:
    shown = on_openshift(SCHEDULER % "NoScoring")
    assert shown["observedConfig"]["servingInfo"]["minTLSVersion"] == "VersionTLS12"
    assert [condition["reason"] for condition in shown["conditions"]] == ["FeatureGatesNotFound"]


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (
            APISERVER % "{}",
            "does not have the kind APIServer; set spec.tlsSecurityProfile of the KubeScheduler",
        ),
        (
            FEATURE_GATE,
            "does not have the kind FeatureGate; set spec.featureGates of the KubeScheduler",
        ),
        (INFRASTRUCTURE, "does not have the kind Infrastructure; leave it out"),
    ],
)
def test_objects_that_a_plain_cluster_does_not_have_are_refused(
    file: Any, capsys: Any, text: str, output: str
) -> None:
    assert run("-f", file(text)) == 2
    assert f"platform kubeadm {output}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("kind: Pod\n", "(also APIServer, FeatureGate, Infrastructure)"),
        (APISERVER.replace("cluster", "mine") % "{}", 'rename it to "cluster"'),
        (APISERVER.replace("config.openshift.io/", "") % "{}", "use config.openshift.io/v1"),
    ],
)
def test_other_input_is_refused_on_openshift(
    file: Any, capsys: Any, text: str, output: str
) -> None:
    assert run("-f", file(text), "--platform", "openshift") == 2
    assert output in capsys.readouterr().err


def test_own_fields_on_a_plain_cluster(file: Any, capsys: Any) -> None:
    spec = "{tlsSecurityProfile: {type: Modern}, featureGates: {AllAlpha: false}}"
    text = f"apiVersion: operator.openshift.io/v1\nkind: KubeScheduler\nspec: {spec}\n"
    assert run("-f", file(text), "-o", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["args"][4:6] == ["--feature-gates=AllAlpha=false", "-v=2"]
    assert shown["args"][-1] == "--tls-min-version=VersionTLS13"
    assert shown["conditions"] == []


def test_a_secondary_scheduler_that_is_being_deleted_is_composed(file: Any, capsys: Any) -> None:
    obj = {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "SecondaryScheduler",
        "metadata": {"name": "mine", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"namespace": "kube-scheduler-operator", "profiles": [{"schedulerName": "mine"}]},
    }
    assert run("-f", file(yaml.safe_dump(obj))) == 0
    (composed,) = yaml.safe_load(capsys.readouterr().out)["secondarySchedulers"]
    assert composed["name"] == "mine"

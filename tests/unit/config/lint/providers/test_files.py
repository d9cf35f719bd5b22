"""The contents of providers' files that a form alone does not show."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.config.language.schema import POINTS
from kube_scheduler_operator.config.lint.providers.autoscalers import SIMULATED
from kube_scheduler_operator.config.lint.providers.managed import PROFILES

from .....builders import extender, profile
from .outputs import overrides, reported, write

FIT = "NodeResourcesFit"
TLS = {
    "tls-cert-file": "/etc/kubernetes/pki/scheduler.crt",
    "tls-private-key-file": "/etc/kubernetes/pki/scheduler.key",
}
CALLED = extender(
    "gpu",
    url="https://10.0.0.7/s",
    verbs={"filter": "filter"},
    tls={"caFile": "/etc/kubernetes/pki/ca.crt"},
    managedResources=[{"name": "example.com/gpu", "ignoredByScheduler": True}],
)


def file(output: Any, name: str) -> Any:
    (found,) = (each.content for each in output.files if each.path.endswith(name))
    return found


@pytest.mark.parametrize(
    ("word", "name", "kubeconfig"),
    [
        ("k3s", "k3s/kube-scheduler.yaml", "/var/lib/rancher/k3s/server/cred/scheduler.kubeconfig"),
        (
            "rke2",
            "rke2/kube-scheduler.yaml",
            "/var/lib/rancher/rke2/server/cred/scheduler.kubeconfig",
        ),
        ("kubeadm", "/etc/kubernetes/kube-scheduler.yaml", "/etc/kubernetes/scheduler.conf"),
        (
            "kubeadm-patches",
            "/etc/kubernetes/kube-scheduler.yaml",
            "/etc/kubernetes/scheduler.conf",
        ),
    ],
)
def test_the_file_has_the_kubeconfig_that_kube_scheduler_ignores_as_a_flag(
    word: str, name: str, kubeconfig: str
) -> None:
    output = write(word, kubescheduler=overrides(clientConnection={"qps": 100}))
    connection = file(output, name)["clientConnection"]
    assert connection == {"kubeconfig": kubeconfig, "qps": 100}


def test_talos_sets_the_kubeconfig_itself() -> None:
    config = file(write("talos"), "talos-patch.yaml")["cluster"]["scheduler"]["config"]
    assert "clientConnection" not in config
    set_ = write("talos", kubescheduler=overrides(clientConnection={"qps": 100}))
    config = file(set_, "talos-patch.yaml")["cluster"]["scheduler"]["config"]
    assert config["clientConnection"] == {"qps": 100}


@pytest.mark.parametrize(
    ("release", "keys"),
    [
        ("", ["cluster"]),
        (":1.6", ["cluster"]),
        (":1.13", ["cluster"]),
        (":1.14", ["apiVersion", "kind", "config"]),
        (":1.15", ["apiVersion", "kind", "config"]),
    ],
)
def test_the_form_of_talos_depends_on_its_release(release: str, keys: list[str]) -> None:
    assert list(file(write(f"talos{release}"), "talos-patch.yaml")) == keys


@pytest.mark.parametrize(("release", "value"), [("1.12", "b=2"), ("1.13", ["a=1", "b=2"])])
def test_talos_takes_a_flag_twice_from_1_13_on(release: str, value: Any) -> None:
    spec = overrides(arguments={"vmodule": ["a=1", "b=2"]})
    output = write(f"talos:{release}", kubescheduler=spec)
    scheduler = file(output, "talos-patch.yaml")["cluster"]["scheduler"]
    assert scheduler["extraArgs"] == {"vmodule": value}


@pytest.mark.parametrize(
    "flag", ["config", "kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
)
def test_flags_that_talos_refuses_are_never_written(flag: str) -> None:
    output = write("talos", kubescheduler=overrides(arguments={flag: "/other.conf"}))
    assert output.findings
    assert "other.conf" not in str(output.files)


def test_rke2_mounts_what_no_flag_names() -> None:
    spec = overrides(arguments=TLS)
    drop_in = file(write("rke2", kubescheduler=spec, extenders=(CALLED,)), "d/kube-scheduler.yaml")
    assert drop_in["kube-scheduler-extra-mount+"] == [
        "/etc/kubernetes/pki/ca.crt:/etc/kubernetes/pki/ca.crt:ro"
    ]


def test_k3s_reads_files_of_the_node() -> None:
    drop_in = file(write("k3s", extenders=(CALLED,)), "d/kube-scheduler.yaml")
    assert list(drop_in) == ["kube-scheduler-arg+"]


@pytest.mark.parametrize("word", ["kubeadm", "kubeadm-patches"])
def test_kubeadm_mounts_every_file(word: str) -> None:
    output = write(word, kubescheduler=overrides(arguments=TLS), extenders=(CALLED,))
    text = str([each.content for each in output.files if each.path != "/etc"][-1])
    for path in (
        "/etc/kubernetes/kube-scheduler.yaml",
        "/etc/kubernetes/pki/ca.crt",
        *TLS.values(),
    ):
        assert text.count(f"'{path}'") >= 2, path  # on the node and in the container


def test_a_patch_of_kubeadm_starts_the_same_flags_as_cluster_configuration() -> None:
    spec = {"logLevel": "Debug", **overrides(arguments={"vmodule": ["a=1", "b=2"]})}
    listed = file(write("kubeadm", kubescheduler=spec), "cluster-configuration.yaml")
    patch = file(write("kubeadm-patches", kubescheduler=spec), "kube-scheduler0+json.yaml")
    assert [one["value"] for one in patch if one["path"].endswith("/command/-")] == [
        f"--{one['name']}={one['value']}" for one in listed["scheduler"]["extraArgs"]
    ]


def test_aks_receives_only_fields_that_it_takes() -> None:
    spec = overrides(parallelism=8, podMaxBackoffSeconds=8)
    output = write("aks", kubescheduler=spec, extenders=(CALLED,))
    raw = yaml.safe_load(file(output, "configuration.yaml")["spec"]["rawConfig"])
    assert raw == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "podMaxBackoffSeconds": 8,
        "profiles": [{"schedulerName": "default-scheduler"}],
    }


def test_a_strategy_that_eks_does_not_take_is_not_written() -> None:
    args = {
        "scoringStrategy": {
            "type": "RequestedToCapacityRatio",
            "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}]},
        }
    }
    config = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": FIT, "args": args}]}
    output = write("eks", kubescheduler=overrides(profiles=[config]))
    assert output.files[0].content == {
        "kubeSchedulerConfig": {"nodeResourcesFit": {"scoringStrategy": {"type": "LeastAllocated"}}}
    }


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_like_gardeners_is_that_profile(name: str) -> None:
    like = {"schedulerName": "default-scheduler", **PROFILES[name]}
    output = write("gardener", kubescheduler=overrides(profiles=[like]))
    assert [each for each in reported(output) if each[0] == "error"] == []
    assert output.files[0].content["spec"]["kubernetes"]["kubeScheduler"] == {"profile": name}


def test_resources_of_extenders_replace_those_in_the_file_as_in_kube_scheduler() -> None:
    args = {"ignoredResources": ["example.com/other"], "scoringStrategy": {"type": "MostAllocated"}}
    config = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": FIT, "args": args}]}
    spec = overrides(profiles=[config])
    output = write("cluster-autoscaler", kubescheduler=spec, extenders=(CALLED,))
    (profile_,) = file(output, "scheduler.yaml")["profiles"]
    assert profile_["pluginConfig"] == [
        {"name": FIT, "args": {**args, "ignoredResources": ["example.com/gpu"]}}
    ]


@pytest.mark.parametrize("name", ["LowNodeUtilization", "HighNodeUtilization", "NoScoring"])
@pytest.mark.parametrize("word", ["cluster-autoscaler", "karpenter"])
def test_scores_do_not_matter_to_an_autoscaler(word: str, name: str) -> None:
    scores = profile("scores", plugins={"score": {"disabled": [{"name": "*"}]}})
    output = write(word, scheduler={"profile": name}, profiles=(scores,))
    assert [each for each in reported(output) if each[1].endswith("NotSimulated")] == []


def test_an_autoscaler_has_one_profile() -> None:
    output = write("cluster-autoscaler", profiles=(profile("a"), profile("b")))
    content = file(output, "scheduler.yaml")
    assert list(content) == ["apiVersion", "kind", "profiles"]
    assert [each["schedulerName"] for each in content["profiles"]] == ["default-scheduler"]


def test_the_simulated_points_are_points() -> None:
    assert set(SIMULATED) <= set(POINTS)


def test_no_file_shares_memory_with_the_cached_configuration() -> None:
    first = write("kubeadm", scheduler={"profile": "HighNodeUtilization"})
    assert first == write("kubeadm", scheduler={"profile": "HighNodeUtilization"})
    assert write("kubeadm") != first

"""The configuration and flags of a secondary scheduler, and errors in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.config.effective.secondary.compose import (
    RESERVED,
    SecondaryComposition,
    compose,
)
from kube_scheduler_operator.config.effective.secondary.request import read
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.target_scheduler import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.secondary.desired import OperandDefaults

from .....desired import desired_secondary
from .....expect import findings

V135 = Version(1, 35, 4)


def composition_of(
    obj: Any, platform: Platform, version: Version, *, stock: bool, profiles: Any = ()
) -> SecondaryComposition:
    request = read(obj)
    gates = Gates(version, dict(request.feature_gates))
    return compose(request, platform, Target(gates, stock), profiles)


def composed(
    platform: Platform = KUBEADM,
    *,
    name: str = "mine",
    stock: bool = True,
    version: Version = V135,
    profiles: Any = (),
    **spec: Any,
) -> SecondaryComposition:
    obj = {"metadata": {"name": name}, "spec": {"namespace": platform.target_namespace, **spec}}
    return composition_of(obj, platform, version, stock=stock, profiles=profiles)


def test_the_default_is_one_profile_with_the_objects_name_and_its_own_lease() -> None:
    composition = composed()
    assert composition.findings == ()
    assert composition.config == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": True,
            "resourceLock": "leases",
            "resourceName": "mine",
            "resourceNamespace": KUBEADM.target_namespace,
        },
        "profiles": [{"schedulerName": "mine"}],
    }
    assert composition.arguments == ("--config=/etc/kubernetes/scheduler/config.yaml", "-v=2")
    assert composition.scheduler_names == ("mine",)


def test_settings_apply_except_to_the_lease() -> None:
    """Also settings that the schema does not allow."""
    election = {"leaseDuration": "30s", "resourceName": "kube-scheduler", "leaderElect": False}
    composition = composed(
        config={
            "parallelism": 8,
            "leaderElection": election,
            "clientConnection": {"qps": 10, "kubeconfig": "/etc/kubernetes/admin.conf"},
        }
    )
    config = composition.config
    assert config["parallelism"] == 8
    assert config["clientConnection"] == {"qps": 10}
    assert config["leaderElection"] == {
        "leaderElect": True,
        "leaseDuration": "30s",
        "resourceLock": "leases",
        "resourceName": "mine",
        "resourceNamespace": KUBEADM.target_namespace,
    }


def test_profiles_of_the_spec_are_used_unless_others_are_passed() -> None:
    first: dict[str, Any] = {"percentageOfNodesToScore": 10}
    second: dict[str, Any] = {"schedulerName": "two"}
    obj = {"metadata": {"name": "mine"}, "spec": {"namespace": "n", "profiles": [first, second]}}
    own: list[dict[str, Any]] = [
        {"percentageOfNodesToScore": 10, "schedulerName": "mine"},
        {"schedulerName": "two"},
    ]
    assert composition_of(obj, KUBEADM, V135, stock=True).config["profiles"] == own
    passed = [*own, {"schedulerName": "added"}]
    composition = composition_of(obj, KUBEADM, V135, stock=True, profiles=passed)
    assert composition.config["profiles"] == passed
    assert composition.scheduler_names == ("mine", "two", "added")


def test_flags_have_a_fixed_order() -> None:
    composition = composed(
        logLevel="Trace",
        featureGates={"OpportunisticBatching": False, "AllAlpha": True},
        extraArguments={"vmodule": "a=3", "logging-format": "json"},
    )
    assert composition.findings == ()
    assert composition.arguments == (
        "--config=/etc/kubernetes/scheduler/config.yaml",
        "--feature-gates=AllAlpha=true,OpportunisticBatching=false",
        "-v=6",
        "--logging-format=json",
        "--vmodule=a=3",
    )


@pytest.mark.parametrize(
    ("spec", "reason", "path"),
    [
        ({"logLevel": "Loud"}, "UnknownLogLevel", "spec.logLevel"),
        ({"config": {"parallelism": 0}}, "InvalidConfiguration", "spec.config.parallelism"),
        ({"config": {"parallelsm": 1}}, "UnknownField", "spec.config.parallelsm"),
        (
            {"config": {"leaderElection": {"renewDeadline": "20s"}}},
            "InvalidLeaderElection",
            "spec.config.leaderElection.leaseDuration",
        ),
        (
            {"config": {"extenders": [{"urlPrefix": "http://x", "prioritizeVerb": "p"}]}},
            "InvalidExtender",
            "spec.config.extenders[0].weight",
        ),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "Duplicate",
            "spec.profiles[1].schedulerName",
        ),
        (
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "MyCustomPluginA"}]}}}]},
            "UnknownPlugin",
            "spec.profiles[0].plugins.score.enabled[0].name",
        ),
        (
            {"featureGates": {"NoSuchGate": True}},
            "UnknownFeatureGate",
            "spec.featureGates.NoSuchGate",
        ),
        (
            {"extraArguments": {"profilng": "true"}},
            "UnknownArgument",
            "spec.extraArguments.profilng",
        ),
        (
            {"extraArguments": {"kube-api-burst": "x"}},
            "InvalidArgument",
            "spec.extraArguments.kube-api-burst",
        ),
        ({"extraArguments": {"vmodule": {}}}, "InvalidArgument", "spec.extraArguments.vmodule"),
    ],
)
def test_an_error_has_the_path_in_the_spec(spec: dict[str, Any], reason: str, path: str) -> None:
    obj = {"metadata": {"name": "mine"}, "spec": {"namespace": "n", **spec}}
    composition = composition_of(obj, KUBEADM, V135, stock=True)
    assert (reason, path) in findings(composition, "reason", "path")
    assert composition.blocking


def test_an_error_in_an_added_profile_has_no_path_in_the_spec() -> None:
    added = {"schedulerName": "added", "plugins": {"bind": {"enabled": [{"name": "No"}]}}}
    profiles = [{"schedulerName": "mine"}, added]
    assert findings(composed(profiles=profiles), "reason", "path") == [
        ("UnknownPlugin", "profiles[1].plugins.bind.enabled[0].name")
    ]


@pytest.mark.parametrize(
    "flag", [*RESERVED, "leader-elect", "leader-elect-resource-name", "write_config_to"]
)
def test_reserved_flags_are_refused(flag: str) -> None:
    composition = composed(extraArguments={flag: "x"})
    (finding,) = composition.findings
    assert (finding.reason, finding.blocking) == ("ReservedArgument", True)
    assert not [one for one in composition.arguments if one.startswith(f"--{flag}=x")]


@pytest.mark.parametrize(
    ("platform", "name", "namespace"),
    [
        (KUBEADM, "kube-scheduler", "kube-system"),
        (KUBEADM, "kube-scheduler", "elsewhere"),
        (OPENSHIFT, "kube-scheduler", "openshift-kube-scheduler"),
        (KUBEADM, "kube-scheduler-operator-lock", "kube-scheduler-operator"),
    ],
)
def test_leases_of_other_schedulers_are_refused(
    platform: Platform, name: str, namespace: str
) -> None:
    composition = composed(platform, name=name, namespace=namespace)
    assert ("LeaseTaken", "metadata.name") in findings(composition, "reason", "path")
    assert composition.blocking


@pytest.mark.parametrize("version", [Version(1, 27), Version(1, 35), Version(1, 99)])
def test_an_unknown_plugin_with_a_custom_image_is_only_a_warning(version: Version) -> None:
    """The image decides; its tag may differ from the version of Kubernetes."""
    plugins = {"score": {"enabled": [{"name": "MyCustomPluginA"}]}}
    profile = {"schedulerName": "mine", "plugins": plugins}
    composition = composed(stock=False, version=version, profiles=[], config={})
    assert composition.findings == ()
    obj = {"metadata": {"name": "mine"}, "spec": {"namespace": "n", "profiles": [profile]}}
    composition = composition_of(obj, KUBEADM, version, stock=False)
    assert not composition.blocking
    found = [(f.condition, f.reason) for f in composition.findings]
    assert found == ([(names.WARNINGS, "UnknownPlugin")] if version.minor == 35 else [])


def test_other_errors_with_a_custom_image_still_block() -> None:
    assert composed(stock=False, config={"parallelism": 0}).blocking


@pytest.mark.parametrize("profiles", [["x"], [{"plugins": 3}], [{"schedulerName": 5}], [[]]])
def test_invalid_profiles_are_reported_without_an_exception(profiles: Any) -> None:
    obj = {"metadata": {"name": "mine"}, "spec": {"namespace": "n", "profiles": profiles}}
    composition = composition_of(obj, KUBEADM, V135, stock=True)
    assert composition.blocking
    assert composition.scheduler_names


EXAMPLES = Path(__file__).resolve().parents[5] / "docs" / "examples"


def test_null_is_an_empty_profile() -> None:
    """As kube-scheduler reads it."""
    obj = {"metadata": {"name": "mine"}, "spec": {"namespace": "n", "profiles": [None]}}
    composition = composition_of(obj, KUBEADM, V135, stock=True)
    assert composition.findings == ()
    assert composition.scheduler_names == ("mine",)


OF_THIS_KIND = sorted(
    path for path in EXAMPLES.glob("*.yaml") if "kind: SecondaryScheduler\n" in path.read_text()
)


@pytest.mark.parametrize("path", OF_THIS_KIND, ids=lambda path: path.stem)
def test_the_examples_have_a_valid_configuration(path: Path) -> None:
    (obj,) = (
        one for one in yaml.safe_load_all(path.read_text()) if one["kind"] == "SecondaryScheduler"
    )
    desired_state = desired_secondary(
        obj, KUBEADM, OperandDefaults("registry.k8s.io/kube-scheduler:v1.35.4"), V135
    )
    assert desired_state.content is not None, desired_state.findings
    assert desired_state.request.namespace == KUBEADM.target_namespace
    assert desired_state.composition.scheduler_names[0] == obj["metadata"]["name"]

"""The configuration and the flags of a further scheduler, and what is said of mistakes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.schedulerconfig.versions import Version
from kube_scheduler_operator.secondary.compose import RESERVED, Composition, compose
from kube_scheduler_operator.secondary.desired import Operand, want
from kube_scheduler_operator.secondary.request import read

V135 = Version(1, 35, 4)


def composed(
    platform: Platform = KUBEADM,
    *,
    name: str = "mine",
    stock: bool = True,
    version: Version = V135,
    profiles: Any = (),
    **spec: Any,
) -> Composition:
    obj = {"metadata": {"name": name}, "spec": {"namespace": platform.target_namespace, **spec}}
    return compose(read(obj), platform, version, stock=stock, profiles=profiles)


def said(composition: Composition) -> list[tuple[str, str]]:
    return [(finding.reason, finding.path) for finding in composition.findings]


def test_the_least_is_one_profile_with_the_name_of_the_object_and_a_lease_of_its_own() -> None:
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


def test_settings_are_taken_over_and_the_lease_stays_its_own() -> None:
    """Whatever may have got past the schema."""
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


def test_profiles_are_those_of_the_object_unless_others_are_given() -> None:
    first, second = {"percentageOfNodesToScore": 10}, {"schedulerName": "two"}
    obj = {"metadata": {"name": "mine"}, "spec": {"namespace": "n", "profiles": [first, second]}}
    own = [{"percentageOfNodesToScore": 10, "schedulerName": "mine"}, {"schedulerName": "two"}]
    assert compose(read(obj), KUBEADM, V135, stock=True).config["profiles"] == own
    given = [*own, {"schedulerName": "added"}]
    composition = compose(read(obj), KUBEADM, V135, stock=True, profiles=given)
    assert composition.config["profiles"] == given
    assert composition.scheduler_names == ("mine", "two", "added")


def test_flags_come_in_a_fixed_order() -> None:
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
def test_a_mistake_is_named_where_it_was_written(
    spec: dict[str, Any], reason: str, path: str
) -> None:
    obj = {"metadata": {"name": "mine"}, "spec": {"namespace": "n", **spec}}
    composition = compose(read(obj), KUBEADM, V135, stock=True)
    assert (reason, path) in said(composition)
    assert composition.blocking


def test_a_mistake_in_a_profile_that_others_added_is_not_looked_for_in_the_object() -> None:
    added = {"schedulerName": "added", "plugins": {"bind": {"enabled": [{"name": "No"}]}}}
    profiles = [{"schedulerName": "mine"}, added]
    assert said(composed(profiles=profiles)) == [
        ("UnknownPlugin", "profiles[1].plugins.bind.enabled[0].name")
    ]


@pytest.mark.parametrize(
    "flag", [*RESERVED, "leader-elect", "leader-elect-resource-name", "write_config_to"]
)
def test_flags_that_would_break_it_are_refused_and_say_what_to_use(flag: str) -> None:
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
def test_a_lease_that_is_somebody_elses_cannot_be_had(
    platform: Platform, name: str, namespace: str
) -> None:
    composition = composed(platform, name=name, namespace=namespace)
    assert ("LeaseTaken", "metadata.name") in said(composition)
    assert composition.blocking


@pytest.mark.parametrize("version", [Version(1, 27), Version(1, 35), Version(1, 99)])
def test_of_an_image_of_ones_own_an_unknown_plugin_is_only_a_warning(version: Version) -> None:
    """The image is the authority; a tag that is no version of Kubernetes proves nothing."""
    plugins = {"score": {"enabled": [{"name": "MyCustomPluginA"}]}}
    profile = {"schedulerName": "mine", "plugins": plugins}
    composition = composed(stock=False, version=version, profiles=[], config={})
    assert composition.findings == ()
    obj = {"metadata": {"name": "mine"}, "spec": {"namespace": "n", "profiles": [profile]}}
    composition = compose(read(obj), KUBEADM, version, stock=False)
    assert not composition.blocking
    found = [(f.condition, f.reason) for f in composition.findings]
    assert found == ([(names.WARNINGS, "UnknownPlugin")] if version.minor == 35 else [])


def test_of_an_image_of_ones_own_a_mistake_is_still_a_mistake() -> None:
    assert composed(stock=False, config={"parallelism": 0}).blocking


@pytest.mark.parametrize("profiles", [["x"], [{"plugins": 3}], [{"schedulerName": 5}], [[]]])
def test_whatever_users_wrote_it_never_raises(profiles: Any) -> None:
    obj = {"metadata": {"name": "mine"}, "spec": {"namespace": "n", "profiles": profiles}}
    composition = compose(read(obj), KUBEADM, V135, stock=True)
    assert composition.blocking
    assert composition.scheduler_names


EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"


def test_null_is_a_profile_that_says_nothing() -> None:
    """As kube-scheduler reads it."""
    obj = {"metadata": {"name": "mine"}, "spec": {"namespace": "n", "profiles": [None]}}
    composition = compose(read(obj), KUBEADM, V135, stock=True)
    assert composition.findings == ()
    assert composition.scheduler_names == ("mine",)


OF_THIS_KIND = sorted(
    path for path in EXAMPLES.glob("*.yaml") if "kind: SecondaryScheduler\n" in path.read_text()
)


@pytest.mark.parametrize("path", OF_THIS_KIND, ids=lambda path: path.stem)
def test_the_examples_come_to_something(path: Path) -> None:
    (obj,) = (
        one for one in yaml.safe_load_all(path.read_text()) if one["kind"] == "SecondaryScheduler"
    )
    wanted = want(obj, KUBEADM, Operand("registry.k8s.io/kube-scheduler:v1.35.4"), V135)
    assert wanted.content is not None, wanted.findings
    assert wanted.request.namespace == KUBEADM.target_namespace
    assert wanted.composition.scheduler_names[0] == obj["metadata"]["name"]

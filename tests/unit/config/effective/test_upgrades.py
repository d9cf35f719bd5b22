"""What newer versions refuse of composed schedulers, and what their extenders have to do."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.effective.facts import Facts
from kube_scheduler_operator.config.effective.objects import Objects
from kube_scheduler_operator.config.effective.upgrades import (
    ControlPlaneUpgrade,
    SecondaryUpgrade,
)
from kube_scheduler_operator.config.language.versions import Version

from ....builders import extender, secondary
from ....control_plane_inputs import inputs_of

V35, V36, V38 = Version(1, 35, 4), Version(1, 36), Version(1, 38)
LOCKED_IN_36 = "CSIServiceAccountTokenSecrets"
IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"


def control_plane(version: Version, **objects: Any) -> ControlPlaneUpgrade:
    made = inputs_of(KUBEADM, version, {"spec": {}}, {"spec": {}}, planned=True, **objects)
    return ControlPlaneUpgrade(compose(made))


def of_secondary(default: str, **fields: Any) -> SecondaryUpgrade:
    obj = secondary(featureGates={LOCKED_IN_36: False}, **fields)
    return SecondaryUpgrade("mine", Objects(secondaries=(obj,)), Facts(KUBEADM, V35, default), ())


def test_only_extenders_of_others_have_to_do_something() -> None:
    others = extender("b", url="http://x.example/b", verbs={"preempt": "preempt"})
    agent = extender("a", agent={"policies": [{"name": "foo"}]})
    current = control_plane(Version(1, 37), extenders=(agent, others))
    assert len((current.current.config or {})["extenders"]) == 2
    (step,) = current.steps(V38)
    (duty,) = step.duties
    assert duty.startswith("extenders[1] (http://x.example/b) has a preemptVerb")


def test_a_secondary_scheduler_follows_the_default_image() -> None:
    upgrade = of_secondary(IMAGE)
    assert (upgrade.title, upgrade.version, upgrade.stock) == (
        'SecondaryScheduler "mine"', V35, True,
    )  # fmt: skip
    (step,) = upgrade.steps(V36)
    (text,) = step.refused
    assert LOCKED_IN_36 in text


def test_an_image_of_its_own_is_checked_as_if_it_were_of_the_version() -> None:
    upgrade = of_secondary("registry.k8s.io/kube-scheduler:v1.36.0", image=IMAGE)
    assert upgrade.version == V35
    (step,) = upgrade.steps(V36)
    assert LOCKED_IN_36 in step.refused[0]


def test_of_an_image_with_plugins_of_its_own_nothing_is_known() -> None:
    obj = secondary(image="registry.example/mine:v1.35.4")
    upgrade = SecondaryUpgrade("mine", Objects(secondaries=(obj,)), Facts(KUBEADM, V35, IMAGE), ())
    assert not upgrade.stock
    (step,) = upgrade.steps(V36)
    assert step.unknown.startswith("its image may have plugins of its own")


def test_what_a_version_would_run_is_composed_for_it() -> None:
    (content,) = control_plane(V35).contents(V36)
    assert content.config["kind"] == "KubeSchedulerConfiguration"
    assert any(argument.startswith("--config=") for argument in content.arguments)


def test_of_one_field_each_error_is_named_at_its_version() -> None:
    gates = ["SizeMemoryBackedVolumes=true", "CSIMigrationPortworx=true", "SidecarContainers=true"]
    spec = {"unsupportedConfigOverrides": {"arguments": {"feature-gates": gates}}}
    made = inputs_of(KUBEADM, Version(1, 34), {"spec": {}}, {"spec": spec}, planned=True)
    steps = ControlPlaneUpgrade(compose(made)).steps(Version(1, 37))
    assert [len(step.refused) for step in steps] == [1, 1, 1]
    for step, gate in zip(steps, gates, strict=True):
        assert gate.partition("=")[0] in step.refused[0]

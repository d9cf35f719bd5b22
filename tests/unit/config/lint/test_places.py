"""`validate --for`: what a place accepts, and the plugins of known third-party schedulers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.known_schedulers import (
    newest,
    owners_of,
    recorded,
    scheduler_of_image,
)
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint import places
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.places import PLACES, SCHEDULERS, options_for
from kube_scheduler_operator.config.lint.providers.table import PROVIDERS
from kube_scheduler_operator.config.lint.validate import validate

OPTIONS = CheckOptions(Gates(Version(1, 35)), KUBEADM)
HEAD = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}


def reasons(place: str, config: dict[str, Any]) -> dict[str, str]:
    text = yaml.safe_dump({**HEAD, **config}, sort_keys=False)
    report = validate([("a.yaml", text)], options_for(place, OPTIONS))
    return {each.path: each.reason for each in report.findings if each.severity == "error"}


def packed(strategy: str = "MostAllocated", **more: Any) -> dict[str, Any]:
    args = {"scoringStrategy": {"type": strategy, "resources": [{"name": "cpu", "weight": 1}]}}
    profile = {**more, "pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}
    return {"profiles": [profile]}


def test_places_are_those_of_compose_and_the_known_schedulers() -> None:
    assert set(PROVIDERS) == set(places.PROVIDERS)
    assert set(SCHEDULERS) == set(newest())
    assert set(places.OWN_RELEASES) < set(PROVIDERS)
    for name in PLACES:
        options_for(name, OPTIONS)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("aksx", '"aksx" is not upstream, aks, .*; did you mean "aks"'),
        ("aks:new", "new"),
        ("scheduler-plugin", 'did you mean "scheduler-plugins"'),
    ],
)
def test_an_unknown_place_is_named_with_the_known_ones(word: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        options_for(word, OPTIONS)


def test_a_version_is_that_of_the_place() -> None:
    assert options_for("kubeadm:1.33", OPTIONS).gates.version.short == "1.33"
    assert options_for("talos:1.11", OPTIONS).gates.version.short == "1.35"
    assert options_for("scheduler-plugins:v0.31.8", OPTIONS).gates.version.short == "1.31"
    assert options_for("upstream:1.30", OPTIONS).stock


def test_eks_takes_two_strategies_of_the_default_profile() -> None:
    assert reasons("eks", packed()) == {}
    assert reasons("eks", packed(schedulerName="mine")) == {
        "profiles[0].schedulerName": "ProfileNotSupported"
    }
    assert "profiles[0].plugins" in reasons("eks", packed(plugins={"score": {}}))
    assert reasons("eks", {"parallelism": 4}) == {"parallelism": "FieldNotSupported"}


def test_aks_takes_documented_plugins() -> None:
    off = {"filter": {"disabled": [{"name": "DynamicResources"}]}}
    assert reasons("aks", packed(schedulerName="a")) == {}
    assert reasons("aks", packed(schedulerName="a", plugins=off)) == {
        "profiles[0].plugins.filter.disabled[0].name": "PluginNotSupported"
    }


@pytest.mark.parametrize(("place", "warned"), [("aks", False), ("upstream", True)])
def test_schedulers_that_a_provider_runs_share_no_lease(place: str, warned: bool) -> None:
    configs = {name: {**HEAD, **packed(schedulerName=name)} for name in ("a", "b")}
    files = [(f"{name}.yaml", yaml.safe_dump(config)) for name, config in configs.items()]
    report = validate(files, options_for(place, OPTIONS))
    assert ("SharedLease" in {each.reason for each in report.findings}) == warned


def test_a_scheduler_has_its_own_plugins_and_those_of_kubernetes() -> None:
    def enabled(name: str, point: str = "multiPoint") -> dict[str, Any]:
        lists = {point: {"enabled": [{"name": name}]}}
        return {"profiles": [{"schedulerName": "a", "plugins": lists}]}

    assert reasons("scheduler-plugins", enabled("TargetLoadPacking")) == {}
    assert reasons("scheduler-plugins", enabled("ImageLocality", "score")) == {}
    assert reasons("koordinator", enabled("LoadAwareScheduling", "filter")) == {}
    name = "profiles[0].plugins.{}.enabled[0].name"
    assert reasons("koordinator", enabled("TargetLoadPacking")) == {
        name.format("multiPoint"): "UnknownPlugin"
    }
    assert reasons("scheduler-plugins", enabled("TargetLoadPacking", "filter")) == {
        name.format("filter"): "WrongExtensionPoint"
    }
    assert reasons("upstream", enabled("Coscheduling")) == {
        name.format("multiPoint"): "UnknownPlugin"
    }


def test_arguments_of_known_plugins_are_checked() -> None:
    args = {"permitWaitingTimeSeconds": "10", "podGroupBackof": 1}
    config = {"profiles": [{"pluginConfig": [{"name": "Coscheduling", "args": args}]}]}
    where = "profiles[0].pluginConfig[0].args."
    assert reasons("scheduler-plugins", config) == {
        f"{where}permitWaitingTimeSeconds": "InvalidType",
        f"{where}podGroupBackof": "UnknownField",
    }
    assert reasons("upstream", config) == {}, "kube-scheduler does not decode them"


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("registry.k8s.io/scheduler-plugins/kube-scheduler:v0.33.5", "scheduler-plugins v0.33.5"),
        ("registry.k8s.io/scheduler-plugins/kube-scheduler:v0.33.9", "scheduler-plugins v0.33.5"),
        ("registry.k8s.io/scheduler-plugins/kube-scheduler:v0.20.1", "scheduler-plugins v0.31.8"),
        ("ghcr.io/koordinator-sh/koord-scheduler:v1.7.0", "koordinator v1.7.0"),
        ("ghcr.io/koordinator-sh/koord-scheduler@sha256:0", "koordinator v1.8.0"),
        ("registry.k8s.io/kube-scheduler:v1.35.4", ""),
        ("", ""),
    ],
)
def test_the_scheduler_of_an_image_is_the_closest_version_on_record(image: str, name: str) -> None:
    known = scheduler_of_image(image)
    assert (f"{known.name} {known.version}" if known else "") == name


@pytest.mark.parametrize(
    ("image", "custom", "fix"),
    [
        ("localhost:32000/scheduler-plugins/kube-scheduler:latest", False, "use --custom-image"),
        ("localhost:32000/scheduler-plugins/kube-scheduler:latest", True, None),
        ("registry.k8s.io/kube-scheduler:v1.35.4", False, "remove it"),
    ],
)
def test_a_plugin_of_an_own_build_passes_with_the_flag(
    image: str, custom: bool, fix: str | None
) -> None:
    """The build has the name of the project that it is made of, and a plugin more."""
    command = ["/bin/kube-scheduler", "--config=/etc/kubernetes/c.yaml"]
    mounts = [{"name": "c", "mountPath": "/etc/kubernetes"}]
    container = {"name": "s", "image": image, "command": command, "volumeMounts": mounts}
    volumes = [{"name": "c", "configMap": {"name": "c"}}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "s"},
        "spec": {"containers": [container], "volumes": volumes},
    }
    enabled = {"multiPoint": {"enabled": [{"name": "NetworkTraffic"}]}}
    config = {**HEAD, "profiles": [{"schedulerName": "a", "plugins": enabled}]}
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"c.yaml": yaml.safe_dump(config)},
    }
    text = yaml.safe_dump_all([pod, config_map])
    report = validate([("a.yaml", text)], replace(OPTIONS, stock=not custom))
    errors = [each for each in report.findings if each.severity == "error"]
    assert [each.reason for each in errors] == ([] if fix is None else ["UnknownPlugin"])
    assert all(each.fix.startswith(str(fix)) for each in errors)


def test_the_record_names_its_sources_and_has_no_plugin_without_extension_points() -> None:
    for each in recorded():
        assert each.source.endswith(each.version)
        assert each.plugins
        for name, plugin in each.plugins.items():
            assert plugin.points, name
    assert owners_of("Coscheduling") == ("scheduler-plugins", "koordinator")
    assert owners_of("CrossNodePreemption") == ("scheduler-plugins",)

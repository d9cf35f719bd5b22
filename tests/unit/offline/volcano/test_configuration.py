"""Configurations of Volcano's scheduler: what its sources refuse, ignore and read."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.offline.checks import CheckOptions
from kube_scheduler_operator.offline.places import options_for
from kube_scheduler_operator.offline.validate import validate
from kube_scheduler_operator.offline.volcano.catalogue import (
    is_volcano_image,
    recorded,
    volcano,
    volcano_of_image,
)
from kube_scheduler_operator.offline.volcano.configuration import problems_of
from kube_scheduler_operator.offline.volcano.recognition import is_kai, is_volcano
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.versions import Version

OPTIONS = CheckOptions(Gates(Version(1, 35)), KUBEADM)
PREDICATES = {"name": "predicates"}


def conf(*plugins: Any, actions: Any = "enqueue, allocate, backfill", **more: Any) -> Any:
    return {"actions": actions, "tiers": [{"plugins": [PREDICATES, *plugins]}], **more}


def with_arguments(plugin: str, **arguments: Any) -> Any:
    return conf({"name": plugin, "arguments": arguments})


def found(config: Any, version: str = "") -> dict[str, str]:
    """Reason and severity of each problem, by its field below the plugin under test."""
    problems = problems_of(config, volcano(version))
    keys = (".".join(map(str, each.path)) for each in problems)
    return {
        key.removeprefix("tiers.0.plugins.1."): f"{each.severity}: {each.reason}"
        for key, each in zip(keys, problems, strict=True)
    }


@pytest.mark.parametrize("version", [each.version for each in recorded()])
def test_the_configuration_of_the_chart_is_accepted_by_every_version(version: str) -> None:
    first = [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}]
    second = [{"name": name} for name in ("overcommit", "drf", "predicates", "proportion")]
    tiers = [{"plugins": first}, {"plugins": second}]
    config = {"actions": "enqueue, allocate, backfill", "tiers": tiers}
    assert found(config, version) == {}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (conf(actions=["enqueue", "allocate"]), "actions"),
        (conf(actions={"enqueue": None}), "actions"),
        ({"actions": "allocate", "tiers": {"plugins": []}}, "tiers"),
        ({"actions": "allocate", "tiers": [{"plugins": {"name": "predicates"}}]},
         "tiers.0.plugins"),
        (conf("gang"), "tiers.0.plugins.1"),
        (conf({"name": "gang", "enableJobOrder": "true"}), "enableJobOrder"),
        (conf({"name": "gang", "enableJobOrder": 1}), "enableJobOrder"),
        (conf({"name": "gang", "arguments": ["a"]}), "arguments"),
        (conf(metrics={"type": "prometheus", "tls": {}}), "metrics.tls"),
    ],
)  # fmt: skip
def test_what_cannot_be_decoded_is_an_error(config: Any, field: str) -> None:
    assert found(config) == {field: "error: VolcanoInvalidType"}


@pytest.mark.parametrize(
    "config",
    [
        conf({"name": "gang", "enableJobOrder": None}),
        conf({"name": "gang", "arguments": None}),
        conf(metrics={"type": "prometheus", "interval": 30, "a": None, "b": True}),
        conf(configurations=None),
    ],
)
def test_null_and_scalars_in_place_of_strings_are_decoded(config: Any) -> None:
    assert found(config) == {}


@pytest.mark.parametrize(
    ("actions", "problems"),
    [
        ("allocate, prempt", 1),
        ("allocate,", 1),
        (", , allocate", 2),
        ("", 1),
        (None, 1),
        (5, 1),
        ("Allocate, allocate", 1),
    ],
)
def test_an_unknown_or_empty_action_is_an_error(actions: Any, problems: int) -> None:
    reasons = [each.reason for each in problems_of(conf(actions=actions), volcano())]
    assert reasons.count("VolcanoUnknownAction") == problems


def test_what_a_later_version_has_is_named_with_it() -> None:
    config = conf({"name": "resource-strategy-fit"}, actions="allocate, gangpreempt")
    messages = {each.path: each.fix for each in problems_of(config, volcano("v1.12.0"))}
    assert messages == {
        ("actions",): "use Volcano v1.15.1 or newer",
        ("tiers", 0, "plugins", 1, "name"): "use Volcano v1.13.3 or newer",
    }
    assert problems_of(config, volcano()) == []


@pytest.mark.parametrize(
    ("config", "field", "fix"),
    [
        (conf({"name": "gang", "enableVictim": False}), "enableVictim", "enabledVictim"),
        (conf({"name": "gang", "enableClusterOrder": True}), "enableClusterOrder",
         "EnabledClusterOrder"),
        (conf(plugins=[]), "plugins", "in an entry of tiers"),
        ({**conf(), "arguments": {}}, "arguments", "in the plugin's entry"),
        (conf(something=1), "something", "remove it"),
    ],
)  # fmt: skip
def test_an_unknown_field_is_ignored_and_the_right_one_is_named(
    config: Any, field: str, fix: str
) -> None:
    assert found(config) == {field: "warning: VolcanoUnknownField"}
    assert fix in problems_of(config, volcano())[0].fix


@pytest.mark.parametrize(
    ("plugin", "key", "value", "result"),
    [
        ("binpack", "binpack.weight", 10, ""),
        ("binpack", "binpack.weight", "10", "warning"),
        ("binpack", "binpack.weight", True, "warning"),
        ("binpack", "binpack.weight", 1.5, "warning"),
        ("binpack", "binpack.resources.nvidia.com/gpu", 2, ""),
        ("binpack", "binpack.resources.nvidia.com/gpu", "2", "warning"),
        ("overcommit", "overcommit-factor", 2, ""),
        ("overcommit", "overcommit-factor", 1.5, ""),
        ("overcommit", "overcommit-factor", "1.5", "warning"),
        ("predicates", "predicate.CacheEnable", "true", ""),
        ("predicates", "predicate.CacheEnable", "yes", "warning"),
        ("predicates", "predicate.CacheEnable", 1, "warning"),
        ("predicates", "volumebinding.weight", 1, ""),
        ("predicates", "volumebinding.weight", "1", "error"),
        ("predicates", "volumebinding.shape", {}, "error"),
        ("resource-strategy-fit", "sra", {"enable": True}, ""),
        ("resource-strategy-fit", "sra", [], "error"),
        ("extender", "extender.managedResources", "a,b", "error"),
        ("extender", "extender.urlPrefix", 5, "warning"),
        ("tdm", "tdm.revocable-zone.rz1", "10:00-21:00", ""),
        ("tdm", "tdm.revocable-zone.rz1", 10, "error"),
        ("tdm", "tdm.evict.period", 60, "error"),
        ("rescheduling", "interval", 5, "error"),
        ("sla", "sla-waiting-time", 5, ""),
    ],
)
def test_a_plugin_takes_arguments_of_its_types(
    plugin: str, key: str, value: Any, result: str
) -> None:
    arguments = {"name": plugin, "arguments": {key: value}}
    config = {"actions": "allocate", "tiers": [{"plugins": [arguments]}]}
    problems = [each for each in problems_of(config, volcano()) if key in each.path]
    assert [each.severity for each in problems] == [result] * bool(result)
    assert {each.reason for each in problems} <= {"VolcanoArgumentType"}


@pytest.mark.parametrize(
    ("plugin", "key", "fix"),
    [
        ("binpack", "binpack.wieght", 'did you mean "binpack.weight"?'),
        ("binpack", "overcommit-factor", "move it: it is an argument of plugin overcommit"),
        ("gang", "enablePreemptable", "move it beside name: it is a field of the plugin's entry"),
        ("gang", "x", "remove it: there are no arguments"),
        ("predicates", "predicate.GPUSharingEnable",
         "remove it; plugin deviceshare has deviceshare.GPUSharingEnable"),
        ("predicates", "predicate.DynamicResourceAllocationEnable",
         "remove it: Volcano v1.14.4 is the last one on record that reads it"),
    ],
)  # fmt: skip
def test_an_unknown_argument_is_ignored_and_its_place_is_named(
    plugin: str, key: str, fix: str
) -> None:
    [problem] = [
        each for each in problems_of(with_arguments(plugin, **{key: 1}), volcano())
        if each.reason == "VolcanoUnknownArgument"
    ]  # fmt: skip
    assert (problem.severity, problem.fix) == ("warning", fix)


def test_plugins_that_exclude_each_other_are_found() -> None:
    drf, proportion = {"name": "drf", "enableHierarchy": True}, {"name": "proportion"}
    assert found(conf(drf, proportion)) == {"enableHierarchy": "error: VolcanoConflict"}
    other_tier = {"actions": "allocate", "tiers": [{"plugins": [PREDICATES, drf]},
                                                   {"plugins": [proportion]}]}  # fmt: skip
    assert found(other_tier) == {}, "Volcano looks at each tier alone"
    assert found(conf({"name": "capacity"}, proportion)) == {
        "tiers.0.plugins.2.name": "warning: VolcanoConflict"
    }


def test_what_has_no_effect_is_a_warning() -> None:
    usage = {"name": "usage", "arguments": {"thresholds": {"cpu": 80}}}
    assert found(conf(usage)) == {"name": "warning: VolcanoIncomplete"}
    assert found(conf(usage, metrics={"type": "prometheus"})) == {}
    assert found(conf(metrics={"type": "influx"})) == {"metrics.type": "warning: VolcanoIncomplete"}
    assert found(conf(actions="enqueue, backfill")) == {"actions": "warning: VolcanoIncomplete"}
    assert found({"actions": "allocate", "tiers": []}) == {"tiers": "warning: VolcanoIncomplete"}
    entry = {"name": "overcommit", "arguments": {"overcommit-factor": 2}}
    assert found(conf(configurations=[entry])) == {
        "configurations.0.name": "warning: VolcanoIncomplete"
    }


def test_a_repeated_key_is_a_warning_because_volcano_takes_the_last_one() -> None:
    text = yaml.safe_dump(conf()) + "metrics: {type: prometheus, type: elasticsearch}\n"
    report = validate([("a.yaml", text)], OPTIONS)
    assert [(each.reason, each.severity) for each in report.findings] == [
        ("VolcanoDuplicate", "warning")
    ]
    assert report.starts


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"actions": "allocate", "tiers": []}, True),
        ({"actions": "allocate"}, True),
        ({"tiers": [], "metrics": {}}, True),
        ({"actions": "allocate", "tiers": [], "typo": 1}, True),
        ({"actions": [], "name": "a workflow"}, False),
        ({"metrics": {}}, False),
        ({"kind": "Workflow", "actions": "a", "tiers": []}, False),
        ({"actions": "allocate, consolidation", "tiers": []}, False),
        ({}, False),
    ],
)
def test_a_configuration_of_volcano_is_recognized(value: dict[str, Any], expected: bool) -> None:
    assert is_volcano(value) == expected


def test_a_configuration_of_kai_scheduler_is_not_volcanos() -> None:
    assert is_kai({"actions": "allocate, stalegangeviction", "tiers": []})
    assert not is_kai({"actions": "allocate, preempt", "tiers": []})


def test_each_scheduler_refuses_the_format_of_the_other() -> None:
    own = yaml.safe_dump(conf())
    other = yaml.safe_dump(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    )

    def reasons(place: str, text: str) -> list[str]:
        report = validate([("a.yaml", text)], options_for(place, OPTIONS))
        return [each.reason for each in report.findings if each.severity == "error"]

    assert reasons("volcano", own) == []
    assert reasons("upstream:1.35", own) == ["OtherScheduler"]
    assert reasons("koordinator", own) == ["OtherScheduler"]
    assert reasons("volcano:1.13", other) == ["OtherScheduler"]


def test_the_version_is_that_of_the_place_or_of_the_image() -> None:
    text = yaml.safe_dump(conf(actions="allocate, gangreclaim"))
    for place, errors in (("volcano:v1.12", 1), ("volcano:1.15.0", 0), ("volcano", 0)):
        report = validate([("a.yaml", text)], options_for(place, OPTIONS))
        assert report.count("error") == errors, place
    image = volcano_of_image("docker.io/volcanosh/vc-scheduler:v1.12.1")
    assert image is not None
    assert image.version.startswith("v1.12.")
    assert volcano_of_image("registry:5000/vc-scheduler") is None
    assert volcano_of_image("volcanosh/vc-controller-manager:v1.12.1") is None
    assert is_volcano_image("registry:5000/a/vc-scheduler:latest@sha256:0")
    assert not is_volcano_image("registry.k8s.io/kube-scheduler:v1.35.4")


def test_the_record_has_every_minor_version_once_in_order() -> None:
    minors = [each.version.split(".")[1] for each in recorded()]
    assert minors == sorted(set(minors), key=int)
    for each in recorded():
        assert {"allocate", "backfill", "enqueue", "preempt", "reclaim"} <= set(each.actions)
        assert each.plugins["binpack"]["binpack.resources.*"].kind == "int"
        assert each.plugins["tdm"]["tdm.evict.period"].exits


@pytest.mark.parametrize(
    ("place", "is_own", "scheduler"),
    [("", True, "Volcano"), ("volcano", True, "Volcano"), ("upstream", True, ""),
     ("volcano", False, "Volcano"), ("", False, "")],
)  # fmt: skip
def test_the_report_names_the_scheduler_that_reads_the_file(
    place: str, is_own: bool, scheduler: str
) -> None:
    other = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    options = options_for(place, OPTIONS) if place else OPTIONS
    report = validate([("a.yaml", yaml.safe_dump(conf() if is_own else other))], options)
    assert report.scheduler == scheduler


@pytest.mark.parametrize(
    ("plugin", "key", "value", "fix"),
    [
        ("binpack", "binpack.weight", "10", "remove the quotes"),
        ("binpack", "binpack.weight", "ten", "write an integer"),
        ("binpack", "binpack.weight", "1.5", "write an integer"),
        ("overcommit", "overcommit-factor", "1.5", "remove the quotes"),
        ("predicates", "predicate.CacheEnable", "on", "remove the quotes"),
        ("predicates", "predicate.CacheEnable", 1, "write true or false"),
        ("tdm", "tdm.evict.period", 60, "write it in quotes"),
        ("tdm", "tdm.evict.period", [60], "write a string"),
        ("resource-strategy-fit", "sra", "on", "write a map"),
    ],
)
def test_the_fix_of_a_type_leads_to_that_type(plugin: str, key: str, value: Any, fix: str) -> None:
    [problem] = [
        each for each in problems_of(with_arguments(plugin, **{key: value}), volcano())
        if each.reason == "VolcanoArgumentType"
    ]  # fmt: skip
    assert problem.fix == fix

"""A field in a wrong place is reported with the right one, and with lines that are valid there."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import OLD_PLUGINS, PLUGINS
from kube_scheduler_operator.config.language.plugins.known_schedulers import newest
from kube_scheduler_operator.config.language.schema import ARGS, CONFIGURATION, List, Struct
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version

from ....configurations.model import typed

TARGET = Target(Gates(Version(1, 35)))
FIT = {"type": "MostAllocated"}
POINT = {"enabled": [{"name": "NodeResourcesFit"}]}


def fixes(config: dict[str, Any]) -> list[str]:
    found = validate_config(typed(config), TARGET)
    assert all(problem.parts[1] for problem in found)
    return [problem.parts[1] for problem in found]


def in_profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [{"schedulerName": "a", **fields}]}


def in_args(plugin: str, **fields: Any) -> dict[str, Any]:
    return in_profile(pluginConfig=[{"name": plugin, "args": fields}])


@pytest.mark.parametrize(
    ("config", "lines"),
    [
        ({"schedulerName": "a"}, "profiles: [{schedulerName: a}]"),
        ({"plugins": {"score": POINT}}, "profiles: [{plugins: {score: {enabled: [{name: "
         "NodeResourcesFit}]}}}]"),
        ({"pluginConfig": []}, "profiles: [{pluginConfig: []}]"),
        ({"leaderElect": False}, "leaderElection: {leaderElect: false}"),
        ({"lockObjectName": "x"}, "leaderElection: {resourceName: x}"),
        ({"leaderElection": {"lockObjectName": "x"}}, "leaderElection: {resourceName: x}"),
        ({"leaderElection": {"lockObjectNamespace": "a"}},
         "leaderElection: {resourceNamespace: a}"),
        ({"resourceName": "yes"}, 'leaderElection: {resourceName: "yes"}'),
        ({"kubeconfig": "/a b"}, 'clientConnection: {kubeconfig: "/a b"}'),
        ({"kube-api-qps": 3}, "clientConnection: {qps: 3}"),
        ({"kubeApiBurst": 3}, "clientConnection: {burst: 3}"),
        ({"leader-elect-resource-name": "x"}, "leaderElection: {resourceName: x}"),
        ({"profiling": True}, "enableProfiling: true"),
        ({"scoringStrategy": FIT}, "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: "
         "{scoringStrategy: {type: MostAllocated}}}]}]"),
        ({"hardPodAffinitySymmetricWeight": 5}, "profiles: [{pluginConfig: [{name: "
         "InterPodAffinity, args: {hardPodAffinityWeight: 5}}]}]"),
        ({"bindTimeoutSeconds": 9}, "profiles: [{pluginConfig: [{name: VolumeBinding, args: "
         "{bindTimeoutSeconds: 9}}]}]"),
        (in_profile(parallelism=3), "parallelism: 3"),
        (in_profile(extenders=[]), "extenders: []"),
        (in_profile(leaderElection={"leaderElect": True}), "leaderElection: {leaderElect: true}"),
        (in_profile(score=POINT), "profiles: [{plugins: {score: {enabled: [{name: "
         "NodeResourcesFit}]}}}]"),
        (in_profile(enabled=[{"name": "NodeName"}]), "profiles: [{plugins: {multiPoint: {enabled: "
         "[{name: NodeName}]}}}]"),
        (in_profile(plugins={"disabled": [{"name": "NodeName"}]}), "profiles: [{plugins: "
         "{multiPoint: {disabled: [{name: NodeName}]}}}]"),
        (in_profile(plugins={"unreserve": {}}), "profiles: [{plugins: {reserve: {}}}]"),
        (in_profile(pluginConfig=[{"name": "NodeResourcesFit", "scoringStrategy": FIT}]),
         "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: "
         "MostAllocated}}}]}]"),
        (in_args("NodeResourcesFit", type="MostAllocated"), "profiles: [{pluginConfig: [{name: "
         "NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]}]"),
        (in_args("NodeResourcesFit", hardPodAffinityWeight=3), "profiles: [{pluginConfig: [{name: "
         "InterPodAffinity, args: {hardPodAffinityWeight: 3}}]}]"),
        (in_args("NodeResourcesFit", weight=3), "profiles: [{plugins: {score: {enabled: [{name: "
         "NodeResourcesFit, weight: 3}]}}}]"),
        (in_args("NodeResourcesFit", name="NodeResourcesFit"), "profiles: [{pluginConfig: [{name: "
         "NodeResourcesFit}]}]"),
        (in_profile(pluginConfig=[{"name": "NodeResourcesFit", "weight": 3}]), "profiles: "
         "[{plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 3}]}}}]"),
        (in_profile(plugins={"score": {"enabled": [
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": FIT}}]}}),
         "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: "
         "MostAllocated}}}]}]"),
        ({"schedulername": "a"}, "profiles: [{schedulerName: a}]"),
        ({"Hard-Pod-Affinity-Weight": 3}, "profiles: [{pluginConfig: [{name: InterPodAffinity, "
         "args: {hardPodAffinityWeight: 3}}]}]"),
        (in_profile(plugins={"normalizeScore": POINT}), "profiles: [{plugins: {score: {enabled: "
         "[{name: NodeResourcesFit}]}}}]"),
    ],
)  # fmt: skip
def test_the_fix_has_the_lines_for_the_right_place(config: dict[str, Any], lines: str) -> None:
    (fix,) = fixes(config)
    assert fix.endswith(f": {lines}")
    assert fix.startswith(("move it to ", "list it at ", "rename it to "))
    assert fixes(yaml.safe_load(lines)) == []


@pytest.mark.parametrize(
    ("config", "fix"),
    [
        ({"secure-port": 10259}, "--secure-port=10259"),
        ({"bindAddress": "0.0.0.0"}, "--bind-address=0.0.0.0"),
        ({"featureGates": {"A": True, "B": False}}, "--feature-gates=A=true,B=false"),
        ({"v": 4}, "--v=4"),
        ({"verbosity": 4}, "--v=4"),
        ({"authentication_kubeconfig": "/x"}, "--authentication-kubeconfig=/x"),
    ],
)
def test_a_flag_that_is_written_as_a_field_belongs_to_the_command_line(
    config: dict[str, Any], fix: str
) -> None:
    assert fixes(config) == [f"it is a flag, set it on the command line: {fix}"]


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"healthzBindAddress": "0.0.0.0:10251"}, "--bind-address and --secure-port"),
        ({"metricsBindAddress": ""}, "--bind-address and --secure-port"),
        ({"algorithmSource": {"provider": "DefaultProvider"}}, "convert -f"),
        ({"port": 10251}, "use --secure-port"),
        ({"policyConfigFile": "/x"}, "convert the Policy"),
        ({"spec": {"parallelism": 3}}, "its fields belong at the top level"),
        ({"predicates": [], "kind": "KubeSchedulerConfiguration"}, "convert -f"),
        ({"disablePreemption": True}, "{disabled: [{name: DefaultPreemption}]}"),
    ],
)
def test_a_removed_field_is_reported_with_its_successor(config: dict[str, Any], part: str) -> None:
    (fix,) = fixes(config)
    assert part in fix


@pytest.mark.parametrize(
    ("config", "fix"),
    [
        ({"profilez": []}, 'did you mean "profiles"?'),
        ({"nonsense": 1}, "remove it"),
        ({"name": "a"}, "remove it"),
        ({"key": "a"}, "remove it"),
        ({"clientConnection": {"nonsense": 1}}, "remove it"),
    ],
)
def test_other_unknown_fields_are_to_be_removed(config: dict[str, Any], fix: str) -> None:
    assert fixes(config) == [fix]


def test_a_field_without_value_is_removed_or_set_elsewhere() -> None:
    config = {"leaderElection": {"lockObjectName": None, "resourceName": "a"}}
    assert fixes(config) == ["remove it, or set leaderElection.resourceName"]


def test_a_long_value_is_not_repeated() -> None:
    (fix,) = fixes({"plugins": {"score": {"enabled": [{"name": "x" * 200}]}}})
    assert fix == "move it to profiles[].plugins: profiles: [{plugins: {…}}]"


def _structs() -> list[tuple[str, Struct]]:
    found: list[tuple[str, Struct]] = []
    roots: list[tuple[str, Any]] = [("", CONFIGURATION), *ARGS.items()]
    while roots:
        name, kind = roots.pop()
        if isinstance(kind, Struct):
            found.append((name, kind))
            roots += [(f"{name}.{key}", item) for key, item in kind.fields.items()]
        elif isinstance(kind, List):
            roots.append((name, kind.item))
    return found


def test_every_field_of_every_object_may_be_written_at_the_top() -> None:
    """The fix never names a place that does not have the field."""
    for name, struct in _structs():
        for key in struct.fields:
            if key in CONFIGURATION.fields:
                continue
            (fix,) = fixes({key: {}})
            assert fix, (name, key)
            if fix.startswith("move it to"):
                lines = yaml.safe_load(fix.partition(": ")[2])
                unknown = [
                    p for p in validate_config(typed(lines), TARGET) if "no field" in p.message
                ]
                assert not unknown, fix


@pytest.mark.parametrize("name", OLD_PLUGINS)
def test_an_old_plugin_is_reported_with_what_replaces_it(name: str) -> None:
    (fix,) = fixes(in_profile(plugins={"score": {"enabled": [{"name": name}]}}))
    assert fix == OLD_PLUGINS[name]
    assert name not in PLUGINS or PLUGINS[name].until is not None
    entry = fix.partition(": ")[2]
    assert not entry or fixes(in_profile(pluginConfig=[yaml.safe_load(entry)])) == []


@pytest.mark.parametrize(
    "name", sorted([*newest()["scheduler-plugins"].plugins, "CrossNodePreemption"])
)
def test_a_plugin_of_another_image_is_not_replaced_by_one_of_a_similar_name(name: str) -> None:
    assert name not in PLUGINS
    (fix,) = fixes(in_profile(plugins={"score": {"enabled": [{"name": name}]}}))
    assert fix.startswith("it is a plugin of scheduler-plugins")


@pytest.mark.parametrize(
    ("entry", "written"),
    [
        ({"ImageLocality": 5}, {"name": "ImageLocality", "weight": 5}),
        ({"ImageLocality": {"weight": 5}}, {"name": "ImageLocality", "weight": 5}),
        ({"ImageLocality": None}, {"name": "ImageLocality"}),
    ],
)
def test_a_plugin_that_is_the_key_of_its_entry_becomes_the_name(
    entry: dict[str, Any], written: dict[str, Any]
) -> None:
    fix = fixes(in_profile(plugins={"score": {"enabled": [entry]}}))[0]
    assert yaml.safe_load(fix.removeprefix("write ")) == written


def test_a_level_with_another_meaning_is_not_removed() -> None:
    (fix,) = fixes(in_profile(plugins={"multiPoint": {"score": POINT}}))
    assert fix.startswith("move it to profiles[].plugins.score")


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({"leaderElection": {"leaderElection": {"leaderElect": True}}}, "in leaderElection"),
        ({"profiles": [{"profile": {"schedulerName": "a"}}]}, "in the entry of profiles"),
        ({"config": {"parallelism": 3}}, "at the top level"),
        (
            in_args("NodeResourcesFit", args={"scoringStrategy": FIT}),
            "in the args of NodeResourcesFit",
        ),
    ],
)
def test_a_level_too_many_is_removed(config: dict[str, Any], where: str) -> None:
    assert f"remove this level: its fields belong {where}" in fixes(config)


@pytest.mark.parametrize("key", ["apiVersion", "kind"])
def test_the_type_of_an_entry_is_not_to_be_moved_to_that_of_the_file(key: str) -> None:
    extender = {"urlPrefix": "http://localhost", "filterVerb": "f", key: "v1beta1"}
    assert fixes({"extenders": [extender]}) == ["remove it"]


def test_a_file_has_no_metadata() -> None:
    (fix,) = fixes({"metadata": {"name": "mine"}})
    assert "a file, which --config names" in fix

"""deploy/admission, and the chart's copy of it.

tests/integration/test_admission.py tests what it refuses.
"""

from __future__ import annotations

import json
import re

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import PLATFORMS
from kube_scheduler_operator.config.effective.control_plane.overrides import SERVING_FLAGS
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import (
    NEWEST_RELEASE,
    OLDEST,
    PLUGINS,
)
from kube_scheduler_operator.config.language.schema import (
    ARGS,
    CONFIGURATION,
    POINTS,
    List,
    Map,
    Struct,
)
from policies.build import EXTRA_PLUGINS, files
from policies.profiles import table
from policies.settings import SERVING

from .conftest import Helm
from .overlays import DEPLOY, Object, build
from .test_chart import template

FOLDER = DEPLOY / "admission"
OBJECTS = build(FOLDER)
POLICIES = [obj for obj in OBJECTS if obj["kind"] == "ValidatingAdmissionPolicy"]
BINDINGS = [obj for obj in OBJECTS if obj["kind"] == "ValidatingAdmissionPolicyBinding"]
ON = "admissionPolicy.enabled=true"

# The first test that needs Helm may build it.
pytestmark = pytest.mark.timeout(60, func_only=True)
NODES = "node.kube-scheduler-operator.dev"
APPROVALS = "operatorsettings.kube-scheduler-operator.dev"
each_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda one: one["metadata"]["name"])


def test_the_files_are_up_to_date() -> None:
    """hack/admission generates them; run it again after a change of the check's tables."""
    made = files()
    assert {name: (FOLDER / name).read_text(encoding="utf-8") for name in made} == made
    resources = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert sorted(resources) == sorted(made)


def test_the_plugins_are_the_in_tree_plugins_of_every_version() -> None:
    known = table()
    for minor in range(OLDEST.minor, NEWEST_RELEASE.minor + 1):
        existing = {
            name: {point for point, (first, last) in of.items() if first <= minor <= last}
            for name, of in known.items()
        }
        expected = {
            name: {"multiPoint", *plugin.points_at(minor)} if plugin.exists(minor) else set()
            for name, plugin in PLUGINS.items()
        }
        assert existing == expected


def test_the_fields_are_those_of_the_schema() -> None:
    text = (FOLDER / "kubescheduler.yaml").read_text(encoding="utf-8")

    def fields(kind: object) -> set[str]:
        if isinstance(kind, Struct):
            return set(kind.fields).union(*(fields(child) for child in kind.fields.values()))
        return fields(kind.item) if isinstance(kind, List | Map) else set()

    expected = fields(CONFIGURATION).union(*(fields(struct) for struct in ARGS.values()), POINTS)
    assert {name for name in expected if f'"{name}"' not in text} == set()
    assert set(SERVING) == set(SERVING_FLAGS)


@each_policy
def test_a_policy_never_blocks_a_repair(policy: Object) -> None:
    spec = policy["spec"]
    if policy["metadata"]["name"] == NODES:
        # It limits one account of the operator, and nothing else does.
        assert spec["failurePolicy"] == "Fail"
        (condition,) = spec["matchConditions"]
        for platform in PLATFORMS.values():
            account = f"{platform.target_namespace}:{names.LOAD_ANNOTATOR}"
            assert f'"system:serviceaccount:{account}"' in condition["expression"]
        assert condition["expression"].startswith("request.userInfo.username in")
        return
    if policy["metadata"]["name"] == APPROVALS:
        # It guards an approval, which repairs nothing: whatever repairs is never held.
        assert spec["failurePolicy"] == "Fail"
        return
    assert spec["failurePolicy"] == "Ignore"
    (condition,) = spec["matchConditions"]
    assert "oldObject" in condition["expression"], "existing errors are accepted"
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["CREATE", "UPDATE"]
    assert not any("/" in resource for resource in rule["resources"]), "status is the operator's"


@each_policy
def test_every_list_of_errors_is_validated_and_shown(policy: Object) -> None:
    spec = policy["spec"]
    variables = [v["name"] for v in spec["variables"]]
    found = [name for name in variables if name.endswith("Problems")]
    (validation,) = spec["validations"]  # each other one would compile all variables again
    if policy["metadata"]["name"] == APPROVALS:
        assert (variables, validation["expression"]) == (["mayApprove"], "variables.mayApprove")
        assert "bind the ClusterRole kube-scheduler-operator-approve" in validation["message"]
        return
    conditions = validation["expression"].replace("\n", " ").split(" && ")
    assert conditions == [f'variables.{name} == ""' for name in found]
    assert re.findall(r"variables\.(\w+Problems)", validation["messageExpression"]) == found
    assert validation["message"]
    for variable in spec["variables"]:
        before = variables[: variables.index(variable["name"])]
        used = set(re.findall(r"variables\.(\w+)", variable["expression"]))
        assert used <= set(before), variable["name"]


@pytest.mark.parametrize("binding", BINDINGS, ids=lambda one: one["metadata"]["name"])
def test_a_binding_gets_the_version_from_the_cluster_operator(binding: Object) -> None:
    spec = binding["spec"]
    (policy,) = (one for one in POLICIES if one["metadata"]["name"] == spec["policyName"])
    assert spec["validationActions"] == ["Deny"]
    if "paramKind" in policy["spec"]:
        assert policy["spec"]["paramKind"]["kind"] == "ClusterOperator"
        assert spec["paramRef"] == {
            "name": names.CLUSTEROPERATOR,
            "parameterNotFoundAction": "Allow",
        }
    assert ("paramKind" in policy["spec"]) == ("paramRef" in spec)


def admission(objects: list[Object]) -> dict[tuple[str, str], Object]:
    return {
        (obj["kind"], obj["metadata"]["name"]): obj["spec"]
        for obj in objects
        if obj["kind"].startswith("ValidatingAdmission")
    }


def test_the_chart_has_no_policies_by_default(helm: Helm) -> None:
    assert admission(template(helm)) == {}
    assert admission(template(helm, ON)) == admission(OBJECTS)


def test_the_chart_sets_the_validation_actions(helm: Helm) -> None:
    objects = admission(template(helm, ON, "admissionPolicy.actions={Warn,Audit}"))
    actions = [o["validationActions"] for (kind, _), o in objects.items() if "Binding" in kind]
    assert actions == [["Warn", "Audit"]] * len(BINDINGS)


@pytest.mark.parametrize(
    ("values", "plugins"),
    [
        ((), []),
        (("admissionPolicy.extraPlugins={Mine,Yours}",), ["Mine", "Yours"]),
        (("operandImage=registry.example/team/scheduler:v1.35.4",), ["*"]),
        (("operandImage=registry.example/kube-scheduler:v1.35.4",), []),
        (("operandImage=registry.example/kube-scheduler@sha256:00",), []),
        (("operandImage=x/mine:v1", "admissionPolicy.extraPlugins={Mine}"), ["Mine"]),
    ],
    ids=str,
)
def test_the_chart_sets_extra_plugins_by_image(
    values: tuple[str, ...], plugins: list[str], helm: Helm
) -> None:
    objects = admission(template(helm, ON, *values))
    found = [
        json.loads(variable["expression"])
        for spec in objects.values()
        for variable in spec.get("variables", ())
        if variable["name"] == EXTRA_PLUGINS
    ]
    versioned = [p for p in POLICIES if p["spec"]["variables"][0]["name"] == EXTRA_PLUGINS]
    assert found == [plugins] * len(versioned)
    assert len(versioned) >= 3

"""deploy/assignment: policy and webhook select the same Pods, for every installation."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml
from cel_expr_python import cel

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import AUTHENTICATION_NAMESPACE, PLATFORMS
from kube_scheduler_operator.operator.admission.review_connection import PATH
from kube_scheduler_operator.operator.engine.assignment import WEBHOOK_PORT
from kube_scheduler_operator.operator.secondary.assignment import chosen

from ...assignments import drawn
from .conftest import Helm
from .overlays import DEPLOY, Object, build
from .test_chart import comparable, template

POLICY = build(DEPLOY / "assignment" / "policy")
WEBHOOK = build(DEPLOY / "assignment" / "webhook")
OPENSHIFT_WEBHOOK = build(DEPLOY / "assignment" / "openshift-webhook")


def one(objects: list[Object], kind: str) -> Any:
    (found,) = (obj for obj in objects if obj["kind"] == kind)
    return found


def webhook(objects: list[Object]) -> Any:
    (found,) = one(objects, "MutatingWebhookConfiguration")["webhooks"]
    return found


def test_policy_and_webhook_select_the_same_pods() -> None:
    policy, hook = one(POLICY, "MutatingAdmissionPolicy")["spec"], webhook(WEBHOOK)
    matched = policy["matchConstraints"]
    assert hook["rules"] == matched["resourceRules"]
    assert hook["namespaceSelector"] == matched["namespaceSelector"]
    assert hook["objectSelector"] == matched["objectSelector"]
    assert hook["matchConditions"] == policy["matchConditions"]
    assert hook["reinvocationPolicy"] == policy["reinvocationPolicy"]
    assert hook["failurePolicy"] == policy["failurePolicy"] == "Ignore"
    assert hook["timeoutSeconds"] == 1


def test_the_cel_of_the_policy_selects_as_the_webhook_does() -> None:
    """In CEL's own C++ library; tests/integration/test_assignment.py asks kube-apiserver."""
    spec = one(POLICY, "MutatingAdmissionPolicy")["spec"]
    inputs = ("object", "namespaceObject", "params", "variables")
    environment = cel.NewEnv(variables=dict.fromkeys(inputs, cel.Type.DYN))
    variables = {
        variable["name"]: environment.compile(variable["expression"])
        for variable in spec["variables"]
    }
    (mutation,) = spec["mutations"]
    condition, _, patch = mutation["jsonPatch"]["expression"].partition("? [JSONPatch{")
    assert patch == (
        'op: "replace", path: "/spec/schedulerName", '
        "value: params.status.assignment.schedulerName}] : []"
    )
    mutates = environment.compile(condition)
    draw = random.Random(29)
    outcomes = set()
    for _ in range(2_000):
        case = drawn(draw)
        scheduler = {"metadata": {"name": "x"}, "status": {"assignment": case.assignment}}
        values: dict[str, Any] = {}
        data = {
            "object": {
                "metadata": {"labels": case.labels} if case.labels else {},
                "spec": {"priorityClassName": case.priority_class},
            },
            "namespaceObject": {"metadata": {"labels": case.namespace_labels}},
            "params": scheduler,
            "variables": values,
        }
        for name, expression in variables.items():
            values[name] = expression.eval(data=data).plain_value()
        expected = chosen([scheduler], case.namespace_labels, case.labels, case.priority_class)
        assert mutates.eval(data=data).value() is bool(expected), case
        outcomes.add(expected)
    assert outcomes == {"drawn", ""}


def test_the_namespaces_of_every_platform_and_the_label_are_excluded() -> None:
    selector = webhook(WEBHOOK)["namespaceSelector"]["matchExpressions"]
    by_name, by_label = selector
    assert set(by_name["values"]) == {AUTHENTICATION_NAMESPACE} | {
        namespace
        for platform in PLATFORMS.values()
        for namespace in (platform.operator_namespace, platform.target_namespace)
    }
    opted_out = {"key": names.ASSIGN_LABEL, "operator": "NotIn", "values": [names.ASSIGN_NEVER]}
    assert by_label == opted_out
    assert webhook(WEBHOOK)["objectSelector"]["matchExpressions"] == [
        opted_out, {"key": names.SECONDARY_LABEL, "operator": "DoesNotExist"}
    ]  # fmt: skip


def test_the_names_are_those_of_the_program() -> None:
    for objects in (POLICY, WEBHOOK):
        mine = [obj["metadata"]["name"] for obj in objects if obj["kind"].startswith("Mutating")]
        assert set(mine) == {names.ASSIGNMENT}
    service = webhook(WEBHOOK)["clientConfig"]["service"]
    assert (service["name"], service["path"]) == (names.WEBHOOK, PATH.decode())
    (port,) = one(WEBHOOK, "Service")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (service["port"], WEBHOOK_PORT)
    (allowed,) = one(WEBHOOK, "NetworkPolicy")["spec"]["ingress"][0]["ports"]
    assert allowed["port"] == port["targetPort"]
    assert one(WEBHOOK, "Secret")["metadata"]["name"] == names.WEBHOOK
    assert "data" not in one(WEBHOOK, "Secret"), "an apply must not take the certificate away"


@pytest.mark.parametrize(
    ("objects", "overlay"),
    [(WEBHOOK, "kubeadm"), (WEBHOOK, "managed"), (OPENSHIFT_WEBHOOK, "openshift")],
)
def test_service_rights_and_guard_are_for_the_operator_of_the_overlay(
    objects: list[Object], overlay: str
) -> None:
    platform = PLATFORMS[overlay]
    namespace, account = platform.operator_namespace, platform.operator.account
    (deployment,) = (
        obj
        for obj in build(DEPLOY / overlay)
        if obj["kind"] == "Deployment" and obj["metadata"]["name"] == platform.operator.deployment
    )
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert one(objects, "Service")["spec"]["selector"].items() <= labels.items()
    selected = one(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
    assert selected.items() <= labels.items()
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        (subject,) = one(objects, kind)["subjects"]
        assert (subject["namespace"], subject["name"]) == (namespace, account)
    (condition,) = one(objects, "ValidatingAdmissionPolicy")["spec"]["matchConditions"]
    assert f'"system:serviceaccount:{namespace}:{account}"' in condition["expression"]
    assert webhook(objects)["clientConfig"]["service"]["namespace"] == namespace
    places = {obj["metadata"].get("namespace") for obj in objects}
    assert places == {None, namespace}
    for kind in ("MutatingWebhookConfiguration", "ValidatingAdmissionPolicy"):
        assert "namespace" not in one(objects, kind)["metadata"]


def test_rights_are_limited_by_name() -> None:
    for kind in ("ClusterRole", "Role"):
        for rule in one(WEBHOOK, kind)["rules"]:
            assert "resourceNames" in rule or rule["resources"] == ["namespaces"], rule
            assert not {"create", "delete", "patch", "*"} & set(rule["verbs"])


@pytest.mark.parametrize("way", ["policy", "webhook"])
def test_managed_has_both_in_one_command(way: str) -> None:
    whole = comparable(build(DEPLOY / f"managed-{way}"))
    parts = [*build(DEPLOY / "managed"), *build(DEPLOY / "assignment" / way)]
    assert whole == comparable(parts)


@pytest.mark.parametrize(
    ("options", "way"),
    [
        (("assignment.way=policy",), "policy"),
        (("assignment.way=webhook",), "webhook"),
        ((), "webhook"),
    ],
)
def test_the_chart_installs_the_same(helm: Helm, options: tuple[str, ...], way: str) -> None:
    without = template(helm, "platform=managed")
    objects = template(helm, "platform=managed", "assignment.enabled=true", *options)
    before = {(obj["kind"], obj["metadata"]["name"]) for obj in without}
    added = [obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) not in before]
    expected = build(DEPLOY / "assignment" / way)
    assert comparable(added) == comparable(expected)


def test_the_chart_takes_the_policy_where_the_api_server_serves_it(helm: Helm) -> None:
    served = "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
    options = ("--namespace=kube-system", "--set=assignment.enabled=true", served)
    done = helm("template", "kso", options=options)
    assert done.returncode == 0, done.stderr
    kinds = {obj["kind"] for obj in yaml.safe_load_all(done.stdout) if obj}
    assert "MutatingAdmissionPolicy" in kinds
    assert "MutatingWebhookConfiguration" not in kinds

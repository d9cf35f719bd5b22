"""What cannot be converted is rejected with a message that names the field and the fix."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.findings import format_path
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.validation.configuration import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.migrate.changes import ConversionError
from kube_scheduler_operator.config.migrate.convert import convert

from .conversions import AGENT_SCHEDULER, component, policy, predicates, priorities, profile

NONSENSE: dict[str, tuple[Any, str, str]] = {
    "no object": ([], "", "pass a KubeSchedulerConfiguration or a Policy"),
    "nothing": ({}, "kind", "pass a KubeSchedulerConfiguration"),
    "another kind": (
        {"apiVersion": "v1", "kind": "Pod"}, "kind", "the document has v1 Pod; pass a",
    ),
    "another version": (component("v1beta4"), "apiVersion", 'did you mean "v1beta3"?'),
    "another group": (
        {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
        "apiVersion", "of kubescheduler.config.k8s.io",
    ),
    "a type": (component("v1beta2", parallelism="3"), "parallelism", "must be an integer"),
    "profiles": (component("v1beta2", profiles={}), "profiles", "must be a list"),
    "plugins": (
        component("v1beta2", profiles=[{"plugins": {"score": []}}]),
        "profiles[0].plugins.score", "must be an object",
    ),
    "arguments": (
        profile("v1beta1", config={"NodeLabel": {"presentLabels": "a"}}),
        "profiles[0].pluginConfig[0].args.presentLabels", "must be a list",
    ),
    "two locks": (
        component(
            "v1alpha1", leaderElection={"lockObjectName": "a", "resourceName": "b"}),
        "leaderElection.lockObjectName", "remove one of them",
    ),
    "a provider": (
        component("v1alpha1", algorithmSource={"provider": "Mine"}),
        "algorithmSource.provider", "use DefaultProvider or ClusterAutoscalerProvider",
    ),
    "a Policy elsewhere": (
        AGENT_SCHEDULER, "algorithmSource.policy.configMap",
        "the Policy is in ConfigMap my-scheduler-policy in kube-system; pass it as well",
    ),
    "a Policy in a file": (
        component("v1alpha1", algorithmSource={"policy": {"file": {"path": "/etc/policy"}}}),
        "algorithmSource.policy.file.path", "the Policy is in file /etc/policy",
    ),
    "a Policy nowhere": (
        component("v1alpha1", algorithmSource={"policy": {}}),
        "algorithmSource.policy", "set either file.path or configMap.name",
    ),
    "a Policy and a provider": (
        component("v1alpha1", algorithmSource={
            "provider": "DefaultProvider", "policy": {"file": {"path": "/etc/policy"}}}),
        "algorithmSource", "mutually exclusive",
    ),
    "a predicate": (
        policy(predicates=predicates("PodFitsResource")),
        "predicates[0].name", 'did you mean "PodFitsResources"?',
    ),
    "a priority": (
        policy(priorities=priorities(Mine=1)),
        "priorities[0].name", "remove it, or set the argument that defines it",
    ),
    "a weight": (
        policy(priorities=[{"name": "ImageLocalityPriority"}]),
        "priorities[0].weight", "use 1 or more",
    ),
    "two arguments": (
        policy(predicates=[{"name": "a", "argument": {
            "serviceAffinity": {}, "labelsPresence": {}}}]),
        "predicates[0].argument", "keep one",
    ),
    "a time-out": (
        policy(extenders=[{"urlPrefix": "http://a", "httpTimeout": "5s"}]),
        "extenders[0].httpTimeout", "must be an integer",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NONSENSE)
def test_invalid_documents_are_rejected_with_field_and_fix(name: str) -> None:
    document, path, part = NONSENSE[name]
    with pytest.raises(ConversionError) as raised:
        convert(document, Target(Gates(Version(1, 35))))
    (problem,) = raised.value.problems
    assert format_path(problem.path) == path
    assert part in problem.message
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("group", ["v1beta2", "v1beta3", "v1"])
@pytest.mark.parametrize(
    "fields",
    [
        {"leaderElection": {"leaseDuration": None}},
        {"extenders": [{"urlPrefix": "http://u", "httpTimeout": None}]},
    ],
)
def test_a_duration_that_is_null_is_absent(group: str, fields: dict[str, Any]) -> None:
    document = {
        "apiVersion": f"kubescheduler.config.k8s.io/{group}",
        "kind": "KubeSchedulerConfiguration",
        **fields,
    }
    target = Target(Gates(Version(1, 35)))
    absent = {"leaderElection": {}, "extenders": [{"urlPrefix": "http://u"}]}
    without = {**document, **{field: absent[field] for field in fields}}
    assert convert(document, target).config == convert(without, target).config

"""The operator reads a zero value that the API server accepts like an absent field.

That the API server accepts it: tests/integration/test_zero_values.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.effective.extenders import agent
from kube_scheduler_operator.config.effective.extenders.entry import agent_of, check_entry
from kube_scheduler_operator.config.effective.profiles.check import (
    ProfileVersion,
    Surroundings,
    check_profile,
)
from kube_scheduler_operator.config.effective.secondary import request as secondary
from kube_scheduler_operator.config.effective.settings.requested_pod import requested_pod
from kube_scheduler_operator.config.effective.settings.validate import (
    PodDefaults,
    settings_problems,
)
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.target_scheduler import Target
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.loadpolicy import request as loads

from ...control_plane_inputs import inputs_of
from .test_crds import schema
from .zero_values import REFUSED, Case, adjust, cases

VERSION = Version.parse("v1.36.0")
TARGET = Target(Gates(VERSION), stock=False)

PASSED_ON = (
    "nodeMetrics.resources.", "annotator.resources.", "spec.resources.", "tolerations[].",
    "spec.config.", "spec.profiles[].", "spec.sidecars[].", "spec.plugins.", "spec.pluginConfig[].",
    "spec.percentageOfPlacementsToScore",
)  # fmt: skip
"""Fields of Kubernetes' types. They are passed on, so zero values mean what they mean there."""

REQUIRED_BY_RULES = ("spec.url", "spec.verbs")
"""Fields without which the object of the test is invalid: an extender is a URL with verbs."""

A_VALUE: Mapping[str, frozenset[str]] = {
    names.LOADPOLICIES: frozenset(
        {
            "spec.sync=[]",
            "spec.predicates=[]",
            "spec.priorities=[]",
            "spec.hotValues=[]",
            "spec.annotator.tolerations=[]",
            "spec.source.nodeMetrics.tolerations=[]",
        }
    ),
    names.OPERATORSETTINGS: frozenset(),
    names.SCHEDULEREXTENDERS: frozenset(
        {
            "spec.agent.policies[].weight=0",
            "spec.agent.verbs.filter=False",
            "spec.agent.verbs.prioritize=False",
            "spec.ignorable=False",
            "spec.nodeCacheCapable=False",
        }
    ),
    names.SCHEDULERPROFILES: frozenset(),
    names.SECONDARYSCHEDULERS: frozenset(
        {
            "spec.imagePullSecrets=[]",
            "spec.tolerations=[]",
            "spec.topologySpreadConstraints=[]",
        }
    ),
}
"""Zero values that mean something else than an absent field, as their descriptions say."""


def read_load_policy(spec: Mapping[str, Any]) -> object:
    parsed = loads.read(spec)
    assert not parsed.problems
    return parsed


def read_extender(spec: Mapping[str, Any]) -> object:
    checked = check_entry("x", spec, TARGET)
    assert not checked.problems
    found = agent_of(spec)
    if found is None:
        return checked.entry
    managed = agent.sidecar("x", found, 5401)
    return checked.entry, agent.agent_file(managed), agent.container(managed, "image")


def read_profile(spec: Mapping[str, Any]) -> object:
    version = ProfileVersion("x", "spec", spec)
    checked = check_profile(version, None, Surroundings.of(None, {}, TARGET))
    assert not checked.problems
    return version.scheduler_name, checked.points


def read_secondary(spec: Mapping[str, Any]) -> object:
    return secondary.read({"metadata": {"name": "x"}, "spec": spec})


def read_settings(spec: Mapping[str, Any]) -> object:
    assert not tuple(settings_problems({"metadata": {}, "spec": spec}, PodDefaults()))
    return requested_pod(spec)


READERS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    names.LOADPOLICIES: read_load_policy,
    names.OPERATORSETTINGS: read_settings,
    names.SCHEDULEREXTENDERS: read_extender,
    names.SCHEDULERPROFILES: read_profile,
    names.SECONDARYSCHEDULERS: read_secondary,
}


def without(value: dict[str, Any], path: str) -> dict[str, Any]:
    """A copy without the field."""
    value = copy.deepcopy(value)
    *parents, last = path.replace("[]", ".[]").replace("{}", ".{}").split(".")
    node: Any = value
    for step in parents:
        node = node[0] if step == "[]" else node["x"] if step == "{}" else node[step]
    del node[last]
    return value


def accepted(name: str) -> list[Case]:
    """The fields of a spec whose zero value is accepted; a null is dropped by the API server."""
    return [
        case
        for case in cases(schema(name))
        if case.path.startswith("spec.")
        and case.zero is not None
        and not any(each in case.path for each in PASSED_ON)
        and case.path not in (*REFUSED[name], *REQUIRED_BY_RULES)
        and not (case.zero == {} and "required" in case.schema)
    ]


@pytest.mark.parametrize("name", READERS)
def test_a_zero_value_is_read_like_an_absent_field(name: str) -> None:
    different = set()
    for case in accepted(name):
        zero = adjust(name, case.value, case.path)
        absent = without(zero, case.path)
        if READERS[name](zero["spec"]) != READERS[name](absent["spec"]):
            different.add(case.id)
    assert different == set(A_VALUE[name])


@pytest.mark.parametrize("name", REFUSED)
def test_the_description_of_a_refused_zero_value_has_the_alternative(name: str) -> None:
    for path in REFUSED[name]:
        assert "0 is refused; leave the field out" in schema(name, path)["description"]


def test_what_openshifts_typed_client_writes_changes_no_configuration() -> None:
    """Every field of its types without omitempty, so that an unchanged update rolls nothing out."""
    scheduler = {
        "policy": {"name": ""},
        "profileCustomizations": {"dynamicResourceAllocation": ""},
        "mastersSchedulable": False,
    }
    kubescheduler = {
        "managementState": "", "forceRedeploymentReason": "",
        "unsupportedConfigOverrides": None, "observedConfig": None,
    }  # fmt: skip
    plain, typed = (
        compose(
            inputs_of(
                platform=OPENSHIFT,
                default_version=VERSION,
                scheduler={"spec": one},
                kubescheduler={"spec": other},
            )
        )
        for one, other in (({}, {}), (scheduler, kubescheduler))
    )
    assert typed.config is not None
    assert (typed.config, typed.arguments) == (plain.config, plain.arguments)
    assert typed.findings == plain.findings

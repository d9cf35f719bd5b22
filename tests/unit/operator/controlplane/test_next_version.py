"""ClusterOperator is not Upgradeable while the next minor version would refuse a setting."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.effective.control_plane.inputs import Inputs
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.controlplane.versions import next_version_condition
from kube_scheduler_operator.operator.status.conditions import Condition

from ....control_plane_inputs import inputs_of, inputs_with


def inputs(version: Version, overrides: Any = None) -> Inputs:
    spec = {} if overrides is None else {"unsupportedConfigOverrides": overrides}
    return inputs_of(
        platform=KUBEADM, default_version=version, scheduler=None, kubescheduler={"spec": spec}
    )


def condition(version: Version, overrides: Any = None) -> Condition:
    return next_version_condition(compose(inputs(version, overrides)))


def test_a_configuration_of_every_version_is_upgradeable() -> None:
    assert condition(Version(1, 35, 4)).status == "True"


LOCKED_IN_36 = {"arguments": {"feature-gates": ["CSIServiceAccountTokenSecrets=false"]}}


def test_a_field_that_only_the_next_version_refuses_is_named() -> None:
    found = condition(Version(1, 35, 4), LOCKED_IN_36)
    assert (found.status, found.reason) == ("False", "RefusedByNextVersion")
    assert "1.36 would refuse the configuration of 1.35" in found.message
    assert "CSIServiceAccountTokenSecrets" in found.message


def test_what_this_version_refuses_as_well_is_reported_elsewhere() -> None:
    assert condition(Version(1, 35, 4), {"noSuchField": 1}).status == "True"


@pytest.mark.parametrize("minor", [NEWEST.minor, NEWEST.minor + 1])
def test_the_condition_of_a_version_without_recorded_rules_is_unknown(minor: int) -> None:
    found = condition(Version(1, minor), LOCKED_IN_36)
    assert (found.status, found.reason) == ("Unknown", "NextVersionUnknown")
    assert f"the rules of 1.{minor + 1} are not on record" in found.message


REMOVED_IN_38 = {"arguments": {"feature-gates": ["DynamicResourceAllocation=true"]}}
PRE_RELEASE = "the rules of 1.38 are those of the pre-release v1.38.0-beta.0, not of a release"


def test_only_the_rules_of_a_release_make_a_configuration_upgradeable() -> None:
    found = condition(Version(1, 37, 2))
    assert (found.status, found.reason) == ("Unknown", "NextVersionUnknown")
    assert PRE_RELEASE in found.message


def test_what_a_pre_release_refuses_is_named_with_it() -> None:
    found = condition(Version(1, 37, 2), REMOVED_IN_38)
    assert (found.status, found.reason) == ("False", "RefusedByNextVersion")
    assert "1.38 would refuse the configuration of 1.37" in found.message
    assert "DynamicResourceAllocation" in found.message
    assert PRE_RELEASE in found.message


def test_what_an_extender_has_to_do_is_named_with_what_is_not_known() -> None:
    extender = {"urlPrefix": "http://x.example", "preemptVerb": "preempt", "weight": 1}
    made = inputs(Version(1, 37, 2), {"extenders": [extender]})
    found = next_version_condition(compose(inputs_with(made, scheduler={"spec": {}})))
    assert found.status == "Unknown"
    assert "extenders[0] (http://x.example) has a preemptVerb: from 1.38 on" in found.message


def test_the_condition_of_an_image_with_plugins_of_its_own_is_unknown() -> None:
    found = next_version_condition(compose(inputs_with(inputs(Version(1, 35, 4)), stock=False)))
    assert (found.status, found.reason) == ("Unknown", "NextVersionUnknown")
    assert "its image may have plugins of its own" in found.message

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

from ....control_plane_inputs import inputs_of


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
def test_an_unknown_version_counts_as_upgradeable(minor: int) -> None:
    found = condition(Version(1, minor), LOCKED_IN_36)
    assert (found.status, found.reason) == ("True", "NextVersionUnknown")

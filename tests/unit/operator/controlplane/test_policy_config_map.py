"""The copy of the ConfigMap that spec.policy of Scheduler names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.operator.controlplane.target_config_maps import mirror_policy
from kube_scheduler_operator.operator.model.plan import Create, Delete, Replace
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from .... import builders

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = {"policy.cfg": '{"kind": "Policy"}'}


def source(name: str = "mine", **content: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "openshift-config"}, **content}


def copy(**content: Any) -> dict[str, Any]:
    metadata = {
        "name": "policy-configmap",
        "namespace": "openshift-kube-scheduler",
        "labels": dict(names.OWN_LABELS),
        "uid": "1",
    }
    return {"kind": "ConfigMap", "metadata": metadata, **content}


def snapshot(
    policy: Any, *there: dict[str, Any], here: Any = None, platform: Platform = OPENSHIFT
) -> Snapshot:
    return builders.snapshot(
        now=NOW,
        platform=platform,
        scheduler={"metadata": {"name": "cluster"}, "spec": {"policy": policy}},
        user_config_maps=builders.by_name(there),
        config_maps={} if here is None else {"policy-configmap": here},
    )


@pytest.mark.parametrize("name", ["test-abc", "policy-configmap"])
def test_a_named_config_map_is_copied_under_one_name(name: str) -> None:
    (write,) = mirror_policy(snapshot({"name": name}, source(name, data=POLICY)))
    assert isinstance(write, Create)
    assert write.obj["metadata"]["name"] == "policy-configmap"
    assert write.obj["metadata"]["namespace"] == "openshift-kube-scheduler"
    assert write.obj["data"] == POLICY


def test_an_edit_of_the_source_reaches_the_copy() -> None:
    found = snapshot({"name": "mine"}, source(data={"policy.cfg": "new"}), here=copy(data=POLICY))
    (write,) = mirror_policy(found)
    assert isinstance(write, Replace)
    assert write.obj["data"] == {"policy.cfg": "new"}


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ({"data": POLICY}, {"data": POLICY}),
        ({}, {}),
        ({"binaryData": {"a": "AA=="}}, {"binaryData": {"a": "AA=="}}),
    ],
    ids=["text", "empty", "binary"],
)
def test_an_equal_copy_is_not_written(content: dict[str, Any], kept: dict[str, Any]) -> None:
    assert mirror_policy(snapshot({"name": "mine"}, source(**content), here=copy(**kept))) == ()


def test_keys_that_left_the_source_leave_the_copy() -> None:
    before = copy(data=POLICY, binaryData={"a": "AA=="})
    (write,) = mirror_policy(snapshot({"name": "mine"}, source(data=POLICY), here=before))
    assert isinstance(write, Replace)
    assert (write.obj["data"], write.obj["binaryData"]) == (POLICY, {})


@pytest.mark.parametrize(
    ("policy", "there"),
    [
        ({"name": ""}, [source(data=POLICY)]),
        (None, [source(data=POLICY)]),
        ({"name": "mine"}, []),
    ],
    ids=["cleared", "removed", "source deleted"],
)
def test_the_copy_is_deleted_with_the_reference_or_its_source(policy: Any, there: Any) -> None:
    (write,) = mirror_policy(snapshot(policy, *there, here=copy(data=POLICY)))
    assert isinstance(write, Delete)
    assert write.obj["metadata"]["uid"] == "1"
    assert mirror_policy(snapshot(policy, *there)) == ()


def test_without_a_scheduler_the_copy_is_deleted() -> None:
    found = snapshot(None, here=copy(data=POLICY))
    without = Snapshot(
        now=NOW, platform=OPENSHIFT, settings=Settings(), config_maps=found.config_maps
    )
    assert [type(write) for write in mirror_policy(without)] == [Delete]


def test_other_platforms_have_no_copy() -> None:
    found = snapshot({"name": "mine"}, source(data=POLICY), platform=KUBEADM)
    assert mirror_policy(found) == ()

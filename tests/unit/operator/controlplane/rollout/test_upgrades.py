"""What kubeadm wrote on nodes: which image is requested, and which scheduler is not replaced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.controlplane.rollout import kubeadm_upgrades as upgrades
from kube_scheduler_operator.operator.controlplane.versions import (
    NodeVersions,
    skew_condition,
    versions,
)
from kube_scheduler_operator.operator.model import operand_pods
from kube_scheduler_operator.operator.model.operand_pods import NodeDisk
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from ..... import builders
from .....builders import node, operand_pod

OLD, NEW, NEWER = (f"registry.k8s.io/kube-scheduler:v1.{one}" for one in ("35.4", "36.3", "37.2"))
OLD_SERVER, NEW_SERVER = (
    f"registry.k8s.io/kube-apiserver:v1.{one}" for one in ("35.4", "36.3")
)  # fmt: skip
STOCK = NodeDisk(revision=1, image=NEW, api_server=NEW_SERVER)
OURS = NodeDisk(revision=1, api_server=OLD_SERVER)
IMAGES = {1: OLD, 2: NEW}


def snapshot(image: str = "") -> Snapshot:
    return builders.snapshot(
        settings=Settings(operand_image=image),
        server_version="v1.36.3",
        nodes={name: node(name) for name in ("a", "b")},
    )


def test_a_version_that_kubeadm_wrote_is_requested() -> None:
    assert upgrades.requested_image(snapshot(), {"a": STOCK, "b": OURS}, OLD) == NEW


@pytest.mark.parametrize(
    "disk",
    [
        replace(STOCK, work="kubeadm-upgraded-manifests1"),
        replace(STOCK, image=OLD),
        replace(STOCK, image=NEWER),
        replace(STOCK, image="registry.example/kube-scheduler:v1.36.3"),
    ],
    ids=["while kubeadm waits", "the same", "newer than the API server", "of another repository"],
)
def test_other_manifests_request_nothing(disk: NodeDisk) -> None:
    assert upgrades.requested_image(snapshot(), {"a": disk}, OLD) == ""


def test_a_configured_image_is_not_replaced() -> None:
    assert upgrades.requested_image(snapshot(OLD), {"a": STOCK}, OLD) == ""
    assert "OPERAND_IMAGE" in upgrades.not_followed(snapshot(OLD), STOCK, OLD)


def test_a_node_that_has_left_requests_nothing() -> None:
    assert upgrades.requested_image(snapshot(), {"c": STOCK}, OLD) == ""


def hold(disk: NodeDisk, current: int, desired: str, image: str = "") -> upgrades.Hold | None:
    disks = {"a": (disk, IMAGES.get(current, ""))}
    return upgrades.holds(snapshot(image), disks, desired).get("a")


def test_nothing_is_replaced_while_kubeadm_works_on_a_node() -> None:
    found = hold(replace(OURS, work="kubeadm-upgraded-manifests1"), 1, OLD, image=OLD)
    assert found is not None
    assert found.work
    assert "/etc/kubernetes/tmp/kubeadm-upgraded-manifests1 or has left it" in found.why


def test_what_kubeadm_wrote_stays_while_the_desired_revision_has_another_version() -> None:
    found = hold(STOCK, 1, OLD)
    assert found is not None
    assert found.requested == NEW
    assert "until a revision for it can be installed" in found.why
    assert "not valid" not in found.why, "no configuration was checked for it yet"
    assert hold(STOCK, 1, NEW) is None, "now it can be replaced"
    assert hold(STOCK, 0, OLD) is not None, "also on a machine that has just joined"


def test_a_node_waits_for_its_api_server() -> None:
    found = hold(OURS, 1, NEW)
    assert found is not None
    assert "its API server is v1.35.4, and the desired revision is for v1.36.3" in found.why
    assert hold(OURS, 1, NEW, image=NEW) is None, "a configured image is the administrator's"
    assert hold(replace(OURS, api_server=""), 1, NEW) is None, "it is unknown"
    assert hold(replace(OURS, api_server=NEW_SERVER), 1, OLD) is None, "an edit without an upgrade"
    assert hold(OURS, 0, NEW) is None, "no scheduler of the operator runs there yet"


def test_a_node_that_no_program_has_read_keeps_its_version() -> None:
    found = hold(upgrades.UNREAD, 1, NEW)
    assert found is not None
    assert found.unread
    assert not found.keeps_files
    assert hold(upgrades.UNREAD, 1, OLD) is None, "another version is not tried"
    assert hold(upgrades.UNREAD, 0, NEW) is None, "no scheduler of the operator runs there yet"


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("registry.example/kube-scheduler:v1.36.3", "its repository is not registry.k8s.io"),
        (NEWER, "newer than the API server"),
        (NEW, ""),
        (OLD, ""),
        ("", ""),
    ],
)
def test_an_image_that_is_not_followed_has_a_reason(image: str, why: str) -> None:
    text = upgrades.not_followed(snapshot(), replace(STOCK, image=image), OLD)
    assert why in text if why else text == ""


# --- versions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheduler", "skew", "problem"),
    [
        ("v1.36.0", 0, ""),
        ("v1.35.9", 1, ""),
        ("v1.34.0", 2, "is 2 minor versions older than its API server"),
        ("v1.37.0", -1, "is newer than its API server v1.36.3"),
    ],
)
def test_the_skew_is_that_of_the_version_skew_policy(
    scheduler: str, skew: int, problem: str
) -> None:
    found = NodeVersions("a", Version.parse(scheduler), Version(1, 36, 3))
    assert found.skew == skew
    assert problem in found.problem if problem else found.problem == ""
    condition = skew_condition((found,))
    assert (condition.type, condition.status) == (
        names.VERSION_SKEW,
        "True" if problem else "False",
    )


def test_the_api_server_of_the_node_counts() -> None:
    pods = {name: operand_pods.read(operand_pod(name, 1, image=OLD)) for name in ("a", "b")}
    found = versions(snapshot(), pods, {"a": OURS})
    assert [str(one.api_server) for one in found] == ["v1.35.4", "v1.36.3"]


@pytest.mark.parametrize(
    ("disk", "newer", "api_server"),
    [
        (OURS, "", None),  # a report from before kubeadm wrote the scheduler's manifest
        (STOCK, "", "v1.36.3"),
        (None, "", "v1.35.4"),
        (None, "v1.36.3", None),  # API servers have several versions
    ],
    ids=["an older report", "the present one", "none", "none during an upgrade"],
)
def test_a_scheduler_is_not_compared_with_an_api_server_of_before(
    disk: NodeDisk | None, newer: str, api_server: str | None
) -> None:
    pods = {"a": operand_pods.read(operand_pod("a", 0, image=NEW))}
    seen = replace(snapshot(), server_version="v1.35.4", newer_version=newer)
    (found,) = versions(seen, pods, {"a": disk} if disk is not None else {})
    assert (str(found.api_server) if found.api_server else None) == api_server
    condition = skew_condition((found,))
    assert (condition.status == "True") == (api_server == "v1.35.4")
    assert ("is not known on a" in condition.message) == (api_server is None)


def test_versions_of_an_upgrade_are_listed_by_node() -> None:
    found = tuple(
        NodeVersions(name, Version.parse(version), Version(1, 36))
        for name, version in (("a", "v1.36.3"), ("b", "v1.35.4"), ("c", "v1.35.4"))
    )
    assert skew_condition(found).message == "kube-scheduler v1.35.4 on b, c; v1.36.3 on a"

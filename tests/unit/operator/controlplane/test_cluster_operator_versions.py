"""Versions in ClusterOperator, by which an upgrade of OpenShift knows that it has ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.operator.controlplane.cluster_operator import report_cluster_operator

from ....builders import operand_pod, snapshot

NEW, OLD = "quay.example/hyperkube@sha256:02", "quay.example/hyperkube@sha256:01"
RELEASE = Settings(operator_version="4.20.0", release_version="4.20.0", operand_image=NEW)


def versions(settings: Settings, *images: str, openshift: bool = True) -> dict[str, str]:
    pods = {f"n{i}": operand_pod(f"n{i}", image=image) for i, image in enumerate(images)}
    observed = snapshot(
        platform=OPENSHIFT if openshift else KUBEADM,
        settings=settings,
        server_version="v1.35.4",
        operand_pods=pods,
        cluster_operator={"metadata": {"name": "kube-scheduler"}, "spec": {}},
    )
    (report,) = report_cluster_operator(observed, ()).reports
    return {one["name"]: one["version"] for one in report.obj["status"]["versions"]}


def test_the_names_and_spellings_are_those_of_a_release_payload() -> None:
    assert versions(RELEASE, NEW, NEW) == {
        "operator": "4.20.0",
        "raw-internal": "4.20.0",
        "kube-scheduler": "1.35.4",
    }


def test_the_payload_may_name_the_version_of_kube_scheduler() -> None:
    found = versions(replace(RELEASE, operand_version="1.35.4-rc.1"), NEW)
    assert found["kube-scheduler"] == "1.35.4-rc.1"


@pytest.mark.parametrize("images", [(), (OLD,), (OLD, NEW)], ids=["none", "old", "mixed"])
def test_the_new_version_is_reported_once_every_scheduler_runs_its_image(
    images: tuple[str, ...],
) -> None:
    assert versions(RELEASE, *images) == {"raw-internal": "4.20.0"}


def test_elsewhere_there_is_no_payload_to_compare_with() -> None:
    own = replace(RELEASE, operator_version="0.1.0")
    assert versions(own, OLD, openshift=False) == {"operator": "0.1.0", "kube-scheduler": "v1.35.4"}

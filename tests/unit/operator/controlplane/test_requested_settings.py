"""OperatorSettings over what was adopted: what is set wins, what is unset stays."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT
from kube_scheduler_operator.config.effective.settings.requested_pod import requested_pod
from kube_scheduler_operator.operator.controlplane.adoption.adopted import adopted
from kube_scheduler_operator.operator.controlplane.adoption.pod_settings import (
    NO_SETTINGS,
    PodSettings,
    apply_settings,
    merged_settings,
)
from kube_scheduler_operator.operator.controlplane.desired import desired_content
from kube_scheduler_operator.operator.controlplane.node_pods import (
    InstalledScheduler,
    render_static_pod,
)
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from ....builders import operator_settings
from ....customised import CUSTOMISED
from .adoption.test_adopted import cluster, on

ALL = tuple(CUSTOMISED)


def settings_of(*customisations: str) -> PodSettings:
    return adopted(cluster({"a": on("a", *customisations)})).settings


def pod(customisations: tuple[str, ...] = (), **pods: Any) -> dict[str, Any]:
    """The operator's static Pod for an adopted scheduler and a request."""
    own = render_static_pod(KUBEADM, "image", ["--v=2"], ("127.0.0.1", 10259))
    merged = merged_settings(settings_of(*customisations), requested_pod({"pods": pods}))
    return apply_settings(own, merged)


def container(customisations: tuple[str, ...] = (), **pods: Any) -> dict[str, Any]:
    found: dict[str, Any] = pod(customisations, **pods)["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("name", [None, *CUSTOMISED])
def test_without_a_request_everything_stays_as_it_was_adopted(name: str | None) -> None:
    before = settings_of(*([name] if name else []))
    assert merged_settings(before, requested_pod({})) == before
    assert merged_settings(before, requested_pod({"pods": {"env": []}})) == before


def test_a_quantity_replaces_the_adopted_one_and_no_other() -> None:
    limits = {"cpu": 2}
    assert container(("resources",), resources={"limits": limits})["resources"] == {
        "requests": {"cpu": "250m", "memory": "300Mi"}, "limits": {"memory": "1Gi", "cpu": "2"},
    }  # fmt: skip
    assert container(resources={"requests": {"cpu": "1"}})["resources"] == {
        "requests": {"cpu": "1", "memory": "50Mi"}
    }


def test_a_variable_replaces_the_adopted_one_in_its_place() -> None:
    env = [{"name": "NEW", "value": "$(GOGC)"}, {"name": "HTTPS_PROXY", "value": "http://b:1"}]
    found = container(("environment",), env=env)["env"]
    assert [(one["name"], one["value"]) for one in found] == [
        ("GOGC", "50"), ("HTTPS_PROXY", "http://b:1"),
        ("NO_PROXY", "127.0.0.1,10.0.0.0/8,.svc,.cluster.local"), ("NEW", "$(GOGC)"),
    ]  # fmt: skip
    (one,) = container(("references",), env=[{"name": "HOST_IP", "value": "::1"}])["env"][1:]
    assert one == {"name": "HOST_IP", "value": "::1"}


def test_annotations_and_priority_replace_adopted_ones_but_not_the_operators() -> None:
    found = pod(
        ("annotations",),
        annotations={"example.com/team": "new", "a": "b"},
        priorityClassName="system-cluster-critical",
    )
    assert found["metadata"]["annotations"] == {
        "kubectl.kubernetes.io/default-container": "kube-scheduler",
        "example.com/team": "new", "a": "b",
    }  # fmt: skip
    spec = found["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("system-cluster-critical", 2000000000)


def test_files_are_mounted_read_only_and_replace_adopted_mounts() -> None:
    files = [
        {"path": "/usr/share/ca-certificates", "mountPath": "/etc/ssl/certs", "type": "Directory"},
        {"path": "/etc/localtime"},
    ]
    found = pod(("volumes",), hostFiles=files)
    mounts = found["spec"]["containers"][0]["volumeMounts"]
    volumes = {one["name"]: one for one in found["spec"]["volumes"]}
    assert "certs" not in volumes
    assert mounts[-2:] == [
        {"name": "host-file-0", "mountPath": "/etc/ssl/certs", "readOnly": True},
        {"name": "host-file-1", "mountPath": "/etc/localtime", "readOnly": True},
    ]
    assert volumes["host-file-0"]["hostPath"] == {
        "path": "/usr/share/ca-certificates", "type": "Directory",
    }  # fmt: skip
    assert volumes["host-file-1"]["hostPath"] == {"path": "/etc/localtime", "type": "File"}
    assert {mount["name"] for mount in mounts} == set(volumes)


def test_an_adopted_volume_may_have_any_name() -> None:
    volume = {"name": "host-file-0", "hostPath": {"path": "/data"}}
    theirs = PodSettings(
        {}, {}, {"volumes": [volume]},
        {"volumeMounts": [{"name": "host-file-0", "mountPath": "/data"}]},
    )  # fmt: skip
    files = [{"path": "/etc/localtime"}]
    merged = merged_settings(theirs, requested_pod({"pods": {"hostFiles": files}}))
    assert [one["name"] for one in merged.spec["volumes"]] == ["host-file-0", "host-file-1"]


@pytest.mark.parametrize("name", [name for name, one in CUSTOMISED.items() if one.kept])
def test_every_adopted_setting_can_be_removed_by_its_name(name: str) -> None:
    before = settings_of(name)
    for setting, _ in before.names():
        request = requested_pod({"pods": {"removeAdopted": [setting]}})
        left = dict(merged_settings(before, request).names())
        assert setting not in left
    everything = [setting for setting, _ in before.names()]
    request = requested_pod({"pods": {"removeAdopted": everything}})
    assert merged_settings(before, request) == NO_SETTINGS


def test_one_variable_is_removed_and_the_others_stay() -> None:
    found = container(("environment",), removeAdopted=["env.HTTPS_PROXY"])["env"]
    assert [one["name"] for one in found] == ["GOGC", "NO_PROXY"]


def test_a_mount_takes_its_volume_with_it() -> None:
    for name in ("volumeMounts./etc/ssl/certs", "volumes.certs"):
        found = pod(("volumes",), removeAdopted=[name])["spec"]
        assert "certs" not in {one["name"] for one in found["volumes"]}
        assert "certs" not in {one["name"] for one in found["containers"][0]["volumeMounts"]}


def test_the_preflight_sees_variables_and_files() -> None:
    files = [{"path": "/etc/ssl/certs", "type": "Directory"}]
    shared = InstalledScheduler.of(pod(env=[{"name": "GOGC", "value": "80"}], hostFiles=files))
    assert shared.environment == ({"name": "GOGC", "value": "80"},)
    assert [mount["mountPath"] for mount in shared.mounts] == ["/etc/ssl/certs"]
    assert [volume["hostPath"]["path"] for volume in shared.volumes] == ["/etc/ssl/certs"]


# --- in a revision --------------------------------------------------------------------------------


def content(snapshot: Snapshot) -> Any:
    found, findings = desired_content(snapshot)
    assert found is not None, findings
    return found


def test_the_record_of_what_was_adopted_is_without_the_request() -> None:
    pods = {"a": on("a", "environment")}
    before = content(cluster(pods))
    settings = operator_settings(removeAdopted=["env.GOGC"], annotations={"a": "b"})
    after = content(cluster(pods, operator_settings={"cluster": settings}))
    assert after.hash != before.hash
    assert after.parts[names.POD][names.ADOPTED_KEY] == before.parts[names.POD][names.ADOPTED_KEY]
    made = json.loads(after.parts[names.POD][names.POD_KEY])
    assert [one["name"] for one in made["spec"]["containers"][0]["env"]] == [
        "HTTPS_PROXY", "NO_PROXY",
    ]  # fmt: skip


def test_an_object_that_requests_nothing_changes_no_byte() -> None:
    pods = {"a": on("a", "environment")}
    settings = {"cluster": operator_settings(env=[], priorityClassName="")}
    assert content(cluster(pods)).hash == content(cluster(pods, operator_settings=settings)).hash


def test_openshifts_static_pods_do_not_change() -> None:
    snapshot = cluster({"a": on("a")})
    settings = {"cluster": operator_settings(annotations={"a": "b"})}
    both = (
        desired_content(replace(snapshot, platform=OPENSHIFT, operator_settings=one))[0]
        for one in ({}, settings)
    )
    assert len({each.hash if each else "" for each in both}) == 1

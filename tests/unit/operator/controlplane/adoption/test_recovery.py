"""What was adopted is read from the operator's own schedulers if all revisions are lost."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.settings.requested_pod import requested_pod
from kube_scheduler_operator.operator.controlplane.adoption.adopted import Adopted, adopted
from kube_scheduler_operator.operator.controlplane.adoption.pod_settings import (
    PodSettings,
    apply_settings,
    merged_settings,
)
from kube_scheduler_operator.operator.controlplane.node_pods import render_static_pod

from .....builders import extender, kubescheduler, operator_settings, profile
from .....customised import CUSTOMISED
from .test_adopted import cluster, on, revision

EVERYTHING = tuple(CUSTOMISED)


def own(settings: PodSettings, node: str = "a", number: int = 7, **changes: Any) -> dict[str, Any]:
    """The mirror Pod of an operator's scheduler, with fields that the API server sets."""
    rendered = render_static_pod(KUBEADM, "image", ["--v=2"], ("127.0.0.1", 10259))
    made = apply_settings(rendered, settings)
    made["metadata"]["name"] = f"kube-scheduler-{node}"
    made["metadata"]["labels"][names.REVISION_LABEL] = str(number)
    made["metadata"]["annotations"]["kubernetes.io/config.source"] = "file"
    defaults = {
        "dnsPolicy": "ClusterFirst", "enableServiceLinks": True, "restartPolicy": "Always",
        "schedulerName": "default-scheduler", "preemptionPolicy": "PreemptLowerPriority",
    }  # fmt: skip
    made["spec"] = {**defaults, **made["spec"], "nodeName": node, **changes}
    return made


def settings_of(*customisations: str) -> PodSettings:
    return adopted(cluster({"a": on("a", *customisations)})).settings


@pytest.mark.parametrize("name", [*CUSTOMISED, ""])
def test_the_settings_of_the_pod_are_those_that_were_adopted(name: str) -> None:
    before = settings_of(*([name] if name else []))
    found = adopted(cluster({"a": own(before)}))
    assert found.settings == before
    assert not found.findings
    assert not found.new


def test_all_of_them_together_give_the_same_record() -> None:
    before = adopted(cluster({"a": on("a", *EVERYTHING)}))
    observed = {**before.config, "arguments": {"tls-min-version": ["VersionTLS13"]}}
    snapshot = cluster(
        {"a": own(before.settings)}, kubescheduler=kubescheduler(observedConfig=observed)
    )
    assert adopted(snapshot).record == before.record


def test_the_newest_scheduler_counts() -> None:
    pods = {
        "a": own(settings_of("environment"), "a", 8),
        "b": own(settings_of(), "b", 7),
        "c": on("c", "resources"),
    }
    assert adopted(cluster(pods)).settings == settings_of("environment")


def test_the_record_of_a_revision_wins() -> None:
    pods = {"a": own(settings_of("environment"))}
    assert adopted(cluster(pods, config_maps=revision(7, ""))) == Adopted()


def test_what_operator_settings_replaces_is_not_taken_for_adopted() -> None:
    pods = {
        "env": [{"name": "GOGC", "value": "80"}, {"name": "NEW"}],
        "annotations": {"a": "b"},
        "priorityClassName": "system-cluster-critical",
        "resources": {"limits": {"memory": "3Gi"}},
        "hostFiles": [{"path": "/etc/localtime"}],
    }
    merged = merged_settings(settings_of("environment", "volumes"), requested_pod({"pods": pods}))
    settings = operator_settings(accepted={"pods": pods}, **pods)
    snapshot = cluster({"a": own(merged)}, operator_settings={"cluster": settings})
    left = [name for name, _ in adopted(snapshot).settings.names()]
    assert left == [
        "env.HTTPS_PROXY", "env.NO_PROXY", "volumeMounts./etc/ssl/certs", "volumes.certs",
    ]  # fmt: skip


def test_fields_of_objects_are_not_taken_for_adopted() -> None:
    profiles = [{"schedulerName": "team"}, {"schedulerName": "default-scheduler"}]
    observed = {
        "profiles": profiles,
        "parallelism": 8,
        "extenders": [{"urlPrefix": "http://x"}],
        "servingInfo": {"minTLSVersion": "VersionTLS13"},
        "arguments": {"vmodule": ["a=1"]},
    }
    snapshot = cluster(
        {"a": own(settings_of())},
        kubescheduler=kubescheduler(observedConfig=observed),
        scheduler_profiles={"team": profile("team")},
        scheduler_extenders={"x": extender("x", url="http://x")},
    )
    assert adopted(snapshot).config == {"parallelism": 8, "profiles": [profiles[1]]}

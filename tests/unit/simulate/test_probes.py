"""Profiles and pods that ask one question each."""

from __future__ import annotations

import re

import pytest

from kube_scheduler_operator.base.limits import FOREIGN_REASON
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.simulate import probes
from kube_scheduler_operator.simulate.decisions import PodDecision
from kube_scheduler_operator.simulate.probes import (
    MOST_REASONS,
    families_of,
    probe,
    probe_profiles,
    profile_of,
    reasons,
)

GATES = Gates(Version(1, 35))
DNS_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory.",
         [(1, "Insufficient cpu"), (2, "Insufficient memory")]),
        ("0/3 nodes are available: 3 node(s) had untolerated taint(s). no new claims to "
         "deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful.",
         [(3, "node(s) had untolerated taint(s)")]),
        ("0/3 nodes are available: 3 Too many pods. preemption: 0/3 nodes are available: 3 x.",
         [(3, "Too many pods")]),
        ('0/3 nodes are available: persistentvolumeclaim "x" not found. preemption: 0/3', []),
        ('0/3 nodes are available: persistentvolumeclaim "1 x, 3 Too many pods" not found.', []),
        ('0/3 nodes are available: 1 a "\\", 3 Too many pods", 2 b ", 1 c.',
         [(1, 'a "\\", 3 Too many pods"'), (2, 'b "'), (1, "c")]),
        ("no nodes available to schedule pods", []),
    ],
)  # fmt: skip
def test_reasons_of_a_message_are_counted(message: str, found: list[tuple[int, str]]) -> None:
    assert reasons(message) == found


def test_the_reasons_of_a_pod_with_thousands_of_resources_are_few_and_short() -> None:
    texts = [f"3 Insufficient example.com/{number}" for number in range(20_000)]
    message = f"0/3 nodes are available: 3 {'x' * 5000}, {', '.join(texts)}."
    kept = probes._acceptance(PodDecision("n/p", message=message)).reasons
    assert len(kept) == MOST_REASONS + 1
    assert kept[-1] == "19991 more reasons"
    assert max(map(len, kept)) <= FOREIGN_REASON


def test_plugins_of_one_constraint_are_one_family() -> None:
    found = families_of({}, GATES)
    assert found["volumes"] == [
        "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
    ]  # fmt: skip
    assert found["requests"] == ["NodeResourcesFit"]
    custom = {"plugins": {"multiPoint": {"enabled": [{"name": "Custom"}]}}}
    assert families_of(custom, GATES)["Custom"] == ["Custom"]
    off = {"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}
    assert "taints" not in families_of(off, GATES)


def test_all_profiles_have_the_same_queue() -> None:
    queue = {"disabled": [{"name": "*"}], "enabled": [{"name": "PrioritySort"}]}
    profile = {"plugins": {"queueSort": queue}}
    profiles = probe_profiles(profile, families_of(profile, GATES), GATES)
    assert all(each["plugins"]["queueSort"] == queue for each in profiles)


def test_a_probe_uses_the_objects_of_its_pod() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {
            "schedulingGates": [{"name": "g"}],
            "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}],
            "resourceClaims": [
                {"name": "a", "resourceClaimTemplateName": "t"},
                {"name": "b", "resourceClaimTemplateName": "t"},
            ],
        },
        "status": {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "p-b-x7z"}]},
    }
    made = probe(pod, 1, profile_of("node affinity"))
    assert made["metadata"]["uid"] != "u"
    name = made["metadata"]["name"]
    assert not re.fullmatch(DNS_SUBDOMAIN, name), "a pod of the cluster can have this name"
    assert made["spec"] == {
        "schedulerName": "simulation-only-node-affinity",
        "volumes": [{"name": "scratch", "persistentVolumeClaim": {"claimName": "p-scratch"}}],
        "resourceClaims": [
            {"name": "a", "resourceClaimName": "p-a"},
            {"name": "b", "resourceClaimName": "p-b-x7z"},
        ],
    }
